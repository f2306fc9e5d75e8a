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


def _n_runs(saw: Any, case: Case) -> int:
    return len(case.runs)


def _silent(saw: Any, case: Case) -> bool:
    """Check whether the hook is on but does not fire, in eval mode or, where it fired first, under no_grad."""
    elsewhere = not case.training or case.runs[0] in saw.first
    return saw.again == [case.other] and saw.forward and elsewhere


def _reuses(saw: Any, case: Case) -> bool:
    """Check whether all is well but that one handle served several registrations."""
    return saw.handle == HANDLE and saw.same and not saw.renewed


EXERCISE = Exercise(
    PROBE,
    checks=[
        equals(
            "again",
            words="fired",
            want=lambda case: [case.other, case.runs[-1]],
            points=2,
            essential=True,
            given=[
                Say("runs", when=lambda saw, case: case.training, n=_n_runs),
                Say("runs_eval", n=_n_runs),
            ],
            mistakes={
                "clears_module": lambda saw, case: not {case.other, -case.other} & {*saw.again},
                "empty_name": lambda saw, case: not case.name and saw.again == [case.other, *case.runs],
                "stacks": lambda saw, case: saw.again == [case.other, *case.runs] and saw.stored == HANDLE,
                "not_stored": Gives(lambda case: [case.other, *case.runs]),
                "overwrites_first": lambda saw, case: (
                    saw.again == [case.other, case.runs[0]] and saw.stored == HANDLE and not saw.on
                ),
                "keeps_old": Gives(lambda case: [case.other, case.runs[0]]),
                "another_kind": lambda saw, case: (
                    saw.on and not saw.forward and (saw.again == [case.other] or saw.again[-1] == case.other)
                ),
                "silent": _silent,
                "either_or": lambda saw, case: saw.again == [case.other] and case.runs[0] in saw.first,
                "removes_new": lambda saw, case: saw.again == [case.other] and not saw.on,
                "changes_arguments": Gives(lambda case: [case.other, -case.runs[-1]]),
                "prepends": Gives(lambda case: [case.runs[-1], case.other]),
            },
        ),
        equals(
            "grad_on",
            words="grad_on",
            want=lambda case: [True, False],
            points=0,
            essential=True,
            given=Say("two_runs"),
            mistakes={"other_mode": True},
        ),
        equals(
            "later",
            words="fired",
            want=lambda case: [case.other, case.runs[-1]],
            points=0,
            essential=True,
            given=Say("run_again"),
            mistakes={"removes_itself": Gives(lambda case: [case.other])},
        ),
        equals(
            "two_names",
            words="fired",
            want=lambda case: [case.other, case.runs[-1], case.second],
            given="register_once(handles, {case.second_name!r}, a, hook); a(x)",
            mistakes={
                "drops_result": Gives(lambda case: [case.other, case.runs[-1], -case.second]),
                "one_for_two": lambda saw, case: saw.kept and saw.shared and case.second == case.runs[-1],
                "one_for_all": lambda saw, case: not saw.kept and saw.two_names == [case.other, case.second],
            },
        ),
        equals(
            "moved",
            words="fired",
            want=lambda case: [[case.other, case.second], [case.elsewhere, case.moved]],
            given=Say("moves"),
            mistakes={
                "loses_names": _loses_names,
                "one_for_all": Gives(lambda case: [[case.other], [case.elsewhere, case.moved]]),
                "one_dictionary": Gives(lambda case: [[case.other, case.second], [case.moved]]),
                "stays_on_old_module": Gives(
                    lambda case: [[case.other, case.runs[-1], case.second], [case.elsewhere, case.moved]]
                ),
            },
        ),
        Check(
            "handle",
            ok=lambda saw, case: (
                saw.handle == HANDLE
                and saw.same
                and saw.renewed
                and _keeps_names(saw, case)
                and saw.after == [case.other, case.elsewhere]
            ),
            points=1,
            given="handle = register_once(handles, {case.name!r}, a, hook)",
            expected=[
                Say("names", when=lambda saw, case: not _keeps_names(saw, case), names=_names),
                Say("new_handle", when=_reuses),
                Say("the_handle"),
            ],
            got=[
                Say(
                    "names",
                    when=lambda saw, case: not _keeps_names(saw, case),
                    names=lambda saw, _: saw.names,
                ),
                Say("old_handle", when=_reuses),
                Say("another_handle", when=lambda saw, case: saw.handle == HANDLE and not saw.same),
                Say("stuck_handle", when=lambda saw, case: saw.handle == HANDLE),
                lambda saw, case: show_kind(saw.handle),
            ],
            mistakes={
                "loses_names": _loses_names,
                "no_handle": lambda saw, case: saw.handle != HANDLE,
                "reuses_handle": _reuses,
                "returns_another": lambda saw, case: saw.stored == HANDLE and not saw.same,
            },
        ),
        equals(
            "alone",
            words="fired",
            want=lambda case: [case.moved],
            points=0,
            essential=True,
            given=Say("alone"),
            mistakes={"held_weakly": Gives(lambda case: [])},
        ),
        equals(
            "failed",
            words="fired",
            want=lambda case: [],
            points=0,
            essential=True,
            given=Say("fails"),
            mistakes={"always_call": lambda saw, case: len(saw.failed) == 1},
        ),
    ],
    raises={
        "another_kind": r"missing 1 required positional argument: 'output'",
        "no_old_one": r"^KeyError|'NoneType' object has no attribute 'remove'",
        "stores_no_handle": r"has no attribute 'remove'",
        "calls_now": r"missing 3 required positional arguments|'(?:NoneType|Tensor)' object is not callable",
    },
)
