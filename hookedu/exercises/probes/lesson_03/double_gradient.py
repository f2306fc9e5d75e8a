"""What is observed of 03.1, `double_gradient(y)`: two backward passes with its hook and one without."""

from typing import Any

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_03.shared import Paths, Run, asked, first_of_two
from hookedu.exercises.probing import Probe


def observe(double_gradient: Any, paths: Paths) -> dict[str, Any]:
    """Run backward twice with the hook, once with the hook removed, with two calls alive, and on a leaf."""
    run = Run(paths, double_gradient)
    (x_grad, s_grad), (x_again, _) = run.backward(paths.w), run.backward(paths.other)
    saw = run.seen() | {"x_grad": x_grad, "s_grad": s_grad, "x_again": x_again}
    run.remove()
    saw |= {"after_removal": run.backward(paths.w)[0]}
    saw |= {"beside": first_of_two(paths, double_gradient, double_gradient)}
    return saw | asked(paths, double_gradient, double_gradient)


PROBE = Probe("03.1", "double_gradient", Paths.make, observe, cases=5, leaves=(HANDLES,))
