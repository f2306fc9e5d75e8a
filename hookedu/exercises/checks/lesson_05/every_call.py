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
_RECURRENT = "x = {case.x}; fc.weight = {case.weight}; for _ in range({case.rounds}): x = x + body(x)"
_GIVEN = [Say("single", when=lambda saw, key: "" in key), _RECURRENT]
_NO_LEN = {"children_generator": r"'generator' has no len\(\)"}


def _calls(case: Case) -> dict[str, list[torch.Tensor]]:
    """Return the outputs of every module without children, one for each call."""
    x, fc, act = case.x, [], []
    if not case.rounds:
        return {"": [x @ case.weight.T]}
    for _ in range(case.rounds):
        fc.append(x @ case.weight.T)
        act.append(fc[-1].relu())
        x = x + act[-1]
    return {"body.fc": fc, "body.act": act, "head": [x @ case.weight[:1].T], "spare": []}


def _as_list(kept: Any) -> list[Any]:
    """Return a list as it is, and anything else as the only item of one."""
    return kept if isinstance(kept, list) else [kept]


def _first(key: dict[str, Any]) -> str:
    return next(iter(key))


def _line(of: str) -> Any:
    """Return a line that shows the first module whose outputs differ, as wanted ("key") or as observed ("result")."""

    def line(saw: Any, key: Any) -> str:
        name = next((name for name in key if not same(saw.result[name], key[name])), _first(key))
        if show(saw.result[name]) == show(key[name]):
            return f"type(result[{name!r}]) == {type((key if of == 'key' else saw.result)[name]).__name__}"
        return f"result[{name!r}] == {show((key if of == 'key' else saw.result)[name])}"

    return line


_WRONG_VALUES = {
    "not_lists": lambda saw, key: not saw.lists and show(saw.result) == show(key),
    "forward_directly": lambda saw, key: not saw.root_calls and same(saw.result, {"": []}),
    "no_entries": lambda saw, key: not any(saw.result.values()),
    "shared_list": lambda saw, key: {len(v) for v in saw.result.values()} == {sum(map(len, key.values()))},
    "late_binding": lambda saw, key: len(saw.result["spare"]) == sum(map(len, key.values())),
    "last_call_only": lambda saw, key: same(_as_list(saw.result[_first(key)]), key[_first(key)][-1:]),
    "first_call_only": lambda saw, key: same(_as_list(saw.result[_first(key)]), key[_first(key)][:1]),
    "runs_again": lambda saw, key: len(saw.result[_first(key)]) > len(key[_first(key)]),
}
EXERCISE = Exercise(
    PROBE,
    key=_calls,
    given=_GIVEN,
    checks=[
        Check(
            "keys",
            want=list,
            ok=lambda saw, key: saw.result.keys() == key.keys(),
            points=1,
            essential=True,
            expected=lambda saw, key: f"list(result) == {show(list(key))}",
            got=lambda saw, key: (
                f"list(result) == {show(list(saw.result))}"
                if isinstance(saw.result, dict)
                else f"result == {show(saw.result)}"
            ),
            mistakes={
                "returns_nothing": lambda saw, key: saw.result is None,
                "root_left_out": lambda saw, key: saw.result == {} and "" in key,
                "children_generator": lambda saw, key: saw.result == {} and saw.hooks == 0,
                "only_children": lambda saw, key: (
                    saw.result.keys() == ({"body", "head", "spare"} if "head" in key else set())
                ),
                "idle_missing": lambda saw, key: saw.result.keys() == key.keys() - {"spare"},
                "containers_too": lambda saw, key: saw.result.keys() & {"", "body"},
                "late_binding": lambda saw, key: saw.result.keys() == {"spare"},
                "class_names": lambda saw, key: saw.result.keys() & {"Linear", "Single"},
                "modules_missing": lambda saw, key: saw.result.keys() < key.keys(),
            },
        ),
        Check(
            "values",
            "result",
            lambda key: key,
            points=2,
            essential=True,
            expected=_line("key"),
            got=_line("result"),
            mistakes=_WRONG_VALUES,
        ),
        Check(
            "lists",
            ok=lambda saw, key: saw.lists,
            essential=True,
            given=_CALL,
            expected="[type(kept).__name__ for kept in result.values()] == ['list', …]",
            got="[type(kept).__name__ for kept in result.values()] == {saw.kinds}",
            mistakes={"not_lists": True},
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
            mistakes={
                "forward_directly": lambda saw, key: saw.root_calls == 0,
                "runs_again": lambda saw, key: saw.root_calls > 1,
            },
        ),
        none_left("every_call(broken, x)", "no_finally", id="clean_after_error", observed="left_by_error"),
    ],
    raises=_NO_LEN | forward_hooks.RETURNS_TUPLE | forward_hooks.CALLS_NOW | forward_hooks.WRONG_ARGUMENTS,
)
