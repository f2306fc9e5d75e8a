"""Small models, each with one property that makes naive captures wrong."""

from collections import namedtuple
from dataclasses import dataclass

import torch
from torch import nn

from hookedu.hooks.state import GLOBAL_HOOKS


def conv_relu(inplace: bool = True) -> nn.Sequential:
    """Return a model from 2×1×4×4 to 2×2: a convolution whose output a later ReLU overwrites."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=inplace), nn.Flatten(), nn.Linear(8, 2))


def images() -> torch.Tensor:
    return torch.randn(2, 1, 4, 4, generator=torch.Generator().manual_seed(1))


class Residual(nn.Module):
    """The output of `conv` is changed by `+=`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x):
        out = self.conv(x)
        out += x
        return out


class Repeated(nn.Module):
    """`layer` is called n times, on its own output."""

    def __init__(self, n: int = 3) -> None:
        super().__init__()
        self.layer, self.n = nn.Linear(3, 3), n

    def forward(self, x):
        for _ in range(self.n):
            x = self.layer(x)
        return x


Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True)
class Answer:
    logits: torch.Tensor
    note: str = "kept"


class Returns(nn.Module):
    """Returns `build(y)` for a tensor y that requires a gradient."""

    def __init__(self, build) -> None:
        super().__init__()
        self.linear, self.build = nn.Linear(3, 3), build

    def forward(self, x):
        return self.build(self.linear(x))


class Holder(nn.Module):
    """One child, called with the parent's own arguments."""

    def __init__(self, child: nn.Module) -> None:
        super().__init__()
        self.child = child

    def forward(self, *args, **kwargs):
        return self.child(*args, **kwargs)


class Scaled(nn.Module):
    """A layer with a keyword argument."""

    def forward(self, x, *, scale):
        return x * scale


class Failing(nn.Module):
    """Raises after its first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.broken, self.last = nn.Linear(3, 3), Broken(), nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.broken(self.first(x)))


class Broken(nn.Module):
    def forward(self, x):
        raise ValueError("broken on purpose")


class CallsForward(nn.Module):
    """`skipped` runs by its `forward`, without being called."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped, self.layers = nn.Linear(3, 3), nn.ModuleList([nn.Linear(3, 3)])

    def forward(self, x):
        return self.layers[0](self.skipped.forward(x))


def hook_tables(model: nn.Module) -> list[dict]:
    """Return a copy of every hook table of a model, its parameters and the process.

    If the copies from before and after are equal, no hook was left behind, removed or reordered.
    """
    tables = [
        dict(table or {})
        for module in model.modules()
        for name, table in vars(module).items()
        if "hooks" in name and isinstance(table, dict)
    ]
    tables += [dict(p._backward_hooks or {}) for p in model.parameters()]
    tables += [dict(p._post_accumulate_grad_hooks or {}) for p in model.parameters()]
    return tables + [dict(table) for table in GLOBAL_HOOKS.values()]


def net():
    """Return two layers and a ReLU between them."""
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


class Passes(nn.Module):
    """Return what it gets."""

    def forward(self, x, **options):
        return x
