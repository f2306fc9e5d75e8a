"""What decides about 09.1, `conv_groups(model, x)`."""

from typing import Any

import torch
from torch import nn

from hookedu.exercises.checks.common import all_detached, none_left
from hookedu.exercises.checks.forward_hooks import graph_kept
from hookedu.exercises.checks.lesson_09.shared import first_wrong, no_traces
from hookedu.exercises.criteria import Check, Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_09.conv_groups import PROBE
from hookedu.exercises.tools import same

_CALL = "conv_groups(model, x)"
_SMALL, _LARGE = "(2, 1, 2, 2)", "(2, 2, 3, 3)"


class _Key:
    """Outputs as the convolutions gave them, and as they are once overwritten."""

    @torch.no_grad()
    def __init__(self, case: tuple[nn.Module, torch.Tensor]) -> None:
        net, x = case
        small, relu, large, relu, last, _ = (m for m in net.modules() if isinstance(m, nn.Conv2d | nn.ReLU))
        layers = nn.Sequential(small, relu, large, relu, large, relu, last)
        a, b, c, d = (layers[:n](x) for n in (1, 3, 5, 7))
        added = d + c.relu()
        self.groups = {_SMALL: [a], _LARGE: [b, c, d]}
        self.overwritten = {_SMALL: [a.relu()], _LARGE: [b.relu(), c.relu(), added.relu()]}
        self.last_call = [d, [d], added.relu(), [added.relu()]]
        self.inplace_off = [b, c, added]  # the large group with all `inplace` off


def _tells_calls_apart(case: tuple[nn.Module, torch.Tensor]) -> bool:
    """Check whether outputs differ from call to call, and overwriting changes each of them."""
    key = _Key(case)
    (a,), (b, c, d), spoilt = key.groups[_SMALL], key.groups[_LARGE], key.overwritten[_LARGE]
    pairs = [*zip((b, c, d), spoilt, strict=True), (d, key.inplace_off[2]), (b, c), (c, d)]
    return bool(a.min() < 0) and not any(torch.equal(*pair) for pair in pairs)


def _line(saw: Any, key: _Key, groups: dict[str, Any]) -> str:
    shape = first_wrong(saw.groups, key.groups)
    return f"[{shape}] == {show(groups.get(shape))}"


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_tells_calls_apart,
    given="x = {case[1]}; model: conv, relu_, [conv, relu_] × 2, conv, out += h, relu_",
    checks=[
        Check(
            "keys",
            ok=lambda saw, key: saw.groups.keys() == key.groups.keys(),
            points=1,
            essential=True,
            given=f"{_CALL}.keys()",
            expected=show([_SMALL, _LARGE]),
            got="{saw.keys}",
            mistakes={
                "returns_nothing": lambda saw, key: saw.keys is None,
                "kernel_size": lambda saw, key: saw.groups.keys() == {"(2, 2)", "(3, 3)"},
                "output_shape": lambda saw, key: saw.groups.keys() == {"(1, 2, 2, 2)"},
                "only_children": lambda saw, key: {k: len(v) for k, v in saw.groups.items()} == {_LARGE: 1},
                "late_binding": lambda saw, key: saw.groups.keys() == {_LARGE},
                "by_name": lambda saw, key: saw.groups.keys() & {"last", "body.0"},
            },
        ),
        Check(
            "values",
            "groups",
            want=lambda key: key.groups,
            points=2,
            essential=True,
            expected=lambda saw, key: _line(saw, key, key.groups),
            got=lambda saw, key: _line(saw, key, saw.groups),
            mistakes={
                "overwritten": Gives(lambda key: key.overwritten),
                "plus_equals": lambda saw, key: same(saw.groups[_LARGE], key.inplace_off),
                "last_call_only": lambda saw, key: any(same(saw.groups[_LARGE], t) for t in key.last_call),
                "runs_twice": lambda saw, key: len(saw.groups[_LARGE]) == 2 * len(key.groups[_LARGE]),
            },
        ),
        graph_kept(_CALL),
        all_detached(_CALL),
        *no_traces(_CALL),
        none_left("conv_groups(broken, x)", "no_finally", "clean_after_error", "left_by_error"),
    ],
    raises={"every_module": r"has no attribute 'weight'"},
)
