"""What decides about 01.3, `keep_all(tensors, loss)`."""

from typing import Any

import torch

from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_01.keep_all import PROBE, Case
from hookedu.exercises.tools import all_close, close


class Key:
    """The gradients by name, None or the old one of what requires none, and the names of the leaves that get one."""

    def __init__(self, case: Case) -> None:
        needed = {name: tensor for name, tensor in case.tensors.items() if tensor.requires_grad}
        found = dict(zip(needed, torch.autograd.grad(case.loss, [*needed.values()]), strict=True))
        self.grads: dict[str, Any] = {
            name: found.get(name, tensor.grad if tensor.is_leaf else None)
            for name, tensor in case.tensors.items()
        }
        self.leaves = [name for name, tensor in needed.items() if tensor.is_leaf]
        self.others = [name for name in needed if name not in self.leaves]
        self.twice = [n for n, t in needed.items() if sum(t is other for other in needed.values()) > 1]


def _of_wrong(saw: Any, key: Key, grads: dict[str, Any]) -> str:
    """Write those of the gradients that the answer has wrong, or all if none is."""
    wrong = [name for name in key.grads if not all_close({"": saw.grads[name]}, {"": key.grads[name]})]
    return "; ".join(f"{name}.grad == {show(grads[name])}" for name in wrong or key.grads)


def _times(saw: Any, key: Key, names: list[str], times: int = 1) -> bool:
    """Whether the gradients of these names came out so many times."""
    return all(close(saw.grads[name], times * key.grads[name]) for name in names)


def _missing(saw: Any, key: Key) -> list[str]:
    """Return the non-leaves without gradient, if all other gradients are right."""
    missing = [name for name in key.others if saw.grads[name] is None]
    return missing if _times(saw, key, [n for n in key.leaves + key.others if n not in missing]) else []


def _anothers(saw: Any, key: Key) -> bool:
    """Whether a tensor holds the gradient of another one."""
    return any(
        close(saw.grads[name], key.grads[other]) and not close(saw.grads[name], key.grads[name])
        for name in key.others
        for other in key.leaves + key.others
    )


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given="{case.given}",
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
            ok=lambda saw, key: all_close(saw.grads, key.grads),
            points=2,
            essential=True,
            expected=lambda saw, key: _of_wrong(saw, key, key.grads),
            got=lambda saw, key: _of_wrong(saw, key, saw.grads),
            mistakes={
                "works_on_copies": lambda saw, key: saw.replaced,
                "no_backward": lambda saw, key: (
                    saw.passes == 0 and all(saw.grads[name] is None for name in key.leaves + key.others)
                ),
                "backward_in_loop": lambda saw, key: saw.passes > 1,
                "stores_twice": lambda saw, key: (
                    _times(saw, key, key.leaves, 2) and _times(saw, key, key.others)
                ),
                "adds_per_name": lambda saw, key: (
                    key.twice
                    and _times(saw, key, key.twice, 2)
                    and _times(saw, key, [n for n in key.leaves + key.others if n not in key.twice])
                ),
                "retains_too_late": lambda saw, key: _missing(saw, key) == key.others and saw.retains,
                "leaves_only": lambda saw, key: _missing(saw, key) == key.others,
                "misses_some": _missing,
                "anothers_gradient": _anothers,
            },
        ),
        Check(
            "free",
            "attached",
            want=lambda key: [],
            essential=True,
            expected=lambda saw, key: f"{saw.attached[0]}.grad.requires_grad == False",
            got=lambda saw, key: f"{saw.attached[0]}.grad.requires_grad == True",
            mistakes={"keeps_graph": True},
        ),
        Check(
            "once",
            ok=lambda saw, key: saw.passes == 1,
            points=1,
            expected=Say("passes", n=1),
            got=Say("passes", n=lambda saw, key: saw.passes),
            mistakes={"several_passes": lambda saw, key: saw.passes > 1},
        ),
    ],
    raises={
        "other_dtype": r"assigned grad has data of a different type|assign a gradient with dtype",
        "backward_in_loop": r"backward through the graph a second time",
        "retains_data": r"can't retain_grad on Tensor that has requires_grad=False",
        "uses_the_return": r"'NoneType' object has no attribute '(grad|retain_grad|register_hook)'",
    },
)
