"""The warm process: it loads torch once, and every submission runs in a fork of it.

It never runs code of a learner, and never reads any: what it once held would lie in the memory of every later fork. For
each submission it receives four file descriptors: the job (a file), the learner's cells (a file that only the fork
reads), the channel for results, and one end of the control socket `line`, over which the end of the submission is
reported; and where there are control groups a fifth, through which the fork enters its group. What a lesson's
exercises and its own setup cells import is loaded here, with the first submission of that lesson. With isolation, up to
two processes are then forked per submission:

    warm ├── worker: the submission, process 1 of a new process namespace and in further namespaces of its own
         └── watcher, after a quarter of a second: checks the memory that the processes in that namespace take together

Process 1 of a namespace cannot be killed or stopped from inside, not even by itself, and everything in the namespace
ends when it ends. It ends by `os._exit` or by a crash, or is killed from here. Forking this process is most of the cost
of a submission, because its memory holds torch. Hence one fork per submission, and a second one only for submissions
that take longer. Without isolation, keeper.py does what is possible. Whichever side closes the control socket, the
submission is ended.
"""

import contextlib
import json
import math
import os
import select
import selectors
import signal
import socket
import sys
import time
import traceback
from functools import partial
from typing import NoReturn

from hookedu.grading.run import keeper, namespaces, worker

_LOOK = 0.25  # seconds between two measurements of the memory
SLACK = 512 * 2**20  # bytes that the forks take before a submission has done anything
_BUFFER = 2**19  # bytes that the kernel may hold per file descriptor, if it is a socket
_MAPPING = 300  # bytes that the kernel holds per mapping, also one without any page
_MANY = 8  # number of submissions after which huge pages are worth the third of a second that they cost
_DESCRIPTORS = 65536  # upper bound: this process never has so many
ISOLATED, READY = b"i", b"r"  # sent to the grader: isolation works here; submissions can come
HOME = "/learner"  # not below /home: Python may be installed there, in the folder of a user of that very name
FOLDERS = (HOME, "/dev/shm", "/tmp")  # where a submission may write; each submission has its own


def main() -> NoReturn:
    """Serve forks until the grader hangs up.

    Arguments on the command line: the socket's file descriptor, and "isolated", "open" (no isolation) or "rehearsal"
    (try the isolation and exit).
    """
    grader, mode = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    grader.set_inheritable(False)
    isolated = mode != "open"
    if isolated:
        _rehearse()
        grader.send(ISOLATED)
    if mode == "rehearsal":
        grader.recv(1)  # until the grader hangs up
        sys.exit()
    worker.warm_up()
    grader.send(READY)
    os.dup2(0, 2)  # stderr logs errors up to here; from now on submissions would share it
    if not isolated:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
    wards: list[_Ward] = []
    with selectors.PollSelector() as selector:
        selector.register(grader, selectors.EVENT_READ)
        served = 0  # submissions since something was last loaded
        while True:
            _serve(selector, wards)
            message, descriptors, _, _ = socket.recv_fds(grader, 16, 5)
            if not message:
                os._exit(0)
            job, cells, channel, line, *entrance = descriptors
            with open(job, "rb") as file:
                todo = json.loads(file.read())
            served = served + 1 if worker.is_prepared(todo) else 1
            if served in (1, _MANY):
                for ward in wards:  # what follows may take seconds, in which no watcher could be started
                    ward.watch()
                if served == 1:
                    worker.prepare(todo)
                else:
                    namespaces.settle()
            if isolated:
                wards.append(_Ward(selector, todo, cells, channel, line, entrance))
            else:
                if os.fork() == 0:
                    grader.close()
                    keeper.keep(todo, cells, channel, line)
                os.close(line)
            for descriptor in (cells, channel, *entrance):
                os.close(descriptor)


def _serve(selector: selectors.BaseSelector, wards: list["_Ward"]) -> None:
    """Supervise the running submissions until the grader sends another one."""
    while True:
        wards[:] = [ward for ward in wards if ward.alive]
        due = min((ward.due for ward in wards), default=None)
        events = selector.select(None if due is None or due == float("inf") else due - time.monotonic())
        for key, _ in events:
            # A descriptor that is no longer registered was dealt with while handling an earlier event.
            if key.data and selector.get_map().get(key.fd) is key:
                key.data()
        for ward in wards:
            if ward.due <= time.monotonic():
                ward.watch()
        if any(key.data is None for key, _ in events):
            return


class _Ward:
    """One running, isolated submission: its worker and its watcher, and the control socket to the grader."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        todo: dict,
        cells: int,
        channel: int,
        line: int,
        entrance: list[int],
    ):
        """Start the submission; errors are reported over the control socket."""
        self._selector, self._line = selector, line
        self._limit = todo["limits"]["memory"] + SLACK
        self._processes: dict[int, int] = {}  # processes not yet waited for -> pidfd
        self._outgrown = -1  # an event of the watcher's: it has killed the worker
        self._end: dict[str, object] | None = None
        self.due = time.monotonic() + _LOOK  # when to start the watcher
        selector.register(line, selectors.EVENT_READ, self._called)
        try:
            with namespaces.new_process_namespace():
                self._worker = os.fork()
                if self._worker == 0:
                    for descriptor in entrance:
                        # If that is not allowed after all, the watcher has to suffice.
                        with contextlib.suppress(OSError):
                            os.write(descriptor, b"0")
                    _close_all_but(cells, channel)
                    worker.main(todo, cells, channel, partial(_furnished, todo["limits"]["disk"]), True)
                self._adopt(self._worker)
        except OSError as error:
            self._stop(failed=f"{type(error).__name__}: {error}")

    @property
    def alive(self) -> bool:
        """Whether any process of the submission is left."""
        return self._line >= 0

    def watch(self) -> None:
        """Start a watcher, which ends the submission when all its processes together exceed the memory limit.

        The watcher kills and reports by itself: this process may be busy for seconds, such as with what another lesson
        needs. What it reports in addition is the same, and the grader has stopped listening by then.
        """
        if self.due == float("inf"):
            return
        self.due = float("inf")
        self._outgrown = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        worker_fd = self._processes[self._worker]
        watcher = os.fork()
        if watcher == 0:
            _close_all_but(self._outgrown, worker_fd, self._line)
            _wait_till_outgrown(self._worker, self._limit)
            os.eventfd_write(self._outgrown, 1)
            signal.pidfd_send_signal(worker_fd, signal.SIGKILL)
            select.select([worker_fd], [], [])  # until nothing of the submission is left
            keeper.tell(self._line, code=worker.MEMORY_GONE)
            os._exit(0)
        self._adopt(watcher)

    def _called(self) -> None:
        """Answer the grader's question, or end the submission if the grader has hung up."""
        if not keeper.answered(self._line, self._worker):
            self._stop()

    def _adopt(self, pid: int) -> None:
        self._processes[pid] = os.pidfd_open(pid)
        self._selector.register(self._processes[pid], selectors.EVENT_READ, partial(self._ended, pid))

    def _ended(self, pid: int) -> None:
        """Handle the end of a process: whether worker or watcher, the other one is killed as well."""
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        descriptor = self._processes.pop(pid)
        self._selector.unregister(descriptor)
        os.close(descriptor)
        outgrown = pid != self._worker or self._has_outgrown()
        self._stop(code=worker.MEMORY_GONE if outgrown else code)

    def _has_outgrown(self) -> bool:
        """Check whether it was the watcher that killed the worker."""
        try:
            return self._outgrown >= 0 and os.eventfd_read(self._outgrown) > 0
        except BlockingIOError:
            return False

    def _stop(self, **end: object) -> None:
        """Kill what is left, and report to the grader once nothing is; the first reason is the one reported."""
        self.due = float("inf")
        if self._end is None:
            self._end = end
            self._selector.unregister(self._line)
            for pid in self._processes:  # unreaped children of this process: no pid can have been reused
                os.kill(pid, signal.SIGKILL)
        if not self._processes:
            keeper.tell(self._line, **self._end)
            for descriptor in {self._line, self._outgrown} - {-1}:
                os.close(descriptor)
            self._line = self._outgrown = -1


def _rehearse() -> None:
    """Perform every step of the isolation once, without a submission, while this process is still small.

    If the machine does not allow a step, the process ends here with the kernel's error message, instead of every
    submission failing later.
    """
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
    """Close all file descriptors except the standard ones and `kept`: they are other submissions' control sockets."""
    last = 2
    for descriptor in (*sorted(kept), _DESCRIPTORS):
        os.closerange(last + 1, descriptor)
        last = descriptor


def _furnished(disk: int) -> str:
    """Enter the worker's further namespaces, before any code of the learner runs, and return its home in them."""
    namespaces.limit_processes()
    namespaces.enter()
    # Python itself may be installed below /tmp; then /tmp stays as it is, read-only.
    namespaces.furnish([f for f in FOLDERS if f != "/tmp" or not os.listdir(f)], disk)
    return HOME


def _wait_till_outgrown(root: int, limit: int) -> None:
    """Return when a process and all its descendants together take more than `limit` bytes.

    A single process is held by its own limit; this is for many. No process is missed, because process 1 of a namespace
    inherits the orphans in it. Many also get less priority, so that together they weigh about as much as one.
    """
    pause, priority = 0.0, 0
    while True:
        time.sleep(pause)
        begun = time.process_time()
        with contextlib.suppress(RecursionError):  # a long chain of processes takes little memory
            processes = _tree(root)
            used = 0
            for process in processes:
                used += _memory(process)
                if used > limit:  # before the rest is measured, which takes long for many mappings
                    return
            threads = [int(thread) for pid in processes for thread in _list(f"/proc/{pid}/task")]
            if (fair := _niceness(len(threads))) > priority:
                priority = fair
                for thread in threads:
                    with contextlib.suppress(OSError):  # it has just ended
                        os.setpriority(os.PRIO_PROCESS, thread, priority)
        # Many processes take long to measure. CPU time counts here, so a busy machine does not lengthen the pause.
        pause = max(_LOOK, 4 * (time.process_time() - begun))


def _niceness(threads: int) -> int:
    """Return the niceness with which so many threads weigh about as much as one: each step makes a fifth less."""
    return min(19, round(math.log(max(threads, 1), 1.25)))


def _tree(pid: int) -> list[int]:
    """Return a process and all its descendants; each thread has its own list of children."""
    threads = _list(f"/proc/{pid}/task")
    children = [c for thread in threads for c in _read(f"/proc/{pid}/task/{thread}/children").split()]
    return [pid, *(p for child in children for p in _tree(int(child)))]


def _memory(pid: int) -> int:
    """Return the bytes that a process takes, including its page tables and what the kernel may hold for it.

    Memory shared by several processes is counted once, in shares. Every file descriptor counts with the most that a
    socket may hold, because nothing reports how much is in the buffers of sockets. So does every mapping with its
    record in the kernel: each fork copies all of them, up to 65,530 per process.
    """
    rows = _read(f"/proc/{pid}/smaps_rollup") + _read(f"/proc/{pid}/status")
    used = sum(int(row.split()[1]) * 1024 for row in rows.splitlines() if row.startswith(("Pss:", "VmPTE:")))
    mappings = _read(f"/proc/{pid}/maps").count("\n")
    return used + _BUFFER * len(_list(f"/proc/{pid}/fd")) + _MAPPING * mappings


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:  # the process has just ended
        return ""


def _list(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:  # the process has just ended
        return []
