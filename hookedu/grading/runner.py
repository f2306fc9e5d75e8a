"""One worker process for one submission: started clean, listened to with limits, ended with all it started.

Nothing that comes back is trusted. The parent knows which lines must come and in which order; the first line
that is something else makes the whole submission `tampered`. Records that came before a crash or the time
limit are kept.
"""

import contextlib
import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hookedu.exercises.observation import MAX_BYTES, ObservationError, loads
from hookedu.grading.matching import Key, Plan
from hookedu.grading.model import Limits, Status, clean
from hookedu.grading.worker import MEMORY_GONE
from hookedu.language import Text

_TICK = 0.05  # seconds: how soon an exit without a word, or a stop, is noticed

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
    """What came back: records by exercise, and how it ended."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    status: Status = Status.GRADED
    notes: list[Text] = field(default_factory=list)

    def ended(self, status: Status, note: Text) -> "Run":
        """This run, ended otherwise than it should."""
        self.status = status
        self.notes.append(note)
        return self


class Stopped(Exception):
    """The whole batch is being stopped; this submission counts as not run."""


def run(plan: Plan, key: Key, seeds: dict[str, int], limits: Limits, stop: threading.Event) -> Run:
    """Run a plan in a process of its own. Raises Stopped where `stop` is set meanwhile."""
    job = {
        "setup": key.setup,
        "steps": [{"source": step.source, "probes": step.probes} for step in plan.steps],
        "seeds": seeds,
        "limits": {
            "seconds": int(limits.seconds) + 1,
            "memory": limits.memory * 2**20,
            "file": limits.file * 2**20,
        },
    }
    with _home() as home, _process(job, home) as process:
        try:
            return _listen(process, _Transcript(plan.probes), limits, stop)
        except ObservationError as error:
            return Run().ended(Status.TAMPERED, _FORGED.format(error=clean(str(error))[:200]))


@contextlib.contextmanager
def _home() -> Iterator[Path]:
    home = tempfile.mkdtemp(prefix="hookedu-grade-")
    try:
        for fonts in _fonts():
            shutil.copy(fonts, home)
        yield Path(home)
    finally:
        # Best effort: a submission may leave a tree too deep to walk, and that is no reason to stop.
        with contextlib.suppress(Exception):
            shutil.rmtree(home, ignore_errors=True)


@cache
def _fonts() -> tuple[Path, ...]:
    """matplotlib's list of fonts, which takes seconds to make. Each home gets a copy of its own, so that no
    submission can spoil it for the next."""
    import matplotlib.font_manager

    return tuple(Path(matplotlib.get_cachedir()).glob("fontlist-*.json"))


@contextlib.contextmanager
def _process(job: dict[str, Any], home: Path) -> Iterator[subprocess.Popen]:
    package = str(Path(__file__).resolve().parents[2])  # the same hookedu as here, installed or not
    start = f"import sys; sys.path.insert(0, {package!r}); from hookedu.grading.worker import main; main()"
    with tempfile.TemporaryFile() as stdin:  # a file: writing to it can never wait for the other side
        stdin.write(json.dumps(job).encode())
        stdin.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-X", "utf8", "-c", start],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=_environment(home),
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process, home)
        process.stdout.close()


def _environment(home: Path) -> dict[str, str]:
    """Nothing of the instructor's but where programs and libraries are."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")}
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "IPYTHONDIR": str(home / "ipython"),
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(home),
        "CUDA_VISIBLE_DEVICES": "",  # no exercise needs a GPU, and many workers at once would fill it
        "OMP_NUM_THREADS": "1",  # as many workers as cores run side by side
    }


def _end(process: subprocess.Popen, home: Path) -> None:
    """End the process, its group, and what left the group: every process that has our home in its environment."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    mark = b"HOME=" + os.fsencode(home)
    for _ in range(10):  # one that forks while we look is found the next time
        left = [pid for pid in _processes() if mark in _environ(pid)]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:  # not Linux: the group must do
        return []


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


class _Transcript:
    """The lines that must come, in their order; feed() raises ObservationError at the first that is another."""

    def __init__(self, probes: tuple[str, ...]):
        self._expected = list(probes)
        self._buffer = b""
        self.run = Run()
        self.ready = self.done = self.out_of_memory = False
        self.failed = ""

    def feed(self, data: bytes) -> None:
        """Take what was read; half a line waits for its rest."""
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


def _listen(process: subprocess.Popen, script: _Transcript, limits: Limits, stop: threading.Event) -> Run:
    channel = process.stdout.fileno()
    os.set_blocking(channel, False)
    deadline, timed = time.monotonic() + limits.startup, False
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        while True:
            if stop.is_set():
                raise Stopped
            gone = process.poll() is not None  # asked before reading: then all that it wrote can be read
            if selector.select(0 if gone else _TICK):
                data = os.read(channel, 65536)
                script.feed(data)
                if not data:
                    break
            elif gone:
                break
            if script.ready and not timed:
                deadline, timed = time.monotonic() + limits.seconds, True
            if time.monotonic() > deadline:
                if timed:
                    return script.run.ended(Status.TIMEOUT, _TIMEOUT.format(limit=limits.seconds))
                return script.run.ended(Status.GRADER_ERROR, _START.format(error="timeout"))
    return _how_it_ended(process, script, limits)


def _how_it_ended(process: subprocess.Popen, script: _Transcript, limits: Limits) -> Run:
    try:
        code = process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return script.run.ended(Status.KILLED, _CLOSED)
    memory = _MEMORY.format(mib=limits.memory)
    if script.done:
        return script.run.ended(Status.OUT_OF_MEMORY, memory) if script.out_of_memory else script.run
    if not script.ready:
        why = clean(script.failed.strip().rsplit("\n", 1)[-1]) or f"exit code {code}"
        return script.run.ended(Status.GRADER_ERROR, _START.format(error=why[:300]))
    if code == MEMORY_GONE:
        return script.run.ended(Status.OUT_OF_MEMORY, memory)
    if code == -signal.SIGXCPU:
        return script.run.ended(Status.TIMEOUT, _CPU)
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        return script.run.ended(Status.KILLED, _SIGNAL.format(name=names.get(-code, -code)))
    return script.run.ended(Status.KILLED, _EXIT.format(code=code))


def fresh_seeds(plan: Plan) -> dict[str, int]:
    """A new seed for each exercise: the parent keeps them, so that it can judge, and a run can be repeated."""
    return {exercise: secrets.randbits(32) for exercise in plan.probes}
