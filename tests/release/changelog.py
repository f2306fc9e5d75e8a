"""Give the version in CHANGELOG.md its date: `python -m tests.release.changelog`, part of `make release`.

The heading `## 0.1.0 · 未发布 · unreleased` becomes `## 0.1.0 · 2026-11-28`, with the date of the last commit. A heading
that has a date keeps it.
"""

import re
from pathlib import Path

from hookedu import __version__, catalog
from tests.release.artefacts import last_commit

UNRELEASED = "未发布 · unreleased"


def dated(text: str, version: str, day: str) -> str:
    """Return a changelog with the date of a version in its heading; ValueError if it has no entry for the version."""
    heading = re.compile(rf"^## {re.escape(version)} · (?:{UNRELEASED}|(\d{{4}}-\d\d-\d\d))$", re.MULTILINE)
    if not (found := heading.search(text)):
        raise ValueError(
            f"CHANGELOG.md has no heading `## {version} · {UNRELEASED}`: write what is new under it."
        )
    return text if found[1] else heading.sub(f"## {version} · {day}", text, count=1)


def date(clone: Path) -> bool:
    """Give the changelog of a clone the date of its last commit; return whether that changed it."""
    path = clone / "CHANGELOG.md"
    before = path.read_text(encoding="utf-8")
    after = dated(before, __version__, last_commit(clone).day)
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before


if __name__ == "__main__":
    print("CHANGELOG.md has its date now." if date(catalog.ROOT) else "CHANGELOG.md had its date already.")
