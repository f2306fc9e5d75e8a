"""What decides about 02.4, `watching(tensors)`."""

from typing import Any

from hookedu.exercises.checks.common import CALLS_NOW, gives_manager
from hookedu.exercises.checks.lesson_02.shared import (
    GRAPH,
    HOOKS_EVERYTHING,
    LOCAL_SEEN,
    left_alone,
    lines,
    unchanged,
)
from hookedu.exercises.criteria import Check, Gives, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_02.shared import Case
from hookedu.exercises.probes.lesson_02.watching import PROBE, shifted_grad
from hookedu.exercises.tools import same


def _seen(case: Case) -> dict[str, Any]:
    """Return the gradients that one backward pass gives the tensors that require one, by all their names."""
    shifted = shifted_grad(case)
    return {"x": case.k * case.w + shifted, "scaled": case.w, "again": case.w, "shifted": shifted}


def _twice(key: dict[str, Any]) -> dict[str, Any]:
    return {name: 2 * grad for name, grad in key.items()}


def _comes(saw: Any) -> str:
    """Return what came out of the first block from which the exception itself did not."""
    return saw.escaped if saw.escaped != "this" else saw.escaped_interrupt


def _clean(id: str, given: str | Of, left: Of, mistakes: dict[str, bool | Of], points: int = 1) -> Check:
    """Require that no hook is left."""
    return Check(
        id,
        ok=lambda saw, key: left(saw, key) == 0,
        points=points,
        given=given,
        expected=Say("hooks_on", n=0),
        got=Say("hooks_on", n=left),
        mistakes=mistakes,
    )


_GIVEN = GRAPH.replace("loss =", "z = x + 1; loss =") + " + ({key[shifted]} * z).sum()"
_CALL = "with watching({{'x': x, 'scaled': y, 'fixed': torch.ones(2), 'again': y, 'shifted': z}}) as seen: loss.backward()"
_QUIET = "with watching(tensors): pass"
_RAISING = "with watching(tensors): loss.backward(); raise ..."
_INTERRUPTED = "with watching(tensors): raise KeyboardInterrupt"

EXERCISE = Exercise(
    PROBE,
    given=_GIVEN,
    key=_seen,
    checks=[
        gives_manager("watching(tensors)"),
        unchanged(want=lambda key: key["x"], mistakes={"changes_gradient": True}),
        Check(
            "sees",
            "seen",
            want=lambda key: key,
            points=2,
            essential=True,
            given=f"{_GIVEN}; {_CALL}",
            **lines("seen", "seen", lambda key: key),
            mistakes={
                "yields_nothing": lambda saw, key: saw.seen is None,
                "yields_something_else": lambda saw, key: not isinstance(saw.seen, dict),
                "not_on_inside": lambda saw, key: not saw.seen and not saw.hooks,
                "keeps_nothing": lambda saw, key: not saw.seen and saw.hooks == len(key),
                "late_binding": lambda saw, key: [*saw.seen] == ["shifted"] and saw.hooks == len(key),
                "skips_leaves": lambda saw, key: (
                    saw.seen.keys() == {"scaled", "again", "shifted"} and saw.hooks == 3
                ),
                "skips_zero": lambda saw, key: (
                    saw.hooks == len(key) and saw.seen.keys() == {n for n, grad in key.items() if grad.any()}
                ),
                # Names of an earlier check mean that its dictionary is still in use. That of the frozen tensor does not.
                "shared_dict": lambda saw, key: saw.seen.keys() - {"fixed"} > key.keys(),
            },
        ),
        Check(
            "newest",
            "second",
            want=_twice,
            essential=True,
            given=f"{_GIVEN}; {_CALL}; (2 * loss).backward()",
            label="seen",
            mistakes={
                "keeps_the_first": Gives(lambda key: key),
                "adds_up": Gives(lambda key: {name: 3 * grad for name, grad in key.items()}),
            },
        ),
        Check(
            "later_passes",
            "later",
            want=lambda key: {"x": key["scaled"]},
            ok=lambda saw, key: not saw.gave or same(saw.later, {"x": key["scaled"]}),
            essential=True,
            given=lambda saw, key: (
                f"loss = ({show(key['scaled'])} * x).sum(); with watching({{'x': x}}) as seen: loss.backward(); "
                "(2 * loss).backward(); (3 * loss).backward()"
            ),
            **lines("seen", "later", lambda key: {"x": key["scaled"]}),
            mistakes={"returns_alias": lambda saw, key: saw.later.keys() == {"x"}},
        ),
        left_alone("with watching(tensors) as seen: ...; tensors['fixed']"),
        Check(
            "strangers",
            "stranger",
            want=lambda key: 6,
            essential=True,
            given=Say("others_hook"),
            expected=Say("they_fire", n=6),
            got=Say("times"),
            mistakes={"clears_everybody": lambda saw, key: saw.stranger < 6, "fires_others": True},
        ),
        Check(
            "separate",
            "nested",
            want=lambda key: [{"first": 2 * key["scaled"]}, {"second": key["scaled"]}],
            essential=True,
            given=Say("nested_blocks"),
            label="one, two",
            mistakes={
                "shared_dict": lambda saw, key: saw.one_dict,
                "shared_handles": lambda saw, key: same(saw.nested[0], {"first": key["scaled"]}),
            },
        ),
        Check(
            "anew",
            "reused",
            want=lambda key: False,
            essential=True,
            given="with watching(tensors) as one: pass; with watching(tensors) as two: pass",
            label="(one is two)",
            mistakes={"shared_dict": True},
        ),
        _clean(
            "enters",
            "manager = watching(tensors)",
            left=lambda saw, key: saw.early,
            mistakes={"registers_early": True},
            points=0,
        ),
        _clean(
            "clean",
            lambda saw, key: _CALL.format() if saw.left else _QUIET,
            left=lambda saw, key: saw.left or saw.left_by_nothing,
            mistakes={"never_removes": lambda saw, key: saw.left},
        ),
        Check(
            "error_escapes",
            ok=lambda saw, key: saw.escaped == saw.escaped_interrupt == "this",
            points=1,
            given=lambda saw, key: _RAISING if saw.escaped != "this" else _INTERRUPTED,
            expected=Say("comes_through"),
            got=[Say("is_another", when=lambda saw, key: _comes(saw) == "another"), Say("is_gone")],
            mistakes={
                "replaces_error": lambda saw, key: _comes(saw) == "another",
                "swallows_error": lambda saw, key: _comes(saw) == "none",
            },
        ),
        Check(
            "after_error",
            "after_error",
            want=lambda key: key,
            # What was not right without an error is told above.
            ok=lambda saw, key: same(saw.after_error, key) or not same(saw.seen, key),
            essential=True,
            given=_RAISING,
            **lines("seen", "after_error", lambda key: key),
        ),
        _clean(
            "clean_after_error",
            lambda saw, key: _RAISING if saw.left_by_error else _INTERRUPTED,
            left=lambda saw, key: saw.left_by_error or saw.left_by_interrupt,
            mistakes={
                "catches_some": lambda saw, key: saw.spared and not saw.left_by_nothing,
                "no_finally": lambda saw, key: not saw.left_by_nothing,
            },
        ),
    ],
    raises={
        "exit_signature": r"__exit__\(\) takes",
        "no_yield": r"object is not an iterator|generator didn't yield",
        "yields_twice": r"generator didn't stop",
    }
    | CALLS_NOW
    | HOOKS_EVERYTHING
    | LOCAL_SEEN,
)
