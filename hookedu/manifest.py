"""A record of the files that hookedu put into a user's folder.

With it, a later version replaces only what the user has not changed: of a file of an nbgrader course its digest is noted,
of a lesson each cell's.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

_RECORD = ".hookedu.json"


def given(folder: Path) -> dict[str, Any]:
    """Return what was noted of each file that was put into the folder, by name; {} if there is no record."""
    try:
        known = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def remember(folder: Path, files: dict[str, Any]) -> None:
    """Save the notes for `given` to return; raise OSError if the folder cannot be written to."""
    (folder / _RECORD).write_text(json.dumps(files), encoding="utf-8")


def digest(content: bytes) -> str:
    """Return the SHA-256 digest of a file's content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
