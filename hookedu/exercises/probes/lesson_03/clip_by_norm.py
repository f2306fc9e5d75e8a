"""What is observed of 03.2, `clip_by_norm(y, max_norm)`: backward passes with gradients of different norms."""

from typing import Any

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_03.shared import Paths, Run, asked, first_of_two, transposed
from hookedu.exercises.probing import Draw, Probe

# Twelve values and their norm, of which no row and no value can be left out. The largest is half of it, the largest
# singular value of the matrix is 0.75 of it, the sum of the absolute values is 3.1 times as much.
_VALUES, _NORM = (5, 2, -4, 6, -3, 2, 7, -8, 4, -2, 4, 9), 18
_SHAPES = ((12,), (4, 3), (4, 1, 3), (1, 4, 1, 3), (), (4, 3))  # by turn
# By turn. Small in turn 1: squares must fit into float16. In turn 2, 1e-5 added to the norm always shows, 1e-6 never.
_SCALES = (1.0, 1 / 32, 1 / 1024, 2.0, 1.0, 1.0)

Case = tuple[Paths, dict[str, torch.Tensor], float]


def make_case(rng: Draw) -> Case:
    """Return (paths, gradients, max_norm), with a gradient w far longer than max_norm, longer, shorter, tiny, and 0.

    All absolute values in "long" are above max_norm and all in "longer" below, also its singular values if it is a
    matrix; the sum of the absolute values of "short" is above. Hence no other norm decides correctly. In turn 4 all
    are single numbers. In turn 5 they are matrices in float32: PyTorch has no norms of matrices for float16. In
    float16 "zero" is tiny too: there 1e-12, which people add to the norm, is 0. In float64 all are sevenths, which every
    smaller dtype would change, and so it would max_norm.
    """
    paths = Paths.make(rng, _SHAPES[rng.turn])
    with torch.no_grad():
        paths.x.mul_(40)  # so that the norm of y differs from that of the gradient
    scale = _SCALES[rng.turn] * rng.randint(1, 3)
    values = torch.tensor(_VALUES if _SHAPES[rng.turn] else _NORM, dtype=paths.w.dtype)
    if values.dtype == torch.float64:
        scale /= 7
    short = transposed((scale * values).reshape(_SHAPES[rng.turn]))
    gradients = {
        "long": 16 * short,
        "longer": -1.5 * short,
        "short": short,
        "tiny": short / (1024 if short.dtype == torch.float16 else 2**30),
        "zero": short / 1024 if short.dtype == torch.float16 else torch.zeros_like(short),
    }
    return paths, gradients, 1.26 * scale * _NORM


def observe(clip_by_norm: Any, case: Case) -> dict[str, Any]:
    """Run backward with each gradient, then the first with the hook removed, with two calls alive, and on a leaf.

    "longer" comes after gradients that are shorter than max_norm, and once more alone as "fresh".
    """
    paths, gradients, max_norm = case
    run = Run(paths, lambda y: clip_by_norm(y, max_norm))
    x_grad, s_grad = run.backward(gradients["long"])
    saw = run.seen() | {"x_grad": x_grad, "s_grad": s_grad, "long": x_grad}
    for name in ("short", "tiny", "zero", "longer"):
        saw[name] = run.backward(gradients[name])[0]
    saw["kept"] = run.seen()["kept"]
    run.remove()
    saw |= {"after_removal": run.backward(gradients["long"])[0]}
    saw["fresh"] = first_of_two(paths._replace(w=gradients["longer"]), lambda y: clip_by_norm(y, max_norm))
    calls = [lambda y, m=m: clip_by_norm(y, m) for m in (max_norm, 2 * max_norm)]
    long = paths._replace(w=gradients["long"], other=gradients["longer"])
    return saw | {"beside": first_of_two(long, *calls)} | asked(long, *reversed(calls))


PROBE = Probe("03.2", "clip_by_norm", make_case, observe, cases=6, leaves=(HANDLES,))
