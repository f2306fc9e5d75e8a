"""What is observed of 10.2, `gradient_means(model, loss)`: its result, every .grad, and the hooks left on."""

import itertools
import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_10.shared import Chain, all_hooks
from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import gradients, linear, whole

_RUN = ("stem", "body", "head")
_ORDERS = [order for order in itertools.permutations(_RUN) if order not in (_RUN, _RUN[::-1])]


def make_case(rng: random.Random) -> tuple[Chain, torch.Tensor]:
    """Return (model, loss), after an earlier backward that left twice the gradient of `loss` in every .grad."""
    layers = {name: linear(whole(rng, 9).reshape(3, 3), whole(rng, 3)) for name in rng.choice(_ORDERS)}
    model = Chain(layers | {"spare": nn.Linear(2, 2)}, _RUN)
    model.get_parameter("body.bias").requires_grad_(False)
    x, w = whole(rng, 6).reshape(2, 3), whole(rng, 3)
    (2 * w * model(x)).sum().backward()
    return model, (w * model(x)).sum()


def observe(gradient_means: Any, case: tuple[Chain, torch.Tensor]) -> dict[str, Any]:
    """Call it once; `names` and `means` are empty where it returns no pairs that begin with a name."""
    model, loss = case
    found = gradient_means(model, loss)
    pairs = found if isinstance(found, list | tuple) else []
    if not all(isinstance(e, list | tuple) and len(e) == 2 and isinstance(e[0], str) for e in pairs):
        pairs = []
    return {
        "found": found,
        "names": [name for name, _ in pairs],
        "means": dict(pairs),
        "grads": gradients(model),
        "left": all_hooks(model),
    }


PROBE = Probe("10.2", "gradient_means", make_case, observe)
