"""The warm process: torch and the exercises are loaded once, and every submission runs in a fork of it.

It never runs anything of a learner's. For each submission it is handed three descriptors: the job (a file), the
channel for results, and one end of the line over which its end is told. What a lesson's own setup cells import
is loaded here, with the first submission of that lesson. Then, with isolation:

    warm ── watcher (enters new namespaces, watches the memory of all below)
               └── keeper (process 1 there: waits for the worker, tells how it ended, takes all the rest along)
                      └── worker (the submission)

Without isolation the keeper adopts the worker's orphans and ends them one by one. Whichever side hangs up the
line, the keeper ends the submission.
"""

import contextlib
import itertools
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from typing import NoReturn

from hookedu.grading import namespaces, worker

_LOOK = 0.25  # seconds between two looks at the memory
_SLACK = 512 * 2**20  # bytes: what the forks take before a submission has done anything
_MANY = 8  # submissions after which huge pages are worth the third of a second that they take
READY = b"ready"
HOME = "/home/learner"
FOLDERS = (HOME, "/dev/shm", "/tmp")  # what a submission may write into, each its own


def main() -> NoReturn:
    """Serve forks until the grader hangs up. Arguments: the socket's descriptor; "isolated" or "open"."""
    grader, isolated = socket.socket(fileno=int(sys.argv[1])), sys.argv[2] == "isolated"
    worker.warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the watchers
    grader.send(READY)
    for number in itertools.count(1):
        message, descriptors, _, _ = socket.recv_fds(grader, 16, 3)
        if not message:
            os._exit(0)
        job, channel, line = descriptors
        with open(job, "rb") as file:
            todo = json.loads(file.read())
        worker.prepare(todo["setup"])
        if number == _MANY:
            namespaces.use_huge_pages()
        if os.fork() == 0:
            grader.close()
            _watcher(todo, channel, line, isolated)
        os.close(channel)
        os.close(line)


def _watcher(todo: dict, channel: int, line: int, isolated: bool) -> NoReturn:
    """Start the keeper, in new namespaces, and end it when all that it holds together takes too much memory."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if isolated:
            proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)  # the keeper will hide it
            namespaces.enter()
        keeper = os.fork()
        if keeper == 0:
            _keeper(todo, channel, line, isolated)
        os.close(channel)
        if isolated and _outgrows(keeper, proc, todo["limits"]["memory"] + _SLACK):
            os.kill(keeper, signal.SIGKILL)
            _tell(line, code=worker.MEMORY_GONE)
        os.waitpid(keeper, 0)
    except BaseException as error:
        _tell(line, failed=f"{type(error).__name__}: {error}")
    os._exit(0)


def _outgrows(keeper: int, proc: int, limit: int) -> bool:
    """Whether the keeper's tree grows beyond a limit (bytes) before it ends. One process is held by its own
    limit; this is for many."""
    end, pause = os.pidfd_open(keeper), _LOOK
    while not select.select([end], [], [], pause)[0]:
        begun = time.monotonic()
        if sum(_memory(proc, pid) for pid in _tree(proc, keeper)) > limit:
            return True
        pause = max(_LOOK, 4 * (time.monotonic() - begun))  # a crowd takes long to count
    return False


def _tree(proc: int, pid: int) -> list[int]:
    """A process and all that came from it. Nobody is missing: process 1 of a namespace inherits its orphans."""
    children = _read(proc, f"{pid}/task/{pid}/children").split()
    return [pid, *(p for child in children for p in _tree(proc, int(child)))]


def _memory(proc: int, pid: int) -> int:
    """Bytes that a process takes; what several share is counted once between them."""
    for row in _read(proc, f"{pid}/smaps_rollup").splitlines():
        if row.startswith("Pss:"):
            return int(row.split()[1]) * 1024
    return 0


def _read(proc: int, path: str) -> str:
    try:
        with open(path, opener=lambda name, flags: os.open(name, flags, dir_fd=proc)) as file:
            return file.read()
    except OSError:  # it has just ended
        return ""


def _keeper(todo: dict, channel: int, line: int, isolated: bool) -> NoReturn:
    """Start the worker, wait for it or for the grader to hang up, and leave no process and no file behind."""
    home = ""
    try:
        os.setsid()
        # The default action of a signal does nothing to process 1; Python's own handler would let it through.
        signal.signal(signal.SIGINT, signal.SIG_DFL if isolated else signal.SIG_IGN)
        if isolated:
            # Python itself may live below /tmp; then that stays as it is, read-only.
            namespaces.furnish(
                [f for f in FOLDERS if f != "/tmp" or not os.listdir(f)], todo["limits"]["disk"]
            )
            namespaces.traceable(False)
            home = HOME
        else:
            home = tempfile.mkdtemp(prefix="hookedu-grade-")
            with contextlib.suppress(OSError, AttributeError):  # not Linux: the process group must do
                namespaces.adopt_orphans()
        pid = os.fork()
        if pid == 0:
            os.close(line)
            if isolated:
                namespaces.traceable(True)  # by the watcher, to see its memory; it has no neighbours
            worker.main(todo, channel, home, isolated)
        os.close(channel)
        code = _wait(pid, line)
        if not isolated:
            _end_descendants(pid)
        if code is not None:
            _tell(line, code=code)
    except BaseException as error:
        _tell(line, failed=f"{type(error).__name__}: {error}")
    if home and not isolated:
        shutil.rmtree(home, ignore_errors=True)
    os._exit(0)  # with process 1 its whole namespace ends


def _wait(worker: int, line: int) -> int | None:
    """The worker's exit code (negative: a signal); None where the grader hung up first."""
    watched = [line]
    with contextlib.suppress(OSError, AttributeError):  # not Linux: look every 20 ms instead
        watched.append(os.pidfd_open(worker))
    while True:
        ready, _, _ = select.select(watched, [], [], None if len(watched) > 1 else 0.02)
        if line in ready:
            os.kill(worker, signal.SIGKILL)
            return None
        # Process 1 also inherits the orphans of its namespace: they are reaped on the way.
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == worker:
                return os.waitstatus_to_exitcode(status)
            if pid == 0:
                break


def _end_descendants(worker: int) -> None:
    """Kill the worker's process group and everything that was adopted from it, until nothing is left."""
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


def _tell(line: int, **message: object) -> None:
    with contextlib.suppress(OSError):
        os.write(line, json.dumps(message).encode())
