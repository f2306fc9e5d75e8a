"""Random models for the properties of record(): a program of calls on a pool of odd layers, with a Hypothesis strategy.

Every model exists twice: as drawn, and with each in-place operation replaced by an ordinary one (`plain=True`).
"""

from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

WIDTH = 3


def seed(number: int) -> None:
    """Seed the CPU's generator alone: `torch.manual_seed` formats the stack for each kind of device that is missing."""
    torch.default_generator.manual_seed(number)


@dataclass
class Answer:
    """What some models return."""

    logits: Tensor
    note: str = "answer"


class Affine(nn.Module):
    """Scale and shift each feature."""

    def __init__(self, frozen: bool = False):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(WIDTH)), nn.Parameter(torch.randn(WIDTH))
        self.requires_grad_(not frozen)

    def forward(self, x, *, gain=1.0):
        return x * self.weight * gain + self.bias


class View(nn.Module):
    """Return a view of the input."""

    def forward(self, x):
        return x.view(-1, 1, WIDTH).squeeze(1)


class Same(nn.Module):
    """Return the input itself."""

    def forward(self, x):
        return x


class Several(nn.Module):
    """Return tensors in some container."""

    def __init__(self, form: str):
        super().__init__()
        self.form = form

    def forward(self, x):
        y = x.tanh()
        return {
            "tuple": (y, x * 2),
            "list": [y, None, x + 1],
            "dict": {"out": y, "n": 3, "aux": (x.exp().clamp(max=9),)},
            "dataclass": Answer(y),
        }[self.form]


class Table(nn.Module):
    """Return a parameter, a leaf."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(WIDTH))

    def forward(self, x):
        return self.rows


class Twice(nn.Module):
    """Call itself once."""

    def __init__(self):
        super().__init__()
        self.inner = Affine()

    def forward(self, x, again=True):
        return self(self.inner(x), again=False) if again else x.sigmoid()


class Fails(nn.Module):
    """Raise on the way, after a layer has run."""

    def __init__(self):
        super().__init__()
        self.before = Affine()

    def forward(self, x):
        self.before(x)
        raise ArithmeticError("on purpose")


KINDS: dict[str, Any] = {
    "affine": Affine,
    "frozen": lambda: Affine(frozen=True),
    "relu": nn.ReLU,
    "relu_": lambda: nn.ReLU(inplace=True),
    "view": View,
    "same": Same,
    "tuple": lambda: Several("tuple"),
    "list": lambda: Several("list"),
    "dict": lambda: Several("dict"),
    "dataclass": lambda: Several("dataclass"),
    "table": Table,
    "twice": Twice,
    "fails": Fails,
    "nested": lambda: nn.Sequential(Affine(), nn.Sequential(nn.ReLU(inplace=True), Affine())),
    "norm": lambda: nn.BatchNorm1d(WIDTH),
    "dropout": lambda: nn.Dropout(0.5),
}
AFTER = ("nothing", "add_", "mul_", "relu_", "detach", "copy")
CALLS = ("plain", "keyword", "checkpoint", "no_grad")


@dataclass(frozen=True)
class Step:
    """One call: which module, how it is called, what follows on its output."""

    module: int
    call: str
    after: str


class Graph(nn.Module):
    """A model that runs a program."""

    def __init__(self, kinds: list[str], alias: bool, program: list[Step], plain: bool = False):
        super().__init__()
        self.parts = nn.ModuleList([KINDS[kind]() for kind in kinds])
        if alias:
            self.other_name = self.parts[0]
        self.program, self.plain = program, plain
        if plain:
            for module in self.modules():
                if isinstance(module, nn.ReLU):
                    module.inplace = False

    def forward(self, x):
        for step in self.program:
            module = self.parts[step.module % len(self.parts)]
            x = self._after(step, self._join(x, self._call(step, module, x)))
        return x

    def _call(self, step: Step, module: nn.Module, x: Tensor) -> Any:
        if isinstance(module, Fails):
            try:
                return module(x)
            except ArithmeticError:
                return x
        if step.call == "keyword" and isinstance(module, Affine):
            return module(x, gain=0.5)
        if step.call == "checkpoint" and isinstance(module, Affine):
            return checkpoint(module, x, use_reentrant=False)
        # Under no_grad an in-place ReLU leaves its input in the graph, and the ordinary one does not.
        if step.call == "no_grad" and not any(isinstance(part, nn.ReLU) for part in module.modules()):
            with torch.no_grad():
                return module(x)
        return module(x)

    @staticmethod
    def _join(x: Tensor, output: Any) -> Tensor:
        if isinstance(output, nn.Parameter):
            return x + output
        if isinstance(output, tuple | list):
            return sum((part for part in output if part is not None), torch.zeros(()))
        if isinstance(output, dict):
            return output["out"] + output["aux"][0]
        return output.logits if isinstance(output, Answer) else output

    def _after(self, step: Step, x: Tensor) -> Tensor:
        if step.after == "detach":
            return x.detach() + 1
        if step.after == "copy":
            return x.clone()
        if step.after == "nothing":
            return x
        y = x.clone() if self.plain else x
        return {"add_": lambda: y.add_(1), "mul_": lambda: y.mul_(2), "relu_": lambda: y.relu_()}[
            step.after
        ]()


steps = st.builds(Step, st.integers(0, 5), st.sampled_from(CALLS), st.sampled_from(AFTER))
# What `Graph` is made from, the seed of its numbers, the mode, and whether the input requires a gradient.
drawn = st.fixed_dictionaries(
    {
        "kinds": st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5),
        "alias": st.booleans(),
        "program": st.lists(steps, min_size=1, max_size=8),
    }
)
settings_of = st.fixed_dictionaries(
    {"seed": st.integers(0, 99), "training": st.booleans(), "leaf": st.booleans()}
)
