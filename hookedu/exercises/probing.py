"""Probe an answer: the half of checking that runs in the same process as the learner's code.

The probe calls the answer and records what it does. It holds no expectations and reaches no verdict. Whatever the
answer does ends in one record:

    {"status": "observed",      "observations": [{...}, ...]}    one per case
    {"status": "raised",        "error": {"type", "message", "frames"}, "observations": [...]}    of the cases before
    {"status": "not_attempted"}
    {"status": "wrong_type",    "got": "int"}    or one of `KINDS`
"""

import contextlib
import functools
import inspect
import os
import random
import site
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import _tensor_str

from hookedu.exercises.conduct import STATE, Conduct, Interruption, Stopped
from hookedu.exercises.observation import alike, encode, type_name
from hookedu.exercises.tools import copies, same
from hookedu.hooks.reach import restored

# Message of the NotImplementedError that an exercise cell raises until it is answered. It distinguishes an untouched
# stub from a NotImplementedError of the learner or of torch.
STUB = "在这里写你的代码 · your code here"
_STUBS = (STUB, *STUB.split(" · "))  # as it stands in the lesson in both languages, and in each

# What a `def` makes that is no plain function: a call of it runs none of its lines.
KINDS: dict[str, Callable[[Any], bool]] = {
    "coroutine function": inspect.iscoroutinefunction,
    "generator function": inspect.isgeneratorfunction,
    "asynchronous generator function": inspect.isasyncgenfunction,
}

_HOOKEDU = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MAX_FRAMES = 6


class Draw(random.Random):
    """Random numbers for a case.

    Attributes
    ----------
    turn : int
        Place of the case among those of one check, from 0. What must vary for certain (the rank of a tensor, the sign of
        a factor) depends on it; what is drawn at random may be the same in all of them.
    """

    turn: int = 0

    @classmethod
    def of(cls, seed: int, turn: int) -> "Draw":
        """Return the random numbers of a case."""
        draw = cls(seed)
        draw.turn = turn
        return draw


@dataclass(frozen=True)
class Probe:
    """What is observed of an answer to one exercise. It holds no expectations and reaches no verdict.

    Attributes
    ----------
    id : str
        Exercise: lesson and position within the lesson, such as "02.1".
    answer : str
        Name that the learner defines.
    case : callable
        ``case(draw)`` makes fresh input from a `Draw`. It is called beside the learner's code and, with the same seed and
        turn, where the checks are evaluated.
    observe : callable
        ``observe(answer, case)`` calls the answer and returns observations: a dict with always the same keys, whose
        values `observation.encode` can encode. It need not catch what the answer raises.
    cases : int
        How many cases one check tries. One for an answer that trains or compiles.
    changes : tuple of int or str
        Arguments whose values the answer may change, by position or keyword.
    leaves : tuple of str
        Kinds of state that the answer may leave changed, from `conduct`.
    runs : int or None
        How often one call of the answer may run a model that it is given; None for any number.
    restores : bool
        Whether the answer must restore everything also if an exception is raised inside the model that it runs.
    repeats : bool
        Whether the first case is observed again, to see that nothing is kept between calls, and interrupted, to see that
        no exception is swallowed; calls of modules are counted only then. Not for answers that run compiled code.
    yields : bool
        Whether an answer that is a generator function is observed, as the checks say what it lacks: a
        ``@contextmanager``, for example. In other exercises it is of the wrong type.
    """

    id: str
    answer: str
    case: Callable[[Any], Any]
    observe: Callable[[Any, Any], dict[str, Any]]
    cases: int = 5
    changes: tuple[int | str, ...] = ()
    leaves: tuple[str, ...] = ()
    runs: int | None = None
    restores: bool = False
    repeats: bool = True
    yields: bool = False


def call(answer: Any, case: tuple[Any, ...]) -> dict[str, Any]:
    """Observe a function of the arguments in `case`: its result, the arguments after the call, and whether they differ.

    For exercises of the simplest kind, from input to value; `checks.common.returns` is the check for it.
    """
    before = copies(case)
    result = copies(answer(*case))
    return {"result": result, "arguments": copies(case), "changed": not same(copies(case), before)}


def observe(probe: Probe, answer: Any, seeds: Sequence[int]) -> dict[str, Any]:
    """Run the probe of an exercise on an answer, once per seed, and return the record.

    RNG states, grad mode, default dtype and global hooks are restored after each case, NumPy's RNG at the end. What the
    answer prints, displays, plots or warns of is shown up to its second call.

    Parameters
    ----------
    probe : Probe
        Probe to run.
    answer : object
        What the learner defined under ``probe.answer``. Need not be callable: that is recorded too.
    seeds : sequence of int
        Seeds of the cases, from `Exercise.seeds`. Pass the same ones to `judging.judge`.

    Returns
    -------
    dict
        One of the four records in the docstring of this module. Observations are encoded by `observation.encode`;
        besides those of the probe they hold "conduct", the breaches seen, as `Conduct.breaches` returns them. An answer
        that keeps something between calls is not observed further.

    Raises
    ------
    KeyboardInterrupt
        If the learner interrupts the kernel. Every other exception of the answer, SystemExit included, is
        recorded instead of raised.
    """
    if not callable(answer):
        return {"status": "wrong_type", "got": type_name(answer)}
    observations = []
    try:
        kind = next((kind for kind, is_one in KINDS.items() if is_one(answer)), None)
        if kind and not (probe.yields and kind == "generator function"):
            return {"status": "wrong_type", "got": kind}
        with _numpy_restored(), _shown_once() as called:
            for turn, seed in enumerate(seeds):
                seen, breaches, calls = _observed(probe, answer, seed, turn, called)
                if turn == 0 and probe.repeats:
                    repeated = _repeated(probe, answer, seed, seen, called)
                    breaches += repeated or _interrupted(probe, answer, seed, calls, called)
                observations.append({"dict": [*seen["dict"], ["conduct", encode(breaches)]]})
                if [STATE, ""] in breaches:
                    break
        return {"status": "observed", "observations": observations}
    except BaseException as error:  # SystemExit too: a learner's exit() must not end the kernel
        if isinstance(error, KeyboardInterrupt) and not isinstance(error, Stopped):
            raise
        if isinstance(error, NotImplementedError) and _text(error) in _STUBS:
            return {"status": "not_attempted"}
        return {"status": "raised", "error": describe_error(error), "observations": observations}


def _observed(
    probe: Probe, answer: Any, seed: int, turn: int, called: Callable[[], None]
) -> tuple[dict[str, Any], list[list[str]], int]:
    """Return what the probe observes, encoded at once because the answer may change it later, breaches and calls."""
    conduct = Conduct(answer, probe.changes, probe.leaves, probe.runs, probe.repeats, called=called)
    with undisturbed():
        _seed_numpy()
        # No state that a seed gives: an answer that sets the same seed as the cell above changes it visibly.
        random.random()
        torch.rand((), generator=torch.default_generator, device="cpu")
        seen = encode(probe.observe(conduct.answer, probe.case(Draw.of(seed, turn))))
        return seen, conduct.breaches(), conduct.calls


def _repeated(
    probe: Probe, answer: Any, seed: int, seen: dict[str, Any], called: Callable[[], None]
) -> list[list[str]]:
    """Observe the first case again; return a breach if the answer is another one now."""
    try:
        again, *_ = _observed(probe, answer, seed, 0, called)
    except Exception:  # which the first call did not raise
        return [[STATE, ""]]
    return [] if alike(again, seen) else [[STATE, ""]]


def _interrupted(
    probe: Probe, answer: Any, seed: int, calls: int, called: Callable[[], None]
) -> list[list[str]]:
    """Raise an exception inside the model that the answer runs; return a breach for each that does not come through."""
    found = []
    for error, place in ((Interruption, calls - 1), (Stopped, calls // 2)) if calls else ():
        conduct = Conduct(
            answer, probe.changes, probe.leaves, probe.runs, interrupt=(error, place), called=called
        )
        with undisturbed():
            _seed_numpy()
            try:
                probe.observe(conduct.answer, probe.case(Draw.of(seed, 0)))
            except BaseException as raised:
                if isinstance(raised, KeyboardInterrupt) and not isinstance(raised, Stopped):
                    raise
            left = conduct.breaches(unrestored=True) if probe.restores else []
        found += conduct.swallowed or left
    return found


@contextlib.contextmanager
def _shown_once() -> Iterator[Callable[[], None]]:
    """Drop all output from the second call of the answer on; give what has to be called when the answer is.

    A learner who prints or plots to understand wants to see one run of their code, not ten.
    """
    calls, shown = 0, sys.stdout
    with contextlib.ExitStack() as silence:

        def called() -> None:
            nonlocal calls
            calls += 1
            if calls > 1 and sys.stdout is shown:  # else it is silent already, or the probe itself listens
                silence.enter_context(_silent())

        yield called


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Drop what is printed, displayed, plotted or warned of."""
    from IPython.utils.capture import capture_output

    with capture_output(), _no_figures():
        yield


@contextlib.contextmanager
def _no_figures() -> Iterator[None]:
    """Close the figures that are made inside, and draw on none of those before: a notebook shows what is open in the end."""
    helpers: Any = sys.modules.get("matplotlib._pylab_helpers")  # there once pyplot is used
    if helpers is None:
        yield
        return
    pyplot = helpers.Gcf
    before, pyplot.figs = pyplot.figs, type(pyplot.figs)()
    try:
        yield
    finally:
        pyplot.destroy_all()
        pyplot.figs = before


@contextlib.contextmanager
def _numpy_restored() -> Iterator[None]:
    """Restore NumPy's RNG on exit, which takes as long as everything in `undisturbed` together."""
    numpy_random: Any = sys.modules.get("numpy.random")  # NumPy loads it when it is first used
    before = numpy_random.get_state() if numpy_random else None
    try:
        yield
    finally:
        if numpy_random:
            numpy_random.set_state(before)


def _seed_numpy() -> None:
    """Let NumPy's random numbers begin alike in every observation."""
    if numpy_random := sys.modules.get("numpy.random"):
        numpy_random.seed(0)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Restore on exit what a probe or an answer may change: RNGs, grad mode, default dtype, global hooks, settings.

    Inside, grad mode is enabled, autocast is off, the default dtype is float32 and the default device the CPU, whatever
    the notebook did before. One thread computes: cases are small, and on a busy machine several would wait for each other.
    NumPy's RNG is left to `observe`: no case and no check uses it.
    """
    anomaly, threads = torch.is_anomaly_enabled(), torch.get_num_threads()
    deterministic, printing = torch.get_deterministic_debug_mode(), _tensor_str.get_printoptions()
    with contextlib.ExitStack() as stack:
        stack.enter_context(restored(numpy=False))
        torch.set_default_dtype(torch.float32)
        stack.enter_context(torch.autocast("cpu", enabled=False))
        if _elsewhere():
            stack.enter_context(torch.device("cpu"))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.autograd.set_detect_anomaly(anomaly)
            if torch.get_deterministic_debug_mode() != deterministic:  # setting it loads the compiler: 1 s
                torch.set_deterministic_debug_mode(deterministic)
            torch.set_num_threads(threads)
            torch.set_printoptions(**printing)


def _elsewhere() -> bool:
    """Check whether tensors are made on another device than the CPU; torch makes one to find out, where it can."""
    try:
        return torch.get_default_device().type != "cpu"
    except (RuntimeError, AssertionError):  # a device that this machine, or this process, has not
        return True


_TRACEBACK = vars(BaseException)["__traceback__"]  # a learner's class may have one of its own


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return an exception as plain values: type, message and the learner's own frames.

    Frames of hookedu, of installed packages and of the standard library are left out, since they tell a learner
    nothing. Of the remaining frames, the innermost six are kept. For a SyntaxError the only frame is the faulty line.
    """
    frames = [
        {"line": frame.lineno or 0, "name": frame.name, "code": (frame.line or "")[:200]}
        for frame in traceback.extract_tb(_TRACEBACK.__get__(error))
        if not _is_library(frame.filename)
    ]
    message = _text(error)
    # Exactly these: a learner's subclass may compute its attributes. They may still hold anything.
    if isinstance(error, SyntaxError) and type(error) in (SyntaxError, IndentationError, TabError):
        line = error.lineno if type(error.lineno) is int and 0 <= error.lineno < 2**31 else 0
        frames = [
            {"line": line, "name": "", "code": _text("" if error.text is None else error.text).strip()[:200]}
        ]
        message = _text(error.msg)
    return {"type": type_name(error), "message": message[:500], "frames": frames[-_MAX_FRAMES:]}


def _text(value: object) -> str:
    try:
        text = str.__str__(str(value))  # exactly a str, not the subclass that a learner's __str__ may return
        return text.encode("utf-8", "replace").decode()  # a lone surrogate can be neither sent nor shown
    except BaseException:  # the learner may define a class whose __str__ raises
        return ""


def _is_library(filename: str) -> bool:
    """Check whether a file belongs to hookedu, an installed package or Python rather than to the learner."""
    return os.path.abspath(filename).startswith(libraries()) or filename.startswith(libraries())


@functools.cache
def libraries() -> tuple[str, ...]:
    """Return the beginnings of the file names of all code that is not a learner's."""
    roots = (
        _HOOKEDU,
        *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
        *site.getsitepackages(),
        os.path.join(sys.base_prefix, "lib"),
    )
    return ("<frozen", "<__array_function__", *(os.path.join(root, "") for root in roots))


def hooks_on(tensor: torch.Tensor) -> int:
    """Return the number of tensor hooks registered on a tensor."""
    return len(tensor._backward_hooks or ())


def remove_handle(handle: Any) -> bool:
    """Remove a hook by its handle and return True; return False if the value is not a handle."""
    if not isinstance(handle, torch.utils.hooks.RemovableHandle):
        return False
    handle.remove()
    return True
