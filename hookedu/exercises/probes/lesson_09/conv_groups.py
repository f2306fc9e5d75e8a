"""What is observed of 09.1, `conv_groups(model, x)`: a run of a nested model, and of a bare convolution."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_09.shared import conv, look_on, make_whole, picture
from hookedu.exercises.probes.onlooker import is_cut
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies


class _Own(nn.Conv2d):
    """A convolution of a class that somebody derived, as one with standardised weights is."""


class Net(nn.Module):
    """Three convolutions whose outputs are overwritten: two by in-place ReLUs, one by `+=`.

    The inner one, of a derived class, runs first, and again after the last one, which two containers share and which has
    a child of its own, as observers of quantization are. With `twice` it runs once more on the same input. Beside them there is a convolution that never runs, a transposed one, a child in eval mode within a
    model in training mode, and one whose output is 0 only in training mode.
    """

    def __init__(self, rng: random.Random, twice: bool = False) -> None:
        super().__init__()
        self.twice = twice
        own = _Own(2, 2, 3, padding=1, bias=False)
        make_whole(rng, own.weight)
        inner = nn.Sequential(own, nn.ReLU(inplace=True))
        self.body = nn.Sequential(conv(rng, 1, 2, 2), nn.ReLU(inplace=True), inner)
        self.unused = conv(rng, 2, 3, 1)
        self.last, self.relu = conv(rng, 2, 2, 3, padding=1), nn.ReLU(inplace=True)
        self.last.add_module("observer", nn.Identity())
        self.again, self.lost = nn.Sequential(self.last), nn.Dropout(1.0)
        self.up, self.drop = nn.ConvTranspose2d(2, 2, 1, bias=False), nn.Dropout().eval()
        make_whole(rng, self.up.weight)
        self.cut = self.frozen = self.replaced = False
        self.given: torch.Tensor | None = None  # what `last` gave, before later hooks
        self.last.register_forward_hook(self._note)

    def _note(self, module: nn.Module, args: Any, output: torch.Tensor) -> None:
        self.given = output

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.frozen = not any(parameter.requires_grad for parameter in self.parameters())
        h = self.body(self.drop(x))
        out = self.again(h + self.lost(h))
        self.cut = self.cut or is_cut(h) or is_cut(out)
        self.replaced, self.given = self.replaced or out is not self.given, None
        out += h
        h = self.up(self.relu(out))
        if self.twice:
            self.body[2](h)
        return self.body[2](h)


def _case(rng: Draw) -> tuple[nn.Module, torch.Tensor]:
    """Return (model, x): a net with one picture; one of float64 with two; a bare convolution of bfloat16.

    In the second net two outputs are equal. The bare convolution has two groups of channels, bfloat16 holds its sums
    exactly, and a nan is in its input.
    """
    if rng.turn == 0:
        return Net(rng), picture(rng)
    if rng.turn == 1:
        return Net(rng, twice=True).double(), picture(rng, 2).double()
    x = picture(rng, 2).reshape(1, 2, 3, 3)
    x[0, 0, 0, 0] = torch.nan
    return conv(rng, 2, 2, 2, groups=2).bfloat16(), x.bfloat16()


def observe(conv_groups: Any, case: tuple[nn.Module, torch.Tensor]) -> dict[str, Any]:
    """Group the outputs of a run, and count the runs of the model and of its first part.

    A key that is a torch.Size is observed as a tuple.
    """
    model, x = case
    calls = look_on(model)
    found = conv_groups(model, x)
    pairs = found.items() if isinstance(found, dict) else ()
    groups = {tuple(key) if isinstance(key, tuple) else key: copies(outputs) for key, outputs in pairs}
    kept = [t for _, group in pairs if isinstance(group, list) for t in group]
    return {
        "keys": list(groups) if isinstance(found, dict) else found,
        "groups": groups,
        "attached": sum(isinstance(t, torch.Tensor) and t.requires_grad for t in kept),
        "graph": not getattr(model, "cut", False),
        "frozen": getattr(model, "frozen", False),
        "replaced": getattr(model, "replaced", False),
        "runs": calls[model],
        "parts": calls[next(model.children(), model)],
    }


PROBE = Probe("09.1", "conv_groups", _case, observe, cases=3, runs=1, restores=True)
