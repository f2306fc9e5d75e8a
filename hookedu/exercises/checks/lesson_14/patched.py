"""What decides about 14.3, `patched(model, clean, corrupted, number, place)`."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.checks.lesson_14.patching import CLEAN_AFTER_ERROR, RAISES, UNTOUCHED, Streams
from hookedu.exercises.checks.lesson_14.shared import first_difference, near
from hookedu.exercises.criteria import Check, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_14.patched import PROBE, Case
from hookedu.exercises.tools import other_weights

_ALL = slice(None)


class Key(Streams):
    """A call of the answer, and the wanted logits."""

    def __init__(self, case: Case) -> None:
        super().__init__(case.sizes, case.clean, case.corrupted)
        self.case, self.number, self.place = case, case.number, case.place
        self.here = (_ALL, case.place)
        self.want = self.patch(case.number, self.here)
        self.call = f"patched(model, {show(case.clean)}, {show(case.corrupted)}, {case.number}, {case.place})"

    def before(self) -> torch.Tensor:
        """Return the wanted logits of the call before, when the model had other weights."""
        with other_weights(self.model):
            self.read()
            want = self.patch(self.number, self.here)
        self.read()
        return want

    def value(self, value: Callable[..., Any]) -> torch.Tensor:
        """Return the logits if ``value(corrupted, clean)`` stands at the place."""
        return self.logits(*self.with_value(self.number, self.place, value))


Logits = Callable[[Key], list[torch.Tensor]]


def _stale(key: Key) -> list[torch.Tensor]:
    """Return the logits with the activation of the call before."""
    if key.case.after != "other weights":
        return []
    return [key.logits(key.number + 1, key.mixed(key.number + 1, key.here, key.stale()))]


def _several(key: Key) -> list[torch.Tensor]:
    place = key.place
    cuts = [slice(place), slice(place + 1), slice(place, None), slice(place + 1, None)]
    return [key.patch(key.number, (_ALL, cut)) for cut in cuts if range(key.words)[cut]]


def _rows(key: Key) -> list[torch.Tensor]:
    """Return the logits if the first prompt alone is patched, or each with the activation of the first."""
    first = key.value(lambda bad, clean: clean[:1].expand_as(clean))
    return [key.patch(key.number, (0, key.place)), first]


_LIKELY: dict[str, Logits] = {
    "all_places": lambda key: [key.logits(0, key.clean[0])],
    "no_effect": lambda key: [key.logits(0, key.bad[0])],
    "swapped": lambda key: [key.logits(*key.swapped(key.number, key.place))],
    "patches_word": lambda key: [key.logits(*key.word(key.number, key.place))],
    "patches_input": lambda key: [key.logits(*key.input(key.number, key.place))],
    "keeps_input": lambda key: [key.logits(*key.kept_input(key.number, key.place))],
    "into_input": lambda key: [key.logits(*key.into_input(key.number, key.place))],
    "wrong_place": lambda key: [key.patch(key.number, (_ALL, p)) for p in range(key.words) if p != key.place],
    "wrong_block": lambda key: [
        key.patch(n, key.here) for n in range(len(key.model.blocks)) if n != key.number
    ],
    "every_block": lambda key: [
        key.logits(*key.with_patches({(n, key.place) for n in range(len(key.model.blocks))}))
    ],
    "several_places": _several,
    "one_prompt": _rows,
    "row_for_place": lambda key: [key.patch(key.number, key.place)],
    "feature": lambda key: [key.patch(key.number, (..., key.place))],
    "adds": lambda key: [key.value(lambda bad, clean: bad + clean)],
    "averages": lambda key: [key.value(lambda bad, clean: (bad + clean) / 2)],
    "zeros": lambda key: [key.value(lambda bad, clean: 0.0)],
    "part_of_block": lambda key: [
        key.logits(*key.part(key.number, key.place, part)) for part in ("attention", "mlp")
    ],
    "stale": _stale,
    "squeezes": lambda key: [key.want.squeeze()],
    "not_all_logits": lambda key: [key.want[:, -1], key.want[key.here], key.want[0], key.want[0, -1]],
    "probabilities": lambda key: [key.want.softmax(-1), key.want.log_softmax(-1)],
    "words": lambda key: [key.want.argmax(-1), key.want[:, -1].argmax(-1)],
    "difference": lambda key: [
        key.want - key.logits(0, key.bad[0]),
        key.want - key.logits(0, key.clean[0]),
        key.logits(0, key.clean[0]) - key.want,
        key.logits(0, key.bad[0]) - key.want,
    ],
    "no_norm": lambda key: [
        key.model.unembed(key.through(key.number + 1, key.mixed(key.number + 1, key.here)))
    ],
    "stops_early": lambda key: [
        key.logits(*key.skipping(key.number, key.place)),
    ],
    "no_positions": lambda key: [key.logits(*key.bare(key.number, key.place))],
    "block_twice": lambda key: [key.logits(*key.again(key.number, key.place))],
}


def _gives(logits: Logits) -> Of:
    return lambda saw, key: any(near(saw.result, one) for one in logits(key))


def _second(saw: Any, key: Key) -> bool:
    """Check whether the call before, with other weights, was right."""
    return key.case.after == "other weights" and near(saw.before, key.before())


def _not_tensor(saw: Any, key: Key) -> bool:
    """Check whether the result is an array, or a list of numbers."""
    got = saw.result
    return got == Opaque("ndarray") or (isinstance(got, list) and not any(map(torch.is_tensor, got)))


_LINES = first_difference("logits", lambda saw, key: saw.result, lambda key: key.want)

EXERCISE = Exercise(
    PROBE,
    key=Key,
    given="{key.call}",
    checks=[
        Check(
            "patches",
            "result",
            want=lambda key: key.want,
            equal=near,
            points=3,
            essential=True,
            given=[Say("second_call", when=_second, given=lambda saw, key: key.call), "{key.call}"],
            expected=_LINES["expected"],
            got=[Say("no_tensor", when=_not_tensor), _LINES["got"]],
            mistakes={
                "returns_nothing": lambda saw, key: saw.result is None,
                "not_tensor": _not_tensor,
                "returns_more": lambda saw, key: (
                    isinstance(saw.result, list) and any(near(one, key.want) for one in saw.result)
                ),
            }
            | {id: _gives(logits) for id, logits in _LIKELY.items()},
        ),
        UNTOUCHED,
        CLEAN_AFTER_ERROR,
    ],
    raises=RAISES | CALLS_NOW | WRONG_ARGUMENTS,
)
