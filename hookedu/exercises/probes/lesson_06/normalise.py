"""What is observed of 06.2, `normalise(layer, mean, std)`: the inputs that a layer receives."""

from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import copies, module_hooks, same, whole

# The first input, other positional inputs, inputs by keyword, and the numbers to normalise with.
Case = namedtuple("Case", "x rest named mean std")


def make_case(rng: Draw) -> Case:
    """Return a case whose std is made of powers of two: every form of the formula gives the same bits."""
    n = rng.randint(2, 3)
    shape, sizes = [((2, n), (n,)), ((1, n), (n,)), ((2, n, 1, 1), (n, 1, 1)), ((n,), ())][rng.turn]
    std = torch.tensor([rng.choice([2.0, 4.0, 8.0]) for _ in range(n)])[: torch.Size(sizes).numel()].reshape(
        sizes
    )
    mean, gate = whole(rng, std.numel()).reshape(sizes), whole(rng, n)
    rest = [(gate,), (), (gate, whole(rng, 1)), ()][rng.turn]
    x = whole(rng, torch.Size(shape).numel()).reshape(shape)  # all values differ, so no column is constant
    return Case(x, rest, {"gate": gate, "mask": None} if rng.turn == 3 else {}, mean, std)


class _Layer(nn.Module):
    """A layer that takes any inputs, so that an answer can lose or change some; it keeps those of its last call."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[Any] = []
        self.register_forward_pre_hook(lambda module, args: None)  # of somebody else

    def forward(self, *inputs: Any, **named: Any) -> Any:
        self.received = [*inputs, *named.values()]
        return inputs[0]


def observe(normalise: Any, case: Case) -> dict[str, Any]:
    """Call the layer with the case two times, with a leaf, and without the hook."""
    x, rest, named, mean, std = case
    layer, other, leaf, fresh = _Layer(), _Layer(), x.clone(), torch.ones_like(x)
    handle, handle_of_other = normalise(layer, mean, std), normalise(other, mean + 1, std)
    saw = {"handle": handle, "hooks": module_hooks(layer) - 1, "after": len(layer._forward_hooks)}
    layer(x, *rest, **named)
    others = [*rest, *named.values()]
    saw |= {"x": copies(x), "received": copies(layer.received)}
    saw["same"] = [got is given for got, given in zip(layer.received[1:], others, strict=False)]
    layer(x, *rest, **named)
    saw |= {"again": copies(layer.received[0]), "hooks_later": module_hooks(layer) - 1}
    if same(x, leaf):  # an in-place answer would only raise on a leaf that requires grad
        layer(leaf.requires_grad_(), *rest, **named)
        first = layer.received[0]
        if isinstance(first, torch.Tensor) and first.requires_grad:
            first.sum().backward()
    for one in (handle, handle_of_other):
        remove_handle(one)
    layer(fresh)
    return saw | {"gradient": leaf.grad, "after_removal": same(layer.received, [fresh])}


PROBE = Probe("06.2", "normalise", make_case, observe, cases=4, leaves=(HANDLES,))
