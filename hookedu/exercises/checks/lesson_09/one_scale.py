"""What decides about 09.2, `one_scale(maps, columns)`."""

from math import log2
from typing import Any

import torch

from hookedu.exercises.checks.lesson_09.shared import Mistakes, differs_in_dtype, returned, show_with_dtype
from hookedu.exercises.criteria import Check, Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_09.one_scale import CLOSE, PROBE, TINY, Case
from hookedu.exercises.tools import close


def _scaled(maps: torch.Tensor) -> torch.Tensor:
    return (maps - maps.min()) / (maps.max() - maps.min())


def _padded(maps: torch.Tensor, columns: int) -> torch.Tensor:
    """Add maps of zeros until the last row is full."""
    return torch.cat([maps, torch.zeros(-len(maps) % columns, *maps.shape[1:])])


def _tiled(maps: torch.Tensor, columns: int) -> torch.Tensor:
    """Tile (C, H, W), row by row, into one picture of (rows·H, columns·W)."""
    return torch.cat([torch.cat(list(row), 1) for row in _padded(maps, columns).split(columns)])


class _Key:
    """The picture, and what it is made of."""

    def __init__(self, case: Case) -> None:
        self.maps, self.columns, self.constant = case
        self.base = CLOSE if self.maps.min() >= CLOSE else 0.0
        self.scaled = _scaled(self.maps)
        self.padded = _padded(self.scaled, self.columns)
        self.rows = len(self.padded) // self.columns
        self.downwards = torch.cat([self.padded[row :: self.rows] for row in range(self.rows)])
        self.picture = _tiled(self.scaled, self.columns)


def _alike(got: Any, wrong: torch.Tensor) -> bool:
    """Check whether this is the wrong picture, in whatever dtype."""
    return isinstance(got, torch.Tensor) and close(got.float(), wrong)


def _line(picture: Any, saw: Any, key: _Key) -> str:
    shown = show_with_dtype(picture, saw.result, key.picture)
    return f"{tuple(picture.shape)}: {shown}" if isinstance(picture, torch.Tensor) else shown


def _shown(key: _Key) -> str:
    """Write numbers that lie close together as a sum: they would print alike."""
    return f"{key.base:g} + {show(key.maps - key.base)}" if key.base else show(key.maps)


def _all_zero(result: Any, key: _Key) -> bool:
    return isinstance(result, torch.Tensor) and not result.any()


def _stops_short(result: Any, key: _Key) -> bool:
    """Check whether the smallest became 0 and the largest less than 1, and all are in proportion."""
    return bool(0 == result.min() < result.max() < 1) and close(result / result.max(), key.picture)


_MISTAKES: Mistakes = {
    "gaps": lambda saw, key: all(saw.result.shape[dim] > key.picture.shape[dim] for dim in (-2, -1)),
    "per_map": Gives(lambda key: _tiled(torch.stack([_scaled(one) for one in key.maps]), key.columns)),
    "no_shift": Gives(lambda key: _tiled(key.maps / key.maps.max(), key.columns)),
    "by_size": Gives(lambda key: _tiled(key.maps / key.maps.abs().max(), key.columns)),
    "only_positive": Gives(lambda key: _tiled(key.maps.clamp(min=0) / key.maps.max(), key.columns)),
    "pads_first": Gives(lambda key: _scaled(_tiled(key.maps, key.columns))),
    "column_by_column": Gives(lambda key: _tiled(key.downwards, key.columns)),
    "rows_for_columns": Gives(lambda key: _tiled(key.scaled, key.rows)),
    "drops_rest": Gives(
        lambda key: _tiled(key.scaled[: len(key.maps) // key.columns * key.columns], key.columns)
    ),
    "forgot_permute": Gives(lambda key: key.padded.reshape(key.picture.shape)),
    "to_255": Gives(lambda key: 255 * key.picture, lambda key: (255 * key.picture).trunc()),
    "three_channels": Gives(lambda key: key.picture.expand(3, -1, -1)),
    "other_dtype": lambda saw, key: differs_in_dtype(saw.result, key.picture),
    "taken_for_equal": lambda saw, key: key.base and _all_zero(saw.result, key),
    "not_to_one": lambda saw, key: _stops_short(saw.result, key),
}

EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given=lambda saw, key: f"maps = {_shown(key)}, columns = {key.columns}",
    checks=[
        returned(
            "grid",
            lambda key: key.picture,
            points=3,
            mistakes=_MISTAKES,
            ok=lambda saw, key: close(saw.result, key.picture),
            expected=lambda saw, key: _line(key.picture, saw, key),
            got=lambda saw, key: _line(saw.result, saw, key),
            equal=_alike,
        ),
        Check(
            "tiny",
            "tiny",
            want=lambda key: key.picture,
            essential=True,
            given=lambda saw, key: f"maps = ({_shown(key)}) / 2**{-log2(TINY):g}, columns = {key.columns}",
            label="result",
            equal=close,
            mistakes={
                "taken_for_equal": lambda saw, key: _all_zero(saw.tiny, key),
                "not_to_one": lambda saw, key: _stops_short(saw.tiny, key),
            },
        ),
        Check(
            "constant",
            "constant",
            want=lambda key: torch.zeros_like(_tiled(key.constant, key.columns)),
            points=1,
            given=lambda saw, key: (
                f"maps = torch.full({tuple(key.constant.shape)}, {key.constant.max()}); columns = {key.columns}"
            ),
            label="result",
            equal=close,
            mistakes={"divides_by_zero": lambda saw, key: saw.constant.isnan().any()},
        ),
        Check(
            "untouched",
            "maps",
            want=lambda key: key.maps,
            points=1,
            given="one_scale(maps, {key.columns})",
            mistakes={"in_place": True},
        ),
    ],
    raises={"view": r"view size is not compatible"},
)
