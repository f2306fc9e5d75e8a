"""What decides about 03.1, `double_gradient(y)`."""

from hookedu.exercises.checks.lesson_03 import shared
from hookedu.exercises.criteria import Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_03.double_gradient import PROBE

EXERCISE = Exercise(
    PROBE,
    key=shared.Plain,
    given="{key.graph}",
    checks=[
        shared.gradient(
            "doubles",
            lambda key: 2 * key.x_grad,
            points=2,
            mistakes={
                "runs_backward": lambda saw, key: saw.ran_backward,
                **shared.UNCHANGED,
                "squares": Gives(lambda key: key.k * key.w**2),
                "twice": Gives(lambda key: 4 * key.x_grad),
                "adds": Gives(lambda key: key.k * (key.w + 2)),
            },
        ),
        shared.again(lambda key: 2 * key.k * key.other),
        shared.neighbour(),
        shared.beside("double_gradient(y); double_gradient(y2)", lambda key: 2 * key.x_grad),
        shared.asked(
            lambda key: [2 * key.w, 2 * key.other, 4 * key.w], shared.on_a_leaf("double_gradient(y)")
        ),
        shared.handle_undoes("double_gradient(y)"),
    ],
    raises=shared.READS_DOT_GRAD | shared.WRONG_HOOK,
)
