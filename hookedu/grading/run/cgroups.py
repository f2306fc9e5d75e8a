"""One control group (cgroup v2) for each submission, on machines where the grader may create groups.

In a group the kernel itself limits the memory and the number of all processes together, and shares the processors
fairly among the groups. Everywhere else, namespaces.py and the watcher in warm.py have to suffice; they also run where
there are groups. The grader may create groups in two places:

- under systemd, below a scope that systemd starts for the warm process and hands over to the user (Delegate=yes);
- below the grader's own group if that is writable and has the controllers, as root on some machines without systemd.

The files are described in https://docs.kernel.org/admin-guide/cgroup-v2.html.
"""

import contextlib
import fcntl
import itertools
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_NEEDED, _WELCOME = ("memory", "pids"), ("cpu",)  # controllers; "cpu" shares equally without being told
# What systemd-run needs of the environment, and what it adds; a submission sees none of it.
ENVIRONMENT = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "INVOCATION_ID")
_OURS = "hookedu-"  # begins the names of the groups that hold those of one grader
_PATIENCE = 2.0  # seconds in which the last process of a group must have gone


def scope() -> list[str]:
    """Return the beginning of a command line that starts a program in a scope of its own; empty without systemd.

    The program inherits the file descriptors and replaces systemd-run, so the process id stays the same.
    """
    program = shutil.which("systemd-run")
    if not program or not os.path.isdir("/run/systemd/system"):
        return []
    manager = ["--user"] if os.getuid() else []
    command = [program, *manager, "--scope", "--quiet", "--collect", "--property=Delegate=yes", "--"]
    try:
        subprocess.run(
            [*command, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return command


def below(pid: int, delegated: bool) -> "Groups | None":
    """Create a group for the groups of submissions, below that of a process.

    Parameters
    ----------
    pid : int
        Process in the group.
    delegated : bool
        Whether that group is a scope with only this process and its children in it.

    Returns
    -------
    Groups or None
        None if the kernel does not allow it or lacks a controller.
    """
    try:
        base = _group_of(pid)
        if base is None:
            return None
        if delegated:
            _move_down(base)
        for stale in base.glob(f"{_OURS}*"):
            _remove_stale(stale)
        _hand_on(base)
        groups = Groups(base)
        try:
            _hand_on(groups.path)
        except OSError:
            groups.close()
            raise
    except OSError:
        return None
    return groups


class Groups:
    """A group in which each submission gets one of its own.

    It is locked as long as it is used, so that another grader that begins meanwhile does not take it for one that was
    left behind.
    """

    def __init__(self, base: Path):
        self._numbers = itertools.count()
        while True:
            self.path = base / f"{_OURS}{os.getpid()}-{time.monotonic_ns()}"
            self.path.mkdir()
            # Another grader may remove it just before it is locked.
            with contextlib.suppress(FileNotFoundError):
                self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
                fcntl.flock(self._lock, fcntl.LOCK_SH)
                if self.path.exists():
                    return
                os.close(self._lock)

    def new(self, memory: int, processes: int) -> "Group":
        """Create a group.

        Parameters
        ----------
        memory : int
            Bytes that all processes in it may take together, including files in memory and the kernel's buffers.
        processes : int
            Number of processes and threads.

        Raises
        ------
        OSError
            If the kernel refuses.
        """
        path = self.path / str(next(self._numbers))
        path.mkdir()
        limits = {"memory.max": memory, "memory.oom.group": 1, "memory.swap.max": 0, "pids.max": processes}
        for name, value in limits.items():
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap, or from before Linux 4.19
                _write(path / name, str(value))
        return Group(path)

    def close(self) -> None:
        """Remove all groups; those that still have processes stay."""
        _remove_empty(self.path)
        os.close(self._lock)


@dataclass(frozen=True)
class Group:
    """The group of one submission."""

    path: Path

    def entrance(self) -> int:
        """Open the file through which a process moves into the group by writing "0" to it.

        The kernel checks the rights of whoever opened the file, so a process without rights can be let in.
        """
        return os.open(self.path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of the group for want of memory."""
        with contextlib.suppress(OSError):
            events = dict(line.split() for line in (self.path / "memory.events").read_text().splitlines())
            return int(events.get("oom_kill", 0)) > 0
        return False

    def remove(self) -> None:
        """Kill what is left in the group and remove it."""
        with contextlib.suppress(OSError):  # before Linux 5.14; the namespace has ended the processes anyway
            _write(self.path / "cgroup.kill", "1")
        until = time.monotonic() + _PATIENCE
        while self.path.exists():
            try:
                self.path.rmdir()
            except OSError:  # the last process is still being taken down
                if time.monotonic() > until:
                    return
                time.sleep(0.005)


def _group_of(pid: int) -> Path | None:
    """Return the folder of a process's group, or None if this machine has no cgroup v2 or shows another part of it."""
    own = next((line[3:] for line in _lines(f"/proc/{pid}/cgroup") if line.startswith("0::")), None)
    for line in _lines("/proc/self/mountinfo"):
        fields, _, kind = line.partition(" - ")
        if own and kind.startswith("cgroup2 "):
            root, mount = fields.split()[3:5]
            inside = os.path.relpath(own, root)
            if not inside.startswith(".."):
                return Path(mount, inside)
    return None


def _move_down(base: Path) -> None:
    """Move all processes of a group into one below it: a group that hands controllers on may have none."""
    below = base / "warm"
    below.mkdir()
    while pids := _lines(base / "cgroup.procs"):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                _write(below / "cgroup.procs", pid)


def _hand_on(group: Path) -> None:
    """Let the groups below a group use its controllers. Raises OSError if one that is needed is missing."""
    here = (group / "cgroup.controllers").read_text().split()
    given = (group / "cgroup.subtree_control").read_text().split()
    for name in (*_NEEDED, *(name for name in _WELCOME if name in here)):
        if name not in given:
            _write(group / "cgroup.subtree_control", f"+{name}")


def _remove_stale(group: Path) -> None:
    """Remove what a grader that was killed has left behind; what another one uses stays."""
    with contextlib.suppress(OSError):  # locked, or already gone
        lock = os.open(group, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_empty(group)
        finally:
            os.close(lock)


def _remove_empty(group: Path) -> None:
    for path in (*group.glob("*/"), group):
        with contextlib.suppress(OSError):
            path.rmdir()


def _lines(path: str | Path) -> list[str]:
    with open(path) as file:
        return file.read().splitlines()


def _write(path: Path, value: str) -> None:
    with open(os.open(path, os.O_WRONLY), "w") as file:  # mode "w" alone would try to create a missing file
        file.write(value)
