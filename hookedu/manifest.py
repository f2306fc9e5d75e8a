"""What was put into somebody else's folder, so that a later version replaces only what they left as it was."""

import hashlib
import json
from pathlib import Path

_RECORD = ".hookedu.json"


def given(folder: Path) -> dict[str, str]:
    """The digest of each file that was put there, by name; {} where that is not known."""
    try:
        known = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def remember(folder: Path, files: dict[str, str]) -> None:
    """Keep what `given` is to return the next time. Raises OSError."""
    (folder / _RECORD).write_text(json.dumps(files, indent=1), encoding="utf-8")


def digest(content: bytes) -> str:
    """By which a version of a file is known."""
    return hashlib.sha256(content).hexdigest()
