"""What decides about 05.3, `extracting(model, names)`."""

from hookedu.exercises.checks.common import all_detached, equals, none_left
from hookedu.exercises.checks.forward_hooks import RETURNS_TUPLE, WRONG_ARGUMENTS, graph_kept, none_lost
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_05.extracting import PROBE, Case
from hookedu.exercises.tools import same

_BLOCK = "with extracting(model, {case.names}) as seen: "
_RUN, _BROKEN = _BLOCK + "out = model(x)", _BLOCK + "model(broken)"
_BOTH = "x = {case.x}; " + _RUN + "; again = model(2 * x)"
_MISSPELT = "with extracting(model, {case.misspelt}): ..."
_CHANGE = {"changes_output": True}
_RAISES = {
    "yields_in_loop": r"generator didn't stop",
    "dotted_name": r"has no attribute '\w+\.\w+'",
    "only_children": r"^KeyError: '\w+\.\w+'",
}


class _Key:
    """What `seen` holds after a run, and what the model returns."""

    def __init__(self, case: Case) -> None:
        fc = case.x @ case.weight.T
        self.seen, self.out = dict(zip(case.names, (fc, fc.relu()), strict=True)), fc.relu().sum(1)


def _raises(id: str, observed: str, given: str, mistake: str) -> Check:
    """Require that an exception comes through."""
    yes, no, known = Say(id), Say("not_" + id), {mistake: True}
    return Check(id, observed, lambda key: True, points=1, given=given, expected=yes, got=no, mistakes=known)


_WRONG_SEEN = {
    "yields_nothing": lambda saw, key: saw.seen is None,
    "yields_something_else": lambda saw, key: not isinstance(saw.seen, dict),
    "not_on_inside": lambda saw, key: not saw.seen and not saw.hooks,
    "late_binding": lambda saw, key: list(saw.seen) == list(key.seen)[1:] and saw.hooks == 2,
    "wrong_keys": lambda saw, key: not saw.seen.keys() <= key.seen.keys(),
}
EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given="x = {case.x}; " + _RUN,
    checks=[
        Check(
            "is_manager",
            ok=lambda saw, key: saw.is_manager,
            essential=True,
            given="manager = extracting(model, names)",
            expected="manager.__enter__, manager.__exit__",
            got=lambda saw, key: show_kind(saw.manager),
            mistakes={"not_a_manager": True},
        ),
        Check("unchanged", "out", lambda key: key.out, essential=True, mistakes=_CHANGE),
        graph_kept(_BOTH),
        Check(
            "unchanged_again", "again", lambda key: 2 * key.out, essential=True, given=_BOTH, mistakes=_CHANGE
        ),
        Check("sees", "seen", lambda key: key.seen, points=1, essential=True, mistakes=_WRONG_SEEN),
        all_detached(_RUN),
        equals(
            "clean",
            lambda key: 0,
            {"never_removes": True},
            observed="left",
            # A hook that still writes is left on, wherever it is registered.
            ok=lambda saw, key: saw.left == 0 and same(saw.after, saw.at_end),
            given=_RUN,
            expected=Say("hooks_left"),
            got=Say("hooks_left", value=lambda saw, key: max(saw.left, 1)),
        ),
        none_lost(_RUN),
        none_left(_BROKEN, "no_finally", id="clean_after_error", observed="left_by_error"),
        _raises("error_escapes", "escaped", _BROKEN, "swallows_error"),
        _raises("refuses_name", "refused", _MISSPELT, "ignores_bad_name"),
        none_left(_MISSPELT, "leaves_on_bad_name", id="clean_after_name", observed="left_by_name"),
    ],
    raises=_RAISES | RETURNS_TUPLE | WRONG_ARGUMENTS,
)
