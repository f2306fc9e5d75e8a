"""What decides about 11.1, `channel_weights(model, layer, images, labels)`."""

from itertools import combinations
from typing import Any

import torch

from hookedu.exercises.checks.common import none_left
from hookedu.exercises.checks.lesson_11.shared import NO_GRADIENT, OTHER_SCORES, Place, all_right, sizes
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_11.channel_weights import PROBE


def _describe(weights: Any, picture: int) -> str:
    """Describe the shape, and the weights of one picture."""
    if not isinstance(weights, torch.Tensor):
        return f"weights: {show(weights)}"
    row = f"; weights[{picture}] == {show(weights[picture])}" if weights.ndim == 2 else ""
    return f"weights: {sizes(weights)}{row}"


_LIKELY = {
    "sums": lambda at: [at.want * at.places],
    "keeps_dims": lambda at: [at.want[:, :, None, None]],
    "no_average": lambda at: [at.grads],
    "averages_maps": lambda at: [at.maps.mean(dim=(2, 3))],
    "wrong_axes": lambda at: [at.grads.mean(dim) for n in range(1, 5) for dim in combinations(range(4), n)],
    "absolute": lambda at: [at.grads.abs().mean(dim=(2, 3)), at.want.abs(), at.want.relu()],
    "relu_on_gradient": lambda at: [at.grads.relu().mean(dim=(2, 3))],
    "head_weights": lambda at: [at.net.model.head.weight[at.labels] / n for n in (1, 64, at.places)],
    "grad_input": lambda at: [(at.grads * (at.maps > 0)).mean(dim=(2, 3))],
    **OTHER_SCORES,
}

EXERCISE = Exercise(
    PROBE,
    key=lambda calls: [Place(net, layer, lambda maps, grads: grads.mean(dim=(2, 3))) for net, layer in calls],
    checks=[
        all_right("weights", points=3, describe=_describe, likely=_LIKELY),
        none_left("channel_weights(model, layer, images, labels)", "leaves_hook"),
    ],
    raises=NO_GRADIENT,
)
