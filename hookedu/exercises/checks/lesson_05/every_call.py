"""What decides about 05.5, `every_call(model, x)`."""

from typing import Any

import torch

from hookedu.exercises.checks import forward_hooks
from hookedu.exercises.checks.common import all_detached, none_left
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_05.every_call import PROBE, Case
from hookedu.exercises.tools import same

_CALL = "every_call(model, x)"
_NO_LEN = {"children_generator": r"'generator' has no len\(\)"}


def _calls(case: Case) -> dict[str, list[torch.Tensor]]:
    """Return the outputs of every module without children, one for each call."""
    x, fc, act = case.x, [], []
    for _ in range(case.rounds):
        fc.append(x @ case.weight.T)
        act.append(fc[-1].relu())
        x = x + act[-1]
    return {"body.fc": fc, "body.act": act, "head": [x @ case.weight[:1].T], "spare": []}


def _as_list(kept: Any) -> list[Any]:
    """Return a list as it is, and anything else as the only item of one."""
    return kept if isinstance(kept, list) else [kept]


_WRONG_VALUES = {
    "shared_list": lambda saw, key: {len(v) for v in saw.result.values()} == {sum(map(len, key.values()))},
    "late_binding": lambda saw, key: len(saw.result["spare"]) == sum(map(len, key.values())),
    "last_call_only": lambda saw, key: same(_as_list(saw.result["body.fc"]), key["body.fc"][-1:]),
    "first_call_only": lambda saw, key: same(_as_list(saw.result["body.fc"]), key["body.fc"][:1]),
    "runs_again": lambda saw, key: len(saw.result["body.fc"]) > len(key["body.fc"]),
}
EXERCISE = Exercise(
    PROBE,
    key=_calls,
    given="x = {case.x}; fc.weight = {case.weight}; for _ in range({case.rounds}): x = x + body(x)",
    checks=[
        Check(
            "keys",
            want=list,
            ok=lambda saw, key: saw.result.keys() == key.keys(),
            points=1,
            essential=True,
            given=_CALL + ".keys()",
            expected="{want}",
            got=lambda saw, key: show(list(saw.result) if isinstance(saw.result, dict) else saw.result),
            mistakes={
                "returns_nothing": lambda saw, key: saw.result is None,
                "children_generator": lambda saw, key: saw.result == {} and saw.hooks == 0,
                "only_children": lambda saw, key: saw.result.keys() - {"spare"} == {"body", "head"},
                "idle_missing": lambda saw, key: saw.result.keys() == key.keys() - {"spare"},
                "containers_too": lambda saw, key: saw.result.keys() & {"", "body"},
                "late_binding": lambda saw, key: saw.result.keys() == {"spare"},
                "class_names": lambda saw, key: saw.result.keys() & {"Linear"},
            },
        ),
        Check(
            "values", "result", lambda key: key, points=1, essential=True, label=_CALL, mistakes=_WRONG_VALUES
        ),
        forward_hooks.graph_kept(_CALL),
        all_detached(_CALL),
        none_left(_CALL, "leaves_hooks", id="clean"),
        forward_hooks.none_lost(_CALL),
        Check(
            "through_call",
            "root_calls",
            want=lambda key: 1,
            points=1,
            given="model.register_forward_hook(...); " + _CALL,
            expected=Say("fires", n=1),
            got=Say("fires", n=lambda saw, key: saw.root_calls),
            mistakes={"forward_directly": lambda saw, key: saw.root_calls == 0},
        ),
        Check(
            "as_found",
            "training",
            want=lambda key: True,
            points=1,
            given="model.train(); " + _CALL,
            label="model.training",
            mistakes={"left_in_eval": True},
        ),
        none_left("every_call(broken, x)", "no_finally", id="clean_after_error", observed="left_by_error"),
    ],
    raises=_NO_LEN | forward_hooks.RETURNS_TUPLE | forward_hooks.CALLS_NOW | forward_hooks.WRONG_ARGUMENTS,
)
