"""What is observed of 02.1, `watch(y, seen)`: two backward passes, then a third without the hook."""

from typing import Any

import torch

from hookedu.exercises.probes.lesson_02.shared import Case, make_case
from hookedu.exercises.probing import Probe, hooks_on, remove_handle
from hookedu.exercises.tools import copies


def observe(watch: Any, case: Case) -> dict[str, Any]:
    """Watch y; run backward twice, remove the hook, and run backward once more."""
    x, k, w = case
    y = k * x
    seen: list[torch.Tensor] = []
    handle = watch(y, seen)
    early, hooks = copies(seen), hooks_on(y)
    (w * y).sum().backward(retain_graph=True)
    (2 * w * y).sum().backward(retain_graph=True)
    kept, x_grad = copies(seen), copies(x.grad)
    remove_handle(handle)
    (w * y).sum().backward()
    return {
        "early": early,
        "hooks": hooks,
        "seen": kept,
        "x_grad": x_grad,
        "handle": handle,
        "after_removal": len(seen) - len(kept),
    }


PROBE = Probe("02.1", "watch", make_case, observe)
