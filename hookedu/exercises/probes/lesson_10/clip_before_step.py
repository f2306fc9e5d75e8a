"""What is observed of 10.5, `clip_before_step(optimizer, max_norm)`: how far three steps move the parameters."""

import random
from typing import Any, NamedTuple

import torch

from hookedu.exercises.probes.lesson_10.shared import parameter_hooks
from hookedu.exercises.probing import Probe, remove_handle
from hookedu.exercises.tools import copies, whole


class Case(NamedTuple):
    """Values of the parameters a, b and c, and their gradients after both backward passes of a step."""

    values: list[torch.Tensor]
    grads: list[torch.Tensor]
    max_norm: float


def make_case(rng: random.Random) -> Case:
    """Return a case in which the gradients of each group, and one of their elements, exceed `max_norm`."""
    while True:
        values, grads = [[whole(rng, n) for n in (2, 1, 3)] for _ in range(2)]
        max_norm = float(rng.randint(4, 8))
        if all(g.norm() > max_norm for g in (grads[0], grads[2])) and torch.cat(grads).abs().max() > max_norm:
            return Case(values, grads, max_norm)


def observe(clip_before_step: Any, case: Case) -> dict[str, Any]:
    """Step with the hook and long gradients, with short ones, and without the hook."""
    a, b, c = params = [torch.nn.Parameter(value.clone()) for value in case.values]
    unused = torch.nn.Parameter(torch.ones(2))  # never gets a gradient
    optimizer = torch.optim.SGD([{"params": [a, unused]}, {"params": [b, c]}], lr=1.0)

    def step(grads: list[torch.Tensor]) -> list[torch.Tensor]:
        """Run backward on 3 and on -2 times `grads`, and step; return how far each parameter moved."""
        torch.nn.utils.vector_to_parameters(torch.cat(case.values), params)
        optimizer.zero_grad()
        for times in (3, -2):
            torch.autograd.backward([1.0 * param for param in params], [times * grad for grad in grads])
        optimizer.step()
        return [value - param.detach() for param, value in zip(params, case.values, strict=True)]

    handle = clip_before_step(optimizer, case.max_norm)
    return {
        "handle": handle,
        "on_params": parameter_hooks(params),
        "hooks": len(optimizer._optimizer_step_pre_hooks),
        "moved": step(case.grads),
        "kept": copies([param.grad for param in params]),
        "short": step([grad / 100 for grad in case.grads]),
        "removed": remove_handle(handle),
        "after": step(case.grads),
    }


PROBE = Probe("10.5", "clip_before_step", make_case, observe)
