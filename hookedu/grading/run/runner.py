"""Run one submission in its own fork: request it, read its results within limits, end it with all that it started.

Nothing that comes back is trusted. The grader knows which lines must arrive and in which order; the first line that
deviates makes the whole submission `tampered`. Records that arrived before a crash or the time limit are kept.
"""

import contextlib
import hashlib
import json
import os
import selectors
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from hookedu import exercises
from hookedu.exercises.observation import MAX_BYTES, ObservationError, loads
from hookedu.grading.matching import Plan
from hookedu.grading.rows import Limits, Status, clean
from hookedu.grading.run.sandbox import Launched, Sandbox
from hookedu.grading.run.worker import MEMORY_GONE
from hookedu.language import Text

_TICK = 0.05  # seconds between two checks for a stop request and for the deadlines

_GRACE = 4.0  # seconds allowed between the end of the results and the end of the process

_TIMEOUT = Text(zh="{limit:g} 秒后被终止", en="ended after {limit:g} seconds")
_CPU = Text(zh="用尽了处理器时间", en="it used up its processor time")
_MEMORY = Text(zh="超出内存上限（{mib} MiB）", en="over the memory limit ({mib} MiB)")
_EXIT = Text(
    zh="进程自己提前结束了（退出码 {code}）", en="the process ended itself too early (exit code {code})"
)
_SIGNAL = Text(zh="进程被信号 {name} 终止", en="the process was ended by signal {name}")
_CLOSED = Text(zh="进程关闭了传结果的通道", en="the process closed the channel for its results")
_FORGED = Text(zh="结果不是评分程序写的：{error}", en="its results were not written by the grader: {error}")
_START = Text(
    zh="评分进程没能启动，与这份作业无关：{error}",
    en="the grading process did not start, through no fault of the submission: {error}",
)


@dataclass
class Run:
    """Outcome of a run: the records by exercise, and how the process ended."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    status: Status = Status.GRADED
    notes: list[Text] = field(default_factory=list)

    def ended(self, status: Status, note: Text) -> "Run":
        """Record an abnormal end, and return this run."""
        self.status = status
        self.notes.append(note)
        return self


class Stopped(Exception):
    """Raised when the whole batch is being stopped; the submission counts as not run."""


def run(
    plan: Plan,
    setup: tuple[str, ...],
    seeds: dict[str, tuple[int, ...]],
    limits: Limits,
    sandbox: Sandbox,
    stop: threading.Event,
) -> Run:
    """Run a plan in its own fork, after the lesson's own setup cells.

    Parameters
    ----------
    plan : Plan
        The cells to run and the exercises to probe.
    setup : tuple of str
        Sources of the lesson's setup cells.
    seeds : dict of str to tuple of int
        Seeds of the cases of each exercise in the plan.
    limits : Limits
        Resource limits of the submission.
    sandbox : Sandbox
        Where the fork is requested.
    stop : threading.Event
        Set by another thread to end the run.

    Returns
    -------
    Run
        The records received, the status and notes on it. Nothing in it has been judged.

    Raises
    ------
    Stopped
        If `stop` is set before the run has ended.
    CourseError
        If the machine cannot start the warm process or isolate submissions.
    OSError
        If even a newly started warm process cannot take the job.
    """
    job = {
        "setup": setup,
        "probes": [step.probes for step in plan.steps],
        "seeds": seeds,
        "limits": {
            "seconds": int(limits.seconds) + 1,
            "memory": limits.memory * 2**20,
            "file": limits.file * 2**20,
            "disk": limits.disk,
            "processes": limits.processes,
        },
    }
    with contextlib.closing(sandbox.launch(job, [step.source for step in plan.steps])) as launched:
        try:
            return _listen(launched, _Transcript(plan.probes), limits, stop)
        except ObservationError as error:
            return Run().ended(Status.TAMPERED, _FORGED.format(error=clean(str(error))[:200]))


class _Transcript:
    """Parser of the expected lines in their order; feed() raises ObservationError at the first deviation."""

    def __init__(self, probes: tuple[str, ...]):
        self._expected = list(probes)
        self._buffer = b""
        self.run = Run()
        self.ready = self.done = self.out_of_memory = False
        self.failed = ""

    def feed(self, data: bytes) -> None:
        """Parse what was read; an incomplete line is buffered."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > MAX_BYTES:
            raise ObservationError(f"a line of more than {MAX_BYTES} bytes")
        for line in lines:
            self._take(loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if self.done or self.failed:
            raise ObservationError("a line after the last")
        match message:
            case {"failed": str(why), **rest} if not self.ready and not rest:
                self.failed = why
            case {"ready": True, **rest} if not self.ready and not rest:
                self.ready = True
            case {"exercise": str(exercise), "record": dict(record), **rest} if self.ready and not rest:
                if self._expected[:1] != [exercise]:
                    raise ObservationError(f"an observation of {exercise[:20]!r} where none was due")
                self.run.records[self._expected.pop(0)] = record
            case {"done": True, "out_of_memory": bool(memory), **rest} if self.ready and not rest:
                if self._expected:
                    raise ObservationError("it ended without all observations")
                self.done, self.out_of_memory = True, memory
            case _:
                raise ObservationError("a line of no known form")


def _listen(launched: Launched, script: _Transcript, limits: Limits, stop: threading.Event) -> Run:
    channel, line = launched.channel, launched.line
    deadline, timed, closed = time.monotonic() + limits.startup, False, float("inf")
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        selector.register(line, selectors.EVENT_READ)
        while True:
            if stop.is_set():
                raise Stopped
            ready = [key.fileobj for key, _ in selector.select(_TICK)]
            if channel in ready:  # before `line`: what the process wrote before its end still counts
                data = os.read(channel, 65536)
                script.feed(data)
                if not data:  # the process has ended, or has closed the channel and continues
                    selector.unregister(channel)
                    closed = time.monotonic() + _GRACE
            elif line in ready:
                return _how_it_ended(line, script, limits)
            if script.ready and not timed:
                deadline, timed = time.monotonic() + limits.seconds, True
            # All results have arrived; do not wait any longer for the report of the process's end.
            if script.done and time.monotonic() > min(closed, deadline):
                return _finished(script, limits)
            if time.monotonic() > closed:
                return script.run.ended(Status.KILLED, _CLOSED)
            if time.monotonic() > deadline:
                if timed:
                    return script.run.ended(Status.TIMEOUT, _TIMEOUT.format(limit=limits.seconds))
                return script.run.ended(Status.GRADER_ERROR, _START.format(error="timeout"))


def _how_it_ended(line: socket.socket, script: _Transcript, limits: Limits) -> Run:
    told = line.recv(4096)
    # No report: the warm process or the keeper was killed from outside.
    end: dict[str, Any] = json.loads(told) if told else {"code": -signal.SIGKILL}
    if script.done:
        return _finished(script, limits)
    if not script.ready:
        why = script.failed.strip().rsplit("\n", 1)[-1] or end.get("failed") or f"exit code {end['code']}"
        return script.run.ended(Status.GRADER_ERROR, _START.format(error=clean(why)[:300]))
    code = end.get("code", -signal.SIGKILL)
    if code == MEMORY_GONE:
        return script.run.ended(Status.OUT_OF_MEMORY, _MEMORY.format(mib=limits.memory))
    if code == -signal.SIGXCPU:
        return script.run.ended(Status.TIMEOUT, _CPU)
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        return script.run.ended(Status.KILLED, _SIGNAL.format(name=names.get(-code, -code)))
    return script.run.ended(Status.KILLED, _EXIT.format(code=code))


def _finished(script: _Transcript, limits: Limits) -> Run:
    if script.out_of_memory:
        return script.run.ended(Status.OUT_OF_MEMORY, _MEMORY.format(mib=limits.memory))
    return script.run


def seeds_for(plan: Plan, source: str, seed: str) -> dict[str, tuple[int, ...]]:
    """Return the seeds of each exercise of one submission, whose cases suit the exercise.

    The grader keeps the seeds, because it needs them to judge. A run with the same `seed` repeats exactly.

    Parameters
    ----------
    plan : Plan
        The exercises to probe.
    source : str
        Path of the submission; different submissions get different seeds.
    seed : str
        Seed of the batch.
    """
    drawn = {
        exercise: int.from_bytes(
            hashlib.sha256(f"{seed}:{source}:{exercise}".encode("utf-8", "replace")).digest()[:4], "big"
        )
        for exercise in plan.probes
    }
    return {exercise: exercises.find(exercise).seeds(start) for exercise, start in drawn.items()}
