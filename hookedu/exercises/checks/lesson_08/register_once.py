"""What decides about 08.4, `register_once(handles, name, module, hook)`."""

from typing import Any

from hookedu.exercises.checks.common import HANDLE, equals
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_08.register_once import PROBE, Case


def _names(saw: Any, case: Case) -> list[str]:
    return sorted([case.name, case.second_name])


def _keeps_names(saw: Any, case: Case) -> bool:
    return set(_names(saw, case)) <= set(saw.names)


def _loses_names(saw: Any, case: Case) -> bool:
    return saw.stored == HANDLE and not _keeps_names(saw, case)


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
            mistakes={
                "loses_names": _loses_names,
                "stays_on_old_module": lambda saw, case: case.runs[-1] in saw.moved,
            },
        ),
        Check(
            "handle",
            ok=lambda saw, case: (
                saw.handle == HANDLE and saw.same and _keeps_names(saw, case) and saw.after == [case.other]
            ),
            points=1,
            given="handle = register_once(handles, {case.name!r}, a, hook)",
            expected=[
                Say("names", when=lambda saw, case: not _keeps_names(saw, case), names=_names),
                Say("the_handle"),
            ],
            got=[
                Say(
                    "names",
                    when=lambda saw, case: not _keeps_names(saw, case),
                    names=lambda saw, _: saw.names,
                ),
                Say("another_handle", when=lambda saw, case: saw.handle == HANDLE and not saw.same),
                Say("stuck_handle", when=lambda saw, case: saw.handle == HANDLE),
                lambda saw, case: show_kind(saw.handle),
            ],
            mistakes={
                "loses_names": _loses_names,
                "no_handle": lambda saw, case: saw.handle != HANDLE,
                "returns_another": lambda saw, case: saw.stored == HANDLE and not saw.same,
            },
        ),
    ],
    raises={
        "another_kind": r"missing 1 required positional argument: 'output'",
        "stores_no_handle": r"has no attribute 'remove'",
        "no_old_one": r"^KeyError",
        "calls_now": r"missing 3 required positional arguments|'NoneType' object is not callable",
    },
)
