"""What decides about 10.3, `first_nan(model, x)`."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from hookedu.exercises.checks.chain import RAISES, cleans_up, equals_rounded, unchanged
from hookedu.exercises.criteria import Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.chain import Chain
from hookedu.exercises.probes.lesson_10.first_nan import NOT_TRIED, PROBE, TRIALS, Case, make_model


def _leaves(module: nn.Module, path: str = "") -> Iterator[str]:
    """Yield the paths of the modules without children, in the order of running."""
    if not [*module.children()]:
        yield path
        return
    for name in module.run if isinstance(module, Chain) else dict(module.named_children()):
        yield from _leaves(module.get_submodule(name), f"{path}.{name}".strip("."))


class _Key:
    """The case, the healthy output, and the modules to be found and to be mistaken for them."""

    def __init__(self, case: Case) -> None:
        self.case, (first, middle, _) = case, case.inner
        model = make_model(case)
        self.out = model(case.x)
        self.run = ", ".join(_leaves(model))
        inner = f"body.{middle}" + ".1" * (case.turn == 1)
        self.culprit = inner if case.turn != 2 else "again"
        self.reused = f"body.{middle}"
        self.run_reused = ", ".join(_leaves(make_model(case._replace(turn=0))))
        self.infinite = f"body.{first}" if case.turn == 1 else "scale"
        self.containers = ("", "body", f"body.{middle}" if case.turn == 1 else "body")

    def if_tried(self, trial: str, wanted: Any) -> Any:
        """Return what is wanted of this trial, or what stands for it in a turn without it."""
        return wanted if trial in TRIALS[self.case.turn] else NOT_TRIED


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=Say("healthy_model"),
    checks=[
        unchanged(lambda key: key.out),
        equals_rounded(
            "finds",
            lambda key: key.culprit,
            {
                "returns_list": lambda saw, key: isinstance(saw.finds, list),
                "only_children": lambda saw, key: saw.finds in key.containers,
                "counts_infinity": Gives(lambda key: key.infinite),
                "by_definition": Gives(lambda key: "anew"),
                "later_one": Gives(lambda key: "more"),
                "last_one": Gives(lambda key: "tail"),
                "order_of_first_runs": Gives(lambda key: "stem"),
                "not_in_every_run": lambda saw, key: key.case.turn == 1 and saw.finds == "again",
                "ignores_input": lambda saw, key: saw.finds == "relay" and saw.input not in (None, NOT_TRIED),
                "not_its_input": Gives(lambda key: "relay"),
                "class_name": Gives(lambda key: "Layer"),
                "late_binding": Gives(lambda key: "spare"),
                "short_name": Gives(lambda key: key.culprit.split(".")[-1]),
                "all_of_them": lambda saw, key: (
                    saw.finds is None and saw.flooded == key.if_tried("flooded", key.culprit)
                ),
                "never_true": Gives(lambda key: None),
                "returns_module": lambda saw, key: not isinstance(saw.finds, str),
            },
            points=2,
            essential=True,
            given=Say("in_order"),
        ),
        equals_rounded(
            "flooded",
            lambda key: key.if_tried("flooded", key.culprit),
            {},
            essential=True,
            points=0,
            given=Say("in_order"),
        ),
        equals_rounded("healthy", lambda key: None, {"not_none": True}, essential=True),
        equals_rounded(
            "input",
            lambda key: key.if_tried("input", None),
            {"ignores_input": True},
            given="x = {case.spoilt}",
        ),
        equals_rounded(
            "both",
            lambda key: key.if_tried("both", "again"),
            {
                "looks_at_x": Gives(lambda key: None),
            },
            points=0,
            essential=True,
            given=Say("nan_in_both"),
        ),
        equals_rounded(
            "reused",
            lambda key: key.if_tried("reused", key.reused),
            {"looks_too_late": True},
            points=0,
            essential=True,
            given=Say("reuses_memory"),
        ),
        equals_rounded(
            "bare",
            lambda key: key.if_tried("bare", ""),
            {"not_itself": Gives(lambda key: None)},
            points=0,
            essential=True,
            given=Say("bare_layer"),
        ),
        equals_rounded(
            "other_row",
            lambda key: key.if_tried("other_row", None),
            {},
            points=0,
            essential=True,
            given=Say("nan_in_another_row"),
        ),
        *cleans_up("first_nan({}, x)"),
    ],
    raises={"nothing_to_take": r"list index out of range"} | RAISES,
)
