"""What is observed of 03.2, `clip_by_norm(y, max_norm)`: backward passes with gradients of different norms."""

import random
from typing import Any

import torch

from hookedu.exercises.probes.lesson_03.shared import ALL, NONE, Paths
from hookedu.exercises.probing import Probe

# Three values and their norm.
_ROUND = ((1, 2, 2, 3), (2, 3, 6, 7), (2, 6, 9, 11), (4, 4, 7, 9), (1, 4, 8, 9))


Case = tuple[dict[str, Paths], float]


def make_case(rng: random.Random) -> Case:
    """Return (passes, max_norm): passes with a gradient w longer than max_norm, shorter, 0, or with two such rows."""
    paths = Paths.make(rng, 3)
    with torch.no_grad():
        paths.x.mul_(10)  # so that the norm of y differs from that of the gradient
    *sides, norm = rng.choice(_ROUND)
    rng.shuffle(sides)
    short = torch.tensor([float(rng.choice((-1, 1)) * v) for v in sides])
    long = rng.choice((4, 5, 6)) * short
    gradients = {"long": long, "short": short, "zero": torch.zeros(3)}
    passes = {name: paths._replace(w=w) for name, w in gradients.items()}
    s, x = (torch.stack([leaf.detach()] * 2).requires_grad_() for leaf in (paths.s, paths.x))
    passes["grid"] = Paths(s, x, paths.k, torch.stack([long, short]))
    return passes, 2.0 * norm


def observe(clip_by_norm: Any, case: Case) -> dict[str, Any]:
    """Run backward with each gradient, then with the long one and the hook removed."""

    passes, max_norm = case

    def run(paths: Paths, off: slice = NONE) -> dict[str, Any]:
        return paths.observe(lambda y: clip_by_norm(y, max_norm), off)

    saw = {name: run(paths) for name, paths in passes.items()}
    x_grads = {name: seen["x_grad"] for name, seen in saw.items()}
    return saw["long"] | x_grads | {"after_removal": run(passes["long"], off=ALL)["x_grad"]}


PROBE = Probe("03.2", "clip_by_norm", make_case, observe)
