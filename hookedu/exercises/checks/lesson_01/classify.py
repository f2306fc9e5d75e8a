"""What decides about 01.1, `classify(tensors)`."""

from typing import Any

from hookedu.exercises.criteria import Check, Of
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show, show_kind
from hookedu.exercises.probes.lesson_01.classify import PROBE, Case

_PARAMETER = "torch.nn.Parameter(torch.ones(2))"
_KEEP = ("torch.tensor([...], requires_grad=True)", "(2 * data).requires_grad_()", _PARAMETER)
_NONE = ("torch.tensor([...])", "w.detach()", "2 * w, under torch.no_grad()")


def _kinds(case: Case) -> dict[str, str]:
    """Return the kinds by name, as the recipes tell them."""
    return {
        name: "keeps" if recipe in _KEEP else "none" if recipe in _NONE else "passes"
        for name, (recipe, _) in case.items()
    }


def _said(saw: Any) -> dict[Any, Any]:
    return saw.result if isinstance(saw.result, dict) else {}


def _shown(saw: Any, case: Case) -> str:
    """Return the name of the first tensor that is wrong, or of the first of all."""
    return next((n for n, kind in _kinds(case).items() if _said(saw).get(n) != kind), next(iter(case)))


def _entry(saw: Any, case: Case, kinds: dict[Any, Any]) -> str:
    """Write the entry of that tensor in a dictionary, or the dictionary if it has none."""
    name = _shown(saw, case)
    return f"{name!r}: {show(kinds[name])}" if name in kinds else show(kinds)


def _calls(**words: str) -> Of:
    """Condition: every tensor of these kinds is called by the wrong word given here."""
    return lambda saw, case: all(
        saw.result.get(name) == words[kind] for name, kind in _kinds(case).items() if kind in words
    )


EXERCISE = Exercise(
    PROBE,
    checks=[
        Check(
            "is_dict",
            ok=lambda saw, case: isinstance(saw.result, dict),
            essential=True,
            given="kinds = classify(tensors)",
            expected=lambda saw, case: "{" + "".join(f"{name!r}: ..., " for name in [*case][:3]) + "…}",
            got=lambda saw, case: show_kind(saw.result),
            mistakes={"not_a_dict": True},
        ),
        Check(
            "untouched",
            ok=lambda saw, case: saw.changed is None,
            essential=True,
            given=lambda saw, case: f"{saw.changed} = {case[saw.changed][0]}" if saw.changed else "",
            expected="{saw.changed}.requires_grad == False",
            got="{saw.changed}.requires_grad == True",
            mistakes={"changes_tensors": True},
        ),
        Check(
            "right",
            "result",
            want=_kinds,
            points=3,
            essential=True,
            given=lambda saw, case: f"{_shown(saw, case)} = {case[_shown(saw, case)][0]}",
            expected=lambda saw, case: _entry(saw, case, _kinds(case)),
            got=lambda saw, case: _entry(saw, case, _said(saw)),
            mistakes={
                "misses_some": lambda saw, case: saw.result.keys() < case.keys(),
                "wrong_words": lambda saw, case: (
                    set(map(str, saw.result.values())) - set(_kinds(case).values())
                ),
                "swaps_two": _calls(keeps="passes", passes="keeps"),
                "leaf_is_enough": _calls(none="keeps"),
                "flag_is_enough": _calls(passes="keeps"),
                "forgets_none": _calls(none="passes"),
                "asks_grad_now": lambda saw, case: "keeps" not in saw.result.values(),
                "parameters_only": lambda saw, case: (
                    [case[name][0] for name, kind in saw.result.items() if kind == "keeps"] == [_PARAMETER]
                ),
            },
        ),
    ],
)
