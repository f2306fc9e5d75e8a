"""What is observed of 07.3, `guided_relu(model)`: gradients with its hooks, of another model, and without them."""

import random
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.lesson_07.shared import linear, quiet, rows
from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies


class Net(NamedTuple):
    """A model with two ReLUs, the second of them in a block; and x, w for loss = (w * model(x)).sum()."""

    model: nn.Sequential
    x: torch.Tensor
    w: torch.Tensor


def _net(rng: random.Random) -> Net:
    block = nn.Sequential(linear(rng, 4, 4), nn.ReLU())
    model = nn.Sequential(linear(rng, 3, 4), nn.ReLU(), block, linear(rng, 4, 2))
    return Net(model, rows(rng, 3), rows(rng, 2))


def _x_grad(net: Net) -> torch.Tensor | None:
    x = net.x.clone().requires_grad_()
    (net.w * net.model(x)).sum().backward()
    return copies(x.grad)


def observe(guided_relu: Any, case: tuple[Net, Net]) -> dict[str, Any]:
    """Run backward through both nets with the hooks on the first, and through the first again without."""
    net, other = case
    with quiet():
        handles = guided_relu(net.model)
        relus = [module for module in net.model.modules() if isinstance(module, nn.ReLU)]
        full = not any(relu._backward_hooks and relu._is_full_backward_hook is False for relu in relus)
        x_grad, other_grad = _x_grad(net), _x_grad(other)
        for handle in handles if isinstance(handles, (list, tuple)) else ():
            remove_handle(handle)
        after = _x_grad(net)
    return {"handles": handles, "full": full, "x_grad": x_grad, "other": other_grad, "after": after}


PROBE = Probe("07.3", "guided_relu", lambda rng: (_net(rng), _net(rng)), observe)
