"""What decides about 01.3, `keep_all(tensors, loss)`."""

from typing import Any

import torch

from hookedu.exercises.criteria import Check
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_01.keep_all import PROBE, Case
from hookedu.exercises.tools import all_close, close

_Grads = dict[str, torch.Tensor]


def _expected(case: Case) -> _Grads:
    """Return the gradients of y, h and x."""
    tensors, k, _ = case
    data, h = tensors["data"], tensors["h"].detach()
    return {"y": data, "h": 2 * h * data, "x": k * 2 * h * data}


def _of_wrong(saw: Any, key: _Grads, grads: dict[str, Any]) -> str:
    """Write those of the gradients that the answer has wrong."""
    wrong = [name for name in key if not close(saw.grads[name], key[name])]
    return "; ".join(f"{name}.grad == {show(grads[name])}" for name in wrong)


def _missing(saw: Any, key: _Grads) -> list[str]:
    """Return the names without gradient, if that of x is right."""
    return [name for name in key if saw.grads[name] is None and close(saw.grads["x"], key["x"])]


EXERCISE = Exercise(
    PROBE,
    key=_expected,
    given="x = {case[0][x]}; data = {case[0][data]}; h = {case[1]:g} * x; y = h**2; loss = (data * y).sum()",
    checks=[
        Check(
            "data_untouched",
            "data_flag",
            want=lambda key: False,
            essential=True,
            label="data.requires_grad",
            mistakes={"changes_data": True},
        ),
        Check(
            "keeps",
            ok=lambda saw, key: all_close(saw.grads, key),
            points=3,
            essential=True,
            expected=lambda saw, key: _of_wrong(saw, key, key),
            got=lambda saw, key: _of_wrong(saw, key, saw.grads),
            mistakes={
                "works_on_copies": lambda saw, key: saw.replaced,
                "no_backward": lambda saw, key: saw.grads["x"] is None,
                "backward_in_loop": lambda saw, key: any(
                    close(saw.grads["x"], n * key["x"]) for n in (2, 3, 4)
                ),
                "retains_too_late": lambda saw, key: len(_missing(saw, key)) == 2 and saw.retains,
                "leaves_only": lambda saw, key: len(_missing(saw, key)) == 2,
                "misses_some": _missing,
            },
        ),
    ],
    raises={
        "backward_in_loop": r"backward through the graph a second time",
        "retains_data": r"can't retain_grad on Tensor that has requires_grad=False",
        "uses_the_return": r"'NoneType' object has no attribute",
    },
)
