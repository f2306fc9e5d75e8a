"""A small transformer, written to be read and to be hooked.

Each quantity that people look at inside language models is the input or the output of a named module:

    block                its input is the residual stream before the block, its output the stream after it
    block.middle         the residual stream between attention and MLP
    block.attention      returns a tuple: what it adds to the stream, and its pattern
    block.attention.pattern   who looks at whom: (batch, heads, words, words looked at)
    block.attention.out  its input holds the results of all heads side by side: (batch, words, heads * head width)
    block.mlp            what it adds to the stream
    norm, unembed        from the stream after the last block to the logits

The architecture is that of GPT-2 (pre-norm, GELU, learned positions), a decoder as in https://arxiv.org/abs/1706.03762.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from hookedu.models.stories.grammar import WORDS

WEIGHTS = Path(__file__).with_name("stories.pt")


@dataclass
class Cache:
    """The keys and values of all words so far, block by block: a word that has been read is not computed again."""

    keys: list[torch.Tensor] = field(default_factory=list)  # per block: (batch, heads, words, head width)
    values: list[torch.Tensor] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of words that the cache holds."""
        return self.keys[0].shape[2] if self.keys else 0

    def extend(
        self, block: int, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add the keys and values of new words, and return those of all words."""
        if block == len(self.keys):
            self.keys.append(keys)
            self.values.append(values)
        else:
            self.keys[block] = torch.cat([self.keys[block], keys], dim=2)
            self.values[block] = torch.cat([self.values[block], values], dim=2)
        return self.keys[block], self.values[block]


class Attention(nn.Module):
    """Causal self-attention; returns what it adds to the stream and its pattern."""

    def __init__(self, number: int, width: int, heads: int) -> None:
        super().__init__()
        self.number, self.heads = number, heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.pattern = nn.Softmax(dim=-1)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, cache: Cache | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        batch, words, width = x.shape
        query, key, value = (
            layer(x).view(batch, words, self.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        if cache is not None:
            key, value = cache.extend(self.number, key, value)
        scores = query @ key.transpose(2, 3) / math.sqrt(width // self.heads)
        later = torch.ones(words, key.shape[2], dtype=torch.bool, device=x.device)
        later = later.triu(key.shape[2] - words + 1)  # a word looks at itself and at those before it
        pattern = self.pattern(scores.masked_fill(later, -math.inf))
        return self.out((pattern @ value).transpose(1, 2).reshape(x.shape)), pattern


class Block(nn.Module):
    """Attention moves information between words, the MLP works on each word; both add to the residual stream."""

    def __init__(self, number: int, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(number, width, heads)
        self.middle = nn.Identity()  # a place to hook
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        added, _ = self.attention(self.norm1(x), cache)
        x = self.middle(x + added)
        return x + self.mlp(self.norm2(x))


class StoryModel(nn.Module):
    """Predict the next word of a story: numbers of words (batch, words) to logits (batch, words, WORDS).

    Parameters
    ----------
    width : int
        Width of the residual stream; a multiple of `heads`.
    depth, heads : int
        Number of blocks, and of attention heads in each.
    context : int
        The largest number of words.
    """

    def __init__(self, width: int = 64, depth: int = 4, heads: int = 4, context: int = 64) -> None:
        super().__init__()
        self.heads, self.context = heads, context
        self.embed = nn.Embedding(len(WORDS), width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(number, width, heads) for number in range(depth))
        self.norm = nn.LayerNorm(width)
        self.unembed = nn.Linear(width, len(WORDS), bias=False)

    def forward(self, ids: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        read = 0 if cache is None else len(cache)
        places = torch.arange(read, read + ids.shape[1], device=ids.device)
        x = self.embed(ids) + self.position(places)
        for block in self.blocks:
            x = block(x, cache)
        return self.unembed(self.norm(x))

    @torch.no_grad()
    def generate(self, ids: torch.Tensor, words: int, *, cache: Cache | None = None) -> torch.Tensor:
        """Append the likeliest word so many times.

        Parameters
        ----------
        ids : torch.Tensor
            The prompts: numbers of words, (batch, words), int64.
        words : int
            Number of words to append.
        cache : Cache, optional
            An empty cache to use; a new one by default. The model is called with the whole prompt, then with one
            word at a time.

        Returns
        -------
        torch.Tensor
            The prompts and what follows, (batch, words of the prompt + words), int64.

        Raises
        ------
        ValueError
            If that is more than the model's context.
        """
        if ids.shape[1] + words > self.context:
            raise ValueError(f"{ids.shape[1]} + {words} words; this model reads at most {self.context}.")
        cache = Cache() if cache is None else cache
        new = ids
        for _ in range(words):
            new = self(new, cache)[:, -1:].argmax(dim=-1)
            ids = torch.cat([ids, new], dim=1)
        return ids


def load_model() -> StoryModel:
    """Return a new `StoryModel` with the trained weights, on the CPU and in evaluation mode."""
    model = StoryModel()
    model.load_state_dict(torch.load(WEIGHTS, map_location="cpu", weights_only=True))
    return model.eval()
