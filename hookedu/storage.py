"""The user's settings and records, in one small folder that platformdirs chooses.

Settings are one JSON file, which is replaced as a whole. Growing records (of checks) are JSON lines, which
are appended, so that two notebooks can write at the same moment without losing a line. A home folder that
cannot be written to never stops a lesson: nothing is saved then, and `writable()` tells callers who want to
inform the learner.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def folder() -> Path:
    """Return the data folder of hookedu (on Linux `$XDG_DATA_HOME/hookedu`), which may not exist yet."""
    from platformdirs import user_data_path

    return user_data_path("hookedu", appauthor=False)


def writable() -> bool:
    """Check whether the folder can be created and written to, which it cannot on a full disk; create it if possible."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder()) as file:
            file.write(b"1")
    except OSError:
        return False
    return True


def load_settings() -> dict[str, Any]:
    """Return the saved settings; {} if there are none or they cannot be read."""
    try:
        settings = json.loads((folder() / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}


def save_setting(name: str, value: Any) -> None:
    """Save one JSON value under `name`; an unwritable home folder is ignored."""
    settings = load_settings() | {name: value}
    try:
        folder().mkdir(parents=True, exist_ok=True)
        # A reader must never see half a file, so write a temporary file and rename it.
        with (
            tempfile.NamedTemporaryFile("w", dir=folder(), delete=False, encoding="utf-8") as new,
            _gone(new.name),
        ):
            json.dump(settings, new, ensure_ascii=False)
            new.close()
            os.replace(new.name, folder() / "settings.json")
    except OSError:
        pass


@contextlib.contextmanager
def _gone(path: str) -> Iterator[None]:
    """Delete a file after an exception, such as that of a full disk."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


def append_record(log: str, record: dict[str, Any]) -> None:
    """Append one record to the log of that name; an unwritable home folder is ignored."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with open(folder() / f"{log}.jsonl", "ab+") as lines:
            # A full disk may have cut the last line: this one must not be taken for the rest of it.
            size = lines.seek(0, os.SEEK_END)
            lines.seek(max(0, size - 1))
            cut = lines.read() not in (b"", b"\n")
            lines.write(b"\n" * cut + json.dumps(record).encode() + b"\n")
    except OSError:
        pass


def read_records(log: str) -> list[dict[str, Any]]:
    """Return all records of a log, oldest first; lines that are not JSON objects are skipped."""
    try:
        text = (folder() / f"{log}.jsonl").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    records = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records
