"""What is observed of 03.5, `reverse_gradient(x, strength)`: its value, both gradients, and calls without a graph."""

import random
from typing import Any

import torch

from hookedu.exercises.probes.lesson_03.shared import Paths
from hookedu.exercises.probing import Probe, hooks_on
from hookedu.exercises.tools import copies, whole

Case = tuple[Paths, torch.Tensor, float]


def make_case(rng: random.Random) -> Case:
    """Return (paths, u, strength): x is the y of these paths, and u the gradient that it gets from its other use."""
    paths = Paths.make(rng)
    leaf = (paths.k * paths.x).detach().requires_grad_()  # x is 1 * leaf: both have the same gradient
    return paths._replace(x=leaf, k=1.0), whole(rng, len(leaf)), float(rng.choice((2, 3, 4, 5)))


def observe(reverse_gradient: Any, case: Case) -> dict[str, Any]:
    """Run backward once; then call with an x that requires no gradient, in no_grad mode, and with both."""
    paths, u, strength = case
    skip, x = paths.forward()
    y = reverse_gradient(x, strength)
    saw = {"y": copies(y), "hooks": None, "x_grad": None, "s_grad": None}
    if isinstance(y, torch.Tensor):
        saw["hooks"] = hooks_on(y)
        ((u * x).sum() + (paths.w * (skip + y)).sum()).backward()
        saw |= {"x_grad": copies(paths.x.grad), "s_grad": copies(paths.s.grad)}

    def called(x: torch.Tensor, enabled: bool) -> Any:
        with torch.set_grad_enabled(enabled):
            try:
                return copies(reverse_gradient(x, strength))
            except Exception as error:  # the checks decide what it means
                return type(error).__name__

    _, x = paths.forward()
    return saw | {"calls": [called(x.detach(), True), called(x, False), called(x.detach(), False)]}


PROBE = Probe("03.5", "reverse_gradient", make_case, observe)
