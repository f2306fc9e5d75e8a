"""What decides about 02.3, `observe_once(y, seen)`."""

from typing import Any

from hookedu.exercises.checks.common import CALLS_NOW, HANDLE, NO_ARGUMENT
from hookedu.exercises.checks.lesson_02.shared import GRAPH, LOCAL_SEEN, lines, unchanged
from hookedu.exercises.criteria import Check, Gives, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show, show_kind
from hookedu.exercises.probes.lesson_02.observe_once import PROBE, Case
from hookedu.exercises.tools import same


def _want(case: Case) -> list:
    return [case.before, case.w]


def _place(case: Case) -> str:
    return "seen[2:]" if case.shared else "seen_z"


def _given(second: bool) -> Of:
    """Return a line with both passes through y, and what is done with z, if that matters or with `second`."""

    def line(saw: Any, case: Case) -> str:
        show_z, seen_z = second or saw.lost, "seen" if case.shared else "seen_z"
        z = f"z = x * x; observe_once(z, {seen_z}); " if show_z else ""
        if z and not case.shared:
            z = f"seen_z = []; {z}"
        begin = (
            f"seen = [{show(case.before)}]; x = {show(case.x)}; y = {case.k:g} * x; observe_once(y, seen); "
        )
        after = f"; ({show(case.w)} * z).sum().backward()" if second else ""
        loss = f"loss = ({show(case.w)} * y).sum(); loss.backward(); (2 * loss).backward()"
        return begin + z + loss + after

    return line


EXERCISE = Exercise(
    PROBE,
    given=f"seen = [{{case.before}}]; {GRAPH}; loss.backward(); (2 * loss).backward()",
    checks=[
        unchanged(
            want=lambda case: 3 * case.k * case.w,
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
            mistakes={"clears_everybody": True},
        ),
        Check(
            "sees",
            "both",
            want=_want,
            points=2,
            essential=True,
            given=_given(second=False),
            **lines("seen", "both", _want),
            mistakes={
                "asks_too_early": lambda saw, case: not same(saw.early, [case.before]),
                "removes_at_once": lambda saw, case: same(saw.first, [case.before]) and not saw.hung,
                "skips_zero": lambda saw, case: same(saw.first, [case.before]) and not case.w.any(),
                "asks_seen": lambda saw, case: (
                    # With a list of its own, the second tensor was observed.
                    same(saw.first, [case.before]) and (case.shared or same(saw.other, [case.w]))
                ),
                "keeps_nothing": lambda saw, case: same(saw.first, [case.before]),
                "overwrites": lambda saw, case: same(saw.first, [case.w]),
                "inserts_in_front": Gives(lambda case: [case.w, case.before]),
                "shared_handle": lambda saw, case: saw.lost,
                "keeps_the_last": Gives(lambda case: [case.before, 2 * case.w]),
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
