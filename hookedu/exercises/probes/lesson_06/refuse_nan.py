"""What is observed of 06.1, `refuse_nan(layer, name)`: layers called with clean numbers, with nan and with inf."""

import contextlib
import io
import warnings
from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import copies, module_hooks, whole

# Errors that learners raise on purpose. A NameError or TypeError inside a hook is a slip, and its traceback says
# more than a verdict.
_PLAIN = (ValueError, AssertionError)
_ON_PURPOSE = (*_PLAIN, RuntimeError, ArithmeticError)
_SHAPES = ((1, 3), (), (2,), (2, 1, 2), (1, 2, 1, 2))  # of x, by turn

# Names of two layers; a batch clean, with nan, and with other nan; an input of any rank, clean and with inf.
Case = namedtuple("Case", "name other clean broken second x infinite")


def make_case(rng: Draw) -> Case:
    """Return a case, in turn 1 with a single nan, else with more of them than rows or columns."""
    columns, count = rng.randint(2, 3), 1 if rng.turn == 1 else rng.randint(4, 5)
    clean = whole(rng, 3 * columns).reshape(3, columns)
    broken, second = clean.clone(), clean.clone()
    for tensor, n in ((broken, count), (second, count - 2 if count > 3 else count + 1)):
        tensor.view(-1)[rng.sample(range(clean.numel()), n)] = float("nan")
    shape = torch.Size(_SHAPES[rng.turn])
    x = whole(rng, shape.numel()).reshape(shape)
    infinite = x.clone()
    infinite.view(-1)[:2] = torch.tensor([float("inf"), -float("inf")])[: x.numel()]  # their sum is nan
    name, other = rng.sample(("stem", "norm", "gate", "neck", "head", "encoder"), 2)
    if len(shape) > 2:
        x, infinite = x.transpose(0, -1), infinite.transpose(0, -1)  # not contiguous
    return Case(name, other, clean, broken, second, x, infinite)


class _Both(nn.Module):
    """A layer with two inputs, which it keeps; nan and inf do not disturb it."""

    def __init__(self) -> None:
        super().__init__()
        self.received: tuple[torch.Tensor, ...] = ()

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        self.received = (first, second)
        return first.sum()


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
    """Guard a layer that keeps statistics, and one with two inputs that nan and inf do not disturb."""
    name, other, clean, broken, second, x, infinite = case
    norm, both = nn.BatchNorm1d(clean.shape[1]), _Both()
    handles = [refuse_nan(norm, name), refuse_nan(both, other)]
    saw = {"handle": handles[0], "hooks": module_hooks(norm)}
    first = _call(norm, clean, expected=_PLAIN)
    saw |= {"clean": first["output"], "clean_error": first["error"]} | _call(norm, broken)
    saw |= {"running_mean": copies(norm.running_mean), "hooks_later": module_hooks(norm)}
    saw |= {"all_nan": _call(norm, clean * float("nan"))["error"]}
    remove_handle(handles[0])
    saw["after_removal"] = _call(norm, broken)["error"]
    for place, inputs in {"second": (clean, second), "two": (broken, second)}.items():
        called = _call(both, *inputs)
        saw |= {place: called["message"], f"{place}_error": called["error"]}
    leaf, both.received = x.clone().requires_grad_(), ()
    passed = _call(both, leaf, x, expected=Exception)
    saw["passed"] = f"{passed['error']}: {passed['message']}" if passed["error"] else "no error"
    saw["same"] = [got is sent for got, sent in zip(both.received, (leaf, x), strict=False)]
    saw["graph"] = [got.requires_grad for got in both.received if isinstance(got, torch.Tensor)]
    saw |= {"infinity": _call(both, infinite, x, expected=Exception)["error"]}
    remove_handle(handles[1])
    return saw


PROBE = Probe("06.1", "refuse_nan", make_case, observe, leaves=(HANDLES,))
