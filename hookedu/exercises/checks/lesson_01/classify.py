"""What decides about 01.1, `classify(tensors)`."""

from typing import Any

import torch

from hookedu.exercises.criteria import Check, Of
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show, show_kind
from hookedu.exercises.probes.lesson_01.classify import PROBE, Case

_WITHOUT = ("torch.tensor([...])", "requires_grad=False", "requires_grad_(False)", "no_grad()")
_NEVER = ("w.detach()", "torch.arange(2)", "data > 0")  # as they stand here


def _kinds(case: Case) -> dict[str, str]:
    """Return the kinds by name, as the recipes tell them."""
    kinds = {}
    for name, (recipe, _) in case.items():
        if recipe in _NEVER or any(mark in recipe for mark in _WITHOUT):
            kinds[name] = "none"
        else:
            kinds[name] = "keeps" if "requires_grad" in recipe or "Parameter" in recipe else "passes"
    return kinds


def _said(saw: Any) -> dict[Any, Any]:
    return saw.result if isinstance(saw.result, dict) else {}


def _shown(saw: Any, case: Case) -> str:
    """Return the name of the first tensor that is wrong, or of the first of all."""
    return next((n for n, kind in _kinds(case).items() if _said(saw).get(n) != kind), next(iter(case)))


def _made(case: Case, name: str) -> str:
    return f"{name} = {case[name][0]}".replace("used", name)


def _entry(saw: Any, case: Case, kinds: dict[Any, Any]) -> str:
    """Write the entry of that tensor in a dictionary, or the dictionary if it has none."""
    name = _shown(saw, case)
    return f"{name!r}: {show(kinds[name])}" if name in kinds else show(kinds)


def _extra(saw: Any, case: Case) -> str:
    """Write the first entry whose name is none of the tensors', if every tensor's own entry is right."""
    right = all(_said(saw).get(name) == kind for name, kind in _kinds(case).items())
    extra = next((name for name in _said(saw) if name not in case), None)
    return f"kinds[{extra!r}] == {show(_said(saw)[extra])}" if right and extra is not None else ""


def _missing(saw: Any, case: Case) -> list[str]:
    return [name for name in case if name not in saw.result]


def _all_tied(saw: Any, case: Case) -> bool:
    """Whether each of those missing is a tensor of which another name is there."""
    there = {id(case[name][1]) for name in case if name in saw.result}
    return all(id(case[name][1]) in there for name in _missing(saw, case))


def _calls(**words: str) -> Of:
    """Condition: every tensor of each kind is called by the word given here."""
    return lambda saw, case: all(
        _said(saw).get(name) == words[kind] for name, kind in _kinds(case).items() if kind in words
    )


def _kept(saw: Any, case: Case) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors, with their recipes, that the answer calls "keeps"."""
    return [case[name] for name, kind in _said(saw).items() if kind == "keeps"]


_PASSES = _calls(passes="passes")

EXERCISE = Exercise(
    PROBE,
    given="kinds = classify(tensors)",
    checks=[
        Check(
            "is_dict",
            ok=lambda saw, case: isinstance(saw.result, dict),
            essential=True,
            expected=lambda saw, case: "{" + "".join(f"{name!r}: ..., " for name in [*case][:3]) + "…}",
            got=lambda saw, case: show_kind(saw.result),
            mistakes={"not_a_dict": True},
        ),
        Check(
            "untouched",
            ok=lambda saw, case: saw.changed is None,
            essential=True,
            given=lambda saw, case: _made(case, saw.changed or next(iter(case))),
            expected="{saw.changed}.requires_grad == {saw.was}",
            got=lambda saw, case: f"{saw.changed}.requires_grad == {not saw.was}",
            mistakes={"changes_tensors": lambda saw, case: not saw.was},
        ),
        Check(
            "right",
            "result",
            want=_kinds,
            points=3,
            essential=True,
            given=lambda saw, case: _made(case, _shown(saw, case)),
            expected=lambda saw, case: (
                "kinds.keys() == tensors.keys()" if _extra(saw, case) else _entry(saw, case, _kinds(case))
            ),
            got=lambda saw, case: _extra(saw, case) or _entry(saw, case, _said(saw)),
            mistakes={
                "one_name_each": lambda saw, case: _missing(saw, case) and _all_tied(saw, case),
                "misses_some": lambda saw, case: saw.result.keys() < case.keys(),
                "wrong_words": lambda saw, case: (
                    {str(saw.result[name]) for name in case} - set(_kinds(case).values())
                ),
                "swaps_two": _calls(keeps="passes", passes="keeps"),
                "leaf_is_enough": _calls(keeps="keeps", passes="passes", none="keeps"),
                "flag_is_enough": _calls(keeps="keeps", passes="keeps", none="none"),
                "forgets_none": _calls(keeps="keeps", passes="passes", none="passes"),
                "asks_grad_now": lambda saw, case: (
                    _PASSES(saw, case) and all(t.is_leaf and t.grad is not None for _, t in _kept(saw, case))
                ),
                "parameters_only": lambda saw, case: (
                    _PASSES(saw, case) and all("Parameter" in made for made, _ in _kept(saw, case))
                ),
            },
        ),
    ],
)
