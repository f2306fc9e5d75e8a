"""Small language models with random weights, and prompts for them, for the probes of lesson 14."""

import random
from collections import Counter
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.models.stories import WORDS, StoryModel


class Sizes(NamedTuple):
    """A small language model: the seed of its weights, and its sizes, none of them those of the trained model."""

    seed: int
    width: int
    depth: int
    heads: int

    @property
    def code(self) -> str:
        """The model as messages show it."""
        return f"StoryModel(width={self.width}, depth={self.depth}, heads={self.heads})"


def draw_sizes(rng: random.Random, depths: tuple[int, ...]) -> Sizes:
    """Return random sizes, with one of these numbers of blocks."""
    width, heads = rng.choice([(8, 1), (8, 2), (12, 2), (12, 3)])
    return Sizes(rng.getrandbits(32), width, rng.choice(depths), heads)


def make_model(sizes: Sizes, context: int = 16) -> StoryModel:
    """Return a new model; the same sizes give the same weights. It sets the seed of torch.

    Each part counts: no weight of a norm is 1 and no bias 0, so that whoever forgets one gets other numbers.
    """
    torch.manual_seed(sizes.seed)
    model = StoryModel(sizes.width, sizes.depth, sizes.heads, context)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and not name.startswith(("embed", "position")):
                parameter.normal_(std=1.2 * parameter.shape[1] ** -0.5)
            elif "norm" in name and name.endswith("weight"):
                parameter.uniform_(0.5, 1.5)
            elif parameter.dim() == 1:
                parameter.normal_(std=0.5)
    return model


def draw_prompts(rng: random.Random, batch: int, words: int) -> torch.Tensor:
    """Return the numbers of words of random prompts, (batch, words), int64; within a prompt all differ."""
    return torch.tensor([rng.sample(range(len(WORDS)), words) for _ in range(batch)])


def look_on(model: StoryModel) -> Counter[nn.Module]:
    """Leave on a model what no answer may change: hooks, old gradients, a frozen part, a block in evaluation mode.

    Return how often these hooks run, by module.
    """
    calls: Counter[nn.Module] = Counter()

    def look(module: nn.Module, args: Any, output: Any) -> None:
        calls[module] += 1

    for module in model.modules():
        module.register_forward_hook(look)
    for parameter in model.norm.parameters():
        parameter.grad = torch.ones_like(parameter)
    model.unembed.weight.register_hook(lambda grad: None)
    model.position.weight.requires_grad_(False)
    model.blocks[1].eval()
    return calls
