"""Layers of whole numbers, a way to silence warnings, and mistakes shared by exercises of lesson 07."""

import contextlib
import random
import warnings
from collections.abc import Iterator

import torch
from torch import nn

from hookedu.exercises.exercise import Mistake
from hookedu.exercises.shared import no_handle
from hookedu.exercises.tools import whole
from hookedu.language import Text


def linear(rng: random.Random, n_in: int, n_out: int) -> nn.Linear:
    """Return a Linear without bias whose weights are whole numbers, so that its gradients are exact."""
    layer = nn.Linear(n_in, n_out, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.stack([whole(rng, n_in) for _ in range(n_out)]))
    return layer


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings, such as PyTorch's about backward hooks: a check reports only its verdict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


RETURNS_TENSOR = Mistake(
    "returns_tensor",
    Text(
        zh="钩子返回了一个张量。`grad_input` 是元组，新的也要是元组，每个输入一项：`return (new,)`，逗号别漏。",
        en="Your hook returned a tensor. `grad_input` is a tuple, and so must be what replaces it, one entry per input: "
        "`return (new,)`, with the comma.",
    ),
    raises=r"invalid number of grad_input",
)
WRONG_SIZE = Mistake(
    "wrong_size",
    Text(
        zh="元组里那一项的形状变了。换上去的梯度必须和原来的一样形状：`torch.zeros_like(grad)`、`grad.clamp(...)` 都会保留它。",
        en="The entry in your tuple has another shape. What replaces a gradient must have the old one's shape: "
        "`torch.zeros_like(grad)` and `grad.clamp(...)` keep it.",
    ),
    raises=r"has changed the size of value",
)
THREE_ARGUMENTS = Mistake(
    "three_arguments",
    Text(
        zh="PyTorch 用 3 个参数调用反向钩子：`def hook(module, grad_input, grad_output)`。你的钩子收的个数不对。",
        en="PyTorch calls a backward hook with 3 arguments: `def hook(module, grad_input, grad_output)`. Yours takes "
        "another number.",
    ),
    raises=r"positional arguments? but \d was given|positional arguments? but \d were given|missing \d required positional",
)
NO_HANDLE = no_handle("register_...")
