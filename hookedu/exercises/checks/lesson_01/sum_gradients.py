"""What decides about 01.2, `sum_gradients(w, losses)`."""

from typing import Any

import torch

from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_01.sum_gradients import PROBE, Case
from hookedu.exercises.tools import close


def _given(saw: Any, case: Case) -> str:
    rows = [show(factor) for factor in case.factors]
    again = dict(
        zip(dict.fromkeys(row for row in rows if rows.count(row) > 1), ("twice", "again"), strict=False)
    )
    losses = ", ".join(again.get(row, f"({row} * h).sum()") for row in rows)
    also = "".join(f"{name} = ({row} * h).sum(); " for row, name in again.items())
    w = show(case.w)
    if case.w.dtype == torch.float64:
        w = f"torch.tensor({w}, dtype=torch.float64)"
    other = (
        f"b = {show(0 * case.old)}; b.grad = {show(case.old)}; h = w**2 + b" if case.shares else "h = w**2"
    )
    return f"w = {w}; {other}; {also}losses = [{losses}]"


def _given_old(saw: Any, case: Case) -> str:
    return f"w.grad = {show(case.old)}; {_given(saw, case)}"


def _parts(case: Case) -> torch.Tensor:
    """Return the gradients of the losses, one in each row."""
    return 2 * case.factors * case.w.detach()


def _total(case: Case) -> torch.Tensor:
    return _parts(case).sum(0)


def _each_once(case: Case) -> torch.Tensor:
    return 2 * case.factors.unique(dim=0).sum(0) * case.w.detach()


def _without_zero(case: Case) -> torch.Tensor:
    """Return the sum without the losses whose value is 0."""
    values = (case.factors * case.w.detach() ** 2).reshape(len(case.factors), -1).sum(1)
    return _parts(case)[values != 0].sum(0)


def _others(case: Case) -> list[torch.Tensor]:
    """Return what may be in b.grad afterwards: what was there, or with the gradient of the losses added."""
    return [case.old, case.old + case.factors.sum(0)]


def _cleared(saw: Any, case: Case) -> bool:
    return case.shares and not any(close(saw.other, grad) for grad in _others(case))


EXERCISE = Exercise(
    PROBE,
    given=_given,
    checks=[
        Check(
            "adds",
            "first",
            want=_total,
            equal=close,
            points=1,
            essential=True,
            label="w.grad",
            mistakes={
                "returns_instead": lambda saw, case: saw.first is None and close(saw.returned, _total(case)),
                "no_backward": lambda saw, case: saw.first is None,
                "zeroes_after": Gives(lambda case: torch.zeros_like(_total(case))),
                "zeroes_each": Gives(lambda case: _parts(case)[-1]),
                "only_first": Gives(lambda case: _parts(case)[0]),
                # Added up by hand: w.grad after each pass, or w.grad itself, which is the same tensor every time.
                "adds_twice": Gives(
                    lambda case: _parts(case).cumsum(0).sum(0), lambda case: len(case.factors) * _total(case)
                ),
                "skips_zero": Gives(_without_zero),
                "averages": Gives(lambda case: _parts(case).mean(0)),
                "each_once": Gives(_each_once),
            },
        ),
        Check(
            "starts_clean",
            "second",
            want=_total,
            equal=close,
            points=1,
            given=_given_old,
            label="w.grad",
            mistakes={
                "keeps_old": Gives(lambda case: _total(case) + case.old),
                "subtracts_itself": lambda saw, case: not saw.second.nan_to_num().any(),
                "infinite_stays": lambda saw, case: (
                    saw.second.isnan().any() and torch.equal(saw.second.isnan(), case.old.isinf())
                ),
            },
        ),
        Check(
            "expanded",
            "expanded",
            want=lambda case: torch.tensor([7.0, 7.0]),
            ok=lambda saw, case: saw.expanded is None or close(saw.expanded, torch.tensor([7.0, 7.0])),
            essential=True,
            given="w = [1, 2]; total = w.sum(); losses = [total, total**2]",
            expected="w.grad == [7, 7]",
            got=[
                Say("raises_error", when=lambda saw, case: isinstance(saw.expanded, str)),
                "w.grad == {value}",
            ],
            mistakes={"adds_in_place": lambda saw, case: isinstance(saw.expanded, str)},
        ),
        Check(
            "nothing_else",
            ok=lambda saw, case: not saw.attached and not _cleared(saw, case),
            points=1,
            expected=lambda saw, case: (
                "w.grad.requires_grad == False"
                if saw.attached
                else " or ".join(f"b.grad == {show(grad)}" for grad in _others(case))
            ),
            got=lambda saw, case: (
                "w.grad.requires_grad == True" if saw.attached else f"b.grad == {show(saw.other)}"
            ),
            mistakes={
                "keeps_graph": lambda saw, case: saw.attached,
                "clears_others": lambda saw, case: (
                    _cleared(saw, case)
                    and (saw.other is None or not saw.other.any() or close(saw.other, case.factors.sum(0)))
                ),
            },
        ),
    ],
    raises={
        "other_dtype": r"assigned grad has data of a different type|assign a gradient with dtype",
        "frees_graph": r"backward through the graph a second time",
        "zeroes_none": r"'NoneType' object has no attribute '(zero_|fill_|mul_|data|detach_?)'",
        "assigns_number": r"assigned grad expected to be a Tensor or None",
    },
)
