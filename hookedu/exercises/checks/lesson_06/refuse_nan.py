"""What decides about 06.1, `refuse_nan(layer, name)`."""

import re
from functools import partial

import torch
from torch.nn.functional import batch_norm

from hookedu.exercises.checks.common import equals, handle_works
from hookedu.exercises.checks.lesson_06.shared import MISREGISTERED
from hookedu.exercises.criteria import Check, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_06.refuse_nan import PROBE, Case
from hookedu.exercises.tools import close

_must_raise = partial(Check, points=1, expected="ValueError", got=Say("no_exception"))


def _call(case: Case, *inputs: torch.Tensor) -> str:
    """Return a call of the guarded layer as code."""
    norm = f"nn.BatchNorm1d({case.clean.shape[1]}); refuse_nan(layer, {case.name!r})"
    layer = norm if len(inputs) == 1 else "nn.Bilinear(...)"
    return f"layer = {layer}; layer({', '.join(map(show, inputs))})"


def _count(case: Case) -> int:
    return int(case.broken.isnan().sum())


def _counts(message: str, case: Case) -> bool:
    """Check whether the number of nan is in a message, and not as part of another number."""
    return str(_count(case)) in re.findall(r"\d+(?:\.\d+)?", message)


def _right_for_one(saw: Saw, case: Case) -> bool:
    return case.name in saw.message and _counts(saw.message, case)


EXERCISE = Exercise(
    PROBE,
    given=lambda saw, case: _call(case, case.broken),
    checks=[
        Check(
            "unchanged",
            "clean",
            want=lambda case: batch_norm(case.clean, None, None, training=True),
            essential=True,
            given=lambda saw, case: _call(case, case.clean),
            expected="{want}",
            got=lambda saw, case: saw.clean_error or show(saw.clean),
            mistakes={"refuses_everything": lambda saw, case: saw.clean_error, "changes_output": True},
        ),
        _must_raise(
            "refuses",
            ok=lambda saw, case: saw.error,
            essential=True,
            mistakes={
                "not_registered": lambda saw, case: saw.hooks == 0,
                "only_says": lambda saw, case: saw.said,
                "never_true": True,
            },
        ),
        Check(
            "before",
            "running_mean",
            want=lambda case: 0.1 * case.clean.mean(0),
            essential=True,
            label="layer.running_mean",
            equal=close,
            mistakes={"too_late": True},
        ),
        Check(
            "kind",
            "error",
            lambda case: "ValueError",
            points=1,
            expected="{value}",
            got="{value}",
            mistakes={"wrong_kind": True},
        ),
        Check(
            "says",
            ok=lambda saw, case: _right_for_one(saw, case) and _counts(saw.both or saw.message, case),
            points=1,
            given=lambda saw, case: _call(case, *[case.broken] * (1 + _right_for_one(saw, case))),
            expected=Say("name_and_count", count=lambda saw, case: _count(case)),
            got=lambda saw, case: repr(saw.both if _right_for_one(saw, case) else saw.message),
            mistakes={
                "no_name": lambda saw, case: case.name not in saw.message,
                "adds_up": _right_for_one,
                "no_count": True,
            },
        ),
        _must_raise(
            "every_input",
            ok=lambda saw, case: saw.second,
            given=lambda saw, case: _call(case, case.clean, case.broken),
            mistakes={"first_only": True},
        ),
        equals(
            "infinity",
            lambda case: None,
            {"refuses_infinity": True},
            given="layer = nn.ReLU(); layer({case.infinite})",
            expected=Say("no_exception"),
            got="{value}",
        ),
        Check(
            "gradient",
            "gradient",
            want=lambda case: (case.clean > 0).float(),
            points=1,
            given="x = {case.clean}; nn.ReLU()(x).sum().backward()",
            label="x.grad",
            mistakes={"cuts_gradient": True},
        ),
        handle_works("refuse_nan(layer, name)", silent=lambda saw, case: saw.after_removal is None),
    ],
    raises={
        "tuple_for_tensor": r"must be Tensor, not tuple|'tuple' object has no attribute",
        "ambiguous": r"Boolean value of Tensor",
    }
    | MISREGISTERED,
)
