"""What is observed of 06.1, `refuse_nan(layer, name)`: layers called with clean numbers, with nan and with inf."""

import contextlib
import io
import random
import warnings
from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies, module_hooks, whole

# Errors that learners raise on purpose. A NameError or TypeError inside a hook is a slip, and its traceback says
# more than a verdict.
_PLAIN = (ValueError, AssertionError)
_ON_PURPOSE = (*_PLAIN, RuntimeError, ArithmeticError)

Case = namedtuple("Case", "name clean broken infinite")  # a layer's name; a batch, with nan, with inf


def make_case(rng: random.Random) -> Case:
    """Return a case with more nan than rows or columns, so that no other count gives the right number by chance."""
    columns = rng.randint(2, 3)
    clean = whole(rng, 3 * columns).reshape(3, columns)
    places = rng.sample(range(clean.numel()), rng.randint(4, 5))
    broken, infinite = clean.clone(), clean.clone()
    broken.view(-1)[places], infinite.view(-1)[places] = float("nan"), float("inf")
    return Case(rng.choice(("stem", "norm", "gate", "neck", "head", "encoder")), clean, broken, infinite)


def _call(layer: nn.Module, *inputs: torch.Tensor, expected: Any = _ON_PURPOSE) -> dict[str, Any]:
    """Call the layer; return its output or error, and whether anything was printed or warned."""
    printed, output, kind, message = io.StringIO(), None, None, ""
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            output = copies(layer(*inputs))
        except Exception as error:
            if not isinstance(error, expected) and type(error) is not Exception:
                raise
            kind = "ValueError" if isinstance(error, ValueError) else type(error).__name__
            message = str(error)
    return {"output": output, "error": kind, "message": message, "said": bool(printed.getvalue() or warned)}


def observe(refuse_nan: Any, case: Case) -> dict[str, Any]:
    """Guard a layer that keeps statistics, one with two inputs, and one that nan and inf do not disturb."""
    name, clean, broken, infinite = case
    n, x = clean.shape[1], clean.clone().requires_grad_()
    norm, two, endless = nn.BatchNorm1d(n), nn.Bilinear(n, n, 1), nn.ReLU()
    saw = {"handle": refuse_nan(norm, name), "hooks": module_hooks(norm)}
    first = _call(norm, clean, expected=_PLAIN)
    saw |= {"clean": first["output"], "clean_error": first["error"]} | _call(norm, broken)
    saw["running_mean"] = copies(norm.running_mean)
    remove_handle(saw["handle"])
    saw["after_removal"] = _call(norm, broken)["error"]
    refuse_nan(two, name)
    saw |= {"second": _call(two, clean, broken)["error"], "both": _call(two, broken, broken)["message"]}
    refuse_nan(endless, name)
    if first["error"] is None:
        output = endless(x)
        if isinstance(output, torch.Tensor) and output.requires_grad:
            output.sum().backward()
    return saw | {"gradient": x.grad, "infinity": _call(endless, infinite)["error"]}


PROBE = Probe("06.1", "refuse_nan", make_case, observe)
