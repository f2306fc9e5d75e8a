"""What is observed of 14.1, `outputs_of(model, names, *args, **kwargs)`: what it returns of models with nested outputs."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.observation import alike, encode
from hookedu.exercises.probes.lesson_14.shared import Sizes, draw_prompts, draw_sizes, look_on, make_model
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.structures import detached, mapped, same_types, tensors_in
from hookedu.exercises.tools import linear, module_hooks, whole
from hookedu.models.stories import Cache


class Marker:
    """Something in an output that is neither a tensor nor one of the containers asked for: there is one object of it.

    One can go through it and make another, as with a set.
    """

    __slots__ = ()

    def __init__(self, items: Iterable[int] = ()) -> None:
        """Keep nothing: there is nothing in it to be copied."""

    def __iter__(self) -> Iterator[int]:
        return iter((1, 2))


MARKER = Marker()
_NAMES = ("stem.first", "twice", "plain", "stem.last", "unused")
_STORY_NAMES = ("blocks.1", "blocks.0.attention", "embed", "blocks.1.attention.pattern", "blocks.1.mlp.1")


class Case(NamedTuple):
    """A net or language model, the names of layers, and the argument and keyword argument of the model."""

    turn: int
    names: tuple[str, ...]
    x: torch.Tensor
    weights: torch.Tensor
    scale: float
    sizes: Sizes | None


def make_case(rng: Draw) -> Case:
    """Return a net of layers with nested outputs in turns 0 and 2, and a language model in turn 1."""
    scale = rng.choice((2.0, 3.0, 4.0))
    if rng.turn == 1:
        return Case(1, _STORY_NAMES, draw_prompts(rng, 2, 3), torch.zeros(0), scale, draw_sizes(rng, (2,)))
    names = rng.sample(_NAMES, len(_NAMES))
    if rng.turn == 2:
        names.remove("plain")
    return Case(rng.turn, tuple(names), whole(rng, 4).reshape(2, 2), whole(rng, 5) / 4, scale, None)


def _told(value: Any) -> Any:
    """Copy a tensor, and tell the marker from a copy of it, also when it has been encoded."""
    return "MARKER" if value is MARKER else detached(value)


described = partial(mapped, _told)


def _no_copy(value: Any) -> Any:
    return value


_MAKE: dict[str, tuple[Callable[[torch.Tensor], Any], Callable[[torch.Tensor], Any]]] = {
    "stem.first": (
        lambda t: (t, {"a": t.sum(), 3: [3 * t, None, "word"], "none": None, "empty": []}, ()),
        lambda t: [{"k": ([{"deep": (t,)}],), "n": {}}, MARKER, 2.5],
    ),
    "twice": (lambda t: [t, (t + 1, 7)], lambda t: {"out": t, "more": ([t.long(), t.double()],)}),
    "plain": (_no_copy, _no_copy),
    "stem.last": (
        lambda t: {"x": t, "y": (t > 0, {"z": MARKER})},
        lambda t: (t, [], (t, nn.Parameter(-t.detach()))),
    ),
    "unused": (_no_copy, _no_copy),
}


class Part(nn.Module):
    """A layer that puts out a structure, and notes what it made."""

    def __init__(self, make: Callable[[torch.Tensor], Any], weight: torch.Tensor) -> None:
        super().__init__()
        self.make, self.weight, self.made = make, nn.Parameter(weight.clone()), []

    def forward(self, x: torch.Tensor) -> Any:
        value = self.make(x * self.weight)
        self.made.append((value, described(value), [t.requires_grad for t in tensors_in(value)]))
        return value


class Net(nn.Module):
    """Layers whose outputs are used up: what is in them is overwritten; lists and dictionaries get other items.

    `passed_on` tells whether the model got from its layers what they had made.
    """

    def __init__(self, case: Case) -> None:
        super().__init__()
        parts = {
            name: Part(make[case.turn // 2], weight)
            for (name, make), weight in zip(_MAKE.items(), case.weights, strict=True)
        }
        self.stem = nn.ModuleDict({"first": parts["stem.first"], "last": parts["stem.last"]})
        self.twice, self.plain, self.unused = parts["twice"], parts["plain"], parts["unused"]
        self.passed_on = True

    def forward(self, x: torch.Tensor, *, scale: float = 1.0, everything: bool = False) -> torch.Tensor:
        if everything:
            self.unused(x)
        x = self._use(self.stem["first"], x * scale)
        x = self._use(self.twice, x)
        x = self._use(self.twice, self._use(self.plain, x))
        return self._use(self.stem["last"], x)

    def _use(self, part: Any, x: torch.Tensor) -> torch.Tensor:
        # Some models name the arguments of their layers.
        value = part(x=x) if part is self.plain else part(x)
        made, copy, requires_grad = part.made[-1]
        self.passed_on &= value is made and same_types(described(value), copy)
        self.passed_on &= [t.requires_grad for t in tensors_in(made)] == requires_grad
        tensors = tensors_in(value)
        # An answer that hands on what it kept from an earlier call hands on other containers.
        after = tensors[0] / 2 + 1 if tensors else x
        for tensor in tensors:
            tensor.data.zero_()
        _refill(value)
        return after


class _Silent(nn.Module):
    """A layer that puts out nothing."""

    def forward(self, x: torch.Tensor) -> None:
        """Return None: such a layer is there for what it does."""


class Ordinary(nn.Module):
    """A layer, an in-place ReLU, which puts out the same tensor object, and a layer that puts out None."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.fc, self.act, self.log = linear(weight), nn.ReLU(inplace=True), _Silent()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.fc(x))
        self.log(x)
        return x


ORDINARY = ("fc", "act", "log")


def weight_and_x(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weight of the layer of `Ordinary`, and an input for which the ReLU stops some of what it gets."""
    return case.scale * torch.eye(2), (case.x.abs() + 1) * torch.tensor([1.0, -1.0])


def _refill(value: Any) -> None:
    for item in (
        value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    ):
        _refill(item)
    if isinstance(value, dict | list):
        value.clear()
    if isinstance(value, dict):
        value["later"] = 1
    elif isinstance(value, list):
        value.append("later")


def observe(outputs_of: Any, case: Case) -> dict[str, Any]:
    """Ask for the outputs of some layers of a model on which others have hooks; in turn 0 also for a misspelt name.

    Before that, it was asked for those of another net, of which every layer ran. At the end, in turn 2, of `Ordinary`.
    """
    model: Any = make_model(case.sizes) if case.sizes else Net(case)
    calls, made = [], []
    if case.sizes:
        look_on(model)
    # A copy of the model has the same hooks.
    model.register_forward_hook(lambda module, *of: calls.extend([0] * (module is model)))
    for module in model.modules():
        module.register_forward_hook(lambda module, args, output: made.extend(tensors_in(output)))
    given = {"cache": Cache()} if case.sizes else {"scale": case.scale}
    if not case.sizes:  # what is left of a run in which each layer runs would show
        outputs_of(Net(case), list(case.names), case.x.clone(), everything=True)
    result = outputs_of(model, list(case.names), case.x.clone(), **given)
    kept = tensors_in(result)
    storages = {tensor.untyped_storage().data_ptr() for tensor in made}
    saw = {
        "result": described(dict(result) if isinstance(result, dict) else result),
        "attached": sum(tensor.requires_grad for tensor in kept),
        "shared": sum(tensor.untyped_storage().data_ptr() in storages for tensor in kept),
        "runs": len(calls),
        "passed_on": getattr(model, "passed_on", True),
        "left_by_name": 0,
        "ordinary": None,
        "own": True,
    }
    if case.turn == 0:
        hooks = module_hooks(model)
        with contextlib.suppress(Exception):
            outputs_of(model, [*case.names, "stem.nope"], case.x.clone())
        saw["left_by_name"] = module_hooks(model) - hooks
    if case.turn == 2:
        weight, x = weight_and_x(case)
        with contextlib.suppress(Exception):
            saw["ordinary"] = described(outputs_of(Ordinary(weight), list(ORDINARY), x))
        now = described(dict(result) if isinstance(result, dict) else result)
        saw["own"] = alike(encode(now), encode(saw["result"]))
    return saw


PROBE = Probe("14.1", "outputs_of", make_case, observe, cases=3, restores=True)
