"""What decides about 02.3, `observe_once(y, seen)`."""

from hookedu.exercises.checks.common import CALLS_NOW, HANDLE, NO_ARGUMENT
from hookedu.exercises.checks.lesson_02.shared import GRAPH, unchanged
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_02.observe_once import PROBE
from hookedu.exercises.tools import same

EXERCISE = Exercise(
    PROBE,
    given=f"seen = [{{case.before}}]; {GRAPH}; loss.backward(); (2 * loss).backward()",
    checks=[
        unchanged(want=lambda case: 3 * case.k * case.w, mistakes={"changes_gradient": True}),
        Check(
            "neighbours",
            "neighbour",
            want=lambda case: 2,
            essential=True,
            expected=Say("neighbour_fires", n=2),
            got=Say("times"),
            mistakes={"clears_everybody": True},
        ),
        Check(
            "sees",
            "both",
            want=lambda case: [case.before, case.w],
            points=2,
            essential=True,
            label="seen",
            mistakes={
                "asks_too_early": lambda saw, case: not same(saw.early, [case.before]),
                "removes_at_once": lambda saw, case: same(saw.first, [case.before]) and not saw.hung,
                "asks_seen": lambda saw, case: same(saw.first, [case.before]) and same(saw.other, [case.w]),
                "keeps_nothing": lambda saw, case: same(saw.first, [case.before]),
                "overwrites": lambda saw, case: same(saw.first, [case.w]),
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
            mistakes={"shared_flag": True},
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
        "handle_not_kept": r"^(NameError|UnboundLocalError)",
    }
    | CALLS_NOW
    | NO_ARGUMENT,
)
