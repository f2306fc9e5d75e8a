"""What 14.5 expects of a model that is steered, and what it makes of mistakes in doing so."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from hookedu.exercises.probes.lesson_14.shared import make_model
from hookedu.exercises.probes.lesson_14.steering import Case


class Key:
    """What the model makes of prompts when a tensor is added to what blocks put out."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.model: Any = make_model(case.sizes)  # of whose blocks the type is not known
        self.push = case.strength * case.direction
        self.steered = self.run({case.number: self.push})
        self.outputs_of_steered = self.outputs

    @torch.no_grad()
    def run(self, added: dict[int, Any], ids: torch.Tensor | None = None, *, at: str = "") -> torch.Tensor:
        """Return the logits with a tensor added after these blocks, or what a function makes of their outputs.

        `at` names another place: "before" the block, in its "middle", between attention and MLP, or "instead" of its output.
        """
        ids, model = self.case.ids if ids is None else ids, self.model
        x = model.embed(ids) + model.position.weight[: ids.shape[1]]
        self.outputs = []
        for number, block in enumerate(model.blocks):
            push: Any = added.get(number, 0)
            x = x + push if at == "before" else x
            x = x + block.attention(block.norm1(x))[0] + (push if at == "middle" else 0)
            x = x + block.mlp(block.norm2(x))
            push = push(x) if callable(push) else push
            x = x + push if not at else push.expand_as(x) if at == "instead" and number in added else x
            self.outputs.append(x)
        return model.unembed(model.norm(x))

    @cached_property
    def plain(self) -> torch.Tensor:
        """Return the logits without any push."""
        return self.run({})

    @property
    def inner(self) -> torch.Tensor:
        """Return the logits with the push of the inner one only."""
        return self.run({self.case.second: self.case.inner * self.case.turned})

    @cached_property
    def nested(self) -> torch.Tensor:
        """Return the logits with both pushes."""
        case, inner = self.case, self.case.inner * self.case.turned
        if case.second == case.number:
            return self.run({case.number: self.push + inner})
        return self.run({case.number: self.push, case.second: inner})

    def times(self, factor: float) -> torch.Tensor:
        """Return the logits with so many times the push."""
        return self.run({self.case.number: factor * self.push})

    @property
    def unit(self) -> torch.Tensor:
        """Return the direction with a length of 1."""
        return self.case.direction / self.case.direction.norm()

    @property
    def relative(self) -> list[torch.Tensor]:
        """Return the logits with pushes in proportion to what the block puts out, at each word or in all."""
        scales: list[Callable[[torch.Tensor], torch.Tensor]] = [
            torch.norm,
            torch.std,
            torch.mean,
            lambda x: x.norm(dim=-1, keepdim=True),
            lambda x: x.std(dim=-1, keepdim=True),
        ]
        return [
            self.run({self.case.number: lambda x, scale=scale, to=to: self.case.strength * scale(x) * to})
            for scale in scales
            for to in (self.case.direction, self.unit)
        ]

    def multiple(self, output: torch.Tensor) -> bool:
        """Check whether this output of the block has another multiple of the push added, everywhere the same."""
        added = output - self.each_plain[self.case.number]
        times = (added * self.push).mean() / (self.push**2).mean()
        return bool(times.abs() > 0.01 and (times - 1).abs() > 0.01) and torch.allclose(
            added, times * self.push, 1e-3, 1e-3
        )

    def at(self, place: str) -> torch.Tensor:
        """Return the logits with the push in another place of the block."""
        return self.run({self.case.number: self.push}, at=place)

    @property
    def elsewhere(self) -> list[torch.Tensor]:
        """Return the logits with the push after each other block."""
        blocks = set(range(self.case.sizes.depth)) - {self.case.number}
        return [self.run({number: self.push}) for number in blocks]

    def words(self, which: slice) -> torch.Tensor:
        """Return the logits with the push at these words only."""
        chosen = torch.zeros(self.case.ids.shape[1], 1)
        chosen[which] = 1
        return self.run({self.case.number: self.push * chosen})

    @property
    def everywhere(self) -> torch.Tensor:
        """Return the logits with the push after every block."""
        return self.run(dict.fromkeys(range(self.case.sizes.depth), self.push))

    @property
    def each_plain(self) -> list[torch.Tensor]:
        """Return what each block puts out unless it is steered."""
        self.run({})
        return self.outputs

    @property
    def gradient(self) -> torch.Tensor:
        """Return the gradient of the sum of all logits with respect to the embeddings of words."""
        model, case = self.model, self.case
        x = model.embed(case.ids) + model.position.weight[: case.ids.shape[1]]
        for number, block in enumerate(model.blocks):
            x = block(x) + (self.push if number == case.number else 0)
        return torch.autograd.grad(model.unembed(model.norm(x)).sum(), model.embed.weight)[0]
