"""What decides about 05.5, `every_call(model, x)`."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks import forward_hooks
from hookedu.exercises.checks.common import all_detached, none_left
from hookedu.exercises.criteria import Check, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show, type_name
from hookedu.exercises.probes.lesson_05.every_call import MORE, PROBE, Case, has_nested, steps
from hookedu.exercises.structures import as_code, mapped, same_types, tensors_in, untyped
from hookedu.exercises.tools import same

_CALL = "every_call(model, x)"
_RECURRENT = "x = {case.x}; fc.weight = {case.weight}; for _ in range({case.rounds}): x = x + body(x)"
_GIVEN = [
    Say("single", when=lambda saw, key: "" in key),
    Say("more", when=lambda saw, key: "same" in key),
    _RECURRENT,
]
_NO_LEN = {"children_generator": r"'generator' has no len\(\)"}


class _Key(dict[str, Any]):
    """The outputs of every module without children, one for each call; `nested` has those of the third model."""

    def __init__(self, case: Case) -> None:
        super().__init__(_calls(case))
        self.nested = _nested(case) if has_nested(case) else None
        self.of_none = {"": [None]} if has_nested(case) else None


def _nested(case: Case) -> dict[str, Any]:
    """Return the outputs of the model with nested ones."""
    first, second = steps(case)
    states = [(first @ case.weight.T).relu()]
    states.append(((second + states[0]) @ case.weight.T).relu())
    out = torch.stack(states)
    return {
        "rnn": [(out, out[-1:])],
        "pair": [(out, (2 * out, None, {"five": 5 * out}))],
        "named": [{"logits": 3 * out, 7: [9 * out, 3, (), torch.tensor([1, 2]), Opaque("range")]}],
        "table": [(case.weight,)],
    }


def _calls(case: Case) -> dict[str, list[torch.Tensor]]:
    x, fc, act = case.x, [], []
    if not case.rounds:
        return {"": [x @ case.weight.T]}
    for _ in range(case.rounds):
        fc.append(x @ case.weight.T)
        act.append(fc[-1].relu())
        x = x + act[-1]
    head, more = [x @ case.weight[:1].T], {"same": [x], "drop": [x], "empty": []} if case.more else {}
    return {"body.fc": fc, "body.act": act, "head": head * (1 + case.more), **more, "spare": []}


def _as_list(kept: Any) -> list[Any]:
    """Return a list as it is, and anything else as the only item of one."""
    return kept if isinstance(kept, list) else [kept]


def _first(key: dict[str, Any]) -> str:
    return next(iter(key))


def _print_alike(saw: Any, key: Any) -> bool:
    """Check whether the result prints like the right one, whatever the brackets."""
    return show(mapped(untyped, saw.result)) == show(key)


def _line(of: str) -> Any:
    """Return a line that shows the first module whose outputs differ, as wanted ("key") or as observed ("result")."""

    def line(saw: Any, key: Any) -> str:
        name = next((name for name in key if not same(saw.result[name], key[name])), _first(key))
        value = (key if of == "key" else saw.result)[name]
        if show(saw.result[name]) != show(key[name]):
            return f"result[{name!r}] == {show(value)}"
        if not isinstance(saw.result[name], list):
            return f"type(result[{name!r}]) == {type_name(value)}"
        if isinstance(saw.result[name][0], torch.Tensor):
            return f"result[{name!r}][0].dtype == {value[0].dtype}"
        return f"type(result[{name!r}][0]) == {type_name(value[0])}"

    return line


def _stays_on(saw: Any, key: Any) -> bool:
    return saw.left_by_error > 0


def _switches(saw: Any, key: Any) -> bool:
    """Check for another mode during the run; what does not switch back is told of the mode that it leaves behind."""
    return saw.root_calls == 1 and saw.switched


def _level(key: dict[str, Any]) -> set[str]:
    """Return the names of the first level only."""
    return {name.split(".")[0] for name in key if name}


def _differs(saw: Any, key: Any) -> str:
    """Return the name of the first module whose nested outputs are not kept as they are."""
    return next((name for name in key.nested if not same_types(saw.nested[name], key.nested[name])), "rnn")


def _nested_line(of: str) -> Any:
    """Return a line that shows nested outputs, as wanted ("key") or as observed ("saw"): the structure, if that differs."""

    def line(saw: Any, key: Any) -> str:
        found = (saw if of == "saw" else key).nested
        if not isinstance(saw.nested, dict) or saw.nested.keys() != key.nested.keys():
            return found if isinstance(found, str) else f"list(result) == {show(list(found))}"
        name = _differs(saw, key)
        numbers = same_types(*(mapped(_no_numbers, one.nested[name]) for one in (saw, key)))
        return f"result[{name!r}] == {as_code(found[name] if numbers else mapped(_no_numbers, found[name]))}"

    return line


def _no_numbers(value: Any) -> Any:
    return Opaque("Tensor") if isinstance(value, torch.Tensor) else value


def _of_nested(of: Callable[[dict[str, Any], dict[str, Any]], bool]) -> Of:
    """Condition: nested outputs are kept by name, and `of(kept, wanted)` holds."""
    return lambda saw, key: isinstance(saw.nested, dict) and of(saw.nested, key.nested)


def _without_more(kept: dict[str, Any]) -> dict[str, Any]:
    """Return nested outputs without what the model added later."""
    return kept | {"named": [{k: v for k, v in call.items() if k != MORE} for call in kept["named"]]}


_keeps_part = _of_nested(lambda kept, wanted: any(torch.is_tensor(kept[name][0]) for name in ("rnn", "pair")))
_OF_NESTED = {
    "shared_dict": lambda saw, key: saw.one_dict,
    "detaches_nested": lambda saw, key: "object has no attribute" in saw.nested,
    "attached_inside": lambda saw, key: (
        saw.nested_attached and same_types(_without_more(saw.nested), key.nested)
    ),
    "same_dictionary": _of_nested(lambda kept, wanted: MORE in kept["named"][0]),
    "skips_nested": _of_nested(lambda kept, wanted: any(kept[name] == [] for name in wanted)),
    "keeps_part": lambda saw, key: saw.nested == "KeyError: 0" or _keeps_part(saw, key),
    "other_types": _of_nested(lambda kept, wanted: same(mapped(untyped, kept), mapped(untyped, wanted))),
    "keys_lost": _of_nested(lambda kept, wanted: not isinstance(kept["named"][0], dict)),
    "other_structure": _of_nested(
        lambda kept, wanted: all(same(tensors_in(kept[name]), tensors_in(wanted[name])) for name in wanted)
    ),
}
_IN_EVAL = "body.act", "drop"
_IDLE = {"spare", "empty"}
_WRONG_VALUES = {
    "not_lists": lambda saw, key: not saw.lists and _print_alike(saw, key),
    "other_dtype": lambda saw, key: (
        _print_alike(saw, key) and saw.result[_first(key)][0].dtype != key[_first(key)][0].dtype
    ),
    "forward_directly": lambda saw, key: not saw.root_calls and same(saw.result, {"": []}),
    "no_entries": lambda saw, key: not any(saw.result.values()),
    "only_training": lambda saw, key: same(
        saw.result, {n: kept * (n not in _IN_EVAL) for n, kept in key.items()}
    ),
    "shared_list": lambda saw, key: {len(v) for v in saw.result.values()} == {sum(map(len, key.values()))},
    "late_binding": lambda saw, key: len(saw.result["spare"]) == sum(map(len, key.values())),
    "last_call_only": lambda saw, key: same(_as_list(saw.result[_first(key)]), key[_first(key)][-1:]),
    "first_call_only": lambda saw, key: same(_as_list(saw.result[_first(key)]), key[_first(key)][:1]),
    "runs_again": lambda saw, key: len(saw.result[_first(key)]) > len(key[_first(key)]),
}
EXERCISE = Exercise(
    PROBE,
    key=_Key,
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
                "shared_dict": lambda saw, key: saw.one_dict,
                "root_left_out": lambda saw, key: saw.result == {} and "" in key,
                "children_generator": lambda saw, key: saw.result == {} and saw.hooks == 0,
                "only_children": lambda saw, key: saw.result.keys() - {"twin"} == _level(key),
                "idle_missing": lambda saw, key: saw.result.keys() == key.keys() - _IDLE,
                "containers_too": lambda saw, key: saw.result.keys() & {"", "body"},
                "late_binding": lambda saw, key: saw.result.keys() == {"spare"},
                "class_names": lambda saw, key: saw.result.keys() & {"Linear", "Single"},
                "second_names": lambda saw, key: saw.result.keys() == key.keys() | {"twin"},
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
            "without_graph",
            "no_grad",
            want=lambda key: key,
            essential=True,
            given=f"with torch.no_grad(): {_CALL}",
            label="result",
            mistakes={
                "only_with_grad": lambda saw, key: (
                    isinstance(saw.no_grad, dict) and not any(saw.no_grad.values())
                )
            },
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
        forward_hooks.graph_kept(
            _CALL,
            {
                "no_grad_inside": lambda saw, key: not saw.grad_on,
                "detaches_in_place": lambda saw, key: saw.detached,
            },
        ),
        all_detached(_CALL),
        none_left(_CALL, "leaves_hooks", id="clean"),
        forward_hooks.none_lost(_CALL),
        Check(
            "through_call",
            "root_calls",
            want=lambda key: 1,
            ok=lambda saw, key: saw.root_calls == 1 and not saw.switched,
            points=1,
            given="model.register_forward_hook(...); " + _CALL,
            expected=[Say("kept_modes", when=_switches), Say("fires", n=1)],
            got=[Say("lost_modes", when=_switches), Say("fires", n=lambda saw, key: saw.root_calls)],
            mistakes={
                "switches_mode": _switches,
                "forward_directly": lambda saw, key: saw.root_calls == 0,
                "runs_again": lambda saw, key: saw.root_calls > 1,
            },
        ),
        Check(
            "clean_after_error",
            ok=lambda saw, key: saw.left_by_error == 0 and not saw.raised,
            points=1,
            given="every_call(broken, x)",
            expected=[Say("hooks_left", when=_stays_on, value=0), "{saw.raised}: out of memory"],
            got=[
                Say("hooks_left", when=_stays_on, value=lambda saw, key: saw.left_by_error),
                lambda saw, key: saw.instead or show(None),
            ],
            mistakes={
                "no_finally": _stays_on,
                "swallows_error": lambda saw, key: not saw.instead,
                "replaces_error": True,
            },
        ),
        Check(
            "nested",
            ok=lambda saw, key: same_types(saw.nested, key.nested) and saw.nested_attached == 0,
            points=2,
            given=Say("nested"),
            expected=[
                Say("still_attached", when=_OF_NESTED["attached_inside"], value=0),
                _nested_line("key"),
            ],
            got=[
                Say(
                    "still_attached",
                    when=_OF_NESTED["attached_inside"],
                    value=lambda saw, key: saw.nested_attached,
                ),
                _nested_line("saw"),
            ],
            mistakes=_OF_NESTED,
        ),
        Check(
            "of_none",
            "of_none",
            want=lambda key: key.of_none,
            equal=same_types,
            given=Say("of_none"),
            expected=lambda saw, key: f"result == {as_code(key.of_none)}",
            got=lambda saw, key: f"result == {as_code(saw.of_none)}",
            mistakes={"skips_none": lambda saw, key: saw.of_none == {"": []}},
        ),
    ],
    raises=_NO_LEN | forward_hooks.RETURNS_TUPLE | forward_hooks.CALLS_NOW | forward_hooks.WRONG_ARGUMENTS,
)
