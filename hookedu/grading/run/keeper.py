"""The keeper: without isolation, one process per submission that starts the worker, waits for it and cleans up.

The keeper becomes the parent of the worker's orphaned descendants and kills them one by one. Where the kernel has no
such feature (macOS), killing the worker's process group has to suffice.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import tempfile
from typing import NoReturn

from hookedu.grading.run import namespaces, worker

WAITED = b"?"  # asked by the grader: how long has the submission waited for a processor?


def keep(todo: dict, cells: int, channel: int, line: int) -> NoReturn:
    """Start the worker, wait until it ends or the grader hangs up, and leave no process and no file behind.

    Parameters
    ----------
    todo : dict
        The job, see `runner.run`.
    cells : int
        File descriptor of the learner's cells.
    channel : int
        File descriptor of the pipe for the worker's results.
    line : int
        File descriptor of the control socket: how the worker ended is reported there, and its closing by the grader
        ends the worker.
    """
    home = ""
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        home = tempfile.mkdtemp(prefix="hookedu-grade-")
        with contextlib.suppress(OSError, AttributeError):  # not Linux: the process group has to suffice
            namespaces.adopt_orphans()
        pid = os.fork()
        if pid == 0:
            os.close(line)
            worker.main(todo, cells, channel, lambda: home, False)
        os.close(cells)
        os.close(channel)
        code = _wait(pid, line)
        _end_descendants(pid)
        if code is not None:
            tell(line, code=code)
    except BaseException as error:
        tell(line, failed=f"{type(error).__name__}: {error}")
    if home:
        shutil.rmtree(home, ignore_errors=True)
    os._exit(0)


def tell(line: int, **message: object) -> None:
    """Report over the control socket how a submission ended; do nothing if the other end is closed."""
    with contextlib.suppress(OSError):
        os.write(line, json.dumps(message).encode() + b"\n")


def answered(line: int, worker: int) -> bool:
    """Answer the grader's question; return False if it has hung up instead."""
    try:
        asked = os.read(line, 16)
    except OSError:
        return False
    if asked:
        tell(line, waited=_waited(worker))
    return bool(asked)


def _waited(pid: int) -> float:
    """Return the seconds for which a process could have run and did not; 0 where the kernel does not report them."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _wait(worker: int, line: int) -> int | None:
    """Return the worker's exit code (negative for a signal), or None if the grader hung up first."""
    watched = [line]
    with contextlib.suppress(OSError, AttributeError):  # not Linux: poll every 20 ms instead
        watched.append(os.pidfd_open(worker))
    while True:
        ready, _, _ = select.select(watched, [], [], None if len(watched) > 1 else 0.02)
        if line in ready and not answered(line, worker):
            os.kill(worker, signal.SIGKILL)
            return None
        pid, status = os.waitpid(worker, os.WNOHANG)
        if pid == worker:
            return os.waitstatus_to_exitcode(status)


def _end_descendants(worker: int) -> None:
    """Kill the worker's process group and every adopted descendant, until none is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker, signal.SIGKILL)
    while True:
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                children = [int(pid) for pid in file.read().split()]
        except OSError:
            return
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
