"""The side of an exercise that runs beside the learner's code: call the answer, write down what it does.

No expectation stands here and no verdict is reached here. Whatever the answer does ends in one record:

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
from collections.abc import Iterator
from typing import Any

import torch

from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import encode
from hookedu.hooks.state import restored

# What stands where the answer goes; the text tells an untouched stub from an error of the learner's or torch's.
STUB = "在这里写你的代码 · your code here"

_HOOKEDU = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MAX_FRAMES = 6


def probe(exercise: Exercise, answer: Any, seed: int) -> dict[str, Any]:
    """Run the exercise's probe on an answer and return its record.

    Raises nothing that the answer raised, except KeyboardInterrupt: that is the learner pressing stop.
    """
    if not callable(answer):
        return {"status": "wrong_type", "got": type(answer).__name__}
    try:
        with undisturbed():
            observations = exercise.probe(answer, random.Random(seed))
        return {"status": "observed", "observations": encode(observations)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a learner's exit() must not end the kernel
        if isinstance(error, NotImplementedError) and _message(error) == STUB:
            return {"status": "not_attempted"}
        return {"status": "raised", "error": describe_error(error)}


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave as found what a probe or an answer may disturb: RNG, grad mode, default dtype, global hooks.

    Inside, gradients are on and the default dtype is float32, whatever the notebook did before.
    """
    with restored():
        torch.set_default_dtype(torch.float32)
        with torch.inference_mode(False), torch.enable_grad():
            yield


def describe_error(error: BaseException) -> dict[str, Any]:
    """An exception as plain values, with the learner's own frames only: ours and torch's teach nothing."""
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
    except Exception:  # an exception class of the learner's whose __str__ fails
        return ""


def _is_library(filename: str) -> bool:
    """Whether a file is hookedu's, an installed package's or Python's own: not something the learner wrote."""
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
    """How many tensor hooks a tensor carries now."""
    return len(tensor._backward_hooks or ())


def remove_handle(handle: Any) -> bool:
    """Call a handle's remove(); False where there is none to call."""
    if not isinstance(handle, torch.utils.hooks.RemovableHandle):
        return False
    handle.remove()
    return True
