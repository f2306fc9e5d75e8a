"""The true gradients of a net, mistakes on the way to them, and the check that a result is right."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from hookedu.exercises.criteria import Check, Of, Say, Throughout
from hookedu.exercises.probes.lesson_11.shared import Net
from hookedu.exercises.tools import close, other_weights

# Mistakes on the way to the gradient of a layer's output, recognised by what the answer raises.
NEEDS_INDEX = {"needs_index": r"Index tensor must have the same number of dimensions as input tensor"}
NO_GRADIENT = NEEDS_INDEX | {
    "needs_scalar": r"grad can be implicitly created only for scalar outputs",
    "no_graph": r"does not require grad|doesn't require gradient",
    "no_backward": r"^KeyError: |list index out of range|'NoneType' object (?:has no|is not subscriptable)",
    "replaces_output": r"must be Tensor, not \w+|arguments - got \((?:tuple|list|RemovableHandle)|'(?:tuple|list|RemovableHandle)' object has no attribute",
}

Values = Callable[[Any], list[torch.Tensor]]  # from a call of the answer, the values that a mistake gives
Told = Callable[[Any, int], str]  # from a result and the index of a picture, what a message shows


class Place:
    """A call of the answer: a layer's maps and their gradient, both (N, C, h, w), and the wanted `result` of these."""

    def __init__(self, net: Net, layer: str, result: Callable[..., torch.Tensor]) -> None:
        self.net, self.layer, self.labels, self._result = net, layer, net.labels, result
        self.given = f"layer = model.{layer}; images: {sizes(net.images)}; labels = {net.labels.tolist()}"
        self.maps, self._leaf = maps_of(net, layer), maps_of(net, layer).requires_grad_()
        # A copy: the next layer may work in place, which no leaf allows.
        self.places, self.logits = self.maps[0, 0].numel(), logits_from(net, layer, self._leaf.clone())
        self.own = of_labels(self.logits, net.labels)
        # From the sum: each picture's maps affect its own logit alone.
        self.grads = self._gradient(self.own.sum())
        self.want = result(self.maps, self.grads)

    def before(self) -> "Place":
        """Return the same call as it was before, when the net had other weights."""
        with other_weights(self.net.model):
            return self.again()

    def again(self) -> "Place":
        """Return the same call anew, for the weights that the net has now."""
        return Place(self.net, self.layer, self._result)

    def ways(self) -> list["Place"]:
        """Return the calls whose maps an answer may have seen: mistakes are recognised in each."""
        return [self]

    def results(self, *scores: torch.Tensor) -> list[torch.Tensor]:
        """Return the results when backward starts from each of these numbers."""
        return [self._result(self.maps, self._gradient(score)) for score in scores]

    def _gradient(self, score: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(score, self._leaf, retain_graph=True)[0]


def maps_of(net: Net, layer: str) -> torch.Tensor:
    """Return a layer's output, (N, C, h, w), without a graph."""
    return _through(list(net.model)[: _after(net, layer)], net.images).detach()


def logits_from(net: Net, layer: str, maps: torch.Tensor) -> torch.Tensor:
    """Return the logits, (N, classes), that the model gives if the layer's output is `maps`."""
    return _through(list(net.model)[_after(net, layer) :], maps)


def _through(modules: list[nn.Module], x: torch.Tensor) -> torch.Tensor:
    """Run these modules one after the other; a slice of a Sequential would be a new one each time."""
    for module in modules:
        x = module(x)
    return x


def _after(net: Net, layer: str) -> int:
    return [name for name, _ in net.model.named_children()].index(layer) + 1


# What learners backpropagate in place of the labels' logits.
OTHER_SCORES: dict[str, Values] = {
    "wrong_class": lambda at: at.results(at.logits.amax(dim=1).sum()),
    "one_class": lambda at: at.results(*at.logits.sum(dim=0)),
    "one_picture": lambda at: at.results(at.logits.max(), *at.own),
    "probabilities": lambda at: at.results(of_labels(at.logits.softmax(dim=1), at.labels).sum()),
    "uses_loss": lambda at: at.results(
        F.cross_entropy(at.logits, at.labels), F.cross_entropy(at.logits, at.labels, reduction="sum")
    ),
    "all_classes": lambda at: at.results(at.logits.sum(), at.logits.mean()),
    "crossed": lambda at: at.results(at.logits[:, at.labels].sum(), at.logits[:, at.labels].mean()),
    "mean_of_pictures": lambda at: at.results(at.own.mean()),
}


def of_labels(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return each picture's logit of its label, (N,)."""
    return logits.gather(1, labels[:, None])[:, 0]


def sizes(tensor: torch.Tensor) -> str:
    """Return the shape of a tensor as the lessons write it, such as 2×6×8."""
    return "×".join(map(str, tensor.shape))


def right(id: str, points: int, describe: Told, likely: Mapping[str, Values], **mistakes: Of) -> Check:
    """Require the right `result`. The key is the call, with its `given` and `want`.

    ``describe(result, i)`` shows a result, and best of all picture `i`, the first that is wrong. The mistake is told by a
    condition of (saw, key), or is the `likely` one that gives the same values. Where the first call gave the right values,
    and only the second is wrong, the message says so.
    """

    def gives(values: Values) -> Throughout:
        return Throughout(
            lambda saw, call: any(close(saw.result, value) for at in call.ways() for value in values(at))
        )

    def described(value: Any, saw: Any, call: Any) -> str:
        line = describe(value, _first_wrong(saw.result, call.want))
        # Where the dtype alone is wrong, the numbers print alike.
        other = isinstance(saw.result, torch.Tensor) and saw.result.dtype != call.want.dtype
        return f"{line}; {value.dtype}" if other else line

    def second(saw: Any, call: Any) -> bool:
        return bool(close(saw.before, call.before().want) and not close(saw.result, call.want))

    told: dict[str, Of] = {"returns_nothing": lambda saw, call: saw.result is None, **mistakes}
    return Check(
        id,
        "result",
        want=lambda call: call.want,
        points=points,
        essential=True,
        given=[
            Say("second_call", when=second, given=lambda saw, call: call.given),
            lambda saw, call: call.given,
        ],
        expected=lambda saw, call: described(call.want, saw, call),
        got=lambda saw, call: described(saw.result, saw, call),
        equal=close,
        mistakes=told | {mistake: gives(values) for mistake, values in likely.items()},
    )


def _first_wrong(got: Any, want: torch.Tensor) -> int:
    """Return the index of the first picture whose result is wrong: that of others may be right."""
    comparable = isinstance(got, torch.Tensor) and got.shape == want.shape
    return next((i for i in range(len(want)) if comparable and not close(got[i], want[i])), 0)
