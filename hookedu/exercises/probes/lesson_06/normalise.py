"""What is observed of 06.2, `normalise(layer, mean, std)`: the inputs that a layer receives."""

from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import backward_hooks, copies, module_hooks, same, whole

# The first input, other positional inputs, inputs by keyword, the numbers to normalise with; "eval" or "no_grad".
Case = namedtuple("Case", "x rest named mean std setting")


def make_case(rng: Draw) -> Case:
    """Return a case whose std is made of powers of two: every form of the formula gives the same bits.

    Turn 1 has fractions and a tiny std, turn 2 zeros and inputs that are no tensors, turn 3 large numbers, turn 4 an input of
    rank 3 beside a mean of rank 1, in numbers that only float64 holds, which is the second input, too.
    """
    n, turn = rng.randint(2, 3), rng.turn
    shapes = (2, n), (1, n), (2, n, 1, 1), (n,), (1, n, n)
    shape, sizes = shapes[turn], ((n,), (n,), (n, 1, 1), (), (n,))[turn]
    std = torch.tensor([rng.choice([2.0, 4.0, 8.0]) for _ in range(n)])[: torch.Size(sizes).numel()].reshape(
        sizes
    )
    std = std * 2**-13 if turn == 1 else std
    mean, gate = whole(rng, std.numel()).reshape(sizes), whole(rng, n)
    rest = [(gate,), (), (gate, None, 2, whole(rng, 1).long()), (gate,), ()][turn]
    x = whole(rng, torch.Size(shape).numel()).reshape(shape)  # all values differ, so no column is constant
    x, dtype = x * [1, 0.25, 0, 64, 1][turn] + 0.0, torch.float64 if turn == 4 else torch.float32
    named, setting = (
        {"gate": gate, "mask": None} if turn == 3 else {},
        {1: "eval", 3: "no_grad"}.get(turn, ""),
    )
    x, mean, std = x.to(dtype), mean.to(dtype), std.to(dtype)
    if turn == 4:
        x, mean = x + 2**-40, mean + 2**-39
        rest = (x,)
    return Case(x, rest, named, mean, std, setting)


def standard(x: torch.Tensor) -> torch.Tensor:
    """Return an input like `x` that looks as if it had been normalised: its mean is 0, its std 1."""
    values = torch.arange(x.numel(), dtype=x.dtype)
    return ((values - values.mean()) / values.std()).reshape(x.shape)


class _Layer(nn.Module):
    """A layer that takes any inputs, so that an answer can lose or change some; it keeps those of its last call.

    `numbers` are copies: a hook may change an input in place, and change it back when the layer has run.
    """

    def __init__(self) -> None:
        super().__init__()
        self.received, self.numbers, self.names = [], [], []
        self.inside = nn.Identity()
        self.register_forward_pre_hook(lambda module, args: None)  # of somebody else

    def forward(self, *inputs: Any, **named: Any) -> Any:
        self.names = sorted(named)
        self.received = [*inputs, *(named[name] for name in self.names)]
        self.numbers = copies(self.received)
        return inputs[0]


def observe(normalise: Any, case: Case) -> dict[str, Any]:
    """Call the layer with x, with x + 1, with a standard input, with a leaf, in both modes, and without the hook."""
    x, rest, named, mean, std, setting = case
    layer, other, leaf, fresh = (
        _Layer().train(setting != "eval"),
        _Layer(),
        x.clone(),
        torch.full_like(x, 0.5),
    )
    handle, handle_of_other = normalise(layer, mean, std), normalise(other, mean + 1, std + 0)
    saw = {"handle": handle, "hooks": module_hooks(layer) - 1, "after": len(layer._forward_hooks)}
    saw |= {"backward": backward_hooks(layer), "on_part": module_hooks(layer.inside)}
    others = [*rest, *named.values()]
    with torch.set_grad_enabled(setting != "no_grad"):
        layer(x, *rest, **named)
        saw |= {"x": copies(x), "received": layer.numbers, "names": layer.names}
        saw["same"] = [got is given for got, given in zip(layer.received[1:], others, strict=False)]
        intact = same(x, leaf)
        layer(x.add_(1), *rest, **named)
    saw |= {"again": layer.numbers[0], "hooks_later": module_hooks(layer) - 1}
    layer(standard(x), *rest, **named)
    saw["standard"] = layer.numbers[0]
    if intact:  # an in-place answer would only raise on a leaf that requires grad
        layer(leaf.requires_grad_(), *rest, **named)
        first = layer.received[0]
        if isinstance(first, torch.Tensor) and first.requires_grad:
            first.sum().backward()
    mode = layer.training
    layer.train()(1024 * fresh, *rest, **named)
    saw["plain"] = layer.numbers[0]
    layer.eval()(fresh.clone(), *rest, **named)
    saw["in_eval"] = layer.numbers[0]
    layer.train(mode)
    for one in (handle, handle_of_other):
        remove_handle(one)
    layer(fresh)
    return saw | {"gradient": leaf.grad, "after_removal": same(layer.numbers, [fresh])}


PROBE = Probe("06.2", "normalise", make_case, observe, leaves=(HANDLES,))
