"""What is observed of 03.1, `double_gradient(y)`: one backward pass with its hook and one without."""

from typing import Any

from hookedu.exercises.probes.lesson_03.shared import ALL, Paths
from hookedu.exercises.probing import Probe


def observe(double_gradient: Any, paths: Paths) -> dict[str, Any]:
    """Run backward with the hook, then once more with the hook removed."""
    saw = paths.observe(double_gradient)
    return saw | {"after_removal": paths.observe(double_gradient, off=ALL)["x_grad"]}


PROBE = Probe("03.1", "double_gradient", Paths.make, observe)
