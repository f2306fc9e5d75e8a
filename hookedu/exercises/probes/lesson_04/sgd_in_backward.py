"""What is observed of 04.2, `sgd_in_backward(model, lr)`: two backward passes, then a third without the hooks."""

from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_04.shared import Unusual, fill, hooked, remove_handles
from hookedu.exercises.probing import Draw, Probe, hooks_on
from hookedu.exercises.tools import all_close, copies, gradients, whole


class Case(NamedTuple):
    """Model, learning rate, and inputs for two backward passes."""

    model: nn.Module
    lr: float
    inputs: list[torch.Tensor]


def make_case(rng: Draw) -> Case:
    """Return two linear layers, of which the first bias is frozen, or a model of more kinds of parameters."""
    if rng.turn:
        model = Unusual()
        fill(model, rng, 1 / 8)
    else:
        model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
        fill(model, rng)
        model[0].bias.requires_grad_(False)
    shape = (1, 1, 3) if rng.turn else (1, 3)
    return Case(model, (0.25, 0.5)[rng.turn], [whole(rng, 3).reshape(shape) for _ in range(2)])


def parameters(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return a copy of every parameter, by name."""
    return copies(dict(model.named_parameters()))


def observe(sgd_in_backward: Any, case: Case) -> dict[str, Any]:
    """Run backward for both inputs; remove the hooks, and run it for the first once more."""
    model, lr, (x1, x2) = case
    handles = sgd_in_backward(model, lr)
    report = {"handles": copies(handles), "at_once": parameters(model), "hooks": hooked(model)}
    report["tensor_hooks"] = sum(map(hooks_on, model.parameters()))
    alive: list[int] = []  # number of .grad present each time after the answer's hook has run

    def count(_: torch.Tensor) -> None:
        alive.append(sum(p.grad is not None for p in model.parameters()))

    ours = [p.register_post_accumulate_grad_hook(count) for p in model.parameters() if p.requires_grad]
    model(x1).sum().backward()
    report["first"] = parameters(model)
    model(x2).sum().backward()
    report["second"] = parameters(model)
    report["left"] = [grad for grad in gradients(model).values() if grad is not None]
    report["most"] = max([len(report["left"]), *alive])
    remove_handles(ours)
    report["kept"] = hooked(model)
    remove_handles(handles)
    before = parameters(model)
    model(x1).sum().backward()
    return report | {"off": all_close(parameters(model), before)}


PROBE = Probe("04.2", "sgd_in_backward", make_case, observe, cases=2, leaves=(HANDLES,))
