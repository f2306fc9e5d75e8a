"""What decides about 02.4, `watching(tensors)`."""

from typing import Any

from hookedu.exercises.checks.lesson_02.shared import GRAPH, HOOKS_EVERYTHING, left_alone, unchanged
from hookedu.exercises.criteria import Check, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_02.shared import Case
from hookedu.exercises.probes.lesson_02.watching import PROBE
from hookedu.exercises.tools import same


def _seen(case: Case) -> dict[str, Any]:
    """Return the gradients that one backward pass gives the three tensors that require one."""
    return {"x": (case.k + 3) * case.w, "scaled": case.w, "shifted": 3 * case.w}


def _clean(id: str, given: str, ok: Of, left: Of, mistake: str) -> Check:
    """Require that no hook is left after a block."""
    return Check(
        id,
        ok=ok,
        points=1,
        given=given,
        expected=Say("left_after", n=0),
        got=Say("left_after", n=left),
        mistakes={mistake: True},
    )


_GIVEN = GRAPH.replace("loss =", "z = x + 1; loss =") + " + ({key[shifted]} * z).sum()"
_CALL = (
    "with watching({{'x': x, 'scaled': y, 'fixed': torch.ones(2), 'shifted': z}}) as seen: loss.backward()"
)
_RAISING = "with watching(tensors): raise ..."

EXERCISE = Exercise(
    PROBE,
    given=_GIVEN,
    key=_seen,
    checks=[
        Check(
            "is_manager",
            ok=lambda saw, key: saw.is_manager,
            essential=True,
            given="manager = watching(tensors)",
            expected="manager.__enter__, manager.__exit__",
            got=lambda saw, key: show_kind(saw.manager),
            mistakes={"not_a_manager": True},
        ),
        unchanged(want=lambda key: key["x"], mistakes={"changes_gradient": True}),
        Check(
            "sees",
            "seen",
            want=lambda key: key,
            points=2,
            essential=True,
            given=f"{_GIVEN}; {_CALL}",
            mistakes={
                "yields_nothing": lambda saw, key: saw.seen is None,
                "yields_something_else": lambda saw, key: not isinstance(saw.seen, dict),
                "not_on_inside": lambda saw, key: not saw.seen and not saw.hooks,
                "late_binding": lambda saw, key: saw.seen.keys() == {"shifted"},
                "skips_leaves": lambda saw, key: saw.seen.keys() == {"scaled", "shifted"},
                # Names of an earlier check mean that its dictionary is still in use.
                "shared_dict": lambda saw, key: saw.seen.keys() > key.keys(),
            },
        ),
        left_alone("with watching(tensors) as seen: ...; tensors['fixed']"),
        Check(
            "strangers",
            "stranger",
            want=lambda key: 2,
            essential=True,
            given=Say("others_hook"),
            expected=Say("it_fires", n=2),
            got=Say("times"),
            mistakes={"clears_everybody": True},
        ),
        Check(
            "separate",
            "separate",
            want=lambda key: [{"first": key["scaled"]}, {"second": key["scaled"]}],
            essential=True,
            given="with watching({{'first': y}}) as one: ...; with watching({{'second': z}}) as two: ...",
            label="one, two",
            mistakes={"shared_dict": True},
        ),
        _clean(
            "clean",
            _CALL,
            ok=lambda saw, key: same(saw.after, saw.seen) and saw.left == 0,
            left=lambda saw, key: saw.left,
            mistake="never_removes",
        ),
        _clean(
            "clean_after_error",
            _RAISING,
            ok=lambda saw, key: saw.left_by_error == 0,
            left=lambda saw, key: saw.left_by_error,
            mistake="no_finally",
        ),
        Check(
            "error_escapes",
            ok=lambda saw, key: saw.escaped,
            points=1,
            given=_RAISING,
            expected=Say("comes_through"),
            got=Say("is_gone"),
            mistakes={"swallows_error": True},
        ),
    ],
    raises={"exit_signature": r"__exit__\(\) takes"} | HOOKS_EVERYTHING,
)
