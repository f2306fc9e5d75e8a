"""What decides about 09.1, `conv_groups(model, x)`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from hookedu.exercises.checks.common import all_detached
from hookedu.exercises.checks.forward_hooks import graph_kept
from hookedu.exercises.checks.lesson_09.shared import (
    differs_in_dtype,
    first_wrong,
    same_with_nan,
    show_with_dtype,
)
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import bracketed, is_tuple, show
from hookedu.exercises.probes.lesson_09.conv_groups import PROBE, Net

_CALL = "conv_groups(model, x)"
Shape = tuple[int, ...]
Groups = dict[Shape, list[torch.Tensor]]

_SMALL: Shape = (2, 1, 2, 2)
_LARGE: Shape = (2, 2, 3, 3)
_TRANSPOSED, _UNGROUPED, _UNUSED = (2, 2, 1, 1), (2, 2, 2, 2), (3, 2, 1, 1)
_NET = "conv, relu_, [Own(Conv2d), relu_], conv, out += h, relu_, convtranspose, [Own, relu_]"


class _Key:
    """Outputs as the convolutions gave them, and as they are once overwritten."""

    @torch.no_grad()
    def __init__(self, case: tuple[nn.Module, torch.Tensor]) -> None:
        model, self.x = case
        self.nested = isinstance(model, Net)
        self.shown = (
            "conv"
            if not isinstance(model, Net)
            else f"{_NET} {'twice more' if model.twice else 'again'}; a conv never runs"
        )
        a = (model.body[0] if isinstance(model, Net) else model)(self.x)
        self.groups: Groups = {_SMALL: [a]}
        self.overwritten = self.inplace_off = self.by_module = self.eval_mode = self.groups
        self.two_names = self.childless = self.exact = self.groups
        self.output_shape = tuple(a.shape)
        if isinstance(model, Net):
            b, d, added, c = self._later(model, a)
            times = 1 + model.twice
            self.groups = {_SMALL: [a], _LARGE: [b, d, *times * [c]]}
            self.overwritten = {_SMALL: [a.relu()], _LARGE: [b.relu(), added.relu(), *times * [c.relu()]]}
            self.by_module = {_SMALL: [a], _LARGE: [b, *times * [c], d]}
            self.two_names = {_SMALL: [a], _LARGE: [b, d, d, *times * [c]]}
            self.childless = {_SMALL: [a], _LARGE: [b, *times * [c]]}
            self.exact = {_SMALL: [a], _LARGE: [d]}
            self.inplace_off = {_SMALL: [a], _LARGE: [b, added, *times * [c]]}
            b, d, _, c = self._later(model, a, lost=b.relu())
            self.eval_mode = {_SMALL: [a], _LARGE: [b, d, *times * [c]]}

    @staticmethod
    def _later(model: Net, a: torch.Tensor, lost: torch.Tensor | float = 0.0) -> tuple[torch.Tensor, ...]:
        """Return what follows the first output, with what comes out of the layer that training switches off."""
        inner = model.body.get_submodule("2.0")
        b = inner(a.relu())
        d = model.last(b.relu() + lost)
        added = d + b.relu()
        return b, d, added, inner(model.up(added.relu()))

    def last_calls(self, shape: Shape) -> list[Any]:
        """Return what is in a group if each call replaces the one before."""
        outputs = self.groups[shape][-1], self.overwritten[shape][-1]
        return [*outputs, *([output] for output in outputs)]


def _tells_calls_apart(case: tuple[nn.Module, torch.Tensor]) -> bool:
    """Check whether outputs differ from call to call, and overwriting changes each of them."""
    key = _Key(case)
    if not key.nested:
        return True
    b, d, c = key.groups[_LARGE][:3]
    spoilt = zip((b, d, c), key.overwritten[_LARGE], strict=False)
    others = (key.inplace_off[_LARGE][1], key.eval_mode[_LARGE][1])
    pairs = [*spoilt, *((d, other) for other in others), (b, d), (d, c), (b, c)]
    return bool(key.groups[_SMALL][0].min() < 0) and not any(torch.equal(*pair) for pair in pairs)


def _line(saw: Any, key: _Key, groups: dict[Shape, Any]) -> str:
    """Return the first group that is wrong, and of a list of the right length the first wrong item."""
    shape = first_wrong(saw.groups, key.groups, same_with_nan)
    found, wanted, group = saw.groups.get(shape), key.groups[shape], groups.get(shape)
    if isinstance(found, list) and not is_tuple(found) and len(found) == len(wanted):
        n = next((n for n, pair in enumerate(zip(found, wanted, strict=True)) if not same_with_nan(*pair)), 0)
        return f"[{shape}][{n}] == {show_with_dtype((group or [])[n], found[n], wanted[n])}"
    return f"[{shape}] == {show(group)}"


def _keys(keys: Iterable[Any]) -> str:
    """Write all of them: those of every module are more than `show` writes."""
    return bracketed(map(show, keys), [])


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_tells_calls_apart,
    given=lambda saw, key: f"x = {show(key.x)}; model: {key.shown}",
    checks=[
        Check(
            "runs_itself",
            ok=lambda saw, key: saw.runs > 0,
            essential=True,
            given=_CALL,
            expected=Say("runs_of_model", value=1),
            got=Say("runs_of_model", value=lambda saw, key: saw.runs),
            mistakes={
                "returns_nothing": lambda saw, key: saw.keys is None,
                "calls_forward": lambda saw, key: saw.parts or not key.nested,
                "copied": True,
            },
        ),
        Check(
            "keys",
            ok=lambda saw, key: saw.groups.keys() == key.groups.keys(),
            points=2,
            essential=True,
            given=f"{_CALL}.keys()",
            expected=lambda saw, key: _keys(key.groups),
            got=lambda saw, key: _keys(saw.keys) if isinstance(saw.keys, list) else show(saw.keys),
            mistakes={
                "returns_nothing": lambda saw, key: saw.keys is None,
                "never_ran": lambda saw, key: saw.groups.get(_UNUSED) == [],
                "conv_transpose": lambda saw, key: saw.groups.keys() - key.groups.keys() == {_TRANSPOSED},
                "kernel_size": lambda saw, key: saw.groups and saw.groups.keys() <= {(2, 2), (3, 3), (1, 1)},
                "output_shape": lambda saw, key: key.output_shape in saw.groups,
                "in_channels": lambda saw, key: not key.nested and saw.groups.keys() == {_UNGROUPED},
                "not_itself": lambda saw, key: not key.nested and saw.groups == {},
                "only_children": lambda saw, key: (
                    {k: len(v) for k, v in saw.groups.items()} == ({_LARGE: 1} if key.nested else {})
                ),
                "late_binding": lambda saw, key: saw.groups.keys() == {_LARGE},
                "by_name": lambda saw, key: saw.groups.keys() & {"last", "body.0", ""},
            },
        ),
        Check(
            "values",
            "groups",
            want=lambda key: key.groups,
            equal=same_with_nan,
            points=5,
            essential=True,
            expected=lambda saw, key: _line(saw, key, key.groups),
            got=lambda saw, key: _line(saw, key, saw.groups),
            mistakes={
                "returns_kept": lambda saw, key: saw.replaced and same_with_nan(saw.groups, key.overwritten),
                "overwritten": Gives(lambda key: key.overwritten),
                "plus_equals": Gives(lambda key: key.inplace_off),
                "last_call_only": lambda saw, key: all(
                    any(same_with_nan(group, last) for last in key.last_calls(shape))
                    for shape, group in saw.groups.items()
                ),
                "by_module": Gives(lambda key: key.by_module),
                "two_names": Gives(lambda key: key.two_names),
                "exact_type": Gives(lambda key: key.exact),
                "leaves_only": Gives(lambda key: key.childless),
                "eval_mode": Gives(lambda key: key.eval_mode),
                "runs_twice": lambda saw, key: all(
                    len(saw.groups[shape]) == 2 * len(outputs) for shape, outputs in key.groups.items()
                ),
                "other_dtype": lambda saw, key: all(
                    len(saw.groups[shape]) == len(wanted)
                    and all(differs_in_dtype(*pair) for pair in zip(saw.groups[shape], wanted, strict=True))
                    for shape, wanted in key.groups.items()
                ),
            },
        ),
        replace(
            graph_kept(_CALL),
            mistakes={
                "freezes": lambda saw, key: saw.frozen,
                "cuts_gradient": lambda saw, key: not saw.frozen,
            },
        ),
        all_detached(_CALL),
    ],
    raises={
        "every_module": r"'(?!str'|tuple'|Tensor')\w+' object has no attribute 'weight'",
        "through_numpy": r"unsupported ScalarType BFloat16",
    },
)
