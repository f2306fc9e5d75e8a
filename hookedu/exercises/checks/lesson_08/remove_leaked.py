"""What decides about 08.3, `remove_leaked(model, handles)`."""

from collections.abc import Callable, Iterable
from typing import Any

from hookedu.exercises.checks.common import equals
from hookedu.exercises.criteria import Check, Gives, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, bracketed, show
from hookedu.exercises.probes.lesson_08.remove_leaked import INSIDE, PROBE, TOP, Case, Place


def _names(places: Iterable[Place]) -> list[str]:
    return sorted(path for path, _ in places)


def _missed(*rules: Callable[[str, str, Case], bool]) -> Of:
    """Condition: those leaked hooks are on and unnamed of which missed(path, kind, case) holds, by one of these rules."""

    def misses(saw: Any, case: Case, missed: Callable[[str, str, Case], bool]) -> bool:
        found = [place for place in case.leaked if not missed(*place, case)]
        return saw.left == len(case.leaked) - len(found) and saw.found == _names(found)

    return lambda saw, case: any(misses(saw, case, missed) for missed in rules)


def _parts(part: int, with_root: bool) -> Callable[[Case], list[str]]:
    """Return a function of the case: one part of the names, with or without that of the model itself, which is empty."""
    return lambda case: sorted(path.split(".")[part] for path in _names(case.leaked) if path or with_root)


def _whole(names: Any) -> str:
    """Format a list as `show` does, but to its end, where it may differ from another."""
    return bracketed(map(show, names), names) if isinstance(names, list) else show(names)


def _listed(which: str) -> Of:
    """Return a function that writes the places in one field of the case, for a message."""
    return lambda saw, case: (
        ", ".join(f"{path or 'model'} ({kind})" for path, kind in getattr(case, which)) or "—"
    )


def _only_named(saw: Any, names: list[str]) -> bool:
    """Check whether the right hooks are off, and these names were returned."""
    return saw.left == saw.lost == 0 and saw.found == names


def _misses_kinds(saw: Any, case: Case) -> bool:
    """Check whether the hooks of some kinds are off and were returned, and all those of other kinds were missed."""
    left = {kind for (_, kind), on in zip(case.leaked, saw.on, strict=True) if on}
    removed = [place for place, on in zip(case.leaked, saw.on, strict=True) if not on]
    apart = bool(removed) and left.isdisjoint(kind for _, kind in removed)
    return apart and saw.lost == 0 and saw.found == _names(removed)


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
            expected=lambda saw, case: _whole(_names(case.leaked)),
            got=lambda saw, case: _whole(saw.found),
            mistakes={
                "empty_list": lambda saw, case: not case.known and not saw.found and all(saw.on),
                "returns_nothing": lambda saw, case: saw.found is None,
                "returns_hooks": lambda saw, case: (
                    saw.found and all(isinstance(v, Opaque) for v in saw.found)
                ),
                "removes_all": lambda saw, case: (
                    saw.lost == len(case.known) and saw.found == _names(case.known + case.leaked)
                ),
                "wrong_way_round": lambda saw, case: (
                    saw.lost == len(case.known) and saw.found == _names(case.known)
                ),
                "listed_too_late": lambda saw, case: _only_named(saw, []),
                "names_once": lambda saw, case: (
                    saw.found == Opaque("set") or _only_named(saw, sorted(set(_names(case.leaked))))
                ),
                "part_of_the_name": Gives(
                    *(_parts(part, root) for part in (0, -1) for root in (True, False))
                ),
                "stops_early": lambda saw, case: (
                    len(saw.found) == 1 and saw.left == len(case.leaked) - 1
                    if case.leaked
                    else saw.found is None
                ),
                "not_a_list": lambda saw, case: isinstance(saw.found, Opaque | dict | str),
                "misses_kinds": _misses_kinds,
                "misses_model": _missed(lambda path, kind, case: path == ""),
                "top_level_only": _missed(lambda path, kind, case: path not in TOP),
                "twin_missed": _missed(
                    lambda path, kind, case: bool(case.known),
                    lambda path, kind, case: (path, kind) in case.known,
                    lambda path, kind, case: path in _names(case.known),
                    lambda path, kind, case: path not in INSIDE or kind != "forward",  # all but the partials
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
        Check(
            "kept",
            ok=lambda saw, case: saw.lost == 0 and saw.handles == len(case.known),
            points=1,
            expected=Say("kept", lost=0, n=lambda saw, case: len(case.known)),
            got=Say("kept", lost=lambda saw, case: saw.lost, n=lambda saw, case: saw.handles),
            mistakes={"removes_all": lambda saw, case: saw.lost, "uses_up": True},
        ),
        Check(
            "again",
            "again",
            ok=lambda saw, case: saw.left or saw.lost or saw.again == _names(case.known),
            essential=True,
            given="remove_leaked(model, handles); remove_leaked(model, [])",
            expected=lambda saw, case: _whole(_names(case.known)),
            got=lambda saw, case: _whole(saw.again),
            mistakes={"remembers": Gives(lambda case: [])},
        ),
    ],
    raises={"changed_while_iterating": r"mutated during iteration|changed size during iteration"},
)
