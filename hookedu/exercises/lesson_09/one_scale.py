"""Exercise 09.2, `one_scale(maps, columns)`: tile the maps of a layer into one picture, on one scale."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_09.shared import RETURNS_NOTHING
from hookedu.exercises.observation import show
from hookedu.exercises.tools import close, copies, same
from hookedu.language import Text

_C, _H, _W = 5, 2, 3


def _case(rng: random.Random) -> tuple[torch.Tensor, int]:
    """Return (maps, columns): distinct whole numbers of both signs; the last row of tiles is not full."""
    while True:
        numbers = torch.tensor([float(v) for v in rng.sample(range(-60, 41), _C * _H * _W)])
        if 0 < numbers.max() < -numbers.min():  # else max() and abs().max() would be equal
            return numbers.reshape(_C, _H, _W), rng.choice((2, 3))


def _tiled(scaled: torch.Tensor, columns: int, blank: float = 0.0) -> torch.Tensor:
    """Tile (C, H, W), row by row, into one picture of (rows·H, columns·W)."""
    channels, height, width = scaled.shape
    blanks = torch.full((-channels % columns, height, width), blank)
    rows = torch.cat([scaled, blanks]).split(columns)
    return torch.cat([torch.cat(list(row), 1) for row in rows])


def _scaled(maps: torch.Tensor) -> torch.Tensor:
    return (maps - maps.min()) / (maps.max() - maps.min())


def _misunderstood(maps: torch.Tensor, columns: int) -> dict[str, torch.Tensor]:
    """Return the pictures that known mistakes give, by name."""
    scaled, rows = _scaled(maps), -(-_C // columns)
    grid = _tiled(scaled, columns)
    positive = maps.clamp(min=0)
    padded = torch.cat([scaled, torch.zeros(rows * columns - _C, _H, _W)])
    down = padded.reshape(columns, rows, _H, _W).transpose(0, 1).flatten(0, 1)
    return {
        "per_map": _tiled(torch.stack([_scaled(one) for one in maps]), columns),
        "no_shift": _tiled(maps / maps.max(), columns),
        "by_size": _tiled(maps / maps.abs().max(), columns),
        "only_positive": _tiled(positive / positive.max(), columns),
        "pads_first": _tiled(scaled, columns, blank=(-maps.min() / (maps.max() - maps.min())).item()),
        "column_by_column": _tiled(down, columns),
        "rows_for_columns": _tiled(scaled, rows),
        "drops_rest": _tiled(scaled[: _C // columns * columns], columns),
        "forgot_permute": padded.reshape(rows * _H, columns * _W),
        "to_255": grid * 255,
        "three_channels": grid.expand(3, -1, -1),
    }


def _probe(one_scale: Any, rng: random.Random) -> dict[str, Any]:
    maps, columns = _case(rng)
    theirs, constant = maps.clone(), torch.full((_C, _H, _W), maps[0, 0, 0].item())
    return {
        "picture": copies(one_scale(theirs, columns)),
        "maps": theirs,
        "constant": copies(one_scale(constant, columns)),
    }


def _mistake(got: Any, maps: torch.Tensor, columns: int) -> str | None:
    if got is None:
        return "returns_nothing"
    if not isinstance(got, torch.Tensor):
        return None
    height, width = -(-_C // columns) * _H, columns * _W
    if got.dim() >= 2 and got.shape[-2] > height and got.shape[-1] > width:
        return "gaps"
    for name, wrong in _misunderstood(maps, columns).items():
        if close(got.float(), wrong) or (name == "to_255" and close(got.float(), wrong.trunc())):
            return name
    return None


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    maps, columns = _case(rng)
    expected, zeros = _tiled(_scaled(maps), columns), torch.zeros(-(-_C // columns) * _H, columns * _W)
    got, constant = saw["picture"], saw["constant"]
    unequal = isinstance(constant, torch.Tensor) and constant.isnan().any()
    return [
        Criterion(
            "grid",
            close(got, expected),
            points=3,
            essential=True,
            given=f"maps = {show(maps)}, columns = {columns}",
            expected=f"{tuple(expected.shape)}: {show(expected)}",
            got=f"{tuple(got.shape)}: {show(got)}" if isinstance(got, torch.Tensor) else show(got),
            mistake=_mistake(got, maps, columns),
        ),
        Criterion(
            "constant",
            close(constant, zeros),
            points=1,
            given=f"maps = torch.full(({_C}, {_H}, {_W}), {maps[0, 0, 0]:g}), columns = {columns}",
            expected=show(zeros),
            got=show(constant),
            mistake="divides_by_zero" if unequal else None,
        ),
        Criterion(
            "untouched",
            same(saw["maps"], maps),
            points=1,
            given=f"one_scale(maps, {columns})",
            expected=f"maps == {show(maps)}",
            got=f"maps == {show(saw['maps'])}",
            mistake="in_place",
        ),
    ]


ONE_SCALE = Exercise(
    id="09.2",
    title=Text(zh="一把尺子的网格", en="A grid with one scale"),
    answer="one_scale",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="先换尺子，再拼图：`(maps - maps.min()) / (maps.max() - maps.min())`，最小和最大都取自整个 `maps`。全都一样时会除以 0，单独处理。",
            en="First the scale, then the tiles: `(maps - maps.min()) / (maps.max() - maps.min())`, with both taken from all of `maps`. "
            "If all numbers are equal this divides by 0; treat that by itself.",
        ),
        Text(
            zh="拼图最直白的办法：一张全 0 的大图，第 `i` 张放在第 `i // columns` 行、第 `i % columns` 列。",
            en="The plainest way to tile: a large picture of zeros; map `i` goes to row `i // columns`, column `i % columns`.",
        ),
        Text(
            zh="`picture[r * H : (r + 1) * H, c * W : (c + 1) * W] = scaled[i]`，其中 `r, c = divmod(i, columns)`，"
            "`picture = torch.zeros(-(-C // columns) * H, columns * W)`。",
            en="`picture[r * H : (r + 1) * H, c * W : (c + 1) * W] = scaled[i]`, where `r, c = divmod(i, columns)` and "
            "`picture = torch.zeros(-(-C // columns) * H, columns * W)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "per_map",
            Text(
                zh="每张图各用了一把尺子，强弱就看不出来了。最小和最大要取自整个 `maps`，只算一次。",
                en="Each map got a scale of its own, and strong and weak look alike. Take smallest and largest from all of `maps`, once.",
            ),
            fails="grid",
        ),
        Mistake(
            "no_shift",
            Text(
                zh="只除以了最大值，最小的数没有变成 0：先减去最小值，再除以两者之差。",
                en="You only divided by the largest, and the smallest did not become 0: subtract it first, then divide by the difference.",
            ),
            fails="grid",
        ),
        Mistake(
            "by_size",
            Text(
                zh="你除以了最大的绝对值，结果在 -1 和 1 之间。要的是 0 到 1：减最小值，除以最大与最小之差。",
                en="You divided by the largest absolute value, which gives -1 to 1. Wanted is 0 to 1: subtract the smallest, divide by the difference.",
            ),
            fails="grid",
        ),
        Mistake(
            "only_positive",
            Text(
                zh="负数都成了 0，它们之间的差别看不见了。最小的数（这里是负的）才对应 0。",
                en="All negatives became 0, and their differences are gone. It is the smallest number, here a negative one, that becomes 0.",
            ),
            fails="grid",
        ),
        Mistake(
            "pads_first",
            Text(
                zh="末行的空位不是 0：你先补上空位，再换尺子。先换尺子，再补 0。",
                en="The unused places are not 0: you filled them before scaling. Scale first, then fill with 0.",
            ),
            fails="grid",
        ),
        Mistake(
            "column_by_column",
            Text(
                zh="你是从上到下排的。应当先从左到右排满一行，再排下一行。",
                en="You went down the columns. Fill a row from left to right first, then the next.",
            ),
            fails="grid",
        ),
        Mistake(
            "rows_for_columns",
            Text(
                zh="行和列反了：`columns` 是每行有几张，不是有几行。`make_grid` 的 `nrow` 也是每行的张数。",
                en="Rows and columns are swapped: `columns` is the number of maps in a row. (So is the `nrow` of `make_grid`.)",
            ),
            fails="grid",
        ),
        Mistake(
            "drops_rest",
            Text(
                zh="排不满一行的那几张丢了：行数要向上取整，`-(-C // columns)`。",
                en="The maps that do not fill a row got lost: round the number of rows up, `-(-C // columns)`.",
            ),
            fails="grid",
        ),
        Mistake(
            "forgot_permute",
            Text(
                zh="图被切碎了：直接 `reshape` 会按内存的次序接着排。先 `permute(0, 2, 1, 3)`，把「行、高、列、宽」排好，再 `reshape`。",
                en="The maps are cut to pieces: a bare `reshape` goes on in the order of memory. `permute(0, 2, 1, 3)` to row, height, column, width "
                "first, then `reshape`.",
            ),
            fails="grid",
        ),
        Mistake(
            "to_255",
            Text(zh="结果是 0 到 255。这里要 0 到 1。", en="Yours runs from 0 to 255. Wanted is 0 to 1."),
            fails="grid",
        ),
        Mistake(
            "gaps",
            Text(
                zh="图之间有缝：`make_grid` 默认 `padding=2`，这里要 `padding=0`。",
                en="There are gaps between the maps: `make_grid` has `padding=2` by default; here it must be `padding=0`.",
            ),
            fails="grid",
        ),
        Mistake(
            "three_channels",
            Text(
                zh="`make_grid` 给出 3 个一样的颜色通道；要的是二维的图，取 `[0]`。",
                en="`make_grid` gives 3 equal colour channels; wanted is a 2-D picture, so take `[0]`.",
            ),
            fails="grid",
        ),
        Mistake(
            "divides_by_zero",
            Text(
                zh="数全都一样时，最大减最小是 0，0 除以 0 得到 NaN。单独处理：整张是 0。",
                en="Where all numbers are equal, largest minus smallest is 0, and 0 by 0 is NaN. Treat it by itself: all 0.",
            ),
            fails="constant",
        ),
        Mistake(
            "in_place",
            Text(
                zh="图是对的，可是你就地改动了 `maps`（`-=`、`/=` 或带下划线的函数）：这正是这一课要防的事。用 `maps - low`。",
                en="The picture is right, but you changed `maps` in place (`-=`, `/=`, or a function with an underscore): just what this lesson "
                "guards against. Use `maps - low`.",
            ),
            fails="untouched",
        ),
        RETURNS_NOTHING,
    ),
    insight=Text(
        zh="`plot_feature_maps` 默认也是整层一把尺子；`per_map=True` 各用各的，颜色条就画不出来了。",
        en="`plot_feature_maps` too uses one scale a layer by default; with `per_map=True` there is no colour bar to draw.",
    ),
)
