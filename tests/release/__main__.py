"""Make and check the files of a release in dist/, and publish nothing: `make release`.

    python -m tests.release              with the run of all lessons in Chinese for the site, which takes ten minutes
    python -m tests.release --run no     without it

dist/SHA256SUMS lists what was made; `sha256sum -c SHA256SUMS` in dist/ compares.
"""

import argparse
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hookedu import catalog
from tests import isolation
from tests.release import artefacts, changelog, checks, installed
from tests.release.links import broken_in_site
from tests.release.traces import traces

CLONE = catalog.ROOT
CONSOLE = Console(highlight=False, markup=False)


class Report:
    """What was checked of each file, and the problems that were found."""

    def __init__(self) -> None:
        self.lines: dict[Path, list[str]] = {}
        self.problems: list[str] = []

    def check(self, path: Path, what: str, check: Callable[..., list[str]], *arguments: object) -> None:
        """Run a check and note how it went."""
        found = check(*arguments)
        self.note(path, "✗" if found else "✓", what)
        self.problems += [f"{path.name}, {what}: {problem}" for problem in found]

    def note(self, path: Path, mark: str, what: str) -> None:
        """Note a line on a file: ✓ well, ✗ a problem, – not checked on this machine."""
        CONSOLE.print(f"{mark} {path.name}: {what}")
        self.lines.setdefault(path, []).append(f"{mark} {what}")

    def table(self) -> Table:
        """Return the table of files: name, size, SHA-256 (in two lines) and what was checked."""
        table = Table("file, size, SHA-256", "checked", show_lines=True)
        for path, lines in self.lines.items():
            digest = sha256(path)
            size = f"{path.stat().st_size / 1e6:.1f} MB"
            table.add_row("\n".join([path.name, size, digest[:32], digest[32:]]), "\n".join(lines))
        return table


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """Make and check everything; return 0 where nothing is wrong, else 1, and 2 where it cannot begin."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--run", choices=("yes", "no"), default="yes", help="run the lessons for the Chinese site"
    )
    asked = parser.parse_args()
    if changed := set(artefacts.uncommitted(CLONE)) - {"CHANGELOG.md"}:
        print(f"Commit these first, because a release is made of a commit: {', '.join(sorted(changed))}")
        return 2
    changelog.date(CLONE)
    commit = artefacts.last_commit(CLONE)
    out = CLONE / "dist"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        tree = artefacts.snapshot(CLONE, Path(folder) / "tree")
        _distributions(report, tree, out, commit.time)
        _lessons(report, tree, out, commit.time)
        _site(report, tree, out, commit.time, asked.run)
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in report.lines)
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    CONSOLE.print(report.table())
    for problem in report.problems:
        CONSOLE.print(f"✗ {problem}", style="red")
    if artefacts.uncommitted(CLONE):
        CONSOLE.print(
            "CHANGELOG.md has its date now: commit it, and make the files to publish from that commit."
        )
    else:
        CONSOLE.print(f"Made of commit {commit.name}.")
    CONSOLE.print("Nothing was published.")
    return 1 if report.problems else 0


def _distributions(report: Report, tree: Path, out: Path, seconds: int) -> None:
    """Make the wheel and the sdist; the wheel works on every Python that this machine has."""
    sdist, wheel = artefacts.distributions(tree, out, seconds)
    again = artefacts.wheel(tree, tree.parent / "again", seconds)
    report.check(wheel, "twine check", checks.metadata, wheel)
    report.check(wheel, "the sdist makes it, to the byte", checks.same, wheel, again)
    report.check(wheel, "holds the package alone", checks.holds_the_package_alone, wheel)
    report.check(wheel, "names no machine's path, no registry", traces, wheel, tree)
    tried = "doctor, hand-out, grade"
    if why := isolation.why_not():
        report.note(wheel, "–", f"grade: {why}")
        tried = "doctor, hand-out"
    for version, python in installed.pythons().items():
        could, problems = installed.works_on(version, python, wheel)
        # A Python for which some dependency has no wheel yet is no fault of this one.
        if could or python == Path(sys.executable):
            report.check(wheel, f"Python {version}: {tried}", lambda found: found, problems)
        else:
            report.note(wheel, "–", problems[0])
    report.check(sdist, "twine check", checks.metadata, sdist)
    report.check(sdist, "holds every tracked file", checks.holds_every_tracked_file, sdist, CLONE)
    report.check(sdist, "links of README, guides", checks.links, sdist)
    report.check(sdist, "names no machine's path, no registry", traces, sdist, tree)


def _lessons(report: Report, tree: Path, out: Path, seconds: int) -> None:
    """Make the zips of lessons."""
    for language, path in artefacts.lessons(tree, out, seconds).items():
        what = f"notebooks valid, kernel python3, only {language}"
        report.check(path, what, checks.notebooks, path, language)
        report.check(path, "names no machine's path, no registry", traces, path, tree)


def _site(report: Report, tree: Path, out: Path, seconds: int, run: str) -> None:
    """Make the reading site in both languages."""
    CONSOLE.print("… the reading site" + (", which runs every lesson in Chinese" if run == "yes" else ""))
    html, path = artefacts.site(tree, out, seconds, artefacts.kept_runs(CLONE), run)
    report.check(path, "links", broken_in_site, html)
    report.check(path, "names no machine's path, no registry", traces, path, tree)
    if run == "no":
        report.note(path, "–", "Chinese pages show English outputs")


if __name__ == "__main__":
    sys.exit(main())
