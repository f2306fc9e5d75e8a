"""What decides about 10.4, `vanishing(model, x, target, ratio)`."""

from hookedu.exercises.checks.lesson_10.shared import RAISES, cleans_up, equals
from hookedu.exercises.criteria import Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_10.vanishing import PROBE, Case, below, sizes


class _Key:
    """The names to be found, and those that other sizes and other thresholds give."""

    def __init__(self, case: Case) -> None:
        means, norms = sizes(case)
        self.last = case.run[-1]
        self.weak = below(means, case.ratio * means[self.last])
        self.below_largest = below(means, case.ratio * max(means.values()))
        self.by_norm = below(norms, case.ratio * norms[self.last])
        self.sizes = ", ".join(f"{name} {mean:.2g}" for name, mean in means.items())


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=Say("sizes"),
    checks=[
        equals(
            "finds",
            lambda key: key.weak,
            {
                "returns_nothing": lambda saw, key: saw.found is None,
                "no_names": lambda saw, key: type(saw.found) is not list or {*map(type, saw.found)} - {str},
                "nothing_found": lambda saw, key: not saw.found,
                "parameter_names": lambda saw, key: any("." in name for name in saw.found),
                # In front of the ReLU, `retain_grad` sees the gradient behind it, which is not small.
                "retains": Gives(lambda key: key.weak[:1]),
                "against_largest": Gives(lambda key: key.below_largest),
                "by_norm": Gives(lambda key: key.by_norm),
                "comparison": lambda saw, key: key.last in saw.found,
            },
            observed="found",
            equal=lambda found, names: isinstance(found, list) and sorted(map(str, found)) == sorted(names),
            points=3,
            essential=True,
        ),
        equals("healthy", lambda key: [], {}, essential=True, given="ratio = 1e-9"),
        equals("order", lambda key: key.weak, {"other_order": True}, observed="found"),
        *cleans_up("vanishing({}, x, target, ratio)"),
    ],
    raises={"full_hook": r"is a view and is being modified inplace"} | RAISES,
)
