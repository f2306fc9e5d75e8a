"""What decides about 10.5, `clip_before_step(optimizer, max_norm)`."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks.common import handle_works
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_10.clip_before_step import PROBE, Case, norm_of
from hookedu.exercises.tools import close

Grads = list[torch.Tensor]


def _clipped(case: Case, *groups: str) -> Grads:
    """Return the gradients of a, b and c as `clip_grad_norm_` leaves them, called on each of the groups."""
    grads = dict(zip("abc", case.grads, strict=True))
    for group in groups:
        total = norm_of([grads[name] for name in group])
        grads |= {name: grads[name] * (case.max_norm / total).clamp(max=1) for name in group}
    return list(grads.values())


def _by(total: Callable[[Case], Any], always: bool = False) -> Callable[[Case], Grads]:
    """Return a function of the case: all gradients times max_norm / total, where that shrinks them, or always."""

    def moved(case: Case) -> Grads:
        factor = case.max_norm / total(case)
        return [grad * (factor if always else min(1, factor)) for grad in case.grads]

    return moved


def _later(case: Case, clipped: str = "abd") -> Grads:
    """Return how far a, b, c and d move in the later step, in which c has no gradient, if those named are clipped."""
    grads = dict(zip("abd", case.later, strict=True))
    factor = case.max_norm / norm_of([grads[name] for name in clipped]) if clipped else 1
    a, b, d = (grad * factor if name in clipped else grad for name, grad in grads.items())
    return [a, b, torch.zeros_like(case.later[2]), d]


def _of_parameters(case: Case) -> torch.Tensor:
    return norm_of([*case.values, torch.ones(2)])


def _stretched(case: Case) -> Grads:
    return [grad * case.max_norm / norm_of(case.grads) for grad in case.grads]


def _never_clipped(saw: Any, case: Case) -> bool:
    """Check whether no step with long gradients was clipped."""
    return _near(saw.moved, case.grads) and _near(saw.later, _later(case, ""))


def _near(got: Any, expected: Grads, tolerance: float = 1e-4) -> bool:
    if not isinstance(got, list) or len(got) != len(expected):
        return False
    return all(close(one, other, tolerance) for one, other in zip(got, expected, strict=True))


def _infinite(case: Case) -> Grads:
    """Return how far a and a parameter move that has inf in its gradient: to clip is to multiply by 0."""
    return [torch.zeros_like(case.grads[0]), torch.tensor([torch.nan, 0.0])]


def _near_with_nan(got: Any, expected: Grads) -> bool:
    return _near([grad.nan_to_num(1e9) for grad in got], [grad.nan_to_num(1e9) for grad in expected])


# How far the parameters move with likely mistakes.
_MOVES: dict[str, tuple[Callable[[Case], Grads], ...]] = {
    "each_by_its_own": (lambda case: _clipped(case, "a", "b", "c"),),
    "each_group": (lambda case: _clipped(case, "a", "bc"),),
    "first_group_only": (lambda case: _clipped(case, "a"),),
    "clamps_elements": (lambda case: [grad.clamp(-case.max_norm, case.max_norm) for grad in case.grads],),
    "sum_of_norms": (_by(lambda case: sum(grad.norm() for grad in case.grads)),),
    "unit_norm": (_by(lambda case: case.max_norm * norm_of(case.grads), always=True),),
    "norm_of_the_parameters": (_by(_of_parameters), _by(_of_parameters, always=True)),
    "no_root": (_by(lambda case: norm_of(case.grads) ** 2),),
    "other_norm": (
        _by(lambda case: sum(grad.abs().sum() for grad in case.grads)),
        _by(lambda case: max(grad.abs().max() for grad in case.grads)),
        _by(lambda case: max(grad.norm() for grad in case.grads)),
    ),
}


def _norms_differ(case: Case) -> bool:
    """Check whether the gradients of the two steps have clearly different norms."""
    first, later = norm_of(case.grads), norm_of(case.later)
    return bool(abs(first / later - 1) > 0.05 and abs(first / norm_of(case.later[:2]) - 1) > 0.05)


EXERCISE = Exercise(
    PROBE,
    suits=_norms_differ,
    given="grads = {case.grads}; max_norm = {case.max_norm:g}; optimizer.step(); lr = 1",
    checks=[
        Check(
            "clips",
            "moved",
            want=lambda case: _clipped(case, "abc"),
            equal=_near,
            points=2,
            essential=True,
            expected=Say("wanted"),
            got=Say("moved"),
            mistakes={
                "too_late": lambda saw, case: _near(saw.kept, _clipped(case, "abc")),
                "before_the_call": lambda saw, case: (
                    saw.hooks and (saw.old_changed or _near(saw.moved, _clipped(case, "b")))
                ),
                "turned_round": lambda saw, case: (
                    _near(saw.moved, case.grads) and _near(saw.short, _stretched(case))
                ),
                "gives_up": lambda saw, case: (
                    _never_clipped(saw, case) and saw.none_left.norm() < 1.01 * case.max_norm
                ),
                "nothing_changed": lambda saw, case: _never_clipped(saw, case) and saw.hooks,
                "in_backward": lambda saw, case: saw.on_params,
                "not_registered": lambda saw, case: _never_clipped(saw, case) and not saw.hooks,
                **{mistake: Gives(*moves) for mistake, moves in _MOVES.items()},
            },
        ),
        Check(
            "later",
            "later",
            want=_later,
            ok=lambda saw, case: _near(saw.later, _later(case)) and saw.unused is None,
            points=1,
            given=[
                Say("unused", when=lambda saw, case: _near(saw.later, _later(case))),
                Say("later_step"),
            ],
            expected=[
                Say("stays_none", when=lambda saw, case: _near(saw.later, _later(case))),
                Say("wanted"),
            ],
            got=[
                Say("is_filled", when=lambda saw, case: _near(saw.later, _later(case))),
                Say("moved_later"),
            ],
            mistakes={
                "fills_none": lambda saw, case: saw.unused is not None and _near(saw.later, _later(case)),
                "removes_itself": lambda saw, case: saw.hooks_later < saw.hooks,
                "collected_once": lambda saw, case: _near(saw.later, _later(case, "ab")),
                "used_up": lambda saw, case: _near(saw.later, _later(case, "")),
            },
        ),
        Check(
            "leaves",
            "short",
            want=lambda case: [grad / 100 for grad in case.grads],
            equal=_near,
            points=1,
            given="grads = {want}; max_norm = {case.max_norm:g}; optimizer.step(); lr = 1",
            expected=Say("wanted"),
            got=Say("moved_short"),
            mistakes={"always_scales": lambda saw, case: _near(saw.short, _clipped(case, "abc"), 1e-3)},
        ),
        Check(
            "stranger",
            "stranger",
            want=lambda case: 100 * torch.ones(2),
            equal=close,
            essential=True,
            given="another.step(); lr = 1",
            expected=Say("wanted"),
            got=Say("moved_stranger"),
            mistakes={"every_optimizer": True},
        ),
        handle_works("clip_before_step(optimizer, max_norm)", lambda saw, case: _near(saw.after, case.grads)),
        Check(
            "infinite",
            "infinite",
            want=_infinite,
            # Not to clip in a later step is another mistake.
            ok=lambda saw, case: (
                _near_with_nan(saw.infinite, _infinite(case)) or not _near(saw.later, _later(case))
            ),
            essential=True,
            given="a.grad = [1, ...]; frozen.grad = [inf, 1]; max_norm = {case.max_norm:g}; optimizer.step(); lr = 1",
            expected=Say("wanted"),
            got=Say("moved_infinite"),
        ),
        Check(
            "nothing",
            want=lambda case: torch.zeros(2),
            ok=lambda saw, case: (
                close(saw.nothing, torch.zeros(2), 1e-4) or not _near(saw.moved, _clipped(case, "abc"))
            ),
            essential=True,
            given="clip_before_step(another, 0); another.step(); lr = 1",
            expected=Say("wanted"),
            got=Say("moved_nothing"),
        ),
        Check(
            "still",
            want=lambda case: torch.zeros(2),
            # To stretch short gradients, of a norm of 0 too, is another mistake.
            ok=lambda saw, case: (
                close(saw.still, torch.zeros(2)) or not _near(saw.short, [grad / 100 for grad in case.grads])
            ),
            essential=True,
            given="third.grad = [0, 0]; third.step(); lr = 1",
            expected=Say("wanted"),
            got=Say("moved_still"),
        ),
    ],
    raises={
        "none_grad": r"'NoneType' object has no attribute|unsupported operand.*NoneType|expected Tensor.*NoneType",
        "returns_value": r"must return None or a tuple of \(new_args, new_kwargs\)",
        "divides_by_zero": r"ZeroDivisionError",
        "three_arguments": r"positional arguments? but \d (?:was|were) given|(?<!clip_grad_norm_\(\) )missing \d required positional",
    },
)
