"""What is observed of 07.3, `guided_relu(model)`: gradients with its hooks, of other models, and without them."""

from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_07.shared import linear, quiet, rows
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import attempted, copies, rebuilt


class Shortcut(nn.Module):
    """h + relu(h), where h = linear(x): what goes past the ReLU shares its gradient and its input."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.relu, self.linear = nn.ReLU(), linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.linear(x)
        return h + self.relu(h)


class To(nn.Module):
    """Convert to another dtype, as mixed precision does in front of some layers."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.dtype)


LARGE = 2.0**40  # of the gradient that a ReLU alone receives


class Net(NamedTuple):
    """A model with two ReLUs, the first of them in a block; x, and each w of a loss (w * model(x)).sum()."""

    model: nn.Sequential
    x: torch.Tensor
    ws: tuple[torch.Tensor, torch.Tensor]


def _net(rng: Draw) -> Net:
    """Return a model that trains but for one layer, or one in eval mode, with other hooks, and with tiny gradients.

    In the former the last ReLU runs in float16, where the gradient has 8 bits at most and is exact.
    """
    block = Shortcut(linear(rng, 6, 6))
    first, middle, last = linear(rng, 3, 6), linear(rng, 6, 6), linear(rng, 6, 2)
    last.weight.data /= 32  # gradients between -1 and 1 as well
    top: list[nn.Module] = [nn.ReLU()]
    if rng.turn == 0:
        middle.weight.data /= 8  # else the sums would be infinite in float16
        top = [To(torch.float16), *top, To(torch.float32)]
    model = nn.Sequential(first, nn.LeakyReLU(0.5), block, middle, *top, last)
    model[0].eval().requires_grad_(False)
    block.relu.register_forward_hook(lambda module, args, output: None)
    ws = rows(rng, 2), rows(rng, 2)
    if rng.turn == 1:
        model.eval()
        for module in (middle, model[4]):
            module.register_full_backward_hook(lambda module, grad_input, grad_output: None)
        ws = ws[0] / 2**30, ws[1] / 2**30
    return Net(model, rows(rng, 3), ws)


def x_grad(
    model: nn.Module, x: torch.Tensor, w: torch.Tensor, then: torch.Tensor | None = None
) -> torch.Tensor | None:
    """Run backward, after another forward pass if there is a `then`; return the gradient of x."""
    x = x.clone().requires_grad_()
    loss = (w * model(x)).sum()
    if then is not None:
        model(then.clone().requires_grad_())
    loss.backward()
    return copies(x.grad)


def observe(guided_relu: Any, case: tuple[Net, Net]) -> dict[str, Any]:
    """Run backward through both nets with the hooks on the first, twice, and through the first again without.

    Before the second backward the net runs forward with another x as well, and it runs under no_grad between the two; a
    net in eval mode trains then. A model that is itself a ReLU gets hooks twice, and loses them in between.
    """
    (model, x, ws), other = case

    def evaluate() -> str:
        with torch.no_grad():
            model(x)
        return "ok"

    with quiet():
        handles = guided_relu(model)
        relus = [module for module in model.modules() if isinstance(module, nn.ReLU)]
        full = not any(relu._backward_hooks and relu._is_full_backward_hook is False for relu in relus)
        saw = {"x_grad": x_grad(model, x, ws[0]), "ended": attempted(evaluate), "full": full}
        training = model.training
        if not training:
            model.train()
        saw["again"] = x_grad(model, x, ws[1], other.x)
        if not training:
            model.eval()
        saw["other"] = x_grad(other.model, other.x, other.ws[0])
        saw["handles"] = rebuilt(handles, handles) if isinstance(handles, (list, tuple)) else handles
        _remove(handles)
        saw["after"] = x_grad(model, x, ws[0])
        relu, saw["itself"] = nn.ReLU(), []
        for _ in range(2):
            handles = guided_relu(relu)
            saw["itself"].append(x_grad(relu, x.abs(), LARGE * x))
            _remove(handles)
        return saw


def _remove(handles: Any) -> None:
    for handle in handles if isinstance(handles, (list, tuple)) else ():
        remove_handle(handle)


PROBE = Probe(
    "07.3",
    "guided_relu",
    lambda rng: (_net(rng), _net(rng)),
    observe,
    cases=2,
    leaves=(HANDLES,),  # a global hook with a condition is an answer too
)
