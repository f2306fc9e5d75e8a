"""What decides about 05.1, `capture(module, seen)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import handle_works
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, RETURNS_TUPLE, WRONG_ARGUMENTS, graph_kept
from hookedu.exercises.criteria import Check
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_05.capture import PROBE, Case
from hookedu.exercises.tools import same

_RUN = "net(torch.full((1, 1, 4, 4), {case.pictures[%d]:g}))"
_GIVEN = "conv.weight[:, 0, 0, 0] = {case.kernels}; " + _RUN % 0 + "; " + _RUN % 1
_CHANGED = {"changes_output": True}
_OTHER_HOOKS = {"pre_hook": r"missing 1 required positional argument", "calls_again": r"^RecursionError"}


class _Key:
    """Outputs of the network, and the pairs of input and output of its convolution."""

    def __init__(self, case: Case) -> None:
        # Each window of a picture holds 9 times the same number, so a feature map does too, and pooling keeps it.
        self.out = [9 * value * case.kernels for value in case.pictures]
        maps = [out.reshape(1, 2, 1, 1).expand(1, 2, 2, 2) for out in self.out]
        self.seen = [[torch.full((1, 1, 4, 4), v), m] for v, m in zip(case.pictures, maps, strict=True)]


def _shapes(value: Any) -> str:
    """Format nested tensors by shape, first and last value: whole feature maps are too long for one line."""
    if isinstance(value, torch.Tensor):
        ends = f" {value.flatten()[0]:g}…{value.flatten()[-1]:g}" if value.numel() > 1 else f" {show(value)}"
        return "×".join(map(str, value.shape)) + ends
    return "[" + ", ".join(map(_shapes, value[:8])) + "]" if isinstance(value, list) else show(value)


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=_GIVEN,
    checks=[
        Check("unchanged", "out", lambda key: key.out, essential=True, label="net(x)", mistakes=_CHANGED),
        graph_kept(_GIVEN),
        Check(
            "sees",
            ok=lambda saw, key: same(saw.seen, key.seen),
            points=2,
            essential=True,
            expected=lambda saw, key: f"seen == {_shapes(key.seen)}",
            got=lambda saw, key: f"seen == {_shapes(saw.seen)}",
            mistakes={
                "too_early": lambda saw, key: saw.early,
                "rebinds_list": lambda saw, key: not saw.seen and saw.hooks,
                "not_registered": lambda saw, key: not saw.seen,
                "not_a_pair": lambda saw, key: (
                    isinstance(saw.seen[0], torch.Tensor) or len(saw.seen[0]) != 2 or len(saw.seen) == 4
                ),
                "keeps_the_tuple": lambda saw, key: isinstance(saw.seen[0][0], list),
                "wrong_order": lambda saw, key: same(saw.seen[0], key.seen[0][::-1]),
            },
        ),
        handle_works("capture(conv, seen)", silent=lambda saw, key: saw.after_removal == 0),
    ],
    raises=_OTHER_HOOKS | RETURNS_TUPLE | CALLS_NOW | WRONG_ARGUMENTS,
)
