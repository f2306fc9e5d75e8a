"""What is observed of 07.5, `stop_gradient(layer)`: of a layer amid others, beside a shortcut, and in front."""

from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_07.shared import linear, quiet, rows
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import attempted, copies

WORDS = torch.tensor([0, 2])  # the input of an embedding of 3 words


class Shift(nn.Module):
    """x + bias, whose backward passes on the very tensor it receives, as that of a residual sum does; counts its runs."""

    def __init__(self, bias: torch.Tensor) -> None:
        super().__init__()
        self.bias = nn.Parameter(bias)
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)
        self.runs: list[None] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs.append(None)
        return x + self.bias


class Triple(nn.Bilinear):
    """A layer of three inputs: a Bilinear of the first two, plus the third."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return super().forward(a, b) + c


class Case(NamedTuple):
    """Layers, x, and each w of a loss (w * y).sum(); x and w have one row per sample."""

    front: nn.Linear
    other: nn.Linear
    third: nn.Linear
    layer: nn.Linear
    behind: nn.Linear
    shift: Shift
    triple: Triple
    x: torch.Tensor
    ws: tuple[torch.Tensor, torch.Tensor]


def make_case(rng: Draw) -> Case:
    """Return layers and their inputs.

    In the second case the layer has an old gradient, more hooks and is in eval mode, all is float64, and of three inputs
    only the second needs a gradient.
    """
    triple = Triple(4, 4, 4, bias=False)
    triple.weight = nn.Parameter(torch.stack([rows(rng, 4, 4) for _ in range(4)]))
    layer, behind, ws = linear(rng, 4, 5), linear(rng, 5, 4), (rows(rng, 4), rows(rng, 4))
    layer.register_forward_hook(lambda module, args, output: None)
    layer.register_forward_pre_hook(lambda module, args: None)
    behind.requires_grad_(False)
    front, other, third, shift = *(linear(rng, 3, 4) for _ in range(3)), Shift(rows(rng, 4))
    if rng.turn == 1:
        layer.eval().register_full_backward_hook(lambda module, grad_input, grad_output: None)
        layer.register_full_backward_pre_hook(lambda module, grad_output: None)
        layer.weight.grad = torch.ones_like(layer.weight)
    case = Case(front, other, third, layer, behind, shift, triple, rows(rng, 3), ws)
    if rng.turn == 1:
        for module in case[:-2]:
            module.double()
        case = case._replace(x=case.x.double(), ws=(ws[0].double(), ws[1].double()))
        third.requires_grad_(False)
    return case


def _grads(loss: torch.Tensor, *modules: nn.Module) -> list[torch.Tensor | None]:
    """Run backward; return the gradients of the first parameters of the modules, and remove them."""
    loss.backward()
    parameters = [next(module.parameters()) for module in modules]
    grads = [copies(parameter.grad) for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    return grads


def observe(stop_gradient: Any, case: Case) -> dict[str, Any]:
    """Observe gradients with the hook, twice, and after its removal; with a shortcut, in front, with other inputs.

    Between the two backward passes the layer runs under no_grad, with an input that needs a gradient.
    """
    front, other, third, layer, behind, shift, triple, x, (w, v) = case

    def evaluate() -> str:
        h = front(x)
        with torch.no_grad():
            layer(h)
        return "ok"

    with quiet():
        handle = stop_gradient(layer)
        layer.weight.grad = None
        inner, own = _grads((w * behind(layer(front(x)))).sum(), front, layer)
        ended = attempted(evaluate)
        again = _grads((v * behind(layer(front(x)))).sum(), front, layer)
        remove_handle(handle)
        after = _grads((w * behind(layer(front(x)))).sum(), front, layer)
        saw = {"handle": handle, "inner": inner, "own": own, "ended": ended, "again": again, "after": after}

        handles = [stop_gradient(shift)]
        h = front(x)
        saw["skip"] = _grads((w * (shift(h) + h)).sum(), front, shift)
        saw["runs"] = len(shift.runs)
        leaf = h.detach().requires_grad_()
        (w * (shift(leaf) + leaf)).sum().backward()
        saw["skip"].append(copies(leaf.grad))
        shift.bias.grad = None

        handles.append(stop_gradient(triple))
        inputs = front, other, third
        front.requires_grad_(third.weight.requires_grad)
        loss = attempted(lambda: (v * triple(*(module(x) for module in inputs))).sum())
        grads = attempted(lambda: _grads(loss, *inputs, triple)) if not isinstance(loss, str) else loss
        saw["triple"] = grads
        front.requires_grad_()

        handles.append(stop_gradient(front))  # x does not require grad: grad_input is (None,)
        front.weight.grad = None
        saw["first"] = attempted(lambda: _grads((w * front(x)).sum(), front)[0])
        words = nn.Embedding.from_pretrained(torch.zeros(3, len(w[0])).to(w), freeze=False)
        handles.append(stop_gradient(words))
        saw["indices"] = attempted(lambda: _grads((w * words(WORDS)).sum(), words)[0])
        leaf = x.clone().requires_grad_()
        attempted(lambda: (w * front(leaf)).sum().backward())
        saw["leaf"] = copies(leaf.grad)
        for one in handles:
            remove_handle(one)
    return saw


PROBE = Probe("07.5", "stop_gradient", make_case, observe, cases=2, leaves=(HANDLES,))
