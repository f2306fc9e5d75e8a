"""What decides about 10.3, `first_nan(model, x)`."""

from hookedu.exercises.checks.lesson_10.shared import RAISES, cleans_up, equals_rounded, unchanged
from hookedu.exercises.criteria import Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_10.first_nan import PROBE, make_model
from hookedu.exercises.tools import close

EXERCISE = Exercise(
    PROBE,
    given=Say("healthy_model"),
    checks=[
        equals_rounded(
            "finds",
            lambda case: f"body.{case.inner[1]}",
            {
                "returns_list": lambda saw, case: isinstance(saw.finds, list),
                "only_children": Gives(lambda case: "body", lambda case: ""),
                "counts_infinity": Gives(lambda case: "scale"),
                "later_one": Gives(lambda case: "again"),
                "last_one": Gives(lambda case: "tail", lambda case: f"body.{case.inner[2]}"),
                "late_binding": Gives(lambda case: "spare"),
                "short_name": Gives(lambda case: case.inner[1]),
                "never_true": Gives(lambda case: None),
                "returns_module": lambda saw, case: not isinstance(saw.finds, str),
            },
            points=2,
            essential=True,
            given=Say("in_order"),
        ),
        equals_rounded("healthy", lambda case: None, {"not_none": True}, essential=True),
        # A healthy model that did not run at all has no output.
        unchanged(
            lambda case: make_model(case)(case.x), equal=lambda out, want: out is None or close(out, want)
        ),
        equals_rounded("input", lambda case: None, {"ignores_input": True}, given="x = {case.spoilt}"),
        *cleans_up("first_nan({}, x)"),
    ],
    raises={"nothing_to_take": r"list index out of range"} | RAISES,
)
