"""What decides about 06.2, `normalise(layer, mean, std)`."""

from collections.abc import Callable

import torch

from hookedu.exercises.checks.common import equals, handle_works
from hookedu.exercises.checks.lesson_06.shared import MISREGISTERED
from hookedu.exercises.criteria import Check, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_06.normalise import PROBE, Case, standard
from hookedu.exercises.tools import same


def _others(case: Case) -> list[torch.Tensor | None]:
    return [*case.rest, *case.named.values()]


def _call(case: Case, later: bool = False) -> str:
    """Return the call as code, with that for x + 1 if it is about the second one."""
    named = [f"{name}={show(value)}" for name, value in case.named.items()]
    others = [*map(show, case.rest), *named]
    first = f"layer({', '.join(['x' if later else _code(case.x), *others])})"
    calls = f"{first}; x.add_(1); {first}" if later else first
    mode = {"eval": "layer.eval(); ", "no_grad": "with torch.no_grad(): "}.get(case.setting, "")
    x = f"x = {_code(case.x)}; " * later
    return f"{x}normalise(layer, {_code(case.mean)}, {_code(case.std)}); {mode}{calls}"


def _call_standard(saw: Saw, case: Case) -> str:
    others = "".join(f", {show(value)}" for value in case.rest)
    others += "".join(f", {name}={show(value)}" for name, value in case.named.items())
    return f"normalise(layer, {_code(case.mean)}, {_code(case.std)}); layer({show(standard(case.x))}{others})"


def _code(value: torch.Tensor) -> str:
    """Return a tensor as code, with every digit."""
    short = value.dtype == torch.float32 and all(float(f"{v:g}") == v for v in value.flatten().tolist())
    return show(value) if short else f"torch.tensor({value.tolist()}, dtype={value.dtype})"


def _positional(saw: Saw) -> int:
    """Return how many positional inputs `forward` received."""
    return len(saw.received) - len(saw.names)


def _want(case: Case) -> torch.Tensor:
    return (case.x - case.mean) / case.std


def _want_later(case: Case) -> torch.Tensor:
    return (case.x + 1 - case.mean) / case.std


def _is_later(saw: Saw, case: Case) -> bool:
    """Check whether only the second call differs."""
    return same(saw.received, [_want(case), *_others(case)])


def _exactly(values: list) -> str:
    """Return values as a message shows them, with every digit and the dtype."""
    return ", ".join(
        f"{value.tolist()} ({value.dtype})" if isinstance(value, torch.Tensor) else show(value)
        for value in values
    )


def _shown(values: Callable[[Saw, Case], list]) -> Of:
    """Return the line of what is wanted or received; exactly, if both might print alike."""

    def line(saw: Saw, case: Case) -> str:
        alike = show(saw.received) == show([_want(case), *_others(case)])
        exact = alike or case.x.dtype == torch.float64
        return _exactly(values(saw, case)) if exact else show(values(saw, case))[1:-1]

    return line


def _received(saw: Saw, case: Case) -> str:
    """Return the line of what is received; exactly, if a value changed that prints like the one passed."""
    changed = not same(saw.received[1:], _others(case))
    return _shown(lambda saw, case: saw.received)(saw, case) if changed else show(saw.received)[1:-1]


def _is_another_formula(saw: Saw, case: Case) -> bool:
    """Check whether mean and std were used in another order or with the wrong operation."""
    x, m, d = case.x, case.mean, case.std
    wrong = (x / d - m, x - m / d, (x - m) * d, (m - x) / d, (x - d) / m, (x + m) / d)
    return any(same(saw.received[0], result) for result in wrong)


def _fresh(case: Case) -> torch.Tensor:
    """Return the input of the call in evaluation mode; that in training mode is 1024 times as large."""
    return torch.full_like(case.x, 0.5)


def _keeps_old(saw: Saw, case: Case) -> bool:
    """Check whether inputs that need no gradient pass as they are."""
    return same([saw.received[0], saw.plain, saw.in_eval], [case.x, 1024 * _fresh(case), _fresh(case)])


def _own_mean(saw: Saw, case: Case) -> bool:
    """Check whether the batch's own mean was subtracted; the std of a batch of 1 is nan."""
    first = saw.received[0]
    constant = not (saw.plain.abs() > 1e-4).any()  # equal numbers minus their mean are 0
    return constant and first.shape == case.x.shape and not first.mean().abs() > 1e-4


def _others_would_change(case: Case) -> bool:
    """Check whether the formula changes every other input that is a tensor."""
    others = [value for value in _others(case) if isinstance(value, torch.Tensor)]
    return not any(same((value - case.mean) / case.std, value) for value in others)


EXERCISE = Exercise(
    PROBE,
    suits=_others_would_change,
    given=lambda saw, case: _call(case),
    checks=[
        Check(
            "intact",
            "x",
            lambda case: case.x,
            essential=True,
            expected=Say("same_x"),
            mistakes={"in_place": True},
        ),
        Check(
            "receives",
            "received",
            want=_want,
            ok=lambda saw, case: (
                same([saw.received[0], saw.again], [_want(case), _want_later(case)])
                and len(saw.received) == 1 + len(_others(case))
                and not any(isinstance(value, list) for value in saw.received)
            ),
            points=1,
            essential=True,
            given=lambda saw, case: _call(case, _is_later(saw, case)),
            expected=[
                Say("receives_later", when=_is_later, first=lambda saw, case: _exactly([_want_later(case)])),
                Say("receives", all=_shown(lambda saw, case: [_want(case), *_others(case)])),
            ],
            got=[
                Say("receives_later", when=_is_later, first=lambda saw, case: _exactly([saw.again])),
                Say("receives", all=_shown(lambda saw, case: saw.received)),
            ],
            mistakes={
                "fires_backward": lambda saw, case: saw.hooks == 0 and saw.backward,
                "not_registered": lambda saw, case: saw.hooks == 0 and same(saw.received[0], case.x),
                "removes_itself": lambda saw, case: saw.hooks_later < saw.hooks,
                "on_a_part": lambda saw, case: saw.hooks == saw.on_part > 0 and same(saw.received[0], case.x),
                "too_late": lambda saw, case: saw.after and same(saw.received[0], case.x),
                "only_evaluation": lambda saw, case: same(
                    [saw.received[0], saw.plain, saw.in_eval],
                    [case.x, 1024 * _fresh(case), (_fresh(case) - case.mean) / case.std],
                ),
                "only_with_grad": lambda saw, case: (
                    _keeps_old(saw, case) and same(saw.gradient, torch.ones_like(case.x) / case.std)
                ),
                "forgets_return": _keeps_old,
                "missing_star": lambda saw, case: isinstance(saw.received[1], list),
                "drops_keywords": lambda saw, case: (
                    _positional(saw) == 1 + len(case.rest) and set(saw.names) < case.named.keys()
                ),
                "drops_the_rest": lambda saw, case: (
                    (_positional(saw) <= len(case.rest) and len(saw.received) < 1 + len(_others(case)))
                    or isinstance(saw.received[0], list)
                ),
                "wrong_formula": _is_another_formula,
                "own_statistics": _own_mean,
            },
        ),
        Check(
            "standard",
            "standard",
            want=lambda case: (standard(case.x) - case.mean) / case.std,
            essential=True,
            given=_call_standard,
            label="x",
            mistakes={"skips_normalised": lambda saw, case: same(saw.standard, standard(case.x))},
        ),
        Check(
            "by_name",
            "names",
            want=lambda case: sorted(case.named),
            essential=True,
            label="sorted(kwargs)",
            mistakes={"keywords_by_place": lambda saw, case: set(saw.names) < case.named.keys()},
        ),
        Check(
            "rest",
            ok=lambda saw, case: all(saw.same),
            points=1,
            expected=Say("same_gate"),
            got=Say("receives", all=_received),
            mistakes={
                "changes_the_rest": lambda saw, case: not same(saw.received[1:], _others(case)),
                "copies": True,
            },
        ),
        equals(
            "gradient",
            lambda case: torch.ones_like(case.x) / case.std,
            {"cuts_gradient": lambda saw, case: saw.gradient is None},
            given=lambda saw, case: _call(case),
            expected=Say("gradient"),
        ),
        handle_works("normalise(layer, mean, std)", silent=lambda saw, case: saw.after_removal),
    ],
    raises={
        "tuple_for_tensor": r"unsupported operand type\(s\) for [-+*/]+=?: '(tuple|Tensor)' and '(tuple|Tensor)'|must be Tensor, not tuple",
        "calls_layer": r"^RecursionError",
    }
    | MISREGISTERED,
)
