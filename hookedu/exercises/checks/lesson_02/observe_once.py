"""What decides about 02.3, `observe_once(y, seen)`."""

from hookedu.exercises.checks.common import CALLS_NOW, HANDLE, NO_ARGUMENT
from hookedu.exercises.checks.lesson_02.shared import GRAPH, LOCAL_SEEN, lines, unchanged
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_02.observe_once import PROBE, Case
from hookedu.exercises.tools import same


def _want(case: Case) -> list:
    return [case.before, case.w]


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
            **lines("seen", "both", _want),
            mistakes={
                "asks_too_early": lambda saw, case: not same(saw.early, [case.before]),
                "removes_at_once": lambda saw, case: same(saw.first, [case.before]) and not saw.hung,
                "skips_zero": lambda saw, case: same(saw.first, [case.before]) and not case.w.any(),
                "asks_seen": lambda saw, case: same(saw.first, [case.before]) and same(saw.other, [case.w]),
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
            given="seen_z = []; z = x * x; observe_once(z, seen_z); ({case.w} * z).sum().backward()",
            label="seen_z",
            mistakes={
                "shared_handle": lambda saw, case: saw.lost,
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
