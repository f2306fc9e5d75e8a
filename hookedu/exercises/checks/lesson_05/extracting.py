"""What decides about 05.3, `extracting(model, names)`."""

from dataclasses import replace
from typing import Any

import torch

from hookedu.exercises.checks.common import all_detached, equals, gives_manager, none_left
from hookedu.exercises.checks.forward_hooks import (
    CALLS_NOW,
    RETURNS_TUPLE,
    WRONG_ARGUMENTS,
    graph_kept,
    none_lost,
)
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_05.extracting import PROBE, TWIN, Case
from hookedu.exercises.tools import same

_BLOCK = "with extracting(model, {case.names}) as seen: "
_RUN, _BROKEN = _BLOCK + "out = model(x)", _BLOCK + "model(broken)"
_NO_GRAD = "x = {case.x}; " + _RUN + "; torch.set_grad_enabled(False); model(4 * x)"
_BOTH = _NO_GRAD + "; torch.set_grad_enabled(True); again = model(2 * x)"
_NESTED = (
    "x = {case.x}; with extracting(model, {case.names}) as one: "
    "(with extracting(model, [{case.names[0]!r}]) as two: model(x)); model(2 * x); "
    "with extracting(model, {case.names}): model(3 * x)"
)
_MISSPELT = "with extracting(model, {case.misspelt}): ..."
_CHANGE = {"changes_output": True}
_RAISES = {
    "yields_twice": r"generator didn't stop",
    "dotted_name": r"has no attribute '\w+(\.\w+)+'",
    "only_children": r"^KeyError: '\w+(\.\w+)+'",
}


class _Key:
    """What `seen` holds after a run of the model, and what the model returns."""

    def __init__(self, case: Case) -> None:
        fc = case.x @ case.weight.T
        neck = fc.relu() @ case.second.T
        self.x, self.out, self.names = case.x, neck.relu().sum(-1), case.names
        self.acts = {f"{case.stem}.act", "neck.act"}
        values = [case.x, fc, fc.relu(), neck, neck.relu(), self.out]
        layers = f"{case.stem}.fc", f"{case.stem}.act", "neck.fc", "neck.act", "head"
        inputs, known = (dict(zip(layers, of, strict=True)) for of in (values[:-1], values[1:]))
        self.seen, self.inputs = ({name: of[name] for name in case.names} for of in (known, inputs))

    def of_runs(self, runs: int) -> dict[str, Any]:
        """Return the sum of the outputs over so many runs, whose inputs were x, 4 x and 2 x."""
        return {name: (1, 5, 7)[runs - 1] * value for name, value in self.seen.items()}

    def of_last(self) -> dict[str, Any]:
        """Return the outputs of the last run in the block."""
        return {name: 2 * value for name, value in self.seen.items()}


def _stays(saw: Any, key: Any) -> bool:
    # A hook that still writes is left on, wherever it is registered.
    return saw.left > 0 or (bool(saw.after) and not same(saw.after, saw.at_end))


def _given(saw: Any, key: Any) -> str:
    """Return the run as code, with the hook that somebody else registers meanwhile if that one was lost."""
    late = f"model.get_submodule({key.names[0]!r}).register_forward_hook(...); " * bool(saw.late_lost)
    return f"with extracting(model, {show(key.names)}) as seen: {late}out = model(x)"


def _other_dtype(saw: Any, key: Any) -> bool:
    first = key.names[0]
    return show(saw.seen) == show(key.seen) and saw.seen[first].dtype != key.seen[first].dtype


def _show_seen(saw: Any, key: Any, seen: Any) -> str:
    """Format `seen`, or only a dtype if the numbers are right."""
    try:
        return (
            f"seen[{key.names[0]!r}].dtype == {seen[key.names[0]].dtype}"
            if _other_dtype(saw, key)
            else f"seen == {show(seen)}"
        )
    except (AttributeError, LookupError, TypeError):
        return f"seen == {show(seen)}"


_CHANGED = {
    "never_removes": _stays,
    "clears_seen": lambda saw, key: not saw.at_end,
    "changes_names": lambda saw, key: saw.names != key.names,
    "leaves_no_grad": lambda saw, key: not saw.grad_enabled,
    "clears_gradients": lambda saw, key: saw.cleared,
    "switches_mode": lambda saw, key: not saw.modes,
}


def _only_modes(saw: Any, key: Any) -> bool:
    """Check whether modules changed their mode in the block, and the names and grad mode are as before."""
    return not saw.modes and saw.names == key.names and saw.grad_enabled


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given="x = {case.x}; " + _RUN,
    checks=[
        gives_manager("extracting(model, names)"),
        Check("unchanged", "out", lambda key: key.out, essential=True, mistakes=_CHANGE),
        graph_kept(
            _BOTH,
            {
                "no_grad_inside": lambda saw, key: not saw.grad_inside,
                "freezes": lambda saw, key: saw.frozen,
                "detaches_in_place": lambda saw, key: saw.detached,
            },
        ),
        Check(
            "unchanged_again", "again", lambda key: 2 * key.out, essential=True, given=_BOTH, mistakes=_CHANGE
        ),
        Check(
            "sees",
            "seen",
            lambda key: key.seen,
            points=1,
            essential=True,
            expected=lambda saw, key: _show_seen(saw, key, key.seen),
            got=lambda saw, key: _show_seen(saw, key, saw.seen),
            mistakes={
                "other_dtype": _other_dtype,
                "yields_nothing": lambda saw, key: saw.seen is None,
                "yields_something_else": lambda saw, key: not isinstance(saw.seen, dict),
                "not_on_inside": lambda saw, key: not saw.seen and not saw.hooks,
                "only_training": lambda saw, key: saw.seen.keys() == key.seen.keys() - key.acts,
                "late_binding": lambda saw, key: (
                    list(saw.seen) == key.names[-1:] and saw.hooks == len(key.names)
                ),
                "like_named": lambda saw, key: same(saw.seen["head"], key.x),
                "too_many_names": lambda saw, key: saw.seen.keys() > key.seen.keys(),
                "other_name": lambda saw, key: TWIN in saw.seen,
                "wrong_keys": lambda saw, key: not saw.seen.keys() <= key.seen.keys(),
                "lists": lambda saw, key: same(saw.seen, {name: [value] for name, value in key.seen.items()}),
                "only_at_end": lambda saw, key: not saw.seen and not saw.seen_again and saw.at_end,
                "not_tensors": lambda saw, key: saw.seen and not any(map(torch.is_tensor, saw.seen.values())),
                "keeps_input": lambda saw, key: same(saw.seen, key.inputs),
            },
        ),
        Check(
            "sees_again",
            "seen_again",
            lambda key: {name: 2 * value for name, value in key.seen.items()},
            essential=True,
            given=_BOTH,
            label="seen",
            mistakes={
                "adds_up": lambda saw, key: same(saw.seen_again, key.of_runs(3)),
                "first_only": lambda saw, key: same(saw.seen_again, key.seen),
            },
        ),
        Check(
            "sees_without_graph",
            "seen_no_grad",
            lambda key: {name: 4 * value for name, value in key.seen.items()},
            essential=True,
            given=_NO_GRAD,
            label="seen",
            # The run before it and the one after it were seen.
            mistakes={"only_with_grad": lambda saw, key: same(saw.seen_no_grad, key.seen)},
        ),
        all_detached(_RUN),
        Check(
            "clean",
            ok=lambda saw, key: not any(changed(saw, key) for changed in _CHANGED.values()),
            points=1,
            given=_given,
            expected=[
                Say("hooks_left", when=_stays, value=0),
                Say("kept_values", when=_CHANGED["clears_seen"]),
                Say("kept_gradients", when=_CHANGED["clears_gradients"]),
                Say("kept_modes", when=_only_modes),
                lambda saw, key: f"names == {show(key.names)}; torch.is_grad_enabled() == True",
            ],
            got=[
                Say("hooks_left", when=_stays, value=lambda saw, key: max(saw.left, 1)),
                Say("lost_gradients", when=lambda saw, key: saw.cleared and saw.at_end),
                Say("lost_modes", when=lambda saw, key: _only_modes(saw, key) and saw.at_end),
                lambda saw, key: (
                    f"seen == {show(saw.at_end)}"
                    if not saw.at_end
                    else f"names == {show(saw.names)}; torch.is_grad_enabled() == {saw.grad_enabled}"
                ),
            ],
            mistakes=_CHANGED,
        ),
        replace(none_lost(_RUN), given=_given),
        Check(
            "own_seen",
            "kept",
            want=lambda key: key.of_last(),
            ok=lambda saw, key: same(saw.kept, saw.after),
            essential=True,
            given=_RUN + "; ...; with extracting(model2, {case.names}): ...",
            label="seen",
            mistakes={"shared_dict": True},
        ),
        equals(
            "clean_after_error",
            lambda key: 0,
            {
                "no_finally": lambda saw, key: saw.left_by_error > 0,
                "misses_interrupt": lambda saw, key: saw.left_by_stop > 0,
            },
            ok=lambda saw, key: saw.left_by_error == saw.left_by_stop == 0,
            observed="left_by_error",
            given=[Say("stopped", when=lambda saw, key: saw.left_by_error == 0), _BROKEN],
            expected=Say("hooks_left"),
            got=Say("hooks_left", value=lambda saw, key: saw.left_by_error or saw.left_by_stop),
        ),
        Check(
            "error_escapes",
            ok=lambda saw, key: saw.raised is None,
            points=1,
            given=_BROKEN + "  # {saw.raised}",
            expected=Say("error_escapes"),
            got=[Say("not_error_escapes", when=lambda saw, key: not saw.escaped), "{saw.instead}"],
            mistakes={
                "swallows_error": lambda saw, key: not saw.escaped,
                "yields_twice": lambda saw, key: "generator didn't stop" in saw.instead,
                "replaces_error": True,
            },
        ),
        Check(
            "refuses_name",
            ok=lambda saw, key: saw.refused and saw.name_instead is None,
            points=1,
            given=_MISSPELT,
            expected=[Say("refuses_name", when=lambda saw, key: not saw.refused), "{saw.name_error}"],
            got=[Say("not_refuses_name", when=lambda saw, key: not saw.refused), "{saw.name_instead}"],
            mistakes={"ignores_bad_name": lambda saw, key: not saw.refused, "replaces_name_error": True},
        ),
        none_left(_MISSPELT, "leaves_on_bad_name", id="clean_after_name", observed="left_by_name"),
        Check(
            "nested",
            "nested",
            want=lambda key: [key.of_last(), {key.names[0]: key.seen[key.names[0]]}],
            given=_NESTED,
            label="one, two",
            mistakes={
                "later_block": lambda saw, key: same(
                    saw.nested[0], {name: 3 * value for name, value in key.seen.items()}
                )
            },
        ),
    ],
    raises=_RAISES | CALLS_NOW | RETURNS_TUPLE | WRONG_ARGUMENTS,
)
