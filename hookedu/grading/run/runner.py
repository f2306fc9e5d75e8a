"""Run one submission in its own fork: request it, read its results within limits, end it with all that it started.

Nothing that comes back is trusted. The grader knows which lines must arrive and in which order; the first line that
deviates makes the whole submission `tampered`. Records that arrived before a crash or the time limit are kept, and what
stood after the cell that ended the process is run again without that cell.
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
from dataclasses import dataclass, field, replace
from typing import Any

from hookedu import exercises
from hookedu.exercises.observation import MAX_BYTES, ObservationError, loads
from hookedu.grading.cleaning import clean
from hookedu.grading.limits import Limits
from hookedu.grading.matching import Plan, Step
from hookedu.grading.rows import Status
from hookedu.grading.run.keeper import WAITED
from hookedu.grading.run.sandbox import Launched, Sandbox
from hookedu.grading.run.worker import MEMORY_GONE
from hookedu.language import Text

_TICK = 0.05  # seconds between two checks for a stop request and for the deadlines

_MOST_REACHED = 20  # things reached for that are kept of one submission
_MOST_AGAIN = 20  # times that the rest of a submission is run again
_MOST_LINES = 1000  # lines that report them; each process of a submission reports each thing once

_Place = tuple[int, str]  # in a plan: a step, and the exercise probed after it, "" for the step itself

_PATIENCE = 6  # on a busy machine a submission may take so many times its limit
_GRACE = 4.0  # seconds allowed between the end of the results and the end of the process
_ANSWER = 30.0  # seconds in which the warm process reports how long a submission has waited: it waits, too

_TIMEOUT = Text(zh="{limit:g} 秒后被终止", en="ended after {limit:g} seconds")
_MEMORY = Text(zh="超出内存上限（{mib} MiB）", en="over the memory limit ({mib} MiB)")
_CODE = Text(zh="退出码 {code}", en="exit code {code}")
_EXIT = Text(zh="进程自己提前结束了（{code}）", en="the process ended itself too early ({code})")
_SIGNAL = Text(zh="进程被信号 {name} 终止", en="the process was ended by signal {name}")
_CLOSED = Text(zh="进程关闭了传结果的通道", en="the process closed the channel for its results")
_FORGED = Text(zh="结果不是评分程序写的：{error}", en="its results were not written by the grader: {error}")
_REACHES = Text(
    zh="触及判分的幕后：{what}。分数不变，请教师看一下代码",
    en="reaches behind the scenes: {what}. The points stand; a person should look at the code",
)
_CELL = Text(
    zh="停在笔记本的第 {n} 个单元格，它的第一行是 `{line}`",
    en="it was in cell {n} of the notebook, which begins with `{line}`",
)
_PROBING = Text(zh="停在检查练习 {id} 的时候", en="it was in the check of exercise {id}")
_WITHOUT = Text(zh="去掉它以后，其余的又运行了一次", en="the rest was run again without it")
_START = Text(
    zh="评分进程没能启动，与这份作业无关：{error}",
    en="the grading process did not start, through no fault of the submission: {error}",
)
_NOT_READY = Text(zh="{limit:g} 秒内没有准备好", en="not ready after {limit:g} seconds")


@dataclass
class Run:
    """Outcome of a run: the records by exercise, what it reached for (see backstage.py), and how the process ended."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    reached: list[str] = field(default_factory=list)
    status: Status = Status.GRADED
    notes: list[Text] = field(default_factory=list)

    def ended(self, status: Status, note: Text) -> "Run":
        """Record an abnormal end, and return this run."""
        self.status = status
        self.notes.append(note)
        return self

    def add(self, again: "Run") -> None:
        """Add what came of running the rest again. A forgery in it is one of the whole submission."""
        self.records |= again.records
        self.reached += [what for what in again.reached if what not in self.reached]
        self.notes += [_WITHOUT, *again.notes]
        if again.status is Status.TAMPERED:
            self.status = again.status


class BatchStopped(Exception):
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

    A cell, or an answer in its check, that ends the process or does not end costs itself alone: as in a notebook, whose
    kernel is interrupted or started again, the rest runs without it. No further run begins when the first of these has
    begun as long ago as one run may take.

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
        The records received, the status of the first fork that did not end well, and notes on all. Nothing in it has
        been judged.

    Raises
    ------
    BatchStopped
        If `stop` is set before the run has ended.
    CourseError
        If the machine cannot start the warm process or isolate submissions.
    OSError
        If even a newly started warm process cannot take the job.
    """

    def fork(plan: Plan) -> tuple[Run, _Place | None]:
        job = _job(plan, setup, seeds, limits)
        with contextlib.closing(sandbox.launch(job, [step.source for step in plan.steps])) as launched:
            return _outcome(launched, plan, limits, stop)

    ran, at = fork(plan)
    until = time.monotonic() + limits.seconds
    for _ in range(_MOST_AGAIN):
        plan = _without(plan, *at, ran.records) if at else Plan((), ())
        if not plan.probes or time.monotonic() > until:
            break
        again, at = fork(plan)
        if again.status is Status.GRADER_ERROR:
            break
        ran.add(again)
    if ran.reached:
        ran.notes.insert(0, _REACHES.format(what=", ".join(f"`{what}`" for what in ran.reached)))
    return ran


def _job(
    plan: Plan, setup: tuple[str, ...], seeds: dict[str, tuple[int, ...]], limits: Limits
) -> dict[str, Any]:
    """Return what a fork receives, but for the sources of the cells."""
    return {
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


def _outcome(
    launched: Launched, plan: Plan, limits: Limits, stop: threading.Event
) -> tuple[Run, _Place | None]:
    """Return what came of one fork, and the place in the plan that ended it before its end."""
    script = _Transcript(plan.probes)
    try:
        ran = _listen(launched, script, limits, stop)
    except ObservationError as error:
        ran = Run(reached=script.run.reached)
        ran.ended(Status.TAMPERED, _FORGED.format(error=clean(str(error))[:200]))
    if ran.status not in (Status.TIMEOUT, Status.KILLED, Status.OUT_OF_MEMORY) or script.done:
        return ran, None
    ran.notes += _where(plan, *script.at)
    return ran, script.at if 0 <= script.at[0] < len(plan.steps) else None


def _without(plan: Plan, number: int, probe: str, records: dict[str, Any]) -> Plan:
    """Return a plan without a step, or without what is probed after it, and without what has a record already."""
    done = {probe, *records}

    def left(step: Step) -> Step:
        return replace(step, probes=tuple(name for name in step.probes if name not in done))

    steps = [left(step) for i, step in enumerate(plan.steps) if probe or i != number]
    last = max((i for i, step in enumerate(steps) if step.probes), default=-1)
    return replace(plan, steps=tuple(steps[: last + 1]))


def _where(plan: Plan, number: int, probe: str) -> list[Text]:
    """Return a note on the cell that did not end, or on the exercise whose check did not."""
    if probe:
        return [_PROBING.format(id=probe)]
    if not 0 <= number < len(plan.steps):
        return []
    step = plan.steps[number]
    first = next((line.strip() for line in step.source.splitlines() if line.strip()), "")
    return [_CELL.format(n=step.cell, line=clean(first)[:60])]


class _Transcript:
    """Parser of the expected lines in their order; feed() raises ObservationError at the first deviation."""

    def __init__(self, probes: tuple[str, ...]):
        self._expected = list(probes)
        self._buffer = b""
        self.run = Run()
        self.at = -1, ""  # the step that runs, and the exercise being probed after it
        self.ready = self.done = self.out_of_memory = False
        self._lines = 0  # that report what was reached for
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
            case {"step": int(step), "probe": str(probe), **rest} if self.ready and not rest:
                if step not in (self.at[0], self.at[0] + 1) or probe not in ("", *self._expected[:1]):
                    raise ObservationError("a step where none was due")
                self.at = step, probe
            case {"exercise": str(exercise), "record": dict(record), **rest} if self.ready and not rest:
                if self._expected[:1] != [exercise]:
                    raise ObservationError(f"an observation of {exercise[:20]!r} where none was due")
                self.run.records[self._expected.pop(0)] = record
            case {"reached": str(what), **rest} if self.ready and not rest and self._lines < _MOST_LINES:
                self._lines += 1
                what = clean(what)[:200]
                if what not in self.run.reached and len(self.run.reached) < _MOST_REACHED:
                    self.run.reached.append(what)
            case {"done": True, "out_of_memory": bool(memory), **rest} if self.ready and not rest:
                if self._expected:
                    raise ObservationError("it ended without all observations")
                self.done, self.out_of_memory = True, memory
            case _:
                raise ObservationError("a line of no known form")


class _Clock:
    """The time that a submission has left.

    Time in which it could have run while others had the processors does not count: a neighbour that starts hundreds of
    processes must not cost an honest submission its result. How long that was is known to the process that forked it,
    which is asked when the time seems to be over.
    """

    def __init__(self, limits: Limits, line: socket.socket):
        self._limit, self._line = limits.seconds, line
        self._begun: float | None = None
        self._last = False  # whether the deadline is the last one
        self.deadline = time.monotonic() + limits.startup

    def start(self) -> None:
        """Begin with the first cell; until then the time belongs to the grader's own work."""
        if self._begun is None:
            self._begun = time.monotonic()
            self.deadline = self._begun + self._limit

    @property
    def started(self) -> bool:
        return self._begun is not None

    def over(self) -> bool:
        if time.monotonic() <= self.deadline:
            return False
        if self._last or not self.started:
            return True
        with contextlib.suppress(OSError):  # it has just ended, which the line reports next
            os.write(self._line.fileno(), WAITED)
        self.deadline, self._last = time.monotonic() + _ANSWER, True  # in case no answer comes
        return False

    def waited(self, seconds: float) -> None:
        """Take the answer into account: the seconds for which the submission has waited so far."""
        if self._begun is not None:
            self.deadline = self._begun + self._limit + min(seconds, (_PATIENCE - 1) * self._limit)
            self._last = self.deadline <= time.monotonic()


def _listen(launched: Launched, script: _Transcript, limits: Limits, stop: threading.Event) -> Run:
    channel, line = launched.channel, launched.line
    clock, closed = _Clock(limits, line), float("inf")
    with selectors.PollSelector() as selector:  # epoll may be exhausted, for the whole user
        selector.register(channel, selectors.EVENT_READ)
        selector.register(line, selectors.EVENT_READ)
        while True:
            if stop.is_set():
                raise BatchStopped
            ready = [key.fileobj for key, _ in selector.select(_TICK)]
            if channel in ready:  # before `line`: what the process wrote before its end still counts
                data = os.read(channel, 65536)
                script.feed(data)
                if not data:  # the process has ended, or has closed the channel and continues
                    selector.unregister(channel)
                    closed = time.monotonic() + _GRACE
            elif line in ready:
                for told in line.recv(4096).splitlines() or [b"{}"]:
                    end: dict[str, Any] = json.loads(told)
                    if "waited" not in end:
                        return _how_it_ended(end, launched.out_of_memory, script, limits)
                    clock.waited(end["waited"])
            if script.ready:
                clock.start()
            # All results have arrived; do not wait any longer for the report of the process's end.
            if script.done and time.monotonic() > min(closed, clock.deadline):
                return _finished(script, limits)
            if time.monotonic() > closed:
                return script.run.ended(Status.KILLED, _CLOSED)
            if clock.over():
                if clock.started:
                    return script.run.ended(Status.TIMEOUT, _TIMEOUT.format(limit=limits.seconds))
                late = _NOT_READY.format(limit=limits.startup)
                return script.run.ended(Status.GRADER_ERROR, _START.format(error=late))


def _how_it_ended(end: dict[str, Any], out_of_memory: bool, script: _Transcript, limits: Limits) -> Run:
    if script.done:
        return _finished(script, limits)
    # No report: the warm process or the keeper was killed from outside.
    code = end.get("code", -signal.SIGKILL)
    exited = _CODE.format(code=code)
    if not script.ready:
        why = clean(script.failed.strip().rsplit("\n", 1)[-1] or end.get("failed", ""))[:300]
        return script.run.ended(Status.GRADER_ERROR, _START.format(error=why or exited))
    if code == MEMORY_GONE or out_of_memory:
        return script.run.ended(Status.OUT_OF_MEMORY, _MEMORY.format(mib=limits.memory))
    if code == -signal.SIGXCPU:
        return script.run.ended(Status.TIMEOUT, _TIMEOUT.format(limit=limits.seconds))
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        return script.run.ended(Status.KILLED, _SIGNAL.format(name=names.get(-code, -code)))
    return script.run.ended(Status.KILLED, _EXIT.format(code=exited))


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
