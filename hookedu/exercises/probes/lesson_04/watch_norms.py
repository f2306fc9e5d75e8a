"""What is observed of 04.4, `watch_norms(model, seen)`: three backward passes, then one without the hooks."""

from typing import Any

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_04.shared import Unusual, fill, hooked, remove_handles
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, gradients, whole

SCALES = (1, 3, 5)  # of the gradients in each pass; before the last, zero_grad() is called
_USED = ("stem", "body", "head")  # in the order of calls in forward
_DEFINED = (("body", "stem", "head"), ("body", "head", "stem"), ("head", "body", "stem"))
Case = tuple[torch.nn.Module, torch.Tensor, torch.Tensor]


class _Net(torch.nn.ModuleDict):
    """Layers that are called in another order than defined."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in _USED:
            x = self[name](x)
        return x


def make_case(rng: Draw) -> Case:
    """Return (model, x, w) for loss = (w * model(x)).sum(): linear layers with one bias frozen, or more kinds of layers.

    The rows of w differ, so that gradients of matrices have a rank above 1.
    """
    if rng.turn:
        model = Unusual()
        fill(model, rng, 1 / 8)
    else:
        model = _Net({name: torch.nn.Linear(3, 3) for name in rng.choice(_DEFINED)})
        fill(model, rng)
        model.get_parameter("body.bias").requires_grad_(False)
    shape = (2, 1, 3) if rng.turn else (2, 3)
    return model, whole(rng, 6).reshape(shape), whole(rng, 6).reshape(shape)


def passes(model: torch.nn.Module, x: torch.Tensor, w: torch.Tensor) -> None:
    """Run three backward passes: two that add up, and after zero_grad() one more."""
    loss = (w * model(x)).sum()
    for scale in SCALES:
        if scale == SCALES[-1]:
            model.zero_grad()
        (scale * loss).backward(retain_graph=True)


def observe(watch_norms: Any, case: Case) -> dict[str, Any]:
    """Watch the model; run the passes, remove the hooks, and run backward once more."""
    model, seen = case[0], []
    handles = watch_norms(model, seen)
    report = {"handles": copies(handles), "early": len(seen), "hooks": hooked(model)}
    passes(*case)
    report |= {"seen": seen[:60], "grads": gradients(model), "kept": hooked(model)}
    remove_handles(handles)
    before = len(seen)
    (case[2] * model(case[1])).sum().backward()
    return report | {"off": len(seen) == before}


PROBE = Probe("04.4", "watch_norms", make_case, observe, cases=2, changes=(1,), leaves=(HANDLES,))
