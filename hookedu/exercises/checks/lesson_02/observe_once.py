"""What decides about 02.3, `observe_once(y, seen)`."""

from typing import Any

from hookedu.exercises.checks.common import CALLS_NOW, HANDLE, NO_ARGUMENT
from hookedu.exercises.checks.lesson_02.shared import (
    GRAPH,
    LOCAL_SEEN,
    later_passes,
    lines,
    shared_seen,
    two_at_a_time,
    two_lists,
    unchanged,
)
from hookedu.exercises.criteria import Check, Gives, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show, show_kind
from hookedu.exercises.probes.lesson_02.observe_once import PROBE, Case
from hookedu.exercises.tools import same


def _want(case: Case) -> list:
    return [case.before, case.w]


def _wrong(saw: Any, case: Case) -> Any:
    """Return `seen` after the first backward pass, or after both if it was right then."""
    return saw.both if same(saw.first, _want(case)) else saw.first


def _nothing(saw: Any, case: Case) -> bool:
    return same(saw.first, [case.before]) and same(saw.both, [case.before])


def _place(case: Case) -> str:
    return "seen[2:]" if case.shared else "seen_z"


def _given(second: bool) -> Of:
    """Return a line with the passes through y that count, and what is done with z, if that matters or with `second`."""

    def line(saw: Any, case: Case) -> str:
        show_z, seen_z = second or saw.lost or shared_seen(saw, case), "seen" if case.shared else "seen_z"
        z = f"z = x * x; observe_once(z, {seen_z}); " if show_z else ""
        if z and not case.shared:
            z = f"seen_z = []; {z}"
        begin = (
            f"seen = [{show(case.before)}]; x = {show(case.x)}; y = {case.k:g} * x; observe_once(y, seen); "
        )
        after = f"; ({show(case.w)} * z).sum().backward()" if second else ""
        loss = f"loss = ({show(case.w)} * y).sum(); loss.backward()"
        if second or same(saw.first, _want(case)):
            loss += "; (2 * loss).backward()"
        return begin + z + loss + after

    return line


EXERCISE = Exercise(
    PROBE,
    suits=lambda case: not same(case.before, case.w),
    given=f"seen = [{{case.before}}]; {GRAPH}; loss.backward(); (2 * loss).backward()",
    checks=[
        unchanged(
            want=lambda case: [case.k * case.w, 3 * case.k * case.w],
            given=f"seen = [{{case.before}}]; {GRAPH}; loss.backward(); first = x.grad.clone(); (2 * loss).backward()",
            label="first, x.grad",
            mistakes={
                "runs_backward": lambda saw, case: saw.early_grad is not None,
                "changes_gradient": True,
            },
        ),
        Check(
            "neighbours",
            "neighbour",
            want=lambda case: 4,
            essential=True,
            expected=Say("neighbour_fires", n=4),
            got=Say("times"),
            mistakes={"clears_everybody": lambda saw, case: saw.neighbour < 4, "fires_others": True},
        ),
        Check(
            "sees",
            "both",
            want=_want,
            ok=lambda saw, case: same(saw.first, _want(case)) and same(saw.both, _want(case)),
            points=2,
            essential=True,
            given=_given(second=False),
            **lines("seen", _wrong, _want),
            mistakes={
                "asks_too_early": lambda saw, case: not same(saw.early, [case.before]),
                "watches_a_copy": lambda saw, case: _nothing(saw, case) and saw.elsewhere,
                "removes_at_once": lambda saw, case: (
                    _nothing(saw, case) and not saw.hung and saw.handle == HANDLE
                ),
                "not_registered": lambda saw, case: _nothing(saw, case) and not saw.hung,
                "shared_seen": lambda saw, case: _nothing(saw, case) and shared_seen(saw, case),
                "skips_zero": lambda saw, case: _nothing(saw, case) and not case.w.any(),
                "asks_seen": lambda saw, case: (
                    # With a list of its own, the second tensor was observed.
                    _nothing(saw, case) and (case.shared or same(saw.other, [case.w]))
                ),
                "keeps_nothing": _nothing,
                "overwrites": lambda saw, case: same(saw.first, [case.w]),
                "inserts_in_front": Gives(lambda case: [case.w, case.before]),
                "shared_handle": lambda saw, case: saw.lost,
                "keeps_the_last": lambda saw, case: (
                    same(saw.first, _want(case)) and same(saw.both, [case.before, 2 * case.w])
                ),
                "never_removes": Gives(lambda case: [case.before, case.w, 2 * case.w]),
            },
        ),
        Check(
            "every_tensor",
            "other",
            want=lambda case: [case.w],
            essential=True,
            given=_given(second=True),
            expected=lambda saw, case: f"{_place(case)} == {show([case.w])}",
            got=lambda saw, case: f"{_place(case)} == {show(saw.other)}",
            mistakes={
                "shared_handle": lambda saw, case: saw.lost,
                "counts_seen": lambda saw, case: case.shared and not saw.other,
                "shared_flag": lambda saw, case: not saw.other,
            },
        ),
        two_at_a_time(two_lists("observe_once"), lambda case: [case.w]),
        later_passes("observe_once", lambda case: [case.w]),
        Check(
            "gone",
            "hooks",
            want=lambda case: 0,
            points=1,
            given=Say("after_first"),
            expected="0",
            got="{saw.hooks}",
            mistakes={"only_ignores": True},
        ),
        Check(
            "handle",
            ok=lambda saw, case: saw.handle == HANDLE and saw.cancelled == 0,
            points=1,
            given=lambda saw, case: (
                "observe_once(y, seen).remove()" if saw.handle == HANDLE else "handle = observe_once(y, seen)"
            ),
            expected=Say("good_handle"),
            got=[
                Say("hook_still_on", when=lambda saw, case: saw.handle == HANDLE),
                lambda saw, case: show_kind(saw.handle),
            ],
            mistakes={"cancels_half": lambda saw, case: saw.handle == HANDLE, "no_handle": True},
        ),
    ],
    raises={
        "returns_a_tuple": r"expected Variable, but hook returned",
        **LOCAL_SEEN,
        "too_early": r"^(UnboundLocalError|NameError: .*free variable)",
        "handle_not_kept": r"^NameError",
    }
    | CALLS_NOW
    | NO_ARGUMENT,
)
