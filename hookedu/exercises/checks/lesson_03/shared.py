"""Checks shared by the exercises of lesson 03, and mistakes recognised in several of them."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookedu.exercises.checks.common import HANDLE, MISREGISTERED
from hookedu.exercises.conduct import OTHERS
from hookedu.exercises.criteria import Check, Gives, Of, Say
from hookedu.exercises.observation import show, show_kind, type_name
from hookedu.exercises.probes.lesson_03.shared import Paths
from hookedu.exercises.tools import same

Mistakes = Mapping[str, bool | Of | Gives]

READS_DOT_GRAD = {"reads_dot_grad": r"unsupported operand type.*NoneType|'NoneType' object has no attribute"}
NEEDS_CONTIGUOUS = {"needs_contiguous": r"view size is not compatible"}
OTHER_DTYPE = {"other_dtype": r"has changed the type of value"}
OTHER_SHAPE = {"other_shape": r"has changed the size of value"}
WRONG_HOOK = {"returns_no_tensor": r"expected Variable, but hook returned"} | OTHER_DTYPE | MISREGISTERED


def no_effect(saw: Any, key: Any) -> bool:
    """Check whether x.grad is what it is without hooks."""
    return same(saw.x_grad, key.x_grad)


def nothing_given(saw: Any, key: Any) -> bool:
    """Check whether hooks ran and none returned anything."""
    return saw.gave and not any(saw.gave)


# Mistakes behind a gradient without any effect of hooks.
UNCHANGED: Mistakes = {
    "removed_at_once": lambda saw, key: no_effect(saw, key) and saw.of_y and not saw.hooks,
    "wrong_tensor": lambda saw, key: no_effect(saw, key) and saw.returned == HANDLE and not saw.of_y,
    "not_registered": lambda saw, key: no_effect(saw, key) and not saw.of_y and not saw.hooks,
    # Last, because somebody else's hook returns nothing either.
    "forgot_return": lambda saw, key: no_effect(saw, key) and nothing_given(saw, key),
}
REMOVES_ITSELF: Mistakes = {"removes_itself": lambda saw, key: saw.kept < saw.hooks}


class Plain:
    """The two paths as a message shows them, and the gradients without hooks, also in the other pass."""

    def __init__(self, paths: Paths, y: str = "y") -> None:
        self.k, self.w, self.other = paths.k, paths.w, paths.other
        self.x_grad, self.s_grad = paths.k * paths.w, 2 * paths.w
        loss = f"(skip + {y})).sum(); loss.backward("
        self.graph = f"skip = 2 * s; {y} = {paths.k:g} * x; loss = ({show(paths.w)} * {loss})"
        self.both = (
            f"{self.graph[:-1]}retain_graph=True); x.grad = None; loss = ({show(paths.other)} * {loss})"
        )


def gradient(id: str, want: Callable, mistakes: Mistakes, observed: str = "x_grad", **others: Any) -> Check:
    """Require a gradient, by default that of x, essential unless `others` say otherwise."""
    label = others.get("label", "x.grad")

    def got(saw: Any, key: Any) -> str:
        return f"{label} == {told(getattr(saw, observed), want(key))}"

    row = {"essential": True, "label": label, "got": got} | others
    return Check(id, observed, want, mistakes=mistakes, **row)


def again(want: Callable, **others: Any) -> Check:
    """Require a gradient of x in a second backward pass with another gradient."""
    mistakes = {**REMOVES_ITSELF, "first_gradient": lambda saw, key: same(saw.x_again, saw.x_grad)}
    return gradient("again", want, mistakes, "x_again", **{"given": "{key.both}", **others})


def removes_others(saw: Any) -> bool:
    """Check whether a call removed hooks of an earlier one: it is refused for that, and the conduct says so."""
    return any(kind == OTHERS for kind, _ in saw.conduct)


def asked(
    want: Callable,
    given: Callable[[Any], str],
    ws: Callable = lambda key: (key.w, key.other),
    equal: Callable = same,
    of: Callable[[Any], Any] = lambda saw: (saw.asked, saw.one_buffer),
) -> Check:
    """Require what autograd.grad gives in passes of which all results are kept; `ws` are the gradients of y in `given`.

    There they are {0} and {1}. `of` returns the results, and whether two of them share memory.
    """

    def fits(got: Any, wanted: Any) -> bool:
        return len(got) == len(wanted) and all(map(equal, got, wanted))

    def differing(saw: Any, key: Any) -> tuple[str, str]:
        pairs = list(zip(want(key), of(saw)[0], strict=True))
        n = next((n for n, (wanted, got) in enumerate(pairs) if not equal(got, wanted)), 0)
        name, (wanted, got) = ("first", "second", "third")[n], pairs[n]
        return f"{name} == {show(wanted)}", f"{name} == {told(got, wanted)}"

    return Check(
        "asked",
        want=want,
        ok=lambda saw, key: fits(of(saw)[0], want(key)) or removes_others(saw),
        essential=True,
        given=lambda saw, key: given(key).format(*map(show, ws(key))),
        expected=lambda saw, key: differing(saw, key)[0],
        got=lambda saw, key: differing(saw, key)[1],
        mistakes={"one_buffer": lambda saw, key: of(saw)[1]},
    )


def on_a_leaf(first: str, second: str = "", y: str = "y") -> Callable[[Any], str]:
    """Return the input of `asked` for a leaf y: two passes after one call, one more after the second call."""
    ask = f", = torch.autograd.grad(({{}} * {y}).sum(), {y}); "
    line = f"{y}.is_leaf == True; {first}; first{ask.format('{0}')}second{ask.format('{1}')}"
    line += f"{second or first}; third{ask.format('{0}')}"
    return lambda key: line.removesuffix("; ")


def neighbour(**others: Any) -> Check:
    """Require that the gradient on the other path is what it is without hooks."""
    mistakes = {"in_place": True}
    return gradient("neighbour", lambda key: key.s_grad, mistakes, "s_grad", label="s.grad", **others)


def beside(call: str, want: Callable, first: Mistakes | None = None, **others: Any) -> Check:
    """Require that a further call, with another y, leaves the hooks of the first call as they were.

    `first` are mistakes tried before the one that calls share something.
    """
    mistakes = {**(first or {}), "one_memory": True}
    return gradient("beside", want, mistakes, "beside", **{"given": f"{call}; {{key.graph}}", **others})


def handle_undoes(call: str) -> Check:
    """Require that `call` returns a handle, and that x.grad is what it is without hooks after its remove()."""

    def hands_over(saw: Any, key: Any) -> bool:
        return saw.returned == HANDLE

    undo = "; handle.remove(); loss.backward()"
    return Check(
        "handle",
        want=lambda key: key.x_grad,
        ok=lambda saw, key: saw.returned == HANDLE and same(saw.after_removal, key.x_grad),
        points=1,
        given=lambda saw, key: f"handle = {call}{undo * hands_over(saw, key)}",
        expected=[Say("the_handle", when=lambda saw, key: not hands_over(saw, key)), "x.grad == {want}"],
        got=lambda saw, key: f"x.grad == {show(saw.after_removal)}" if hands_over(saw, key) else shown(saw),
        mistakes={
            "still_at_work": hands_over,
            "no_handle": lambda saw, key: not isinstance(saw.returned, (list, dict)),
        },
    )


def told(value: Any, want: Any) -> str:
    """Write a value, and, if it prints like the one that is wanted, of what type it is."""
    if show(value) != show(want):
        return show(value)
    if isinstance(value, torch.Tensor) and (value.dtype, value.shape) == (want.dtype, want.shape):
        return f"{show(value)} ± {(value - want).abs().max():.1g}"
    odd = next((v for v, w in zip(value, want, strict=True) if not same(v, w)), value)
    return f"{show(value)} ({getattr(odd, 'dtype', type_name(odd))})"


def shown(saw: Any) -> str:
    """Format what an answer returned in place of handles, with names of types as plain words."""
    return show_kind(saw.returned)
