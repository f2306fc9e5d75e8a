"""What decides about 02.1, `watch(y, seen)`."""

import torch

from hookedu.exercises.checks.common import CALLS_NOW, HANDLE, NO_ARGUMENT, handle_works
from hookedu.exercises.checks.lesson_02.shared import GRAPH, unchanged
from hookedu.exercises.criteria import Check, Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_02.watch import PROBE

EXERCISE = Exercise(
    PROBE,
    given=GRAPH + "; loss.backward(); (2 * loss).backward()",
    checks=[
        unchanged(
            want=lambda case: 3 * case.k * case.w,
            mistakes={"runs_backward": lambda saw, case: saw.early, "changes_gradient": True},
        ),
        Check(
            "sees",
            "seen",
            want=lambda case: [case.w, 2 * case.w],
            points=2,
            essential=True,
            mistakes={
                "runs_backward": lambda saw, case: isinstance(saw.early[0], torch.Tensor),
                "asks_too_early": lambda saw, case: saw.early,
                "rebinds_list": lambda saw, case: not saw.seen and saw.hooks,
                "watches_a_copy": lambda saw, case: not saw.seen and saw.handle == HANDLE,
                "not_registered": lambda saw, case: not saw.seen,
                "reads_dot_grad": lambda saw, case: saw.seen == [None] * len(saw.seen),
                "retains_grad": lambda saw, case: saw.seen[0] is None,
                "keeps_the_last": Gives(lambda case: [2 * case.w]),
                "keeps_a_summary": lambda saw, case: (
                    not all(isinstance(g, torch.Tensor) and g.shape == case.w.shape for g in saw.seen)
                ),
            },
        ),
        handle_works("watch(y, seen)", silent=lambda saw, case: saw.after_removal == 0),
    ],
    raises=CALLS_NOW | NO_ARGUMENT,
)
