"""The warm process: torch is loaded once, and every submission runs in a fork of it.

It never runs anything of a learner's. For each submission it is handed three descriptors: the job (a file), the
channel for results, and one end of the line over which its end is told. What a lesson's exercises and its
own setup cells import is loaded here, with the first submission of that lesson. Then, with isolation:

    warm ├── worker: the submission, process 1 of a new process namespace and in others of its own
         └── watcher, after a quarter of a second: of the memory that all in that namespace take together

Process 1 cannot be killed or stopped from inside, not by itself either, and its end is the end of everything in the
namespace: it can leave by `os._exit` or by a crash, or be ended from here. A fork of this process is most of what a
submission costs, for its memory is torch's. So there is one, and a second only for submissions that take their time.
Without isolation keeper.py does what can be done. Whichever side hangs up the line, the submission is ended.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from functools import partial
from typing import NoReturn

from hookedu.grading.run import keeper, namespaces, worker

_LOOK = 0.25  # seconds between two looks at the memory
_SLACK = 512 * 2**20  # bytes: what the forks take before a submission has done anything
_BUFFER = 2**19  # bytes: what a descriptor may hold in the kernel, if it is a socket's
_MANY = 8  # submissions after which huge pages are worth the third of a second that they take
_DESCRIPTORS = 65536  # more than this process ever has
READY = b"ready"
HOME = "/learner"  # not below /home: there may Python lie, in somebody's folder of that very name
FOLDERS = (HOME, "/dev/shm", "/tmp")  # what a submission may write into, each its own


def main() -> NoReturn:
    """Serve forks until the grader hangs up. Arguments: the socket's descriptor; "isolated", "open", or "rehearsal",
    which is to try out isolation and leave."""
    grader, mode = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    grader.set_inheritable(False)
    isolated = mode != "open"
    if isolated:
        _rehearse()
    if mode == "rehearsal":
        grader.send(READY)
        sys.exit()
    worker.warm_up()
    grader.send(READY)
    os.dup2(0, 2)  # the log was for what went wrong up to here; submissions would share it
    if not isolated:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    wards: list[_Ward] = []
    with selectors.PollSelector() as selector:
        selector.register(grader, selectors.EVENT_READ)
        served = 0  # since something was loaded
        while True:
            _serve(selector, wards)
            message, descriptors, _, _ = socket.recv_fds(grader, 16, 3)
            if not message:
                os._exit(0)
            job, channel, line = descriptors
            with open(job, "rb") as file:
                todo = json.loads(file.read())
            served = 1 if worker.prepare(todo) else served + 1
            if served == _MANY:
                namespaces.use_huge_pages()
            if isolated:
                wards.append(_Ward(selector, todo, channel, line))
            else:
                if os.fork() == 0:
                    grader.close()
                    keeper.keep(todo, channel, line)
                os.close(line)
            os.close(channel)


def _serve(selector: selectors.BaseSelector, wards: list["_Ward"]) -> None:
    """See to the submissions that run, until the grader has another."""
    while True:
        wards[:] = [ward for ward in wards if ward.alive]
        due = min((ward.due for ward in wards), default=None)
        events = selector.select(None if due is None or due == float("inf") else due - time.monotonic())
        for key, _ in events:
            # What is no longer registered was seen to on the way, by an event before it.
            if key.data and selector.get_map().get(key.fd) is key:
                key.data()
        for ward in wards:
            if ward.due <= time.monotonic():
                ward.watch()
        if any(key.data is None for key, _ in events):
            return


class _Ward:
    """One submission that runs, isolated: all processes that belong to it, and the line to the grader."""

    def __init__(self, selector: selectors.BaseSelector, todo: dict, channel: int, line: int):
        """Start it. What goes wrong is told over the line."""
        self._selector, self._line = selector, line
        self._limit = todo["limits"]["memory"] + _SLACK
        self._processes: dict[int, int] = {}  # those not yet waited for, each with a descriptor for its end
        self._end: dict[str, object] | None = None
        self.due = time.monotonic() + _LOOK  # when its memory wants watching
        selector.register(line, selectors.EVENT_READ, self._stop)
        try:
            with namespaces.new_process_namespace():
                self._worker = os.fork()
                if self._worker == 0:
                    _close_all_but(channel)
                    worker.main(todo, channel, partial(_furnished, todo["limits"]["disk"]), True)
                self._adopt(self._worker)
        except OSError as error:
            self._stop(failed=f"{type(error).__name__}: {error}")

    @property
    def alive(self) -> bool:
        """Whether anything of it is left."""
        return self._line >= 0

    def watch(self) -> None:
        """Start a watcher, which ends when all processes together have outgrown the limit."""
        self.due = float("inf")
        watcher = os.fork()
        if watcher == 0:
            _close_all_but()
            _wait_till_outgrown(self._worker, self._limit)
        self._adopt(watcher)

    def _adopt(self, pid: int) -> None:
        self._processes[pid] = os.pidfd_open(pid)
        self._selector.register(self._processes[pid], selectors.EVENT_READ, partial(self._ended, pid))

    def _ended(self, pid: int) -> None:
        """One of the processes has ended: whichever it is, the others go with it."""
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        descriptor = self._processes.pop(pid)
        self._selector.unregister(descriptor)
        os.close(descriptor)
        self._stop(code=code if pid == self._worker else worker.MEMORY_GONE)

    def _stop(self, **end: object) -> None:
        """Kill what is left, and when nothing is, tell the grader. The first reason is the one that counts."""
        self.due = float("inf")
        if self._end is None:
            self._end = end
            self._selector.unregister(self._line)
            for pid in self._processes:  # all are our own children: no number can have passed to a stranger
                os.kill(pid, signal.SIGKILL)
        if not self._processes:
            keeper.tell(self._line, **self._end)
            os.close(self._line)
            self._line = -1


def _rehearse() -> None:
    """All that isolates a submission, once without one, while this process is small: what the machine does not allow
    ends it here with the kernel's word for it, and not every submission later."""
    with namespaces.new_process_namespace():
        pid = os.fork()
        if pid == 0:
            try:
                _furnished(1)
                os._exit(0)
            except BaseException:
                traceback.print_exc(limit=0)
                os._exit(1)
    if os.waitpid(pid, 0)[1]:
        sys.exit(1)  # the reason has been printed


def _close_all_but(*kept: int) -> None:
    """Close all descriptors but the standard ones and these: here they are the lines of other submissions."""
    last = 2
    for descriptor in (*sorted(kept), _DESCRIPTORS):
        os.closerange(last + 1, descriptor)
        last = descriptor


def _furnished(disk: int) -> str:
    """In the worker, before anything of the learner's: go into further namespaces; the home that it has there."""
    namespaces.limit_processes()
    namespaces.enter()
    # Python itself may live below /tmp; then that stays as it is, read-only.
    namespaces.furnish([f for f in FOLDERS if f != "/tmp" or not os.listdir(f)], disk)
    return HOME


def _wait_till_outgrown(root: int, limit: int) -> NoReturn:
    """End when a process and all that came from it take more than `limit` bytes together. One process is held by
    its own limit; this is for many. Nobody is missing: process 1 of a namespace inherits its orphans."""
    pause = 0.0
    while True:
        time.sleep(pause)
        begun = time.process_time()
        with contextlib.suppress(RecursionError):  # a long chain of processes takes little memory
            if sum(map(_memory, _tree(root))) > limit:
                os._exit(0)
        # A crowd takes long to count; on a busy machine nobody waits longer for that.
        pause = max(_LOOK, 4 * (time.process_time() - begun))


def _tree(pid: int) -> list[int]:
    """A process and all below it. Each thread has children of its own."""
    threads = _list(f"/proc/{pid}/task")
    children = [c for thread in threads for c in _read(f"/proc/{pid}/task/{thread}/children").split()]
    return [pid, *(p for child in children for p in _tree(int(child)))]


def _memory(pid: int) -> int:
    """Bytes that a process takes, the tables of its pages included; what several share is counted once between them.
    And what the kernel may keep for it: nothing says how much lies in the buffers of sockets."""
    rows = _read(f"/proc/{pid}/smaps_rollup") + _read(f"/proc/{pid}/status")
    used = sum(int(row.split()[1]) * 1024 for row in rows.splitlines() if row.startswith(("Pss:", "VmPTE:")))
    return used + _BUFFER * len(_list(f"/proc/{pid}/fd"))


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:  # it has just ended
        return ""


def _list(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:  # it has just ended
        return []
