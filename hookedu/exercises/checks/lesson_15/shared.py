"""What the checks of this lesson share: entries that a context manager keeps, and what is true of the manager."""

import math
from typing import Any

import torch

from hookedu.exercises.criteria import Check, Of, Say
from hookedu.exercises.observation import Opaque, bracketed, show
from hookedu.exercises.structures import mapped, untyped

_TOLERANCE = 1e-3


def close_to(got: Any, want: Any) -> bool:
    """Check whether these are nested lists of the same names and of close numbers; a tensor is no number."""
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return False
        return all(close_to(one, two) for one, two in zip(got, want, strict=True))
    if isinstance(want, float):
        return type(got) in (int, float) and math.isclose(got, want, rel_tol=_TOLERANCE, abs_tol=1e-6)
    return type(got) is type(want) and got == want


def numbers(value: Any) -> Any:
    """Return the same nested lists with numbers of Python in place of tensors that hold one."""
    return mapped(lambda v: float(v) if isinstance(v, torch.Tensor) and v.numel() == 1 else v, value)


def as_lists(value: Any) -> str:
    """Write entries as nested lists, in which a nan equals a nan."""
    return str(mapped(untyped, value))


def holds(value: Any, kind: type) -> bool:
    """Check whether a value of this type stands anywhere in nested lists."""
    return any(holds(one, kind) for one in value) if isinstance(value, list) else isinstance(value, kind)


def shown(value: Any) -> str:
    """Write entries as code: pairs of a name and a value as a dictionary, numbers with few digits."""
    if type(value) is list and value and all(_is_pair(one) for one in value):
        return "{" + ", ".join(f"{name!r}: {shown(one)}" for name, one in value) + "}"
    if isinstance(value, list):
        return bracketed(map(shown, value), value)
    if isinstance(value, torch.Tensor):
        return f"tensor({float(value):.4g})" if value.numel() == 1 else f"Tensor{tuple(value.shape)}"
    return f"{value:.4g}" if isinstance(value, float) else show(value)


def _is_pair(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and isinstance(value[0], str)


def is_manager(given: str) -> Check:
    """Require a context manager; observes `manager`, and `early`, what it gives at the start: an empty list."""
    return Check(
        "manager",
        ok=lambda saw, key: saw.manager and saw.early == [],
        essential=True,
        given=given,
        expected=Say("gives_list"),
        got=[
            Say("gives_no_manager", when=lambda saw, key: not saw.manager),
            lambda saw, key: shown(saw.early),
        ],
        mistakes={
            "no_manager": lambda saw, key: not saw.manager,
            "yields_nothing": lambda saw, key: saw.early is None,
            "not_a_list": lambda saw, key: type(saw.early) is Opaque or saw.early != [],
        },
    )


def ends(
    given: str, late: Of, off: dict[str, Any] | None = None, lost: dict[str, Any] | None = None
) -> list[Check]:
    """Require that a block leaves grad mode alone, has a list of its own, and takes its hooks off, also after an exception.

    Observes `modes`, `own`, `left`, `late` and `raised`; `late` tells whether nothing was added after the block.
    `off` and `lost` are the mistakes of switching gradients off inside the block and of removing the hooks of others,
    for exercises in which no earlier check finds them. An exception must reach the caller.
    """
    return [
        Check(
            "modes",
            ok=lambda saw, key: saw.modes == [True, False],
            essential=True,
            given=[
                Say("grad_off", code=given, when=lambda saw, key: saw.modes[0]),
                given,
            ],
            expected=Say("mode", value=lambda saw, key: not saw.modes[0]),
            got=Say("mode", value=lambda saw, key: saw.modes[0]),
            mistakes=(off or {}) | {"grad_inside": True},
        ),
        Check(
            "own",
            ok=lambda saw, key: saw.own,
            essential=True,
            given=Say("other_blocks", code=given),
            expected=Say("list_stays"),
            got=Say("list_changed"),
            mistakes={"one_list": True},
        ),
        Check(
            "clean",
            ok=lambda saw, key: saw.left == 0 and late(saw, key),
            points=1,
            given=given,
            expected=Say("hooks_left", value=0),
            got=[
                Say("hooks_lost", value=lambda saw, key: -saw.left, when=lambda saw, key: saw.left < 0),
                Say("hooks_left", value=lambda saw, key: saw.left),
            ],
            mistakes={"leaves_hooks": lambda saw, key: saw.left > 0} | (lost or {}),
        ),
        Check(
            "after_error",
            ok=lambda saw, key: saw.left != 0 or set(saw.raised) == {"came through"},
            points=1,
            given=Say("raising", code=given),
            expected=Say("comes_through"),
            got=[Say("is_swallowed", when=lambda saw, key: "swallowed" in saw.raised), Say("left_on")],
            mistakes={
                "swallows": lambda saw, key: "swallowed" in saw.raised,
                "no_finally": True,
            },
        ),
    ]
