"""What decides about 10.1, `child_means(model, x)`."""

from hookedu.exercises.checks.chain import (
    RAISES,
    are_close,
    cleans_up,
    equals_rounded,
    is_close,
    means,
    unchanged,
)
from hookedu.exercises.criteria import Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_10.child_means import PROBE


class _Key:
    """The case, the output of the model, and the mean of every child's output in the order of running."""

    def __init__(self, case: tuple) -> None:
        self.x, self.stem, self.neck, self.head, trained = case
        self.mode = "" if trained else "model.eval(); "
        before = self.x @ self.stem.T
        neck = 2 * before.relu() @ self.neck.T
        outputs = {"stem": before, "act": before.relu(), "neck": neck, "head": neck @ self.head.T}
        self.out = outputs["head"] if trained else 2 * outputs["head"]
        self.means = {name: output.mean().item() for name, output in outputs.items()}


def _means_differ(case: tuple) -> bool:
    """Check whether the input and all outputs have clearly different means, also from rounded ones if the input is small.

    With a nan in the input any case will do.
    """
    key = _Key(case)
    largest, found = key.x.abs().max().item(), [key.x.mean().item(), *key.means.values()]
    if key.x.isnan().any():
        return True
    if largest < 1 and all(is_close(round(mean, 4), mean) for mean in key.means.values()):
        return False
    return len({round(mean / largest, 2) for mean in found}) == 5


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_means_differ,
    given="{key.mode}x = {key.x}; head(neck(2 * act(stem(x)))), weights {key.stem}, {key.neck}, {key.head}",
    checks=[
        equals_rounded(
            "names",
            lambda key: list(key.means),
            {
                "returns_nothing": lambda saw, key: saw.means is None,
                "not_run": lambda saw, key: saw.out is None,
                "no_dictionary": lambda saw, key: not isinstance(saw.means, dict),
                "one_child": lambda saw, key: (
                    len(saw.means) == 1
                    and all(is_close(saw.means[name], key.means[name]) for name in saw.means)
                ),
                "late_binding": lambda saw, key: saw.order == ["act"],
                "all_modules": lambda saw, key: any("." in name or not name for name in saw.order),
                "class_names": lambda saw, key: "Linear" in saw.order,
            },
            observed="order",
            ok=lambda saw, key: saw.means.keys() == key.means.keys(),
            essential=True,
            given="child_means(model, x).keys()",
        ),
        unchanged(lambda key: key.out),
        means(
            {
                "one_dictionary": lambda saw, key: saw.one,
                "too_late": lambda saw, key: are_close(saw.means, key.means | {"stem": key.means["act"]}),
                "of_the_input": lambda saw, key: is_close(saw.means["stem"], key.x.mean().item()),
            },
            essential=True,
        ),
        equals_rounded(
            "order",
            lambda key: [*key.means],
            {"model_order": Gives(lambda key: ["head", "neck", "stem", "act"])},
            given="list(child_means(model, x))",
        ),
        *cleans_up("child_means({}, x)"),
    ],
    raises=RAISES,
)
