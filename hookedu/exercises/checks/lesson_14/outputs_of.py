"""What decides about 14.1, `outputs_of(model, names, *args, **kwargs)`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from hookedu.exercises.checks.common import all_detached, equals, none_left
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.checks.lesson_14.shared import near
from hookedu.exercises.criteria import Check, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, is_tuple, show
from hookedu.exercises.probes.lesson_14.outputs_of import (
    ORDINARY,
    PROBE,
    Case,
    Net,
    described,
    weight_and_x,
)
from hookedu.exercises.probes.lesson_14.shared import make_model
from hookedu.exercises.structures import as_code, mapped, same_types, tensors_in, untyped
from hookedu.models.stories import Cache


class Key:
    """What each call of each layer puts out, described, by name."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._run({"cache": Cache()} if case.sizes else {"scale": case.scale})
        self.want = self.of_call(-1)

    @property
    def ordinary(self) -> dict[str, Any] | None:
        """Return what the layers of `Ordinary` put out; it is asked for in turn 2 alone."""
        if self.case.turn != 2:
            return None
        weight, x = weight_and_x(self.case)
        return {"fc": x @ weight, "act": (x @ weight).relu(), "log": None}

    @torch.no_grad()
    def _run(self, kwargs: dict[str, Any]) -> None:
        case, self.calls = self.case, {name: [] for name in self.case.names}
        model: Any = make_model(case.sizes) if case.sizes else Net(case)
        for name in case.names:
            layer = model.get_submodule(name)
            layer.forward = partial(self._note, name, layer.forward)
        model(case.x, **kwargs)

    def unscaled(self) -> dict[str, Any]:
        """Return what the layers put out without the keyword argument."""
        self._run({})
        return self.of_call(-1)

    def _note(self, name: str, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        self.calls[name].append(described(output))
        return output

    def of_call(self, n: int) -> dict[str, Any]:
        """Return what the layers that ran put out in one of their calls."""
        return {name: calls[n] for name, calls in self.calls.items() if calls}

    def together(self, kind: type[list] | type[tuple]) -> dict[str, Any]:
        """Return what the layers put out, all calls together in a container of this kind where there are several."""
        return {
            name: calls[0] if len(calls) == 1 else kind(calls) for name, calls in self.calls.items() if calls
        }

    def nested(self) -> list[str]:
        """Return the names of the layers that ran and put out more than a tensor."""
        return [name for name, value in self.want.items() if not isinstance(value, torch.Tensor)]


def equal(one: Any, other: Any) -> bool:
    """Check whether two structures are equal, tuples and lists apart, tensors up to rounding."""
    return same_types(one, other, near)


def _alike_containers(one: Any, other: Any) -> bool:
    return isinstance(one, list | tuple) and is_tuple(one) == is_tuple(other)


def _alike(*changes: Callable[[Any], Any]) -> Callable[[Saw, Key], bool]:
    """Return the condition that a change makes the result and what is wanted equal: they differ in nothing else."""

    def holds(saw: Saw, key: Key) -> bool:
        return any(equal(mapped(change, saw.result), mapped(change, key.want)) for change in changes)

    return holds


def _zero(value: Any) -> Any:
    return torch.zeros_like(value) if isinstance(value, torch.Tensor) else value


def _no_marker(value: Any) -> Any:
    return None if isinstance(value, str | Opaque) and value in ("MARKER", Opaque("Marker")) else value


def _refilled(value: Any) -> Any:
    """Return a list or dictionary with what the model puts into it later."""
    if isinstance(value, dict):
        return {"later": 1}
    return ["later"] if isinstance(value, list) else value


def _last_item(value: Any) -> Any:
    """Return the last item of a tuple, and anything else as it is."""
    return value[-1] if is_tuple(value) and value else value


def _overwritten(saw: Saw, key: Key) -> bool:
    """Check whether the result is right but for tensors that became 0."""
    return not key.case.sizes and _alike(_zero)(saw, key)


def _passes_parameters(saw: Saw, key: Key) -> bool:
    """Check whether the result is right but for the parameter in it, which the model set to 0."""
    if key.case.turn != 2:
        return False
    want = key.want["stem.last"]
    return equal(saw.result, key.want | {"stem.last": (*want[:-1], (*want[-1][:-1], _zero(want[-1][-1])))})


def _loses_containers(saw: Saw, key: Key) -> bool:
    """Check whether what the model put into its containers later is in the result, at some place."""
    want = {name: mapped(_zero, key.want[name]) for name in key.want}
    got = {name: mapped(_zero, saw.result[name]) for name in key.want}
    return (
        not key.case.sizes
        and not equal(got, want)
        and all(_refilled_somewhere(got[n], want[n]) for n in want)
    )


def _refilled_somewhere(got: Any, want: Any) -> bool:
    if equal(got, want) or equal(got, _refilled(want)):
        return True
    if isinstance(want, dict):
        return got.keys() == want.keys() and all(_refilled_somewhere(got[k], want[k]) for k in want)
    return (
        isinstance(want, list | tuple)
        and _alike_containers(got, want)
        and len(got) == len(want)
        and all(map(_refilled_somewhere, got, want))
    )


def _name(saw: Saw, key: Key) -> str:
    """Return the first name whose output is wrong."""
    return next(name for name in key.case.names if not equal(saw.result.get(name), key.want.get(name)))


def _leaf(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        shown = show(value) if value.numel() < 9 else f"Tensor{tuple(value.shape)}"
        return shown if dtype == "float32" and value.dim() else f"tensor({shown}, dtype={dtype})"
    return "marker" if isinstance(value, str) and value == "MARKER" else show(value)


def _ordinary(result: Any) -> str:
    return f"result == {as_code(result, _leaf)}"


def _line(of: Callable[[Saw, Key], Any]) -> Callable[[Saw, Key], str]:
    """Return a line with the first output that is wrong."""

    def line(saw: Saw, key: Key) -> str:
        result = of(saw, key)
        if not isinstance(saw.result, dict):
            return f"result == {as_code(result, _leaf) if result is saw.result else '{...}'}"
        if saw.result.keys() != key.want.keys():
            return f"list(result) == {show(list(result))}"
        name = _name(saw, key)
        return f"result[{name!r}] == {as_code(result[name], _leaf)}"

    return line


def _call(saw: Any, key: Key) -> str:
    case = key.case
    kwargs = "cache=Cache()" if case.sizes else f"scale={case.scale:g}"
    code = f"result = outputs_of(model, {show(list(case.names))}, x, {kwargs})"
    return (
        f"model = {case.sizes.code}; x = {show(case.x)}; {code}"
        if case.sizes
        else f"x = {show(case.x)}; {code}"
    )


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=_call,
    checks=[
        Check(
            "passes_on",
            ok=lambda saw, key: saw.passed_on,
            essential=True,
            expected=Say("passed_on"),
            got=Say("not_passed_on"),
            mistakes={"changes_output": True},
        ),
        Check(
            "outputs",
            "result",
            want=lambda key: key.want,
            ok=lambda saw, key: equal(saw.result, key.want),
            points=4,
            essential=True,
            expected=_line(lambda saw, key: key.want),
            got=_line(lambda saw, key: saw.result),
            mistakes={
                "no_return": lambda saw, key: saw.result is None,
                "not_a_dict": lambda saw, key: not isinstance(saw.result, dict),
                "runs_twice": lambda saw, key: saw.runs > 1,
                "late_binding": lambda saw, key: list(saw.result) == [key.case.names[-1]],
                "nothing_kept": lambda saw, key: not saw.result,
                "of_another_run": lambda saw, key: (
                    saw.result.keys() - key.want.keys() == {"unused"}
                    and isinstance(saw.result["unused"], torch.Tensor)
                ),
                "not_run": lambda saw, key: saw.result.keys() - key.want.keys() == {"unused"},
                "wrong_keys": lambda saw, key: not saw.result.keys() <= key.want.keys(),
                "missing": lambda saw, key: saw.result.keys() < key.want.keys(),
                "first_call": lambda saw, key: equal(saw.result, key.of_call(0)),
                "all_calls": lambda saw, key: equal(
                    saw.result, {name: calls for name, calls in key.calls.items() if calls}
                ),
                "calls_together": lambda saw, key: any(
                    equal(saw.result, key.together(kind)) for kind in (tuple, list)
                ),
                "last_item": lambda saw, key: equal(
                    saw.result, {name: _last_item(value) for name, value in key.want.items()}
                ),
                "no_kwargs": lambda saw, key: not key.case.sizes and equal(saw.result, key.unscaled()),
                "first_item": lambda saw, key: all(
                    any(near(saw.result[name], one) for one in tensors_in(key.want[name]))
                    for name in key.nested()
                ),
                "passes_parameters": _passes_parameters,
                "overwritten": _overwritten,
                "same_containers": _loses_containers,
                "tuples_as_lists": _alike(untyped),
                "copies_others": _alike(_no_marker),
            },
        ),
        Check(
            "ordinary",
            ok=lambda saw, key: equal(saw.ordinary, key.ordinary),
            essential=True,
            given=Say("ordinary_net", code=f"result = outputs_of(net, {show(list(ORDINARY))}, x)"),
            expected=lambda saw, key: _ordinary(key.ordinary),
            got=[
                Say("ordinary_raised", when=lambda saw, key: saw.ordinary is None),
                lambda saw, key: _ordinary(saw.ordinary),
            ],
            mistakes={
                "drops_none": lambda saw, key: key.ordinary.keys() - saw.ordinary.keys() == {"log"},
                "copied_before": lambda saw, key: equal(saw.ordinary["act"], key.ordinary["fc"]),
            },
        ),
        Check(
            "own",
            ok=lambda saw, key: saw.own,
            essential=True,
            given="first = outputs_of(model, ...); second = outputs_of(net, ...)",
            expected=Say("first_stays"),
            got=Say("first_changed"),
            mistakes={"one_dictionary": True},
        ),
        all_detached("result = outputs_of(model, names, *args, **kwargs)"),
        Check(
            "copies",
            ok=lambda saw, key: saw.shared == 0,
            points=1,
            expected=Say("own_memory"),
            got=Say("shared_memory"),
            mistakes={"shares_memory": True},
        ),
        equals(
            "runs",
            lambda key: 1,
            {"runs_twice": lambda saw, key: saw.runs > 1, "calls_forward": lambda saw, key: saw.runs == 0},
            words="runs",
        ),
        none_left("outputs_of(model, [..., 'stem.nope'], x)", "leaves_on_bad_name", observed="left_by_name"),
    ],
    raises={
        "tuple_as_tensor": r"'(tuple|list|dict)' object has no attribute '(detach|clone|data|cpu|numpy)'",
        "others_as_tensors": r"'(NoneType|int|str|float|Marker)' object has no attribute '(detach|clone|data|cpu|numpy)'",
        "choose_call": r"was called \d+ times: choose one",
        "deep_copy": r"Only Tensors created explicitly by the user",
        "dotted_name": r"has no attribute '\w+(\.\w+)+'",
        "only_children": r"^KeyError: '\w+(\.\w+)+'",
        "indexes_unused": r"^IndexError: list index out of range|^KeyError: 'unused'|`unused` was never called",
        "kwargs_by_position": r"\bforward\(\) takes \d+ positional arguments? but",
        **CALLS_NOW,
        **WRONG_ARGUMENTS,
    },
)
