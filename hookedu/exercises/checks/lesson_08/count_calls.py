"""What decides about 08.5, `count_calls(model, x)`."""

from collections.abc import Callable

from hookedu.exercises.checks.common import equals
from hookedu.exercises.checks.lesson_08.shared import HOW_CALLED, NOT_AS_CALLED
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_08.count_calls import PROBE, Model

_Counts = dict[str, int]
_ONCE = {"Model": 1, "Sequential": 2, "Linear": 1, "ReLU": 1, "MaxPool1d": 1}


def _counts(case: tuple[Model, Model]) -> _Counts:
    _, model = case
    return {name: n * model.rounds for name, n in _ONCE.items()} | {"Model": 1, "Tanh": len(model.hidden)}


def _without(*names: str) -> Callable[[_Counts], _Counts]:
    return lambda counts: {name: n for name, n in counts.items() if name not in names}


EXERCISE = Exercise(
    PROBE,
    key=_counts,
    given="count_calls(model, x)",
    checks=[
        Check(
            "counts",
            "found",
            want=lambda counts: counts,
            points=2,
            essential=True,
            given=Say("model_runs"),
            expected="{want}",
            got=lambda saw, counts: show(saw.found),
            mistakes={
                "returns_nothing": lambda saw, counts: saw.found is None,
                "returns_total": Gives(lambda counts: sum(counts.values())),
                "qualified_names": lambda saw, counts: (
                    any("." in key for key in saw.found)
                    and all(part.isidentifier() for key in saw.found for part in key.split("."))
                ),
                "keys_not_names": lambda saw, counts: (
                    not all(isinstance(key, str) and key.isidentifier() for key in saw.found)
                ),
                "modules_not_calls": Gives(lambda counts: _ONCE, lambda counts: counts | _ONCE),
                "one_module_only": Gives(lambda counts: {"Model": 1}),
                "never_fires": Gives(lambda counts: {}),
                "runs_twice": Gives(lambda counts: {name: 2 * n for name, n in counts.items()}),
                "keeps_counting": lambda saw, counts: (
                    saw.found.keys() == counts.keys()  # the model that raised counts or not
                    and all(
                        saw.found[name] == counts[name] + _ONCE.get(name, 1)
                        for name in counts.keys() - {"Model"}
                    )
                ),
                "once_each": lambda saw, counts: set(saw.found.values()) == {1},
                "forward_directly": Gives(_without("Model")),
                "leaves_only": Gives(_without("Model", "Sequential")),
                # The second: hooks through named_modules(), skipping its first name, "".
                "own_hooks_only": Gives(_without("Tanh"), _without("Tanh", "Model")),
            },
        ),
        equals("clean", lambda counts: 0, {"leaves_hook": True}, "left", words="left"),
        Check(
            "others",
            ok=lambda saw, counts: saw.lost == 0 and saw.called and all(saw.called) and saw.handed_on,
            points=1,
            expected=[Say("lost", when=lambda saw, counts: saw.lost, value=0), Say("as_called")],
            got=[Say("lost", when=lambda saw, counts: saw.lost, value=lambda saw, _: saw.lost), *HOW_CALLED],
            mistakes={"removes_others": lambda saw, counts: saw.lost, **NOT_AS_CALLED},
        ),
        Check(
            "clean_after_error",
            ok=lambda saw, counts: saw.left_by_error == 0 and saw.passed_on,
            points=1,
            given="count_calls(broken, x)",
            expected=Say("passed_on", n=0),
            got=[
                Say("passed_on", when=lambda saw, counts: saw.passed_on, n=lambda saw, _: saw.left_by_error),
                Say(
                    "another_error",
                    when=lambda saw, counts: saw.instead,
                    n=lambda saw, _: saw.left_by_error,
                ),
                Say("swallowed", n=lambda saw, counts: saw.left_by_error),
            ],
            mistakes={
                "no_finally": lambda saw, counts: saw.left_by_error,
                "raises_another": lambda saw, counts: saw.instead,
                "swallows": lambda saw, counts: not saw.passed_on and not saw.instead,
            },
        ),
    ],
    raises={"hook_returns": r"must be Tensor, not \w+"},
)
