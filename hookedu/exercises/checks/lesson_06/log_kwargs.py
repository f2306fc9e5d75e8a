"""What decides about 06.3, `log_kwargs(layer, log)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import CALLS_NOW, handle_works
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_06.log_kwargs import PROBE, keywords
from hookedu.exercises.tools import same


def _with_tuple(entry: Any) -> Any:
    """Return an entry with shapes as tuples, as learners write them; `encode` has made lists of them."""
    if not isinstance(entry, dict):
        return entry
    return {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}


EXERCISE = Exercise(
    PROBE,
    given="layer(x, mask=torch.zeros{case.shape}, scale={case.first}); layer(x); layer(x, scale={case.last})",
    checks=[
        Check(
            "positional",
            "inputs",
            ok=lambda saw, case: saw.same_input,
            essential=True,
            expected=Say("own_x"),
            got="{saw.inputs}",
            mistakes={"replaces_args": Gives(lambda case: [case.x] * 3), "unpacks_args": True},
        ),
        Check(
            "unchanged",
            ok=lambda saw, case: saw.same_output and same(saw.received, keywords(case)),
            essential=True,
            expected=Say("same_keywords"),
            got="{saw.received}",
            mistakes={"changes_kwargs": lambda saw, case: not same(saw.received, keywords(case))},
        ),
        Check(
            "logs",
            "log",
            want=lambda case: [{"mask": case.shape, "scale": case.first}, {}, {"scale": case.last}],
            points=3,
            essential=True,
            got=lambda saw, case: f"log == {show([_with_tuple(entry) for entry in saw.log])}",
            mistakes={
                "rebinds_log": lambda saw, case: not saw.log and saw.hooks,
                "not_registered": lambda saw, case: not saw.log,
                "skips_empty": lambda saw, case: len(saw.log) == 2,
                "names_only": lambda saw, case: saw.log[0] == ["mask", "scale"],
                "logs_positional": lambda saw, case: (
                    not isinstance(saw.log[0], dict) or not saw.log[0].keys() <= {"mask", "scale"}
                ),
                "as_text": lambda saw, case: any(isinstance(v, str) for v in saw.log[0].values()),
                "keeps_tensors": lambda saw, case: isinstance(saw.log[0].get("mask"), torch.Tensor),
                "tensors_only": lambda saw, case: "scale" not in saw.log[0],
            },
        ),
        handle_works("log_kwargs(layer, log)", silent=lambda saw, case: saw.after_removal == 0),
    ],
    raises={
        "flag_missing": r"missing 1 required positional argument",
        "two_arguments": r"takes 2 positional arguments but 3 were given",
        "returns_something": r"forward pre-hook must return None or a tuple",
        "shape_of_a_number": r"object has no attribute '(shape|size)'",
    }
    | CALLS_NOW,
)
