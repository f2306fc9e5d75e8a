"""What is observed of 04.2, `sgd_in_backward(model, lr)`: two backward passes, then a third without the hooks."""

import random
from typing import Any

import torch

from hookedu.exercises.probes.lesson_04.shared import all_hooks_on, remove_handles
from hookedu.exercises.probing import Probe, hooks_on
from hookedu.exercises.tools import all_close, copies, gradients, whole

LR = 0.25
Case = tuple[torch.nn.Sequential, list[torch.Tensor]]


def make_case(rng: random.Random) -> Case:
    """Return (model, two inputs): two linear layers of whole numbers, with the first bias frozen."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    for name, parameter in model.named_parameters():
        parameter.data = whole(rng, parameter.numel()).reshape(parameter.shape)
        parameter.requires_grad_(name != "0.bias")
    return model, [whole(rng, 3).reshape(1, 3) for _ in range(2)]


def parameters(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return a copy of every parameter, by name."""
    return copies(dict(model.named_parameters()))


def observe(sgd_in_backward: Any, case: Case) -> dict[str, Any]:
    """Run backward for both inputs; remove the hooks, and run it for the first once more."""
    model, (x1, x2) = case
    handles = sgd_in_backward(model, LR)
    report = {"handles": handles, "at_once": parameters(model)}
    report["tensor_hooks"] = sum(map(hooks_on, model.parameters()))
    report["hooks"] = sum(map(all_hooks_on, model.parameters()))
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
    remove_handles(handles)
    before = parameters(model)
    model(x1).sum().backward()
    return report | {"off": all_close(parameters(model), before)}


PROBE = Probe("04.2", "sgd_in_backward", make_case, observe)
