"""What is observed of 02.2, `watch_many(tensors, seen)`: two backward passes, and a third without the hooks."""

import random
from typing import Any, NamedTuple

import torch

from hookedu.exercises.probing import Probe, hooks_on, remove_handle
from hookedu.exercises.tools import copies, whole

_NAMES = ("stem", "conv", "gate", "pool", "skip", "head")


class Case(NamedTuple):
    """Five named tensors; the second requires no gradient, the fourth is a leaf that does.

    The weights are the gradients of the other four.
    """

    x: torch.Tensor
    tensors: dict[str, torch.Tensor]
    weights: dict[str, torch.Tensor]

    @property
    def names(self) -> list[str]:
        """Names of all five tensors."""
        return list(self.tensors)


def make_case(rng: random.Random) -> Case:
    """Return tensors in a random order of names."""
    x, names = whole(rng, 2).requires_grad_(), rng.sample(_NAMES, 5)
    made = (2 * x, torch.ones(2), 3 * x, whole(rng, 2).requires_grad_(), x + 1)
    weights = {name: whole(rng, 2) for name in (names[0], *names[2:])}
    return Case(x, dict(zip(names, made, strict=True)), weights)


def observe(watch_many: Any, case: Case) -> dict[str, Any]:
    """Watch the tensors; run backward twice, remove the hooks, and run backward once more."""
    x, tensors, weights = case

    def loss() -> torch.Tensor:
        return torch.stack([(weights[name] * tensors[name]).sum() for name in weights]).sum()

    seen: dict[str, Any] = {}
    handles = watch_many(tensors, seen)
    hooked = any(map(hooks_on, tensors.values()))
    loss().backward(retain_graph=True)
    report = {"hooked": hooked, "seen": copies(seen), "handles": handles}
    (2 * loss()).backward(retain_graph=True)
    report |= {"second": copies(seen), "x_grad": copies(x.grad)}
    report["switched"] = tensors[case.names[1]].requires_grad
    for handle in handles if isinstance(handles, (list, tuple)) else ():
        remove_handle(handle)
    seen.clear()
    loss().backward()
    return report | {"after_removal": len(seen)}


PROBE = Probe("02.2", "watch_many", make_case, observe)
