"""What hookedu remembers about its user: one small folder, chosen by platformdirs.

Settings are one JSON file, replaced as a whole. Records that grow (checks) are JSON lines, appended: two
notebooks may write at the same moment and neither loses a line. A home that cannot be written to never
stops a lesson: the course then forgets, and `writable()` says so to whoever wants to tell the learner.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def folder() -> Path:
    """The user's data folder for hookedu (on Linux `$XDG_DATA_HOME/hookedu`); it may not exist yet."""
    from platformdirs import user_data_path

    return user_data_path("hookedu", appauthor=False)


def writable() -> bool:
    """Whether the folder can be made and written to."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        return os.access(folder(), os.W_OK)
    except OSError:
        return False


def load_settings() -> dict[str, Any]:
    """The saved settings; {} if there are none or they cannot be read."""
    try:
        settings = json.loads((folder() / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}


def save_setting(name: str, value: Any) -> None:
    """Keep one JSON value under `name`; an unwritable home is ignored."""
    settings = load_settings() | {name: value}
    try:
        folder().mkdir(parents=True, exist_ok=True)
        # A reader must never see half a file, hence: write beside, then rename.
        with tempfile.NamedTemporaryFile("w", dir=folder(), delete=False, encoding="utf-8") as new:
            json.dump(settings, new, ensure_ascii=False)
        os.replace(new.name, folder() / "settings.json")
    except OSError:
        pass


def append_record(log: str, record: dict[str, Any]) -> None:
    """Add one record to the log of that name; an unwritable home is ignored."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with open(folder() / f"{log}.jsonl", "a", encoding="utf-8") as lines:
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")
    except OSError:
        pass


def read_records(log: str) -> list[dict[str, Any]]:
    """All records of a log, oldest first; lines that are not JSON objects are passed over."""
    try:
        text = (folder() / f"{log}.jsonl").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    records = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records
