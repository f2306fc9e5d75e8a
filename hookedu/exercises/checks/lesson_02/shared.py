"""Checks shared by the exercises of lesson 02."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookedu.exercises.criteria import Check, Of
from hookedu.exercises.observation import show, type_name
from hookedu.exercises.tools import same

HOOKS_EVERYTHING = {"hooks_everything": r"cannot register a hook on a tensor that doesn't require gradient"}
LOCAL_SEEN = {"local_seen": r"^UnboundLocalError: .*'seen'"}
GRAPH = "x = {case.x}; y = {case.k:g} * x; loss = ({case.w} * y).sum()"


def unchanged(
    want: Callable[[Any], Any], mistakes: Mapping[str, Of | bool], given: Any = "", label: str = "x.grad"
) -> Check:
    """Require that x.grad is what it is without hooks: watching must not change gradients."""
    return Check("unchanged", "x_grad", want, essential=True, label=label, given=given, mistakes=mistakes)


def shared_seen(saw: Any, key: Any) -> bool:
    """Whether, of two lists or dictionaries at a time, the second got all and the first nothing, with all hooks on."""
    one, two = saw.two
    return not one and bool(two) and not saw.no_more


def two_at_a_time(given: Any, want: Callable[[Any], Any]) -> Check:
    """Require that two calls for the same tensors, each with a `seen` of its own, both get the gradients."""

    def wanted(key: Any) -> list[Any]:
        return [want(key), want(key)]

    return Check(
        "two_at_a_time",
        ok=lambda saw, key: same(saw.two, wanted(key)),
        essential=True,
        given=given,
        mistakes={
            "shared_seen": shared_seen,
            "takes_off_earlier": lambda saw, key: not saw.two[0] and saw.two[1] and saw.no_more,
        },
        **lines("one, two", "two", wanted),
    )


def two_lists(name: str) -> Of:
    """Return the line that says what `probes.lesson_02.shared.two_lists` does with the answer of that name."""

    def line(saw: Any, case: Any) -> str:
        x, ones, w = show(case.x), show(torch.ones_like(case.x)), show(case.w)
        return (
            f"x = {x}; x.grad = {ones}; one, two = [], []; {name}(x, one); {name}(x, two); "
            f"({w} * x).sum().backward()"
        )

    return line


def later_passes(name: str, want: Callable[[Any], Any]) -> Check:
    """Require that what was seen of a leaf is not changed by later passes through what a hook returned.

    Observes `later` and `gave`. Where no hook returned anything, other requirements say what is wrong.
    """

    def given(saw: Any, case: Any) -> str:
        passes = "; ".join(f"({n} * loss).backward()" for n in (1, 2, 3)).replace("1 * ", "")
        loss = f"x = {show(torch.ones_like(case.w))}; loss = ({show(case.w)} * x).sum()"
        return f"seen = []; {loss}; {name}(x, seen); {passes}".replace("(loss)", "loss")

    return Check(
        "later_passes",
        "later",
        want,
        ok=lambda saw, key: not saw.gave or same(saw.later, want(key)),
        essential=True,
        given=given,
        **lines("seen", "later", want),
        mistakes={"returns_alias": lambda saw, key: len(saw.later) == len(want(key))},
    )


def left_alone(given: str) -> Check:
    """Require that no requires_grad was switched on; observes `switched`."""
    return Check(
        "left_alone",
        ok=lambda saw, key: not saw.switched,
        essential=True,
        given=given,
        expected="requires_grad == False",
        got="requires_grad == {saw.switched}",
        mistakes={"switches_on": True},
    )


def lines(label: str, observed: str | Of, want: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the lines expected and got of a check that compares `observed`, a name or a function, with `want`.

    Where both print alike, they name the types as well.
    """

    def line(value: Any, other: Any) -> str:
        if isinstance(value, dict) and isinstance(other, dict) and value.keys() == other.keys():
            value, other = ({name: one[name] for name in sorted(one)} for one in (value, other))
        return f"{label} == {show(value)}" + (f" ({_kinds(value)})" if show(value) == show(other) else "")

    def of(saw: Any, key: Any) -> Any:
        return getattr(saw, observed) if isinstance(observed, str) else observed(saw, key)

    return {
        "expected": lambda saw, key: line(want(key), of(saw, key)),
        "got": lambda saw, key: line(of(saw, key), want(key)),
    }


def _kinds(values: Any) -> str:
    """Return the types of the items of a list or dictionary, as dtypes where they are tensors."""
    items = values.values() if isinstance(values, dict) else values
    return ", ".join({str(v.dtype) if isinstance(v, torch.Tensor) else type_name(v): v for v in items})
