"""What decides about 02.1, `watch(y, seen)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import CALLS_NOW, HANDLE, NO_ARGUMENT, handle_works
from hookedu.exercises.checks.lesson_02.shared import (
    LOCAL_SEEN,
    later_passes,
    lines,
    two_at_a_time,
    two_lists,
    unchanged,
)
from hookedu.exercises.criteria import Check, Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_02.watch import PROBE, Case
from hookedu.exercises.tools import same


def _new(case: Case) -> list[torch.Tensor]:
    return [factor * case.w + 0 for factor in case.factors]


def _want(case: Case) -> list[torch.Tensor]:
    return case.before + _new(case)


def _added(saw: Any, case: Case) -> list[Any]:
    return saw.seen[len(case.before) :]


def _nothing(saw: Any, case: Case) -> bool:
    return len(saw.seen) == len(case.before)


def _given(saw: Any, case: Case) -> str:
    passes = "; ".join(f"({factor} * loss).backward()" for factor in case.factors)
    x, w, before = show(case.x), show(case.w), show(case.before)
    return f"seen = {before}; x = {x}; y = {case.k:g} * x; loss = ({w} * y).sum(); {passes}".replace(
        "(1 * loss)", "loss"
    )


EXERCISE = Exercise(
    PROBE,
    given=_given,
    checks=[
        unchanged(
            want=lambda case: sum(case.factors) * case.k * case.w,
            mistakes={
                "runs_backward": lambda saw, case: saw.early_grad is not None,
                "changes_gradient": True,
            },
        ),
        Check(
            "sees",
            "seen",
            want=_want,
            points=2,
            essential=True,
            **lines("seen", "seen", _want),
            mistakes={
                "asks_too_early": lambda saw, case: len(saw.early) > len(case.before),
                "removes_at_once": lambda saw, case: (
                    _nothing(saw, case) and saw.handle == HANDLE and not saw.hooks and not saw.elsewhere
                ),
                "keeps_nothing": lambda saw, case: _nothing(saw, case) and saw.hooks,
                "watches_a_copy": lambda saw, case: _nothing(saw, case) and saw.elsewhere,
                "not_registered": lambda saw, case: _nothing(saw, case),
                # A leaf, which has k = 1, holds its .grad after the first pass.
                "reads_dot_grad": lambda saw, case: (
                    _added(saw, case)[0] is None if case.k == 1 else not any(_added(saw, case))
                ),
                "retains_grad": lambda saw, case: _added(saw, case)[0] is None,
                "inserts_in_front": Gives(lambda case: _new(case)[::-1] + case.before),
                "keeps_the_first": Gives(lambda case: case.before + _new(case)[:1]),
                "keeps_the_last": Gives(lambda case: _new(case)[-1:]),
                "returns_alias": lambda saw, case: (
                    saw.gave and case.k == 1 and same(saw.later[-1], 3 * case.w)
                ),
                "keeps_a_summary": lambda saw, case: (
                    not all(
                        isinstance(g, torch.Tensor) and g.shape == case.w.shape for g in _added(saw, case)
                    )
                ),
            },
        ),
        two_at_a_time(two_lists("watch"), lambda case: [case.w]),
        Check(
            "piece",
            "piece",
            want=lambda case: [case.w],
            essential=True,
            given=lambda saw, case: (
                f"seen = []; first, y = x.unbind(); watch(y, seen); ({show(case.w - 1)} * first + {show(case.w)} * y).sum().backward()"
            ),
            **lines("seen", "piece", lambda case: [case.w]),
        ),
        later_passes("watch", lambda case: [case.w, 2 * case.w, 3 * case.w]),
        Check(
            "hands_on",
            "cut",
            want=lambda case: False,
            essential=True,
            given=lambda saw, case: (
                f"y = 2 * x; watch(y, seen); loss = ({show(case.w)} * y * y).sum(); "
                "grad, = torch.autograd.grad(loss, x, create_graph=True)"
            ),
            expected="grad.requires_grad == True",
            got="grad.requires_grad == False",
            mistakes={"cuts_graph": True},
        ),
        handle_works("watch(y, seen)", silent=lambda saw, case: saw.after_removal == 0),
    ],
    raises=CALLS_NOW | NO_ARGUMENT | LOCAL_SEEN,
)
