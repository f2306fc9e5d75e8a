"""A record of the files that hookedu put into a user's folder.

With it, a later version replaces only the files that the user has not changed.
"""

import hashlib
import json
from pathlib import Path

_RECORD = ".hookedu.json"


def given(folder: Path) -> dict[str, str]:
    """Return the digest of each file that was put into the folder, by name; {} if there is no record."""
    try:
        known = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def remember(folder: Path, files: dict[str, str]) -> None:
    """Save the digests for `given` to return; raise OSError if the folder cannot be written to."""
    (folder / _RECORD).write_text(json.dumps(files, indent=1), encoding="utf-8")


def digest(content: bytes) -> str:
    """Return the SHA-256 digest of a file's content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
