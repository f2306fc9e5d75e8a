"""What decides about 07.5, `stop_gradient(layer)`."""

from types import SimpleNamespace
from typing import Any

import torch

from hookedu.exercises import conduct
from hookedu.exercises.checks.common import handle_works
from hookedu.exercises.checks.lesson_07.shared import MISRETURNED, NO_GRAD, as_in_key, said
from hookedu.exercises.criteria import Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_07.stop_gradient import PROBE, WORDS, Case
from hookedu.exercises.tools import same


def _key(case: Case) -> SimpleNamespace:
    """Return the gradients that are wanted, those that flow without a hook, x, w, and what front gives."""
    front, other, third, layer, behind, _, _, x, (w, v) = case
    h, past = x @ front.weight.detach().T, w.T @ x
    at_w, at_v = [one @ behind.weight.detach() for one in (w, v)]
    want = {
        "own": at_w.T @ h,
        "inner": None,
        "again": [None, at_v.T @ h],
        "skip": [past, w, w],
        "triple": [None, None, None, torch.einsum("no,ni,nj->oij", v, h, x @ other.weight.detach().T)],
        "first": past,
        "indices": torch.zeros(3, len(w[0])).to(w).index_add(0, WORDS, w),
        "ended": "ok",
        "runs": 1,
    }
    flowing = [(one @ layer.weight.detach()).T @ x for one in (at_w, at_v)]
    mode = "; layer.eval()" * (not layer.training)
    fixed = "front.requires_grad_(False); third.requires_grad_(False); " * (not third.weight.requires_grad)
    return SimpleNamespace(**want, flowing=flowing, x=x, w=w, v=v, h=h, mode=mode, fixed=fixed)


def _zeros(grad: Any) -> bool:
    """Check whether a gradient is there, but all zeros."""
    return not grad.any()


def _of_inputs(name: str) -> Of:
    """Return a line with the gradients in front of three inputs, as observed ("saw") or as wanted ("key")."""

    def line(saw: Any, key: Any) -> str:
        grads = (saw if name == "saw" else key).triple
        return f"{_INPUTS} == {show(grads[:3])}" if isinstance(grads, list) else grads

    return line


def _only_leaf(saw: Any, key: Any) -> bool:
    """Check whether a gradient flows back to nothing but an input that is a leaf."""
    return same(saw.triple, key.triple) and saw.leaf is not None


def _only_leaf_cut(saw: Any, key: Any) -> bool:
    """Check whether the shortcut loses its gradient only where the input is a leaf."""
    return same(saw.skip[:2], key.skip[:2]) and saw.skip[2] is None


def _beside_shortcut(name: str) -> Of:
    """Return a line with the gradients beside a shortcut, as observed ("saw") or as wanted ("key")."""

    def line(saw: Any, key: Any) -> str:
        *computed, leaf = (saw if name == "saw" else key).skip
        of_leaf = f"leaf.grad == {show(leaf)}"
        return of_leaf if _only_leaf_cut(saw, key) else f"[{_FRONT}, layer.bias.grad] == {show(computed)}"

    return line


def _only_indices(saw: Any, key: Any) -> bool:
    """Check whether nothing but an input of whole numbers goes wrong in front."""
    return same(saw.first, key.first) and not same(saw.indices, key.indices)


def _in_front(name: str) -> Of:
    """Return a line with the gradient of a layer in front, as observed ("saw") or as wanted ("key")."""

    def line(saw: Any, key: Any) -> str:
        found = saw if name == "saw" else key
        value = found.indices if _only_indices(saw, key) else found.first
        return value if isinstance(value, str) else f"{_OWN} == {show(value)}"

    return line


def _some_inputs(saw: Any, key: Any) -> bool:
    return not isinstance(saw.triple, str) and {grad is None for grad in saw.triple[:3]} == {True, False}


def _freezes(saw: Any, key: Any) -> bool:
    return any(kind == conduct.REQUIRES_GRAD for kind, _ in saw.conduct)


_OF_OWN = {"freezes_layer": _freezes, "weights_too": lambda saw, key: saw.own is None or _zeros(saw.own)}
_OF_INNER = {
    "in_place": lambda saw, key: _zeros(saw.inner) and _zeros(saw.skip[0]),
    "zeros": lambda saw, key: _zeros(saw.inner),
    "asks_training": lambda saw, key: key.mode and same(saw.inner, key.flowing[0]),
    "nothing_stops": lambda saw, key: same(saw.inner, key.flowing[0]),
}
_OF_FIRST = {"list_for_tuple": said("first", "should always return None")}
_OF_SKIP = {"detaches_input": lambda saw, key: saw.skip[0] is None}
_RAISES = {"legacy": r"Cannot use both regular backward hooks"}
_FRONT, _OWN = "front.weight.grad", "layer.weight.grad"
_INPUTS = f"[{_FRONT}, other.weight.grad, third.weight.grad]"
_GIVEN = "h = front(x) == {key.h}; y = behind(layer(h)); loss = ({key.w} * y).sum(){key.mode}"
_SKIP = "h = front(x) == {key.h}; y = layer(h) + h, where layer(h) is h + bias; loss = ({key.w} * y).sum()"
_TRIPLE = "{key.fixed}y = layer(front(x), other(x), third(x)), where layer(a, b, c) is Bilinear(4, 4, 4)(a, b) + c; loss = ({key.v} * y).sum()"
_FIRST = "x = {key.x} (requires_grad=False); y = layer(x); loss = ({key.w} * y).sum()"

EXERCISE = Exercise(
    PROBE,
    key=_key,
    given=_GIVEN,
    checks=[
        as_in_key("own", "own", 0, _OF_OWN, essential=True, label=_OWN),
        as_in_key("stopped", "inner", 1, _OF_INNER, essential=True, label=_FRONT),
        as_in_key(
            "again",
            "again",
            0,
            {"once": lambda saw, key: same(saw.again[0], key.flowing[1])},
            essential=True,
            given=_GIVEN.replace("key.w", "key.v"),
            label=f"[{_FRONT}, {_OWN}]",
        ),
        as_in_key(
            "skip",
            "skip",
            1,
            _OF_SKIP,
            # What does not stop at a leaf at all is told so among the inputs.
            ok=lambda saw, key: same(saw.skip[:2], key.skip[:2]) and not _only_leaf_cut(saw, key),
            given=[Say("leaf_skip", when=_only_leaf_cut), _SKIP],
            expected=_beside_shortcut("key"),
            got=_beside_shortcut("saw"),
        ),
        as_in_key(
            "runs",
            "runs",
            0,
            {"runs_again": lambda saw, key: saw.runs > 1},
            essential=True,
            given="layer(h)",
            expected=Say("runs", value=1),
            got=Say("runs", value=lambda saw, key: saw.runs),
        ),
        as_in_key("evaluation", "ended", 1, **NO_GRAD | {"given": "with torch.no_grad(): layer(h)"}),
        as_in_key(
            "first",
            "first",
            1,
            _OF_FIRST,
            ok=lambda saw, key: same(saw.first, key.first) and same(saw.indices, key.indices),
            given=[Say("indices", when=_only_indices), _FIRST],
            expected=_in_front("key"),
            got=_in_front("saw"),
        ),
        as_in_key(
            "inputs",
            "triple",
            1,
            {
                "one_entry": said("triple", "invalid number of grad_input"),
                "asks_others": lambda saw, key: key.fixed and _some_inputs(saw, key),
                "one_input": _some_inputs,
                "only_computed": _only_leaf,
            },
            ok=lambda saw, key: same(saw.triple, key.triple) and saw.leaf is None,
            given=[Say("leaf", when=_only_leaf), _TRIPLE],
            expected=[Say("leaf_grad", when=_only_leaf, grad="None"), _of_inputs("key")],
            got=[
                Say("leaf_grad", when=_only_leaf, grad=lambda saw, key: show(saw.leaf)),
                _of_inputs("saw"),
            ],
        ),
        handle_works("stop_gradient(layer)", lambda saw, key: same(saw.after, [key.flowing[0], key.own])),
    ],
    raises={"cuts_output": r"does not require grad and does not have a grad_fn"} | _RAISES | MISRETURNED,
)
