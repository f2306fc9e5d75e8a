"""What is to be seen from outside of what submissions do: the files and the processes of the machine."""

import contextlib
import os
from pathlib import Path


def files(*folders: Path) -> dict[str, tuple[int, ...]]:
    """Everything below some folders, with its mode and, of files, size and time of the last change."""
    found = {}
    for path in (path for folder in folders for path in folder.rglob("*")):
        if "__pycache__" not in path.parts:
            facts = path.lstat()
            found[str(path)] = (
                facts.st_mode,
                *((facts.st_size, facts.st_mtime_ns) if path.is_file() else ()),
            )
    return found


def processes_with(mark: str) -> list[int]:
    """Processes that carry a mark in their command line or their environment, other than this one."""
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
    """Every process that came from this one and lives, with the time of its birth: numbers are used again."""
    found = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for child in map(int, task.read_text().split()):
                found |= {child: birth(child)} | descendants(child)
    return {child: born for child, born in found.items() if born}


def birth(pid: int) -> str:
    """When a process was born, in the kernel's ticks; "" where it is dead."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        # A zombie is dead, and whoever inherited it has yet to notice.
        return facts[19] if facts[0] != "Z" else ""
    except OSError:
        return ""
