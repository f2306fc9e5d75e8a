"""What decides about 07.1, `grad_shapes(layer, x)`."""

from types import SimpleNamespace
from typing import Any

import torch

from hookedu.exercises import conduct
from hookedu.exercises.checks.lesson_07.shared import THREE_ARGUMENTS, as_in_key, said
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_07.grad_shapes import PROBE, Case

_TRACES = (conduct.HOOKS, conduct.GRAD, conduct.REQUIRES_GRAD)


def _key(case: Case) -> SimpleNamespace:
    """Return what is wanted, how a message gives each input, and shapes that occur with the first one."""
    layer, inputs, learning = case
    n_in, n_out = weight = [layer.in_features, layer.out_features]
    want, given = {}, {}
    weight_fixed = not learning.weight.requires_grad
    bias = ", bias=False" * (layer.bias is None)
    for name, x in inputs.items():
        ones = f"torch.ones({tuple(x.shape)}{', requires_grad=True' * x.requires_grad})"
        if not x.is_contiguous():
            ones = f"torch.ones({tuple(x.mT.shape)}).mT" + ".requires_grad_()" * x.requires_grad
        ones += " * 1" * (not x.is_leaf)
        fixed = ".requires_grad_(False)" * (name != "frozen" and not layer.weight.requires_grad)
        fixed += "; layer.weight.requires_grad_(False)" * (name == "frozen" and weight_fixed)
        given[name] = f"layer = Linear({n_in}, {n_out}{bias}){fixed}; x = {ones}"
        want[name] = ((tuple(x.shape) if x.requires_grad else None,), ((*x.shape[:-1], n_out),))
    (x,), (y,) = want["two_d"]
    always = ((tuple(inputs["frozen"].shape),), want["frozen"][1])
    return SimpleNamespace(
        **want,
        given=given,
        x=x,
        y=y,
        weight=weight,
        always=always,
        biasless=layer.bias is None,
        weight_fixed=weight_fixed,
    )


def _said(value: Any) -> str:
    """Write shapes as code, or what was raised in their place."""
    return value if isinstance(value, str) else show(value)


def _entries(shapes: Any) -> list[Any]:
    """Return the entries of grad_input and grad_output together."""
    grad_input, grad_output = shapes
    return grad_input + grad_output


def _traces(saw: Any) -> list[str]:
    return [where for kind, where in saw.conduct if kind in _TRACES] + [
        "leaf.grad (x = leaf * 1)"
    ] * saw.reached


def _shapes(id: str, observed: str, mistakes: Any, **others: Any) -> Check:
    """Require the right shapes for one of the inputs."""
    lines = {
        "given": lambda saw, key: key.given[observed],
        "expected": lambda saw, key: _said(getattr(key, observed)),
        "got": lambda saw, key: _said(getattr(saw, observed)),
    }
    return as_in_key(id, observed, 1, mistakes, **lines, **others)


_OF_TWO_D = {
    "output_none": Gives(lambda key: [[key.x], [None]], lambda key: [[key.x], None]),
    "weight_shapes": lambda saw, key: any(w in _entries(saw.two_d) for w in (key.weight, key.weight[::-1])),
    "keeps_tensors": lambda saw, key: {torch.Tensor, Opaque} & {*map(type, _entries(saw.two_d))},
    "swapped": Gives(lambda key: [[key.y], [key.x]]),
    "no_tuples": Gives(lambda key: [key.x, key.y]),
    "no_batch": Gives(lambda key: [[key.x[-1:]], [key.y[-1:]]]),
    "same_both": Gives(lambda key: [[key.x], [key.x]], lambda key: [[key.y], [key.y]]),
    "no_return": lambda saw, key: saw.two_d is None,
}
_OF_THREE_D = {
    "asks_leaf": Gives(lambda key: [[None], key.three_d[1]]),
    "two_d_only": lambda saw, key: isinstance(saw.three_d, list),
}
# Of what asks for the gradient of a tensor that needs none, or of no tensor at all.
_NEEDS_NONE = (
    "One of the differentiated Tensors",
    "cannot register a hook",
    "argument to `grad()` cannot be empty",
)
_OF_FROZEN = {
    "drops_none": Gives(lambda key: [[], key.frozen[1]]),
    "bare_none": Gives(lambda key: [None, key.frozen[1]]),
    "always_a_shape": Gives(lambda key: key.always),
    "output_none": Gives(lambda key: [[None], [None]], lambda key: [[None], None]),
    "bias_is_none": lambda saw, key: key.biasless and said("frozen", "'NoneType' object")(saw, key),
    "none_has_no_shape": said("frozen", "'NoneType' object"),
    "asks_weight": lambda saw, key: key.weight_fixed and said("frozen", *_NEEDS_NONE)(saw, key),
    "asks_frozen": said("frozen", *_NEEDS_NONE),
}

EXERCISE = Exercise(
    PROBE,
    key=_key,
    given="grad_shapes(layer, x)",
    checks=[
        _shapes("shapes", "two_d", _OF_TWO_D, essential=True),
        _shapes("any_dimensions", "three_d", _OF_THREE_D),
        _shapes("none", "frozen", _OF_FROZEN),
        Check(
            "clean",
            ok=lambda saw, key: not _traces(saw),
            points=1,
            expected=Say("as_before"),
            got=Say("traces", where=lambda saw, key: ", ".join(_traces(saw)[:3])),
            mistakes={"leaves_traces": True},
        ),
    ],
    raises={"is_none": r"'NoneType' object has no attribute"} | THREE_ARGUMENTS,
)
