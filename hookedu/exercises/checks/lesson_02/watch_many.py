"""What decides about 02.2, `watch_many(tensors, seen)`."""

from hookedu.exercises.checks.common import CALLS_NOW, HANDLE, TWO_ARGUMENTS
from hookedu.exercises.checks.lesson_02.shared import HOOKS_EVERYTHING, left_alone, unchanged
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_02.watch_many import PROBE, Case


class Key:
    """Names, and the gradients of one backward pass in which the loss counts `times`."""

    def __init__(self, case: Case) -> None:
        self.names, self.once = case.names, case.weights
        first, _, third, _, fifth = case.names
        self.x_grad = 3 * (2 * self.once[first] + 3 * self.once[third] + self.once[fifth])

    def gradients(self, times: int) -> dict:
        """Return the gradient of each tensor that requires one."""
        return {name: times * weight for name, weight in self.once.items()}


_GIVEN = "tensors: {key.names[0]}, {key.names[1]} (requires_grad=False), {key.names[2]}, {key.names[3]} (leaf), {key.names[4]}"
_TWICE = _GIVEN + "; loss.backward(); (2 * loss).backward()"

EXERCISE = Exercise(
    PROBE,
    given=_GIVEN,
    key=Key,
    checks=[
        unchanged(want=lambda key: key.x_grad, mistakes={"changes_gradient": True}, given=_TWICE),
        Check(
            "sees",
            "seen",
            want=lambda key: key.once,
            points=2,
            essential=True,
            mistakes={
                "rebinds_dict": lambda saw, key: not saw.seen and saw.hooked,
                "late_binding": lambda saw, key: saw.seen.keys() == {key.names[4]},
                "returns_in_loop": lambda saw, key: saw.seen.keys() == {key.names[0]},
                "skips_leaves": lambda saw, key: saw.seen.keys() == key.once.keys() - {key.names[3]},
                "wrong_keys": lambda saw, key: not saw.seen.keys() <= set(key.names),
            },
        ),
        Check(
            "newest",
            "second",
            want=lambda key: key.gradients(2),
            essential=True,
            given=_TWICE,
            label="seen",
            mistakes={
                "keeps_the_first": Gives(lambda key: key.once),
                "adds_up": Gives(lambda key: key.gradients(3)),
            },
        ),
        left_alone("watch_many(tensors, seen); tensors['{key.names[1]}']"),
        Check(
            "handle",
            ok=lambda saw, key: saw.handles == [HANDLE] * 4 and saw.after_removal == 0,
            points=1,
            given="handles = watch_many(tensors, seen)",
            expected=Say("handles", n=4),
            got=lambda saw, key: show_kind(saw.handles),
            mistakes={
                "one_handle": lambda saw, key: saw.handles in (HANDLE, [HANDLE]),
                "none_in_list": lambda saw, key: None in saw.handles and HANDLE in saw.handles,
                "no_handle": True,
            },
        ),
    ],
    raises=CALLS_NOW | TWO_ARGUMENTS | HOOKS_EVERYTHING,
)
