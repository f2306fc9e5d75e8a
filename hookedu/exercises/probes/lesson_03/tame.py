"""What is observed of 03.4, `tame(branch)`: backward with both hooks, with each one alone, and with none."""

from typing import Any

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_03.shared import Paths, Run, asked
from hookedu.exercises.probing import Draw, Probe, remove_handle

_SHAPES = ((4,), (2, 2), (1, 2, 2))  # by turn


def make_case(rng: Draw) -> Paths:
    """Return paths whose gradient w has two positive and two negative numbers.

    In turn 1 the least is 1/4096. In turn 2 they are thirds in float64, which every smaller dtype would change, and of each
    sign one is tiny and one is huge; all of the other w are tiny.
    """
    signs = [1.0, 1.0, -1.0, -1.0]
    rng.shuffle(signs)
    size = torch.tensor([float(v) for v in rng.sample([2, 4, 5, 7, 8], 4)])  # no third of these is exact
    if rng.turn == 1:
        size = torch.tensor([1.0, 1.0, 5.0, 5.0]) / 4096
        signs = [1.0, -1.0, -1.0, 1.0]
    paths = Paths.make(rng, _SHAPES[rng.turn])
    w = (size * torch.tensor(signs)).reshape(_SHAPES[rng.turn]).to(paths.w.dtype)
    if rng.turn == 2:
        scales = {sign: iter((2.0**-30, 2.0**30)) for sign in (1.0, -1.0)}
        scale = torch.tensor([next(scales[sign]) for sign in signs], dtype=torch.float64)
        paths, w = paths.double(), w.double() / 3 * scale.reshape(w.shape)
    return paths._replace(w=w, other=-w * (2.0**-80 if rng.turn == 2 else 1))


def observe(tame: Any, paths: Paths) -> dict[str, Any]:
    """Register twice, to remove first the second hook and then the first; `alone` is what each one does by itself."""
    both = Run(paths, tame)
    x_grad, s_grad = both.backward(paths.w)
    x_again, _ = both.backward(paths.other)
    saw = both.seen() | {"x_grad": x_grad, "s_grad": s_grad, "x_again": x_again}
    other = Run(paths, tame)
    other.backward(paths.other)  # what a hook keeps of this pass is of no use in later ones
    saw["beside"] = both.backward(paths.w)[0]
    both.remove(slice(1, 2))
    other.remove(slice(1))
    alone = [both.backward(paths.w), other.backward(paths.w)]
    both.remove(slice(2))
    other.remove(slice(2))
    saw |= {"x_alone": [x for x, _ in alone], "s_alone": [s for _, s in alone]}
    saw |= {"none": both.backward(paths.w)} | asked(paths, tame, tame)
    only = [asked(paths, *[_without(tame, n)] * 2) for n in (1, 0)]
    return saw | {
        "one_asked": [one["asked"] for one in only],
        "one_keeps": [one["one_buffer"] for one in only],
    }


def _without(tame: Any, n: int) -> Any:
    """Return a function that registers the hooks and takes one of the two off again."""

    def register(branch: torch.Tensor) -> Any:
        handles = tame(branch)
        if isinstance(handles, list | tuple) and len(handles) == 2:
            remove_handle(handles[n])
        return handles

    return register


PROBE = Probe("03.4", "tame", make_case, observe, cases=3, leaves=(HANDLES,))
