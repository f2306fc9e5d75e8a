"""What decides about 05.2, `prove(model, x, skip)`."""

from functools import partial
from typing import Any

import torch

from hookedu.exercises.checks.common import none_left
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_05.prove import PROBE

_CALLED = ["Linear", "Linear", "ReLU"]  # in the order of calls, without the skipped module
_NESTED = ["Sequential", "Linear", "ReLU"]  # the same if the first child contains a Linear and a ReLU
_GIVEN = "x = {case.x}; result = prove(model, x, nn.{case.skip.__name__})"
_RAISES = {"too_many": r"zip\(\) argument 2 is shorter", "output_and_list": r"for -: 'Tensor' and 'list'"}
_Result = partial(Check, essential=True, label="result")


def _names(pairs: Any) -> list[Any]:
    """Return the first item of each pair."""
    return [pair[0] for pair in pairs]


def _numbers(pairs: Any) -> list[Any]:
    """Return the second item of each pair; a tensor of one element counts as a number."""
    return [n.item() if isinstance(n, torch.Tensor) and n.numel() == 1 else n for _, n in pairs]


def _noticed(pairs: Any, lies: list[float]) -> list[bool]:
    """Return for each lie whether the difference has its size, up to rounding."""
    return [abs(n - abs(lie)) < 1e-4 for n, lie in zip(_numbers(pairs), lies, strict=True)]


EXERCISE = Exercise(
    PROBE,
    given=_GIVEN,
    checks=[
        _Result(
            "names",
            "honest",
            want=lambda case: [[name, 0.0] for name in _CALLED],
            ok=lambda saw, case: _names(saw.honest) == _CALLED,
            points=1,
            mistakes={
                "returns_nothing": lambda saw, case: saw.honest is None,
                "not_only_children": lambda saw, case: "Net" in _names(saw.honest),
                "ignores_skip": lambda saw, case: case.skip.__name__ in _names(saw.honest),
                "no_entries": lambda saw, case: saw.honest == [],
                "late_binding": lambda saw, case: _names(saw.honest) == [saw.honest[0][0]] * 3,
                "order_of_children": lambda saw, case: sorted(_names(saw.honest)) == _CALLED,
            },
        ),
        _Result(
            "differences",
            "lying",
            want=lambda case: [[name, abs(lie)] for name, lie in zip(_CALLED, case.lies, strict=True)],
            ok=lambda saw, case: all(_noticed(saw.honest, [0.0] * 3) + _noticed(saw.lying, case.lies)),
            points=1,
            given=Say("misreports"),
            mistakes={
                "not_a_number": lambda saw, case: any(map(torch.is_tensor, _numbers(saw.lying))),
                "always_zero": lambda saw, case: all(n == 0 for n in _numbers(saw.lying)),
                "signed": lambda saw, case: sum(_noticed(saw.lying, case.lies)) == 2,  # of the two lies, one
                "not_the_largest": lambda saw, case: {type(n) for n in _numbers(saw.lying)} <= {int, float},
            },
        ),
        _Result(
            "children",
            "nested",
            want=lambda case: [[name, 0.0] for name in _NESTED],
            ok=lambda saw, case: _names(saw.nested) == _NESTED,
            given="self.fc1 = nn.Sequential(nn.Linear(2, 2), nn.ReLU()); " + _GIVEN,
            mistakes={"not_only_children": lambda saw, case: _names(saw.nested)[:2] == ["Linear", "ReLU"]},
        ),
        Check(
            "once",
            "calls",
            want=lambda case: [1, 1, 1],
            points=1,
            expected=Say("runs", n=1),
            got=Say("runs", n=lambda saw, case: max(saw.calls)),
            mistakes={"runs_twice": lambda saw, case: max(saw.calls) > 1},
        ),
        none_left(_GIVEN, "leaves_hooks", id="clean"),
    ],
    raises=_RAISES | CALLS_NOW | WRONG_ARGUMENTS,
)
