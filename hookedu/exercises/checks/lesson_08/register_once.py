"""What decides about 08.4, `register_once(handles, name, module, hook)`."""

from hookedu.exercises.checks.common import HANDLE, equals, handle_works
from hookedu.exercises.criteria import Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_08.register_once import PROBE

EXERCISE = Exercise(
    PROBE,
    checks=[
        equals(
            "again",
            words="fired",
            want=lambda case: [case.other, case.runs[-1]],
            points=2,
            essential=True,
            given=Say("runs", n=lambda saw, case: len(case.runs)),
            mistakes={
                "clears_module": lambda saw, case: case.other not in saw.again,
                "stacks": lambda saw, case: saw.again == [case.other, *case.runs] and saw.stored == HANDLE,
                "not_stored": Gives(lambda case: [case.other, *case.runs]),
                "keeps_old": Gives(lambda case: [case.other, case.runs[0]]),
                "another_kind": lambda saw, case: saw.again == [case.other] and saw.on,
                "either_or": lambda saw, case: saw.again == [case.other] and case.runs[0] in saw.first,
                "removes_new": Gives(lambda case: [case.other]),
            },
        ),
        equals(
            "two_names",
            words="fired",
            want=lambda case: [case.other, case.runs[-1], case.second],
            given="register_once(handles, {case.second_name!r}, a, hook); a(x)",
            mistakes={"one_for_all": Gives(lambda case: [case.other, case.second])},
        ),
        equals(
            "moved",
            words="fired",
            want=lambda case: [case.other, case.second, case.moved],
            given="register_once(handles, {case.name!r}, b, hook); a(x); b(x)",
            mistakes={"stays_on_old_module": lambda saw, case: case.runs[-1] in saw.moved},
        ),
        handle_works(
            "register_once(handles, {case.name!r}, a, hook)",
            silent=lambda saw, case: saw.removable and saw.after == [case.other],
        ),
    ],
    raises={
        "another_kind": r"missing 1 required positional argument: 'output'",
        "stores_no_handle": r"has no attribute 'remove'",
        "no_old_one": r"^KeyError",
        "calls_now": r"missing 3 required positional arguments",
    },
)
