"""What decides about 11.1, `channel_weights(model, layer, images, labels)`."""

from functools import lru_cache
from itertools import combinations
from typing import Any

import torch

from hookedu.exercises.checks.lesson_11.shared import NO_GRADIENT, OTHER_SCORES, Place, right, sizes
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show, show_sequence
from hookedu.exercises.probes.lesson_11.channel_weights import PROBE
from hookedu.exercises.probes.lesson_11.shared import Net

_BEFORE = {"relu1": "conv1", "relu2": "conv2", "mix": "relu2"}  # the layer from which each gets its input


def _describe(weights: Any, picture: int) -> str:
    """Describe the shape, and the weights of one picture."""
    if not isinstance(weights, torch.Tensor):
        return f"weights: {show_sequence(weights)}"
    row = f"; weights[{picture}] == {show(weights[picture])}" if weights.ndim == 2 else ""
    return f"weights: {sizes(weights)}{row}"


_LIKELY = {
    "sums": lambda at: [at.want * at.places],
    "transposed": lambda at: [at.want.T],
    "squeezes": lambda at: [at.want.squeeze()],
    "keeps_dims": lambda at: [at.want[:, :, None, None]],
    "no_average": lambda at: [at.grads],
    "averages_maps": lambda at: [at.maps.mean(dim=(2, 3))],
    "wrong_axes": lambda at: [at.grads.mean(dim) for n in range(1, 5) for dim in combinations(range(4), n)],
    "absolute": lambda at: [at.grads.abs().mean(dim=(2, 3)), at.want.abs(), at.want.relu()],
    "relu_on_gradient": lambda at: [at.grads.relu().mean(dim=(2, 3))],
    "head_weights": lambda at: [at.net.model.head.weight[at.labels] / n for n in (1, 64, at.places)],
    "grad_input": lambda at: [_call((at.net, _BEFORE[at.layer])).want],
    **OTHER_SCORES,
}


@lru_cache(maxsize=1)  # both `suits` and `key` ask for it
def _call(call: tuple[Net, str]) -> Place:
    return Place(*call, lambda maps, grads: grads.mean(dim=(2, 3)))


def _has_both_signs(call: tuple[Net, str]) -> bool:
    want = _call(call).want
    return bool(min(want.max(), -want.min()) > 0.01 * want.abs().max())


EXERCISE = Exercise(
    PROBE,
    key=_call,
    given=lambda saw, at: at.given,
    suits=_has_both_signs,
    checks=[right("weights", points=4, describe=_describe, likely=_LIKELY)],
    raises=NO_GRADIENT,
)
