"""What decides about 06.1, `refuse_nan(layer, name)`."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.functional import batch_norm

from hookedu.exercises.checks.common import equals, handle_works
from hookedu.exercises.checks.lesson_06.shared import MISREGISTERED
from hookedu.exercises.conduct import HOOKS, MODE
from hookedu.exercises.criteria import Check, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import ObservationError, show
from hookedu.exercises.probes.lesson_06.refuse_nan import NAMES, PROBE, Case, calls
from hookedu.exercises.tools import close

_PLACES = ("second", "turned", "two")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_must_raise = partial(Check, points=1, expected="ValueError", got=Say("no_exception"))


def _call(case: Case, *inputs: torch.Tensor) -> str:
    """Return a call of a guarded layer, with one input or several, as code."""
    norm = f"nn.BatchNorm1d({case.clean.shape[1]}); refuse_nan(layer, {case.name!r})"
    both = f"Both(){'.eval()' * (case.setting == 'eval')}; refuse_nan(layer, {case.other!r})"
    if case.setting == "in_place" and inputs[0] is case.broken and len(inputs) == 1:
        return f"layer = {norm}; x = {show(case.clean)}; layer(x); x.copy_({show(case.broken)}); layer(x)"
    around = "with torch.no_grad(): " * (case.setting == "no_grad" and len(inputs) > 1)
    values = ", ".join(_input(value) for value in inputs)
    return f"layer = {norm if len(inputs) == 1 else both}; {around}layer({values})"


def _passed(case: Case, by_name: bool) -> str:
    """Return the call with clean inputs as code, by keyword or not."""
    inputs = calls(case)["passed"]
    named = ", ".join(f"{name}={show(value)}" for name, value in zip(NAMES, inputs, strict=False))
    both = f"layer = Both(); refuse_nan(layer, {case.other!r})"
    return f"{both}; layer({named})" if by_name else _call(case, *inputs)


def _input(value: torch.Tensor) -> str:
    """Return an input as code: one that is empty or of another dtype with what makes it so."""
    if not value.numel():
        return f"torch.empty({tuple(value.shape)})"
    return (
        show(value) if value.dtype == torch.float32 else f"torch.tensor({show(value)}, dtype={value.dtype})"
    )


def _slipped(saw: Saw) -> str:
    """Return the name of the first call with nan that was not refused as the first one was."""
    return next((place for place in _PLACES if getattr(saw, f"{place}_error") != saw.error), "")


def _missed(saw: Saw) -> bool:
    """Check whether nan slipped through as it is, but not with no inf beside it as the second of two inputs."""
    return saw.second_error is None and saw.behind_error is not None


def _refusal(saw: Saw) -> str:
    """Return that call's exception of another kind as text, "" if there was none."""
    place = _slipped(saw)
    kind = getattr(saw, f"{place}_error")
    return f"{kind}: {getattr(saw, place)}" if kind else ""


class Said:
    """The first observed message that lacks the name of the layer or the number of nan in an input."""

    def __init__(self, saw: Saw, case: Case) -> None:
        one, other = (int(batch.isnan().sum()) for batch in (case.broken, case.second))
        self.sum, self.twice = one + other, 2 * other
        infinite = int(case.second.isinf().sum())
        made = calls(case)
        # With nan in both inputs, either may be counted.
        texts = {
            place: getattr(saw, place) for place in _PLACES if getattr(saw, f"{place}_error") == saw.error
        }
        for self.text, self.name, self.counts, self.inputs in (
            (saw.message, case.name, [one], made["broken"]),
            (texts.get("second", ""), case.other, [other], made["second"]),
            (texts.get("turned", ""), case.other, [other], made["turned"]),
            (texts.get("two", ""), case.other, [one, other], made["two"]),
        ):
            digits = re.sub(r"(?<=\d)[,_](?=\d{3}\b)", "", self.text)  # 1,234 and 1_234 are the number 1234
            self.numbers = [number for text in (self.text, digits) for number in _NUMBER.findall(text)]
            self.named = self.name in self.text
            self.with_infinity = infinite and other in self.counts and self.has(other + infinite)
            self.lacks = bool(self.text) and not (self.named and self.has(*self.counts))
            if self.lacks:
                break

    def has(self, *counts: int) -> bool:
        """Check whether one of these numbers is in the message, and not as part of another number."""
        return any(float(number) in counts for number in self.numbers)


def _said(of: Callable[[Said, Saw, Case], Any]) -> Of:
    return lambda saw, case: of(Said(saw, case), saw, case)


def _given(saw: Saw, case: Case) -> str:
    """Return the call with nan as code: that of the layer with a part, if hooks were left on it but not on the other."""
    try:
        on_both = not saw.left_on_norm and any(kind == HOOKS for kind, _ in saw.conduct)
    except ObservationError:  # after an exception nothing else is known of the case
        on_both = False
    return _call(case, *calls(case)["second"]) if on_both else _call(case, case.broken)


def _of_clean(case: Case) -> torch.Tensor:
    return batch_norm(case.clean, None, None, training=True)


def _switches_mode(saw: Saw) -> bool:
    return any(kind == MODE for kind, _ in saw.conduct)


EXERCISE = Exercise(
    PROBE,
    given=_given,
    checks=[
        Check(
            "unchanged",
            "clean",
            want=_of_clean,
            # In evaluation mode it is another function: what switches the mode is told so among the conduct.
            ok=lambda saw, case: close(saw.clean, _of_clean(case)) or _switches_mode(saw),
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
                "fires_backward": lambda saw, case: saw.hooks == 0 and saw.backward,
                "not_registered": lambda saw, case: saw.hooks == 0,
                "removes_itself": lambda saw, case: saw.hooks_later < saw.hooks,
                "only_says": lambda saw, case: saw.said,
                "only_all": lambda saw, case: saw.all_nan and not saw.nearly,
                "never_true": lambda saw, case: (
                    not (saw.all_nan or saw.second_error or saw.two_error or saw.with_grad)
                ),
            },
        ),
        Check(
            "before",
            "running_mean",
            want=lambda case: 0.1 * case.clean.mean(0),
            ok=lambda saw, case: close(saw.running_mean, 0.1 * case.clean.mean(0)) or _switches_mode(saw),
            essential=True,
            label="layer.running_mean",
            equal=close,
            mistakes={"too_late": lambda saw, case: saw.running_mean.isnan().any()},
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
            # What refuses inf is told that, not that it counts it.
            ok=lambda saw, case: not Said(saw, case).lacks or (case.second.isinf().any() and saw.infinity),
            points=1,
            given=_said(lambda said, saw, case: _call(case, *said.inputs)),
            expected=Say(
                "name_and_count",
                name=_said(lambda said, saw, case: said.name),
                count=_said(lambda said, saw, case: said.counts[0]),
            ),
            got=_said(lambda said, saw, case: repr(said.text)),
            mistakes={
                "no_name": _said(lambda said, saw, case: not said.named),
                "adds_up": _said(lambda said, saw, case: said.text == saw.two and said.has(said.sum)),
                "counts_first": _said(lambda said, saw, case: said.text == saw.second and said.has(0)),
                "counts_infinity": _said(lambda said, saw, case: said.with_infinity),
                "counts_on": _said(lambda said, saw, case: said.text == saw.turned and said.has(said.twice)),
                "no_count": True,
            },
        ),
        _must_raise(
            "every_input",
            ok=lambda saw, case: not _slipped(saw),
            given=lambda saw, case: _call(case, *calls(case)[_slipped(saw) or "second"]),
            got=[
                Say("no_exception", when=lambda saw, case: not _refusal(saw)),
                lambda saw, case: _refusal(saw),
            ],
            mistakes={
                "removes_itself": lambda saw, case: saw.hooks_in_the_end < saw.hooks,
                "beside_infinity": lambda saw, case: _missed(saw) and case.second.isinf().any(),
                "stops_early": lambda saw, case: _missed(saw) and len(case.before) > 1,
                "one_dtype": lambda saw, case: saw.float_error and not saw.behind_error,
                "first_only": lambda saw, case: (
                    saw.second_error is None and saw.turned_error and saw.two_error
                ),
            },
        ),
        Check(
            "gradient",
            ok=lambda saw, case: saw.same and all(saw.same) and not saw.changed,
            points=1,
            given=lambda saw, case: (
                _passed(case, saw.by_name)
                if saw.changed in (None, "passed")
                else _call(case, *calls(case)[saw.changed])
            ),
            expected=Say("itself"),
            got=[
                Say("changed", when=lambda saw, case: saw.changed),
                Say("another", when=lambda saw, case: saw.passed == "no error"),
                "{saw.passed}",
            ],
            mistakes={
                "changes_input": lambda saw, case: saw.changed,
                "drops_the_rest": lambda saw, case: (
                    "missing 1 required positional argument: 'second'" in saw.passed
                ),
                "cuts_gradient": lambda saw, case: saw.graph and not any(saw.graph),
                "copies": lambda saw, case: saw.same,
            },
        ),
        equals(
            "infinity",
            lambda case: None,
            {"refuses_infinity": True},
            given=lambda saw, case: _call(case, case.infinite, case.x),
            expected=Say("no_exception"),
            got="{value}",
        ),
        handle_works("refuse_nan(layer, name)", silent=lambda saw, case: saw.after_removal is None),
    ],
    raises={
        "tuple_for_tensor": r"must be Tensor, not tuple|'tuple' object has no attribute",
        "ambiguous": r"Boolean value of Tensor",
    }
    | MISREGISTERED,
)
