"""What is observed of 02.4, `watching(tensors)`: before, inside and after its block, and after exceptions in it."""

from typing import Any

import torch

from hookedu.exercises.conduct import Interruption, Stopped
from hookedu.exercises.probes.lesson_02.shared import Case, make_case
from hookedu.exercises.probing import Probe, hooks_on
from hookedu.exercises.tools import ERRORS, copies, is_manager, noted

# Raised in turn in a block of the first case, in the others only the first of them; an `Interruption` is a RuntimeError of
# another class, a StopIteration what `next` raises.
_ERRORS = (Interruption, *ERRORS, StopIteration)


def _tensors(case: Case) -> dict[str, torch.Tensor]:
    """Return a leaf, two results computed from it, one of them under two names, and a tensor that requires no gradient."""
    scaled = case.k * case.x
    return {"x": case.x, "scaled": scaled, "fixed": torch.ones(2), "again": scaled, "shifted": case.x + 1}


def shifted_grad(case: Case) -> torch.Tensor:
    """Return the gradient of the second result; 0 in the case of no axes, in which none is infinite."""
    return 3 * case.w if case.w.ndim else torch.zeros(())


def _loss(tensors: dict[str, torch.Tensor], case: Case, times: int = 1) -> torch.Tensor:
    return times * ((case.w * tensors["scaled"]).sum() + (shifted_grad(case) * tensors["shifted"]).sum())


def _hooks(tensors: dict[str, torch.Tensor]) -> int:
    return sum(hooks_on(tensor) for name, tensor in tensors.items() if name != "again")


def _nested(watching: Any, case: Case) -> dict[str, Any]:
    """Return what two blocks have collected when they end, one inside the other, both for the same tensor."""
    y = case.k * case.x
    first, second = watching({"first": y}), watching({"second": y})
    with first as outer:
        with second as inner:
            (case.w * y).sum().backward(retain_graph=True)
        inside = copies(inner)
        (2 * case.w * y).sum().backward()
    return {"one_dict": outer is inner, "nested": [copies(outer), inside]}


def _reused(watching: Any, case: Case) -> bool:
    """Check whether two blocks for one and the same dictionary of tensors yield one and the same dictionary."""
    tensors = {"y": case.k * case.x}
    with watching(tensors) as one:
        pass
    with watching(tensors) as two:
        return one is two


def _later(watching: Any, case: Case) -> dict[str, Any]:
    """Return what a block has seen of a leaf without a .grad after two more backward passes, and whether a hook gave something."""
    x = torch.ones_like(case.w, requires_grad=True)
    x.register_hook(lambda grad: None)  # somebody else's
    with watching({"x": x}) as seen:
        gave = noted(x)
        (case.w * x).sum().backward()
    for factor in (2, 3):
        (factor * case.w * x).sum().backward()
    return {"later": copies(seen), "gave": any(gave)}


def _raising(watching: Any, case: Case, error: type[BaseException]) -> tuple[str, int, Any]:
    """Return which exception comes out when one is raised in the block, how many hooks it leaves, and what can be read.

    An `Interruption` comes after a backward pass.
    """
    tensors, raised, came = _tensors(case), error(), "none"
    before, seen = _hooks(tensors), None
    try:
        with watching(dict(tensors)) as seen:
            if error is Interruption:
                _loss(tensors, case).backward()
            raise raised
    except BaseException as caught:
        if isinstance(caught, KeyboardInterrupt) and not isinstance(caught, Stopped):
            raise
        came = "this" if caught is raised else "another"
    return came, _hooks(tensors) - before, copies(seen)


def _left_by_nothing(watching: Any, case: Case) -> int:
    """Return how many hooks a block leaves in which nothing happens."""
    tensors = _tensors(case)
    before = _hooks(tensors)
    with watching(dict(tensors)):
        pass
    return _hooks(tensors) - before


_KEYS = ("manager", "is_manager", "early", "hooks", "seen", "second", "x_grad", "left", "stranger")
_LATER = (
    "later",
    "gave",
    "switched",
    "after_error",
    "one_dict",
    "nested",
    "reused",
    "escaped",
    "escaped_interrupt",
)
_LEFT = ("left_by_error", "spared", "left_by_interrupt", "left_by_nothing")


def observe(watching: Any, case: Case) -> dict[str, Any]:
    """Watch two backward passes in the block beside two hooks of others, and run another one after it."""
    tensors, stranger = _tensors(case), []
    other = tensors["scaled"].register_hook(lambda grad: stranger.append(1))
    manager = watching(dict(tensors))
    if not is_manager(manager):
        return dict.fromkeys(_KEYS + _LATER + _LEFT) | {"manager": manager, "is_manager": False}
    report = {"manager": None, "is_manager": True, "early": _hooks(tensors) - 1}
    with manager as seen:
        report["hooks"] = _hooks(tensors) - 1
        others = [other, tensors["scaled"].register_hook(lambda grad: stranger.append(2))]
        _loss(tensors, case).backward(retain_graph=True)
        report |= {"seen": copies(seen), "x_grad": copies(case.x.grad)}
        _loss(tensors, case, 2).backward(retain_graph=True)
    report["second"] = copies(seen)
    _loss(tensors, case, 3).backward()
    remaining = tensors["scaled"]._backward_hooks or {}
    report |= {
        "left": _hooks(tensors) - sum(handle.id in remaining for handle in others),
        "stranger": len(stranger),
    }
    others[1].remove()
    report["switched"] = tensors["fixed"].requires_grad
    report |= _nested(watching, case) | {"reused": _reused(watching, case)} | _later(watching, case)
    report["left_by_nothing"] = _left_by_nothing(watching, case)
    errors = _ERRORS if case.w.ndim == 1 else _ERRORS[:1]
    came, left, kept = zip(*(_raising(watching, case, error) for error in errors), strict=True)
    report["escaped"] = next((one for one in came if one != "this"), "this")
    report |= {"left_by_error": max(left), "spared": min(left) == 0, "after_error": kept[0]}
    report["escaped_interrupt"], report["left_by_interrupt"], _ = _raising(watching, case, Stopped)
    return report


PROBE = Probe("02.4", "watching", make_case, observe, cases=4, yields=True)
