"""What is observed of 10.5, `clip_before_step(optimizer, max_norm)`: how far several steps move the parameters."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.chain import parameter_hooks
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import copies, same, whole
from hookedu.hooks.state import GLOBAL_STEP_HOOKS

_SHAPES = ([(2,), (1,), (3,)], [(2, 2), (1,), (3,)], [(3,), (), (1, 2, 1, 2)])


class Case(NamedTuple):
    """Values of the parameters a, b and c, their gradients summed over the passes of a step, and those of a later step.

    In the later step c has no gradient: the third is that of d, which the optimizer has been given since.
    """

    values: list[torch.Tensor]
    grads: list[torch.Tensor]
    later: list[torch.Tensor]
    max_norm: float


def norm_of(grads: list[torch.Tensor]) -> torch.Tensor:
    """Return the norm of several tensors together."""
    return torch.cat([grad.flatten() for grad in grads]).norm()


def make_case(rng: Draw) -> Case:
    """Return a case in which the gradients together exceed `max_norm`, in the later step too.

    In turn 0 those of each group and one of their elements exceed it as well, in turn 1 none does alone, and the matrix among
    them has another norm as a matrix; in turn 2 `max_norm` and the norm are below 1, but not in the later step.
    """
    while True:
        values, grads, later = (
            [whole(rng, 4)[: torch.Size(shape).numel()].reshape(shape) for shape in _SHAPES[rng.turn]]
            for _ in range(3)
        )
        if rng.turn == 2:
            _, exponent = math.frexp(norm_of(grads))
            grads = [grad / 2**exponent for grad in grads]
        a, b, c = (grad.norm().item() for grad in grads)
        max_norm = (float(rng.randint(4, 8)), float(int(max(a, b, c)) + 1), 0.125)[rng.turn]
        large = min(a, c) > max_norm and max(grad.abs().max() for grad in grads) > max_norm
        if rng.turn == 1 and torch.linalg.matrix_norm(grads[0], 2) > 0.95 * a:
            continue
        if rng.turn == 2 and min(a, b, c) < 1.1 * max_norm:
            continue
        if (large or rng.turn != 0) and min(norm_of(grads), norm_of(later[:2])) > 1.1 * max_norm:
            return Case(values, grads, later, max_norm)


def observe(clip_before_step: Any, case: Case) -> dict[str, Any]:
    """Step with the hook and long gradients, with short ones, with other long ones, and without the hook.

    When the answer is called, only b has a gradient, and it is long. It has been called before, for another norm, and its
    hook removed; and it is called for another optimizer, with a third norm. In the later step c has no gradient, and d,
    of a group added to the optimizer in between, has one. Then comes a step with inf in the
    gradient of a frozen parameter. Last, the other optimizer is clipped to a norm of 0, and the third steps with gradients of 0. Others have hooks on the optimizer, too.
    """
    values = [*case.values, case.values[2]]
    a, b, c, d = (torch.nn.Parameter(value.clone()) for value in values)
    params = [a, b, c]
    unused, stranger = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([{"params": [a, unused]}, {"params": [b, c]}], lr=1.0)
    optimizer.register_step_pre_hook(_look)
    optimizer.register_step_post_hook(_look)
    another = torch.optim.SGD([stranger], lr=1.0)
    still = torch.nn.Parameter(torch.ones(2))
    third = torch.optim.SGD([still], lr=1.0)

    def step(grads: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
        """Run backward on 3 and on -2 times `grads`, and step; return how far each parameter moved."""
        with torch.no_grad():
            for param, value in zip(params, values, strict=False):
                param.copy_(value)
        optimizer.zero_grad()
        used = [(param, grad) for param, grad in zip(params, grads, strict=True) if grad is not None]
        for times in (3, -2):
            torch.autograd.backward([1.0 * param for param, _ in used], [times * grad for _, grad in used])
        optimizer.step()
        return [value - param.detach() for param, value in zip(params, values, strict=False)]

    def later_step() -> list[torch.Tensor]:
        optimizer.add_param_group({"params": [d]})
        params.append(d)
        return step([*case.later[:2], None, case.later[2]])

    old = b.grad = 100 * case.grads[1]
    before = copies(old)
    remove_handle(clip_before_step(optimizer, 1e6))
    handle = clip_before_step(optimizer, case.max_norm)
    handle_of_third = clip_before_step(third, 1.05 * case.max_norm)
    seen = {
        "handle": handle,
        "on_params": parameter_hooks(params),
        "hooks": _hooks_before_step(optimizer),
        "moved": step(case.grads),
        "kept": copies([param.grad for param in params]),
        "old_changed": not same(copies(old), before),
        "short": step([grad / 100 for grad in case.grads]),
        "later": later_step(),
        "unused": copies(unused.grad),
        "hooks_later": _hooks_before_step(optimizer),
    }
    for param in (*params, unused):
        param.grad = torch.zeros_like(param)
    unused.grad = 100 * torch.ones(2)
    optimizer.step()
    none_left = 1 - unused.detach()  # how far it moved in a step in which no .grad was None
    optimizer.zero_grad()
    infinite = _infinite_step(optimizer, a, unused.requires_grad_(False))
    unused.requires_grad_(True)
    stranger.grad = 100 * torch.ones(2)
    another.step()
    moved_stranger = -stranger.detach().clone()
    handle_of_another = clip_before_step(another, 0.0)
    before_nothing = stranger.detach().clone()
    another.step()
    remove_handle(handle_of_another)
    still.grad = torch.zeros(2)
    third_before = still.detach().clone()
    third.step()
    remove_handle(handle_of_third)
    return seen | {
        "stranger": moved_stranger,
        "still": third_before - still.detach(),
        "nothing": before_nothing - stranger.detach(),
        "none_left": none_left,
        "infinite": infinite,
        "removed": remove_handle(handle),
        "after": step([*case.grads, None])[:3],
    }


def _look(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    """Stand on the optimizer as the hook of a third party."""


def _hooks_before_step(optimizer: torch.optim.Optimizer) -> int:
    """Count the hooks that run before a step of the optimizer, without that of the third party."""
    own = sum(hook is not _look for hook in optimizer._optimizer_step_pre_hooks.values())
    return own + len(GLOBAL_STEP_HOOKS["_global_optimizer_pre_hooks"])


def _infinite_step(optimizer: torch.optim.Optimizer, *params: torch.Tensor) -> list[torch.Tensor]:
    """Step with gradients of ones, the last beginning with inf; return how far these parameters moved."""
    before = [param.detach().clone() for param in params]
    for param in params:
        param.grad = torch.ones_like(param)
    params[-1].grad = torch.tensor([torch.inf, 1.0])
    optimizer.step()
    return [value - param.detach() for value, param in zip(before, params, strict=True)]


PROBE = Probe("10.5", "clip_before_step", make_case, observe, cases=3, leaves=(HANDLES,))
