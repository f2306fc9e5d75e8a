"""Probe an answer: the half of checking that runs in the same process as the learner's code.

The probe calls the answer and records what it does. It holds no expectations and reaches no verdict. Whatever the
answer does ends in one record:

    {"status": "observed",      "observations": {...}}
    {"status": "raised",        "error": {"type", "message", "frames"}}
    {"status": "not_attempted"}
    {"status": "wrong_type",    "got": "int"}
"""

import contextlib
import os
import random
import site
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from hookedu.exercises.observation import encode
from hookedu.exercises.tools import copies, same
from hookedu.hooks.state import restored

# Message of the NotImplementedError that an exercise cell raises until it is answered. It distinguishes an untouched
# stub from a NotImplementedError of the learner or of torch.
STUB = "在这里写你的代码 · your code here"

_HOOKEDU = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MAX_FRAMES = 6


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
        ``case(rng)`` makes fresh input from a `random.Random`. It is called beside the learner's code and, with the
        same seed, where the checks are evaluated.
    observe : callable
        ``observe(answer, case)`` calls the answer and returns observations: a dict with always the same keys, whose
        values `observation.encode` can encode. It need not catch what the answer raises.
    """

    id: str
    answer: str
    case: Callable[[random.Random], Any]
    observe: Callable[[Any, Any], dict[str, Any]]


class Interruption(Exception):
    """Raised by a model or a block of a probe, as running out of memory would be: no answer may swallow it."""


def call(answer: Any, case: tuple[Any, ...]) -> dict[str, Any]:
    """Observe a function of the arguments in `case`: its result, the arguments after the call, and whether they differ.

    For exercises of the simplest kind, from input to value; `checks.common.returns` is the check for it.
    """
    before = copies(case)
    result = copies(answer(*case))
    return {"result": result, "arguments": copies(case), "changed": not same(copies(case), before)}


def observe(probe: Probe, answer: Any, seed: int) -> dict[str, Any]:
    """Run the probe of an exercise on an answer and return the record.

    RNG states, grad mode, default dtype and global hooks are restored afterwards.

    Parameters
    ----------
    probe : Probe
        Probe to run.
    answer : object
        What the learner defined under ``probe.answer``. Need not be callable: that is recorded too.
    seed : int
        Seed of the `random.Random` from which the case is made. Pass the same seed to `judging.judge`.

    Returns
    -------
    dict
        One of the four records in the docstring of this module. Observations are encoded by
        `observation.encode`.

    Raises
    ------
    KeyboardInterrupt
        If the learner interrupts the kernel. Every other exception of the answer, SystemExit included, is
        recorded instead of raised.
    """
    if not callable(answer):
        return {"status": "wrong_type", "got": type(answer).__name__}
    try:
        with undisturbed():
            observations = probe.observe(answer, probe.case(random.Random(seed)))
        return {"status": "observed", "observations": encode(observations)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a learner's exit() must not end the kernel
        if isinstance(error, NotImplementedError) and _message(error) == STUB:
            return {"status": "not_attempted"}
        return {"status": "raised", "error": describe_error(error)}


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Restore on exit what a probe or an answer may change: RNGs, grad mode, default dtype, global hooks.

    Inside, grad mode is enabled and the default dtype is float32, whatever the notebook did before.
    """
    with restored():
        torch.set_default_dtype(torch.float32)
        with torch.inference_mode(False), torch.enable_grad():
            yield


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return an exception as plain values: type, message and the learner's own frames.

    Frames of hookedu, of installed packages and of the standard library are left out, since they tell a learner
    nothing. Of the remaining frames, the innermost six are kept. For a SyntaxError the only frame is the faulty line.
    """
    frames = [
        {"line": frame.lineno or 0, "name": frame.name, "code": (frame.line or "")[:200]}
        for frame in traceback.extract_tb(error.__traceback__)
        if not _is_library(frame.filename)
    ]
    if isinstance(error, SyntaxError):
        frames = [{"line": error.lineno or 0, "name": "", "code": (error.text or "").strip()[:200]}]
    message = error.msg if isinstance(error, SyntaxError) else _message(error)
    return {"type": type(error).__name__, "message": message[:500], "frames": frames[-_MAX_FRAMES:]}


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # the learner may define an exception class whose __str__ raises
        return ""


def _is_library(filename: str) -> bool:
    """Check whether a file belongs to hookedu, an installed package or Python rather than to the learner."""
    if filename.startswith(("<frozen", "<__array_function__")):
        return True
    path = os.path.abspath(filename)
    libraries = (
        _HOOKEDU,
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
    )
    roots = (*libraries, *site.getsitepackages(), os.path.join(sys.base_prefix, "lib"))
    return any(path.startswith(os.path.join(root, "")) for root in roots)


def hooks_on(tensor: torch.Tensor) -> int:
    """Return the number of tensor hooks registered on a tensor."""
    return len(tensor._backward_hooks or ())


def remove_handle(handle: Any) -> bool:
    """Remove a hook by its handle and return True; return False if the value is not a handle."""
    if not isinstance(handle, torch.utils.hooks.RemovableHandle):
        return False
    handle.remove()
    return True
