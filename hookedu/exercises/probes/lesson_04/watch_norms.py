"""What is observed of 04.4, `watch_norms(model, seen)`: passes with the hooks, and one without."""

import copy
from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_04.shared import Unusual, fill, hooked, remove_handles, use
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, gradients, whole

# Of the gradients in each pass; before the last, zero_grad() is called. Powers of two, which scale exactly; the second
# gradient points the other way, so that norms of sums are not sums of norms.
SCALES = (1, -2, 4)
_USED = ("stem", "body", "head")  # in the order of calls in forward
_DEFINED = (("body", "stem", "head"), ("body", "head", "stem"), ("head", "body", "stem"))
# Gradients, in each element, of passes through the first parameter alone: also one that is like the one before it.
ALONE = (0.0, 7.7e-7, 7.7e-7, float("nan"))


class Case(NamedTuple):
    """Model, input, weights w of the loss, and what lies in `seen` before the call."""

    model: torch.nn.Module
    x: torch.Tensor
    w: torch.Tensor
    before: list[str]


class _Net(torch.nn.ModuleDict):
    """Layers that are called in another order than defined."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in _USED:
            x = self[name](x)
        return x


def make_case(rng: Draw) -> Case:
    """Return a case with linear layers, one bias frozen, or with more kinds of layers, used before and in eval mode.

    That one is float64, and has a parameter that is a single number, and two of equal values. The rows of w differ, so that gradients
    of matrices have a rank above 1.
    """
    if rng.turn:
        model = Unusual()
        model.shift = torch.nn.Parameter(torch.zeros(()))
        fill(model, rng, 1 / 8)
        model.head.weight.data = copies(model.get_parameter("inner.0.0.weight"))
        use(model.double().eval())
    else:
        model = _Net({name: torch.nn.Linear(3, 3) for name in rng.choice(_DEFINED)})
        fill(model, rng)
        model.get_parameter("body.bias").requires_grad_(False)
    shape = (2, 1, 3) if rng.turn else (2, 3)
    dtype = (torch.float32, torch.float64)[rng.turn]
    x, w = (whole(rng, 6).reshape(shape).to(dtype) for _ in range(2))
    return Case(model, x, w, ["before"] * rng.turn)


def forward(case: Case) -> torch.Tensor:
    """Clear all gradients of the model and return the loss."""
    case.model.zero_grad()
    return (case.w * case.model(case.x)).sum()


def pairs(seen: list[Any]) -> list[Any]:
    """Return what lies in `seen`, with pairs of a named kind as plain ones."""
    return [tuple(one) if isinstance(one, tuple) else one for one in seen]


def observe(watch_norms: Any, case: Case) -> dict[str, Any]:
    """Watch the model; run the passes, some through one parameter alone, without the hooks, and with two calls alive.

    The last pass is in the other mode, training or evaluation.
    """
    model, seen, n_before = case.model, [*case.before], len(case.before)
    other, switched = (copy.deepcopy(model) for _ in range(2))
    handles = watch_norms(model, seen)
    report = {"handles": copies(handles), "early": len(seen[n_before:]), "hooks": hooked(model)}
    loss, summed = forward(case), gradients(model)
    for scale in SCALES:
        if scale == SCALES[-1]:
            summed = gradients(model)
            model.zero_grad()
        (scale * loss).backward(retain_graph=True)
    report |= {
        "before": seen[:n_before],
        "seen": [one for one in pairs(seen[:60]) if not isinstance(one, str)],
        "summed": summed,
        "grads": gradients(model),
        "kept": hooked(model),
    }
    so_far = len(seen)
    model.zero_grad()
    first = next(p for p in model.parameters() if p.requires_grad)
    report["through"] = []
    try:
        for scale in ALONE:
            first.grad = None
            (scale * first).sum().backward()
            report["through"].append(copies(first.grad))
        report["alone"] = pairs(seen[so_far:][:9])
    except Exception as error:  # the checks decide what it means
        report["alone"] = f"{type(error).__name__}: {error}"[:120]
    remove_handles(handles)
    so_far = len(seen)
    loss.backward()
    report["off"] = len(seen) == so_far
    noted: list[Any] = []
    both = [watch_norms(model, noted), watch_norms(other, [])]
    forward(case).backward()
    for handles in both:
        remove_handles(handles)
    in_other_mode: list[Any] = []
    handles = watch_norms(switched.train(not model.training), in_other_mode)
    forward(case._replace(model=switched)).backward()
    remove_handles(handles)
    return report | {"beside": pairs(noted[:60]), "notes_in_other_mode": bool(in_other_mode)}


PROBE = Probe(
    "04.4", "watch_norms", make_case, observe, cases=2, changes=(1,), leaves=(HANDLES,), yields=True
)
