"""What decides about 14.4, `patching_map(model, clean, corrupted, right, wrong)`."""

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import torch

from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.checks.lesson_14.patching import (
    CLEAN_AFTER_ERROR,
    RAISES,
    UNTOUCHED,
    At,
    Streams,
    near_shares,
    shares_line,
)
from hookedu.exercises.criteria import Check, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_14.patching_map import PROBE, Case
from hookedu.exercises.tools import other_weights
from hookedu.models.stories import encode

_ALL = slice(None)
_ANNA, _BEN = encode("Anna Ben")  # the two of the lesson's own prompts
Cell = Callable[[int, int], At]  # from a block and a word to the stream with a patch


class Key(Streams):
    """A call of the answer, and the wanted map."""

    def __init__(self, case: Case) -> None:
        self.case, self.blocks = case, case.sizes.depth
        super().__init__(case.sizes, case.clean, case.corrupted)
        prompts = f"{show(case.clean)}, {show(case.corrupted)}"
        self.call = f"patching_map(model, {prompts}, {case.right}, {case.wrong})"

    def read(self) -> None:
        super().read()
        self.good_logits, self.bad_logits = (self.logits(self.blocks, s[-1]) for s in (self.clean, self.bad))
        self.good, self.low = self.difference(self.good_logits), self.difference(self.bad_logits)

    @cached_property
    def all(self) -> torch.Tensor:
        """Return the logits of all patches, (blocks, words patched, words, vocabulary)."""
        return self.patches()[:, :, 0]

    @cached_property
    def want(self) -> torch.Tensor:
        """Return the wanted map."""
        return self.shares(self.difference(self.all))

    def difference(self, logits: torch.Tensor) -> torch.Tensor:
        """Return by how much the right word is ahead of the wrong one at the last place."""
        return logits[..., -1, self.case.right] - logits[..., -1, self.case.wrong]

    def shares(self, differences: torch.Tensor) -> torch.Tensor:
        """Return the share that these differences restore."""
        return (differences - self.low) / (self.good - self.low)

    def of(self, cell: Cell) -> torch.Tensor:
        """Return the map of other patches."""
        rows = []
        for number in range(self.blocks):
            depths, streams = zip(*(cell(number, place) for place in range(self.words)), strict=True)
            rows.append(self.difference(self.logits(depths[0], torch.cat(streams))))
        return self.shares(torch.stack(rows))

    def by(self, score: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """Return the map if a prompt is scored in another way, from logits (..., words, vocabulary)."""
        good, bad = score(self.good_logits[0]), score(self.bad_logits[0])
        return (score(self.all) - bad) / (good - bad)

    def before(self) -> torch.Tensor:
        """Return the wanted map of the call before, when the model had other weights."""
        key = Key(self.case)
        with other_weights(key.model):
            key.read()
            return key.want


@lru_cache(maxsize=8)
def _key(clean: tuple[int, ...], corrupted: tuple[int, ...], *others: Any) -> Key:
    sizes, *words = others
    return Key(Case(sizes, torch.tensor([clean]), torch.tensor([corrupted]), *words))


def key_of(case: Case) -> Key:
    """Return the key of a case, the same object if it was asked for a moment ago: `suits` and the judge both do."""
    sizes, clean, corrupted, *others = case
    return _key(tuple(clean[0].tolist()), tuple(corrupted[0].tolist()), sizes, *others)


def _suits(case: Case) -> bool:
    """Check whether the prompts differ clearly, and with signs that hide nothing.

    The first map goes below 0, not at the first word alone, so that a word left out is not taken for a map cut off at 0. The
    last goes above 1, and there the word that both prompts share, between two that differ, restores something; in the second, the right word is behind for `clean` and ahead for `corrupted`.
    """
    key = key_of(case)
    if case.after == "error" and key.want[:, 1].abs().max() < 0.05:
        return False
    if case.after == "other weights":
        return bool(key.good < -0.15 and key.low > 0.15)
    if abs(key.good - key.low) < 0.3:
        return False
    return bool(key.want.max() > 1.03 if case.after == "error" else key.want[:, 1:].min() < -0.03)


def _earlier(key: Key, n: int, p: int) -> set[tuple[int, int]]:
    """Return the places of a map up to this one, row by row."""
    return {(m, q) for m in range(key.blocks) for q in range(key.words) if (m, q) <= (n, p)}


def _stale(key: Key) -> list[torch.Tensor]:
    """Return the map with the activations of the call before."""
    of_before = key.of(lambda n, p: (n + 1, key.mixed(n + 1, (_ALL, p), key.stale())))
    return [of_before] if key.case.after == "other weights" else []


def _without_positions(key: Key) -> torch.Tensor:
    """Return the map of a model whose words have no positions."""
    good, low = (key.difference(key.logits(0, key.model.embed(ids))) for ids in key.ids)
    return (key.of(key.bare) * (key.good - key.low) + key.low - low) / (good - low)


Maps = Callable[[Key], list[torch.Tensor]]
_LIKELY: dict[str, Maps] = {
    "no_effect": lambda key: [torch.zeros_like(key.want)],
    "all_places": lambda key: [torch.ones_like(key.want)],
    "not_divided": lambda key: [key.difference(key.all), key.difference(key.all) - key.low],
    "other_ratio": lambda key: [
        (key.difference(key.all) - zero) / scale
        for zero in (0, key.low, key.good)
        for scale in (key.good, key.low, key.good - key.low, key.good + key.low)
    ],
    "lost_share": lambda key: [1 - key.want],
    "absolute": lambda key: [
        (key.difference(key.all).abs() - key.low.abs()) / (key.good.abs() - key.low.abs())
    ],
    "wrong_sign": lambda key: [-key.want, key.want.abs(), key.want * (key.good - key.low).sign()],
    "transposed": lambda key: [key.want.T],
    "clamped": lambda key: [key.want.clamp(0, 1), key.want.clamp(min=0), key.want.clamp(max=1)],
    "percent": lambda key: [100 * key.want],
    "one_word": lambda key: [key.by(lambda x, k=k: x[..., -1, k]) for k in (key.case.right, key.case.wrong)],
    "fixed_words": lambda key: [key.by(lambda x: x[..., -1, _ANNA] - x[..., -1, _BEN])],
    "probabilities": lambda key: [
        key.by(lambda x: x.softmax(-1)[..., -1, key.case.right] - x.softmax(-1)[..., -1, key.case.wrong]),
        key.by(lambda x: x.softmax(-1)[..., -1, key.case.right]),
        key.by(lambda x: x.log_softmax(-1)[..., -1, key.case.right]),
    ],
    "other_position": lambda key: (
        [
            key.by(lambda x, at=at: x[..., at, key.case.right] - x[..., at, key.case.wrong])
            for at in range(key.words - 1)
        ]
        + [key.by(lambda x: x.mean(-2)[..., key.case.right] - x.mean(-2)[..., key.case.wrong])]
    ),
    "swapped_prompts": lambda key: [
        change * sign + zero for change in [key.of(key.swapped)] for zero, sign in ((0, 1), (1, -1))
    ],
    "patches_input": lambda key: [key.of(key.input)],
    "keeps_input": lambda key: [key.of(key.kept_input)],
    "adds_up": lambda key: [
        key.of(lambda n, p: key.output(n, (_ALL, slice(p + 1)))),
        key.of(lambda n, p: key.with_patches(_earlier(key, n, p))),
        key.of(lambda n, p: key.with_patches({(m, p) for m in range(n + 1)})),
    ],
    "several_places": lambda key: [
        key.of(lambda n, p: key.output(n, (_ALL, slice(p, None)))),
        key.of(lambda n, p: key.output(n, (_ALL, slice(p)))),
    ],
    "every_block": lambda key: [key.of(lambda n, p: key.with_patches({(m, p) for m in range(key.blocks)}))],
    "patches_word": lambda key: [key.of(key.word)],
    "feature": lambda key: [key.of(lambda n, p: key.output(n, (..., p)))],
    "only_differing": lambda key: [key.want * (key.case.clean != key.case.corrupted)],
    "shifted": lambda key: [key.want.roll(k, d) for d in (0, 1) for k in (1, -1)] + [key.want.flip(0)],
    "zeros": lambda key: [key.of(lambda n, p: key.with_value(n, p, lambda bad, clean: 0.0))],
    "adds": lambda key: [key.of(lambda n, p: key.with_value(n, p, lambda bad, clean: bad + clean))],
    "part_of_block": lambda key: [
        key.of(lambda n, p, part=part: key.part(n, p, part)) for part in ("attention", "mlp")
    ],
    "stops_early": lambda key: [key.of(key.skipping)],
    "no_positions": lambda key: [_without_positions(key)],
    "stale": _stale,
}


def _gives(maps: Maps) -> Of:
    """Return the condition that one of these maps was given; none is computed where dtype or shape are wrong already."""

    def fits(saw: Any, key: Key) -> bool:
        got = saw.result
        return got.is_floating_point() and got.dim() == 2 and any(near_shares(got, one) for one in maps(key))

    return fits


def _shape(saw: Any, *shape: int) -> bool:
    return isinstance(saw.result, torch.Tensor) and tuple(saw.result.shape) == shape


def _second(saw: Any, key: Key) -> bool:
    """Check whether the call before, with other weights, was right."""
    return key.case.after == "other weights" and near_shares(saw.before, key.before())


EXERCISE = Exercise(
    PROBE,
    key=key_of,
    suits=_suits,
    given="{key.call}",
    checks=[
        Check(
            "shares",
            "result",
            ok=lambda saw, key: near_shares(saw.result, key.want),
            points=3,
            essential=True,
            given=[Say("second_call", when=_second, given=lambda saw, key: key.call), "{key.call}"],
            expected=shares_line("expected"),
            got=shares_line("got"),
            mistakes={
                "returns_nothing": lambda saw, key: saw.result is None,
                "returns_list": lambda saw, key: (
                    isinstance(saw.result, list) or saw.result == Opaque("ndarray")
                ),
                "not_floats": lambda saw, key: not saw.result.is_floating_point(),
                "row_too_many": lambda saw, key: _shape(saw, key.blocks + 1, key.words),
                "row_missing": lambda saw, key: _shape(saw, key.blocks - 1, key.words),
                "other_shape": lambda saw, key: (
                    saw.result.numel() == key.want.numel()
                    and saw.result.shape != key.want.shape
                    and near_shares(saw.result.reshape(key.want.shape), key.want)
                ),
                "not_finite": lambda saw, key: not saw.result.isfinite().all(),
                "hooks_stay": lambda saw, key: saw.left > 0,
            }
            | {id: _gives(maps) for id, maps in _LIKELY.items()}
            | {
                "entries_missing": lambda saw, key: near_shares(
                    torch.where(saw.result == 0, key.want, saw.result.double()), key.want
                ),
                "rounded": lambda saw, key: (
                    near_shares(saw.result, key.want, 0.06)
                    and near_shares(saw.result, saw.result.double().round(decimals=2), 1e-6)
                ),
            },
        ),
        Check(
            "once",
            "reads",
            ok=lambda saw, key: saw.reads <= 1,
            points=1,
            expected=Say("reads", value=1),
            got=Say("reads"),
            mistakes={"reads_again": True},
        ),
        UNTOUCHED,
        CLEAN_AFTER_ERROR,
    ],
    raises=RAISES | CALLS_NOW | WRONG_ARGUMENTS | {"not_finite": r"^ZeroDivisionError"},
)
