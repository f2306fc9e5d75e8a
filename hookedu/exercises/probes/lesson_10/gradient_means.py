"""What is observed of 10.2, `gradient_means(model, loss)`: its result, every .grad, and the hooks on during backward."""

import itertools
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import GRAD
from hookedu.exercises.probes.chain import (
    Chain,
    hooks_of_modules,
    lived_in,
    parameter_hooks,
    plain,
)
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, gradients, linear, whole

_RUN = ("stem", "body", "head")
_ORDERS = [order for order in itertools.permutations(_RUN) if order not in (_RUN, _RUN[::-1])]


def make_case(rng: Draw) -> tuple[Chain, torch.Tensor, torch.Tensor]:
    """Return (model, loss, x), after an earlier backward that left twice the gradient of `loss` in every .grad.

    One layer has a buffer, x needs a gradient, and no gradient reaches the parameters of another layer. In turn 0 two
    gradients have a mean of exactly 0, and a parameter has two names. In turn 1 a layer is used twice, gradients are small,
    that of one parameter is all zeros, and a parameter that no gradient reaches has one of an earlier time. In turn 2 a
    layer is nested, and a parameter belongs to the model itself, which has no .grad yet and gets inf and nan.
    """
    layers: dict[str, nn.Module] = {
        name: linear(whole(rng, 9).reshape(3, 3), whole(rng, 3)) for name in rng.choice(_ORDERS)
    }
    if rng.turn == 2:
        layers["body"] = nn.Sequential(layers["body"], linear(whole(rng, 9).reshape(3, 3), whole(rng, 3)))
    model = Chain(
        layers | {"spare": nn.Linear(2, 2)}, _RUN if rng.turn != 1 else ("stem", "body", "stem", "head")
    )
    next(iter(model.children())).register_buffer("steps", torch.zeros(1))
    frozen = "body.0.bias" if rng.turn == 2 else "body.bias"
    lived_in(model, frozen, still="body").zero_grad()
    x, w = whole(rng, 3 * (rng.turn + 1)).reshape(-1, 3), whole(rng, 3) / (10000 if rng.turn == 1 else 1)
    x.requires_grad_()
    if rng.turn == 0:
        w = torch.cat([w[:2].abs(), -w[:2].abs().sum(0, keepdim=True)])
        model["spare"].register_parameter("shared", model.get_parameter("head.weight"))
    elif rng.turn == 1:
        model["spare"].register_parameter("idle", nn.Parameter(whole(rng, 2)))
    elif rng.turn == 2:
        model.register_parameter("scale", nn.Parameter(whole(rng, 3)))

    def loss() -> torch.Tensor:
        if rng.turn != 2:
            return (w * model(x)).sum() + (
                0 * model.get_parameter("spare.idle").sum() if rng.turn == 1 else 0
            )
        return (w * model(x) * model.get_parameter("scale")[0]).sum() + (
            model.get_parameter("scale") * torch.tensor([0, torch.inf, torch.nan])
        ).sum()

    (2 * loss()).backward()
    # The frozen one has a .grad too: that of an earlier time.
    frozen_parameter = model.get_parameter(frozen)
    frozen_parameter.grad = torch.ones_like(frozen_parameter)
    if rng.turn == 1:  # this loss does not reach it
        model.get_parameter("spare.weight").grad = torch.ones(2, 2)
    if rng.turn == 2:
        model.get_parameter("scale").grad = None
    return model, loss(), x


def observe(gradient_means: Any, case: tuple[Chain, torch.Tensor, torch.Tensor]) -> dict[str, Any]:
    """Call it once; `names` and `means` are empty where it returns no pairs that begin with a name.

    `passes` counts the passes through the loss, `written` how many wrote .grad; `on_parameters` and `on_modules` say how
    many hooks of the answer were on as backward began.
    """
    model, loss, x = case
    params = list(model.parameters())

    def hooks() -> tuple[int, int]:
        return parameter_hooks(params), hooks_of_modules(model)

    during: list[tuple[int, int]] = []
    written: list[nn.Parameter] = []
    loss.register_hook(lambda grad: during.append(hooks()))
    model.get_parameter("head.weight").register_post_accumulate_grad_hook(written.append)
    on_parameters, on_modules = hooks()
    found = gradient_means(model, loss)
    pairs = found if isinstance(found, list | tuple) else []
    if not all(isinstance(e, list | tuple) and len(e) == 2 and isinstance(e[0], str) for e in pairs):
        pairs = []
    return {
        "found": plain(found),
        "names": [name for name, _ in pairs],
        "means": plain(dict(pairs)),
        "grads": copies(gradients(model)),
        "x_grad": copies(x.grad),
        "attached": [n for n, p in model.named_parameters() if p.grad is not None and p.grad.requires_grad],
        "passes": len(during),
        "written": len(written),
        "on_parameters": max((n - on_parameters for n, _ in during), default=0),
        "on_modules": max((n - on_modules for _, n in during), default=0),
    }


PROBE = Probe("10.2", "gradient_means", make_case, observe, cases=3, leaves=(GRAD,))
