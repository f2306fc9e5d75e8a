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
from hookedu.exercises.tools import backward_hooks, copies, module_hooks, whole

# Errors that learners raise on purpose. A NameError or TypeError inside a hook is a slip, and its traceback says
# more than a verdict.
_PLAIN = (ValueError, AssertionError)
_ON_PURPOSE = (*_PLAIN, RuntimeError, ArithmeticError)
NAMES = ("first", "second")
_SHAPES = ((1, 3), (), (2,), (3, 1, 4), (3, 1, 2, 2))  # of x, by turn
_MIDDLE, _LAST = [4], [11]  # of 12 numbers: in no first or last row, column or pair of rows; at the very end

# Names of two layers; a batch clean and with nan; the clean inputs before one with other nan; an input of any rank, clean
# and with inf; further clean inputs; "eval" or "no_grad" for the calls of the second layer; "in_place" if the clean batch
# becomes the one with nan; "named" if clean inputs are passed by keyword only.
Case = namedtuple("Case", "name other clean broken before second x infinite more setting")


def make_case(rng: Draw) -> Case:
    """Return a case whose batch has more nan than rows or columns, or a single one: turns 1, 2 and 4.

    It is in the middle, at the start, at the very end. Turn 2 has more than a million nan in another input: an odd number,
    which float16 does not hold, nor six digits, and names that hold what a format string gives a meaning. Turn 3 has empty inputs, also in front of one with nan, and five inputs at once, turn 4
    one in bfloat16. The other input is in float64 in turn 3, and holds inf beside nan in turn 4.
    """
    places = rng.sample(range(12), rng.randint(5, 6))
    places = {1: _MIDDLE, 2: [0], 4: _LAST}.get(rng.turn, places)
    clean = whole(rng, 12).reshape(4, 3)
    shape = torch.Size(_SHAPES[rng.turn])
    x = whole(rng, shape.numel()).reshape(shape)
    broken, second, infinite = clean.clone(), (x if rng.turn else clean).clone(), x.clone()
    broken.view(-1)[places] = float("nan")
    others = {1: [0], 3: [5, 6], 4: _LAST}  # 5 and 6 lie in the middle of (3, 1, 4)
    second.view(-1)[others.get(rng.turn, rng.sample(range(second.numel()), second.numel() // 3))] = float(
        "nan"
    )
    if rng.turn == 2:
        second = torch.ones(1_200_000, dtype=torch.float16)
        second[-rng.randrange(1_000_001, 1_199_999, 2) :] = float("nan")
    if rng.turn == 4:  # in front of its only nan
        second.view(-1)[:2] = torch.tensor([float("inf"), -float("inf")])
    if rng.turn == 3:
        second = second.double()
    infinite.view(-1)[:2] = torch.tensor([float("inf"), -float("inf")])[: x.numel()]  # their sum is nan
    names = (
        ("drop 50%", "block {1}") if rng.turn == 2 else ("stem", "norm", "gate", "neck", "head", "encoder")
    )
    name, other = rng.sample(names, 2)
    if len(shape) > 2:
        x, infinite = x.transpose(0, -1), infinite.transpose(0, -1)  # not contiguous
    before = [clean, torch.ones(0, 2), *whole(rng, 3)[:2]] if rng.turn == 3 else [clean]
    more = {3: [torch.ones(0, 2)], 4: [clean.bfloat16()]}.get(rng.turn, [])
    setting = ["", "named", "eval", "in_place", "no_grad"][rng.turn]
    return Case(name, other, clean, broken, before, second, x, infinite, more, setting)


def calls(case: Case) -> dict[str, list[torch.Tensor]]:
    """Return the inputs of the calls by name."""
    clean, broken, second = case.clean, case.broken, case.second
    both = {"second": [*case.before, second], "turned": [second, *case.before]}
    both["two"] = [broken, *case.before[1:], second]
    return {"clean": [clean], "broken": [broken]} | both | {"passed": [case.x, case.x, *case.more]}


class _Both(nn.Module):
    """A layer with two inputs or more, which it keeps; nan and inf do not disturb it."""

    def __init__(self) -> None:
        super().__init__()
        self.received: tuple[Any, ...] = ()
        self.inside = nn.Identity()

    def forward(self, first: torch.Tensor, second: torch.Tensor, *others: Any) -> torch.Tensor:
        self.received = (first, second, *others)
        return self.inside(first).sum()


def _somebodys(module: nn.Module, args: tuple) -> None:
    """Look at the inputs: the hook of somebody else, which is on each layer before the answer is called."""


def _own(layer: nn.Module) -> int:
    """Return the number of hooks on a layer and inside of it that are not `_somebodys`."""
    return module_hooks(layer) - sum(hook is _somebodys for hook in layer._forward_pre_hooks.values())


def _as_before(got: torch.Tensor, before: torch.Tensor) -> bool:
    alike = got.shape == before.shape and torch.allclose(got, before, rtol=0, atol=0, equal_nan=True)
    return alike and got.requires_grad == before.requires_grad


def _call(
    layer: nn.Module, *inputs: torch.Tensor, expected: Any = _ON_PURPOSE, named: bool = False
) -> dict[str, Any]:
    """Call the layer, by keyword only if `named`; return its output or error, whether anything was printed or warned, or an input changed."""
    printed, output, kind, message = io.StringIO(), None, None, ""
    before = [value.detach().clone().requires_grad_(value.requires_grad) for value in inputs]
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            output = copies(layer(**dict(zip(NAMES, inputs, strict=False))) if named else layer(*inputs))
        except Exception as error:
            if not isinstance(error, expected) and type(error) is not Exception:
                raise
            kind = "ValueError" if isinstance(error, ValueError) else type(error).__name__
            message = str(error)
    changed = not all(map(_as_before, inputs, before))
    said = bool(printed.getvalue() or warned)
    return {"output": output, "error": kind, "message": message, "said": said, "changed": changed}


def observe(refuse_nan: Any, case: Case) -> dict[str, Any]:
    """Guard a layer that keeps statistics, and one with several inputs that nan and inf do not disturb.

    Another layer of its class is guarded under another name, and not called.
    """
    norm, both = nn.BatchNorm1d(case.clean.shape[1]), _Both().train(case.setting != "eval")
    for layer in (norm, both):
        layer.register_forward_pre_hook(_somebodys)
    handles = [refuse_nan(norm, case.name), refuse_nan(both, case.other), refuse_nan(_Both(), case.name)]
    saw = {"handle": handles[0], "hooks": _own(norm), "backward": backward_hooks(norm)}
    inputs = {place: [value.clone() for value in values] for place, values in calls(case).items()}
    made = {"clean": _call(norm, *inputs["clean"], expected=_PLAIN)}
    if case.setting == "in_place":
        with torch.no_grad():
            inputs["broken"] = [inputs["clean"][0].copy_(case.broken)]
    made["broken"] = _call(norm, *inputs["broken"])
    saw |= {"clean": made["clean"]["output"], "clean_error": made["clean"]["error"]} | made["broken"]
    saw |= {"running_mean": copies(norm.running_mean), "hooks_later": _own(norm)}
    all_nan = case.clean * float("nan")
    saw |= {"all_nan": _call(norm, all_nan)["error"], "nearly": None}
    for place in (_MIDDLE, _LAST):  # a single number is none
        nearly = all_nan.clone()
        nearly.view(-1)[place] = 2.0
        saw["nearly"] = saw["nearly"] or _call(norm, nearly)["error"]
    saw["with_grad"] = _call(norm, case.broken.clone().requires_grad_())["error"]
    remove_handle(handles[0])
    saw |= {
        "left_on_norm": _own(norm),
        "after_removal": _call(norm, case.broken.clone())["error"],
    }
    with torch.set_grad_enabled(case.setting != "no_grad"):
        for place in ("second", "turned", "two"):
            made[place] = _call(both, *inputs[place])
            saw |= {place: made[place]["message"], f"{place}_error": made[place]["error"]}
        # The same nan with no inf beside it, as the second of two inputs; and in float32, too.
        behind = case.second.clone().masked_fill_(case.second.isinf(), 2.0)
        saw["behind_error"] = _call(both, case.clean.clone(), behind)["error"]
        saw["float_error"] = _call(both, case.clean.clone(), behind.float())["error"]
    sent, both.received = [case.x.clone().requires_grad_(), case.x, *case.more], ()
    made["passed"] = passed = _call(both, *sent, expected=Exception)
    saw["by_name"] = case.setting == "named" and not (passed["error"] or passed["changed"])
    if saw["by_name"]:
        both.received = ()
        made["passed"] = passed = _call(both, *sent, expected=Exception, named=True)
    saw["passed"] = f"{passed['error']}: {passed['message']}" if passed["error"] else "no error"
    saw["same"] = [got is sent for got, sent in zip(both.received, sent, strict=False)]
    saw["graph"] = [got.requires_grad for got in both.received if isinstance(got, torch.Tensor)]
    saw["changed"] = next((place for place, call in made.items() if call["changed"]), None)
    saw |= {"infinity": _call(both, case.infinite, case.x, expected=Exception)["error"]}
    saw["hooks_in_the_end"] = _own(both)
    for handle in handles[1:]:
        remove_handle(handle)
    return saw


PROBE = Probe("06.1", "refuse_nan", make_case, observe, leaves=(HANDLES,))
