"""What is observed of 02.4, `watching(tensors)`: inside its block, after it, and after an exception in it."""

from typing import Any

import torch

from hookedu.exercises.probes.lesson_02.shared import Case, make_case
from hookedu.exercises.probing import Interruption, Probe, hooks_on
from hookedu.exercises.tools import copies, is_manager


def _tensors(case: Case) -> dict[str, torch.Tensor]:
    """Return a leaf, two results computed from it, and a tensor that requires no gradient."""
    return {"x": case.x, "scaled": case.k * case.x, "fixed": torch.ones(2), "shifted": case.x + 1}


def _loss(tensors: dict[str, torch.Tensor], w: torch.Tensor) -> torch.Tensor:
    return (w * tensors["scaled"]).sum() + (3 * w * tensors["shifted"]).sum()


def _separate(watching: Any, case: Case) -> list[Any]:
    """Return what two consecutive `with` blocks collect, each for its own tensor."""
    collected = []
    for name in ("first", "second"):
        y = case.k * case.x
        with watching({name: y}) as seen:
            (case.w * y).sum().backward()
        collected.append(seen)
    return copies(collected)


def _hooks(tensors: dict[str, torch.Tensor]) -> int:
    return sum(map(hooks_on, tensors.values()))


_KEYS = ("manager", "is_manager", "hooks", "seen", "x_grad", "after", "left", "stranger", "switched")
_LATER = ("escaped", "left_by_error", "separate")


def observe(watching: Any, case: Case) -> dict[str, Any]:
    """Watch one backward pass in the block beside a third party's hook, and run another one after it."""
    tensors, stranger = _tensors(case), []
    tensors["scaled"].register_hook(lambda grad: stranger.append(1))
    manager = watching(tensors)
    if not is_manager(manager):
        return dict.fromkeys(_KEYS + _LATER) | {"manager": manager, "is_manager": False}
    with manager as seen:
        hooks = _hooks(tensors) - 1
        _loss(tensors, case.w).backward(retain_graph=True)
    inside, x_grad = copies(seen), copies(case.x.grad)
    _loss(tensors, 2 * case.w).backward()
    left = _hooks(tensors) - (len(stranger) == 2)
    report = (
        None,
        True,
        hooks,
        inside,
        x_grad,
        copies(seen),
        left,
        len(stranger),
        tensors["fixed"].requires_grad,
    )

    again, escaped = _tensors(case), False
    try:
        with watching(again):
            raise Interruption
    except Interruption:
        escaped = True
    later = (escaped, _hooks(again), _separate(watching, case))
    return dict(zip(_KEYS + _LATER, report + later, strict=True))


PROBE = Probe("02.4", "watching", make_case, observe)
