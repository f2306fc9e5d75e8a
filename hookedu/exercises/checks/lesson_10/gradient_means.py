"""What decides about 10.2, `gradient_means(model, loss)`."""

from hookedu.exercises.checks.common import CALLS_NOW, HOOKS_FROZEN, none_left
from hookedu.exercises.checks.lesson_10.shared import equals_rounded, means
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_10.gradient_means import PROBE
from hookedu.exercises.tools import all_close, gradients


class _Key:
    """The means of the gradients in order of arrival, which only hooks tell, and those of the parameters themselves."""

    def __init__(self, case: tuple) -> None:
        model, loss = case
        self.means: dict[str, float] = {}
        for name, p in model.named_parameters():
            if p.requires_grad:
                p.register_hook(lambda grad, name=name: self.means.update({name: grad.mean().item()}))
        loss.backward()
        self.grads = gradients(model)
        self.of_parameters = {n: p.mean().item() for n, p in model.named_parameters() if n in self.means}


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given="loss = (w * model(x)).sum(); gradient_means(model, loss)",
    checks=[
        equals_rounded(
            "names",
            lambda key: list(key.means),
            {
                "returns_nothing": lambda saw, key: saw.found is None,
                "no_backward": lambda saw, key: saw.found == [],
                "no_pairs": lambda saw, key: not saw.names,
                "late_binding": lambda saw, key: len(saw.names) == len(key.means) and len(saw.means) == 1,
            },
            observed="found",
            ok=lambda saw, key: sorted(saw.names) == sorted(key.means),
            points=2,
            essential=True,
            expected="[name for name, mean in ...] == {want}",
        ),
        Check(
            "unchanged",
            ok=lambda saw, key: all_close(saw.grads, key.grads),
            essential=True,
            expected=Say("same_gradients"),
            got=Say("some_differ"),
            mistakes={"changes_gradient": True},
        ),
        equals_rounded(
            "order",
            lambda key: list(key.means),
            {
                "model_order": Gives(lambda key: list(key.of_parameters)),
                "upside_down": Gives(lambda key: [*key.of_parameters][::-1], lambda key: [*key.means][::-1]),
            },
            observed="names",
            essential=True,
        ),
        means(
            {
                "mean_of_the_sum": Gives(lambda key: {name: 3 * mean for name, mean in key.means.items()}),
                "mean_of_the_parameter": Gives(lambda key: key.of_parameters),
                "not_the_mean": lambda saw, key: {type(mean) for mean in saw.means.values()} <= {int, float},
            },
        ),
        none_left("", "leaves_hooks", id="clean"),
    ],
    raises={"no_gradient_yet": r"'NoneType' object has no attribute"} | HOOKS_FROZEN | CALLS_NOW,
)
