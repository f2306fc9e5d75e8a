"""Resource limits of a submission; apart from rows.py, as the command line shows them before torch is loaded."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Resource limits of one submission; time counts from its first cell, so loading torch is not included."""

    seconds: float = 60.0  # wall-clock time; the CPU time limit is slightly higher
    memory: int = 2048  # MiB, in addition to what torch takes
    file: int = 64  # MiB per file written
    disk: int = 128  # MiB in each of the folders that it can write to; enforced with isolation only
    processes: int = 64  # with threads, at a time; enforced with isolation, not for root: see namespaces.py
    startup: float = 180.0  # seconds for the grader's own work before the first cell
