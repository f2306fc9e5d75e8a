"""What decides about 12.3, `count_recomputed(model, x)`."""

from collections.abc import Callable
from typing import Any

from hookedu.exercises.checks.common import none_left
from hookedu.exercises.checks.forward_hooks import CALLS_NOW
from hookedu.exercises.criteria import Check, Gives, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_12.count_recomputed import PROBE, Case


class Key:
    """How often each layer starts, by name: in one forward pass, in recomputation, and in both."""

    def __init__(self, case: Case) -> None:
        kinds = case.kinds
        self.first, *_, self.last = kinds
        self.layers = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        self.once = {name: int(kind != "unused") for name, kind in kinds.items()} | {
            self.first: 2,
            self.last: 2,
        }
        # Layers that save nothing are at the end, which recomputation does not reach.
        self.recomputed = {
            name: self.once[name] for name in kinds if kinds[name] in ("linear", "tanh", "block")
        }
        self.block = next(name for name in kinds if kinds[name] == "block")
        self.stopped = list(self.recomputed)[-1]  # recomputation ends inside the forward of this layer
        self.again = dict.fromkeys(kinds, 0) | self.recomputed
        # Without gradients for x, as in turn 1, backward reaches nothing in front of the first layer with parameters.
        names = list(kinds)
        start = next(n for n, name in enumerate(names) if kinds[name] in ("linear", "block"))
        self.reached = self.once | dict.fromkeys(names[: start * (case.batch == 2)], 0)
        self.both = {name: n + self.again[name] for name, n in self.once.items()}
        self.twice = {name: 2 * n for name, n in self.once.items()}


def _numbers(counts: Any) -> bool:
    """Check whether this is a dictionary of plain numbers, which can be compared with other numbers."""
    return isinstance(counts, dict) and all(type(n) in (int, float, bool) for n in counts.values())


def _counted(*wrong: Callable[[Key], dict[str, int]]) -> Of:
    """Return the condition that the counts are one of these; layers that were counted 0 times may be missing."""

    def some(counts: dict[str, int]) -> dict[str, int]:
        return {name: n for name, n in counts.items() if n}

    return lambda saw, key: _numbers(saw.counts) and any(some(saw.counts) == some(of(key)) for of in wrong)


def _right(saw: Saw, key: Key) -> bool:
    return _numbers(saw.counts) and saw.counts == key.again


def _goes_around(saw: Saw, key: Key) -> bool:
    return saw.whole == 0


def _ones(saw: Saw) -> bool:
    """Check whether backward began with ones, as that of a sum does."""
    return all(gradient.tolist() == [1.0] for gradient in saw.gradient)


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=Say("layers"),
    checks=[
        Check(
            "counts",
            "counts",
            want=lambda key: key.again,
            ok=lambda saw, key: _right(saw, key) and _ones(saw),
            points=3,
            essential=True,
            got=[Say("gradient", when=_right), "counts == {saw.counts}"],
            mistakes={
                "not_the_sum": _right,
                "returns_nothing": lambda saw, key: saw.counts is None,
                "returns_total": lambda saw, key: type(saw.counts) is int,
                "not_a_dict": lambda saw, key: not isinstance(saw.counts, dict),
                "other_names": lambda saw, key: not saw.counts.keys() <= key.once.keys(),
                # How the answer ran the model explains numbers only.
                "no_backward": lambda saw, key: _numbers(saw.counts) and saw.missing and not saw.gradient,
                "not_checkpointed": lambda saw, key: _numbers(saw.counts) and saw.starts == key.once,
                # Twice in forward and twice in recomputation would make 4.
                "in_pieces": lambda saw, key: _numbers(saw.counts) and saw.starts[key.first] < 4,
                "no_early_stop": lambda saw, key: saw.counts == key.once and saw.starts == key.twice,
                "runs_once_more": lambda saw, key: saw.whole > 2 and _counted(lambda key: key.once)(saw, key),
                "counts_first": _counted(lambda key: key.once, lambda key: key.reached),
                "counts_both": _counted(
                    lambda key: key.both,
                    lambda key: {name: n - 1 for name, n in key.both.items()},
                    lambda key: {name: n // 2 for name, n in key.both.items()},
                    lambda key: key.both | {key.stopped: key.both[key.stopped] - 1},
                ),
                "inside": _counted(lambda key: key.again | {key.block: 2 * key.again[key.block]}),
                "only_whether": _counted(lambda key: {name: min(n, 1) for name, n in key.again.items()}),
                "zeros_missing": Gives(lambda key: key.recomputed),
                "after_hooks": _counted(lambda key: key.again | {key.stopped: 0}),
                "late_binding": lambda saw, key: (
                    sum(key.again.values()) <= saw.counts[key.last] == sum(saw.counts.values())
                ),
                "off_too_early": lambda saw, key: set(saw.counts.values()) <= {0} and not saw.hooked,
            },
        ),
        Check(
            "grad",
            ok=lambda saw, key: (
                saw.same_masks
                and not (saw.missing or saw.wiped or saw.draws or saw.switched or _goes_around(saw, key))
            ),
            points=1,
            given="count_recomputed(model, x)",
            expected=[
                Say("model_starts", when=_goes_around),
                Say("kept_modes", when=lambda saw, key: saw.switched),
                Say("adds_gradients", when=lambda saw, key: saw.missing or saw.wiped),
                Say("same_masks", when=lambda saw, key: not saw.same_masks),
                Say("draws_once"),
            ],
            got=[
                Say("model_started", when=_goes_around),
                Say("lost_modes", when=lambda saw, key: saw.switched),
                Say("wiped", when=lambda saw, key: saw.wiped),
                Say("no_gradient", when=lambda saw, key: saw.missing),
                Say("other_masks", when=lambda saw, key: not saw.same_masks),
                Say("draws_more"),
            ],
            mistakes={
                "goes_around": _goes_around,
                "switches_mode": lambda saw, key: saw.switched,
                "cut_off": lambda saw, key: saw.missing == "x" and not saw.wiped,
                "runs_copy": lambda saw, key: saw.missing and saw.copied,
                "not_added": lambda saw, key: saw.missing and not saw.wiped,
                "wipes": lambda saw, key: saw.wiped,
                "other_masks": lambda saw, key: not saw.same_masks,
                "draws": lambda saw, key: saw.draws,
            },
        ),
        none_left("count_recomputed(model, x)", mistake="leaves_hooks"),
    ],
    raises={
        "no_such_key": r"^KeyError",
        "wrong_arguments": r"\w+\(\) (missing \d+ required positional argument|takes (from \d+ to )?\d+ positional arguments? but \d+ (was|were) given)",
        "not_a_sum": r"grad can be implicitly created only for scalar outputs",
        **CALLS_NOW,
    },
)
