"""Observe the effects of submissions from outside: the files and the processes of the machine."""

import contextlib
import os
import stat
from pathlib import Path


def files(*folders: Path) -> dict[str, tuple[int, ...]]:
    """Return every path below some folders with its mode and, for files, size and modification time.

    What other tests may cache there meanwhile is left out.
    """
    found = {}
    for path in (path for folder in folders for path in folder.rglob("*")):
        if not {"__pycache__", "node_modules", ".ruff_cache"} & {*path.parts}:
            facts = path.lstat()
            found[str(path)] = (
                facts.st_mode,
                *((facts.st_size, facts.st_mtime_ns) if stat.S_ISREG(facts.st_mode) else ()),
            )
    return found


def processes_with(mark: str) -> list[int]:
    """Return the other processes that have `mark` in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in said:
                found.append(int(entry.name))
    return found


def descendants(pid: int) -> dict[int, str]:
    """Return all living descendants of a process with their start times, because process ids are reused."""
    found = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the process has just ended
            for child in map(int, task.read_text().split()):
                found |= {child: birth(child)} | descendants(child)
    return {child: born for child, born in found.items() if born}


def birth(pid: int) -> str:
    """Return the start time of a process in clock ticks, or "" if it has ended."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        # A zombie has ended; its new parent has not reaped it yet.
        return facts[19] if facts[0] != "Z" else ""
    except OSError:
        return ""
