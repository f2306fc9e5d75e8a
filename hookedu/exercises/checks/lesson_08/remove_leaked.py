"""What decides about 08.3, `remove_leaked(model, handles)`."""

from collections.abc import Callable, Iterable
from typing import Any

from hookedu.exercises.checks.common import equals
from hookedu.exercises.criteria import Check, Gives, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_08.remove_leaked import PROBE, TOP, Case, Place


def _names(places: Iterable[Place]) -> list[str]:
    return sorted(path for path, _ in places)


def _leaked(keep: Callable[[str, str, Case], bool]) -> Callable[[Case], list[str]]:
    """Return a function of the case: the names for those leaked hooks of which keep(path, kind, case) holds."""
    return lambda case: _names(place for place in case.leaked if keep(*place, case))


def _listed(which: str) -> Of:
    """Return a function that writes the places in one field of the case, for a message."""
    return lambda saw, case: ", ".join(f"{path} ({kind})" for path, kind in getattr(case, which))


def _only_named(saw: Any, names: list[str]) -> bool:
    """Check whether the right hooks are off, and these names were returned."""
    return saw.left == saw.lost == 0 and saw.found == names


EXERCISE = Exercise(
    PROBE,
    given="remove_leaked(model, handles)",
    checks=[
        Check(
            "found",
            "found",
            want=lambda case: _names(case.leaked),
            points=2,
            essential=True,
            given=Say("places", known=_listed("known"), leaked=_listed("leaked")),
            expected="{want}",
            got=lambda saw, case: show(saw.found),
            mistakes={
                "returns_nothing": lambda saw, case: saw.found is None,
                "returns_hooks": lambda saw, case: (
                    saw.found and all(isinstance(v, Opaque) for v in saw.found)
                ),
                "removes_all": Gives(lambda case: _names(case.known + case.leaked)),
                "wrong_way_round": lambda saw, case: saw.lost and saw.found == _names(case.known),
                "listed_too_late": lambda saw, case: _only_named(saw, []),
                "names_once": lambda saw, case: (
                    saw.found == Opaque("set") or _only_named(saw, sorted(set(_names(case.leaked))))
                ),
                "part_of_the_name": lambda saw, case: any(
                    _only_named(saw, sorted(name.split(".")[part] for name in _names(case.leaked)))
                    for part in (0, -1)
                ),
                "stops_early": lambda saw, case: len(saw.found) == 1 and saw.left == len(case.leaked) - 1,
                "misses_kinds": Gives(
                    _leaked(lambda path, kind, case: kind == "forward"),
                    _leaked(lambda path, kind, case: kind in ("forward", "forward_pre")),
                ),
                "top_level_only": Gives(_leaked(lambda path, kind, case: path in TOP)),
                "twin_missed": Gives(
                    lambda case: [],
                    _leaked(lambda path, kind, case: (path, kind) not in case.known),
                    _leaked(lambda path, kind, case: path not in _names(case.known)),
                ),
            },
        ),
        equals(
            "off",
            lambda case: 0,
            observed="left",
            words="left",
            mistakes={
                "wrong_way_round": lambda saw, case: (
                    saw.left == len(case.leaked) and saw.lost == len(case.known)
                ),
                "not_removed": lambda saw, case: saw.left == len(case.leaked),
            },
        ),
        equals("kept", lambda case: 0, {"removes_all": True}, "lost", words="lost"),
    ],
    raises={"changed_while_iterating": r"mutated during iteration|changed size during iteration"},
)
