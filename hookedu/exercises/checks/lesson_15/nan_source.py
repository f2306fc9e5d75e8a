"""What decides about 15.3, `nan_source(model, x)`."""

from typing import Any

import torch

from hookedu.exercises.checks.chain import cleans_up, equals_rounded, outputs_close, unchanged
from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.criteria import Check, Gives, Say, Throughout
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque
from hookedu.exercises.probes.lesson_15.nan_source import PROBE, Case, make_model, order


class _Key:
    """The healthy output, the place to be found, and places to be mistaken for it."""

    def __init__(self, case: Case) -> None:
        self.case, self.names = case, case.names
        self.out = make_model(case, ill=False)(case.x)
        self.ill_out = make_model(case)(case.x)
        self.culprit = f"{case.names[2]}.{case.inner}"
        self.found = [self.culprit, case.ill[0]]
        self.size, self.place = case.x[0].numel(), 1  # of a sample, and of the bad number in it
        self.run = ", ".join(self.culprit if name == case.names[2] else name for name in order(case))


def _named(saw: Any) -> Any:
    """Return the name that was found, also where it stands alone."""
    return saw.finds[0] if isinstance(saw.finds, list) and saw.finds else saw.finds


def _sample(saw: Any, key: _Key) -> Any:
    """Return the sample that was found with the right layer."""
    return saw.finds[1] if saw.finds[0] == key.culprit else None


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=Say("healthy_model"),
    checks=[
        unchanged(lambda key: key.out),
        equals_rounded(
            "finds",
            lambda key: key.found,
            {
                "only_name": Gives(lambda key: key.culprit),
                "all_layers": lambda saw, key: (
                    isinstance(saw.finds, list) and bool(saw.finds) and isinstance(saw.finds[0], list)
                ),
                "turned_round": Gives(lambda key: key.found[::-1]),
                "only_containers": lambda saw, key: _named(saw) in ("", key.names[2]),
                "short_name": lambda saw, key: _named(saw) == key.case.inner,
                "class_name": lambda saw, key: (
                    _named(saw) in ("Layer", "Identity", "Spoiler", "Sequential", "Chain")
                ),
                "late_binding": lambda saw, key: _named(saw) == "spare",
                # In that turn alone its second run is bad.
                "last_run": lambda saw, key: key.case.turn == 0 and _named(saw) == key.names[1],
                "adds_up": lambda saw, key: key.case.turn == 2 and _named(saw) == key.names[1],
                "last_sample": lambda saw, key: (
                    len(key.case.ill) == 2 and _sample(saw, key) == key.case.ill[-1]
                ),
                # In turn 2 the later sample has a nan, and the first only an inf.
                "only_nan": lambda saw, key: (
                    (key.case.turn == 0 and _named(saw) == key.names[3])
                    or (key.case.turn == 2 and saw.finds == [key.culprit, key.case.ill[-1]])
                ),
                # In that turn alone the layer behind overwrites it.
                "too_late": lambda saw, key: key.case.turn == 1 and _named(saw) == key.names[3],
                "by_definition": lambda saw, key: _named(saw) in key.names[3:5],
                "returns_module": lambda saw, key: type(_named(saw)) is Opaque,
                "not_python": lambda saw, key: isinstance(_sample(saw, key), torch.Tensor | Opaque),
                "all_samples": lambda saw, key: isinstance(_sample(saw, key), list),
                "whole_index": lambda saw, key: _sample(saw, key) == key.case.ill[0] * key.size + key.place,
                "counts_samples": Throughout(lambda saw, key: _sample(saw, key) == len(key.case.ill)),
                "within_sample": lambda saw, key: _sample(saw, key) == key.place,
                # In that turn alone the result of the model is finite.
                "asks_the_end": lambda saw, key: key.case.turn == 2 and saw.finds is None,
                "never_true": Gives(lambda key: None),
            },
            points=3,
            essential=True,
            given=Say("in_order"),
        ),
        Check(
            "passes_on",
            ok=lambda saw, key: not saw.mended,
            essential=True,
            given=Say("in_order"),
            expected=Say("gets_bad"),
            got=Say("gets_finite"),
            mistakes={"mends": True},
        ),
        Check(
            "unchanged_ill",
            "ill_out",
            lambda key: key.ill_out,
            ok=lambda saw, key: saw.ill_out is None or outputs_close(saw.ill_out, key.ill_out),
            essential=True,
            given=Say("in_order"),
            label="model(x)",
            mistakes={"changes_output": True},
        ),
        equals_rounded(
            "healthy",
            lambda key: None,
            {
                "only_containers": lambda saw, key: saw.healthy[0] == key.names[2],
                "blames_input": lambda saw, key: saw.healthy[0] == key.names[3],
                "not_none": True,
            },
            essential=True,
        ),
        equals_rounded(
            "input",
            lambda key: [key.names[0], key.case.spoilt] if key.case.turn != 2 else None,
            {
                "looks_for_maker": Throughout(lambda saw, key: saw.input is None),
                "zero_is_false": lambda saw, key: key.case.turn == 0 and saw.input is None,
                "blames_input": lambda saw, key: key.case.turn == 2 and saw.input is not None,
            },
            essential=True,
            given=[
                Say("cleaned_in_front", when=lambda saw, key: key.case.turn == 2),
                Say("single_sample", when=lambda saw, key: key.case.turn == 0),
                Say("nan_in_x"),
            ],
        ),
        *cleans_up("nan_source({}, x)"),
    ],
    raises={"nothing_to_take": r"list index out of range|index 0 is out of bounds"}
    | {"several_numbers": r"a Tensor with [1-9]\d* elements cannot be converted to Scalar"}
    | {"returns_tuple": r"must be Tensor, not \w+|'tuple' object has no attribute"}
    | CALLS_NOW
    | WRONG_ARGUMENTS,
)
