"""Exercise 11.3, `hit_rate(cams, boxes)`: the pointing game."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.tools import copies
from hookedu.language import Text

_N, _H, _W = 200, 6, 10


def _peaks(cams: torch.Tensor, width: int = _W) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (x, y) of each map's maximum, for rows of `width` values."""
    place = cams.flatten(1).argmax(dim=1)
    return place % width, place // width


def _inside(x: Any, y: Any, boxes: torch.Tensor) -> float:
    x0, y0, x1, y1 = boxes.T
    return ((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).double().mean().item()


def _right(cams: torch.Tensor, boxes: torch.Tensor) -> float:
    return _inside(*_peaks(cams), boxes)


def _swapped(cams: torch.Tensor, boxes: torch.Tensor) -> float:
    x, y = _peaks(cams)
    return _inside(y, x, boxes)


def _whole_batch(cams: torch.Tensor, boxes: torch.Tensor) -> float:
    place = cams.argmax() % (_H * _W)
    return _inside(place % _W, place // _W, boxes)


def _centre_of_mass(cams: torch.Tensor, boxes: torch.Tensor) -> float:
    mass = cams.sum(dim=(1, 2))
    x = (cams.sum(dim=1) * torch.arange(_W)).sum(dim=1) / mass
    y = (cams.sum(dim=2) * torch.arange(_H)).sum(dim=1) / mass
    return _inside(x, y, boxes)


def _sizes(boxes: torch.Tensor) -> torch.Tensor:
    """Return the boxes that result if the last two numbers are taken for width and height."""
    return torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], dim=1)


def _share_of_sum(cams: torch.Tensor, boxes: torch.Tensor) -> float:
    x0, y0, x1, y1 = boxes.T[:, :, None, None]
    x, y = torch.arange(_W), torch.arange(_H)[:, None]
    inside = (x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)
    return ((cams * inside).sum(dim=(1, 2)) / cams.sum(dim=(1, 2))).mean().item()


_Way = Callable[[torch.Tensor, torch.Tensor], float]


def _moved(*edges: int) -> _Way:
    """Return a function that computes the rate with every box's `x0, y0, x1, y1` moved by `edges`."""
    return lambda cams, boxes: _right(cams, boxes + torch.tensor(edges))


# Known mistakes, each with the forms that it takes.
_WRONG: dict[str, list[_Way]] = {
    "end_included": [_moved(0, 0, 1, 1), _moved(0, 0, 1, 0), _moved(0, 0, 0, 1)],
    "start_left_out": [_moved(1, 1, 0, 0), _moved(1, 0, 0, 0), _moved(0, 1, 0, 0)],
    "both_edges": [_moved(1, 1, 1, 1)],
    "swapped": [_swapped],
    "wrong_width": [lambda cams, boxes: _inside(*_peaks(cams, width=_H), boxes)],
    "fixed_width": [lambda cams, boxes: _inside(*_peaks(cams, width=64), boxes)],
    "lowest": [lambda cams, boxes: _right(-cams, boxes)],
    "centre_of_mass": [_centre_of_mass],
    "one_peak": [_whole_batch],
    "one_axis": [
        lambda cams, boxes: _inside(_peaks(cams)[0], boxes[:, 1], boxes),
        lambda cams, boxes: _inside(boxes[:, 0], _peaks(cams)[1], boxes),
    ],
    "sizes": [lambda cams, boxes: _right(cams, _sizes(boxes))],
    "share_of_sum": [_share_of_sum],
    "percent": [lambda cams, boxes: 100 * _right(cams, boxes)],
    "counts": [lambda cams, boxes: _N * _right(cams, boxes)],
    "misses": [lambda cams, boxes: 1 - _right(cams, boxes)],
    "nothing_hit": [lambda cams, boxes: 0.0],
}


def _case(rng: random.Random) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (cams, boxes): wider than high, and every wrong way gives a rate of its own."""
    while True:
        generator = torch.Generator().manual_seed(rng.getrandbits(32))
        cams = torch.rand(_N, _H, _W, generator=generator)
        # Half of the boxes have the peak inside, on an edge or just outside; the others are anywhere.
        start = torch.stack(_peaks(cams), dim=1) - torch.randint(-1, 5, (_N, 2), generator=generator)
        start[::2] = torch.randint(0, _W, (_N // 2, 2), generator=generator)
        start = start.clamp(torch.tensor(0), torch.tensor([_W - 4, _H - 3]))
        boxes = torch.cat([start, start + torch.tensor([4, 3])], dim=1)
        rates = [_right(cams, boxes), *(way(cams, boxes) for ways in _WRONG.values() for way in ways)]
        if len(set(rates)) == len(rates):
            return cams, boxes


def _probe(hit_rate: Any, rng: random.Random) -> dict[str, Any]:
    report: dict[str, Any] = {"rates": [], "untouched": True}
    for cams, boxes in (_case(rng), _case(rng)):
        given = cams.clone(), boxes.clone()
        report["rates"].append(copies(hit_rate(*given)))
        report["untouched"] &= torch.equal(given[0], cams) and torch.equal(given[1], boxes)
    return report


def _number(value: Any) -> float | None:
    """Convert a number, or a tensor that holds one, to a float; None for anything else."""
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    return float(value) if type(value) in (int, float) else None


def _equal(rate: float | None, expected: float) -> bool:
    """Check whether a rate is the expected one up to float32 rounding, which is larger for percentages."""
    return rate is not None and math.isclose(rate, expected, rel_tol=1e-5, abs_tol=1e-6)


def _recognise(rates: list[float | None], cases: list[Any]) -> str | None:
    """Return the mistake that gives every rate, or None: a single rate may be met by chance."""
    for name, ways in _WRONG.items():
        for way in ways:
            if all(_equal(rate, way(*case)) for rate, case in zip(rates, cases, strict=True)):
                return name
    return None


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    cases = [_case(rng), _case(rng)]
    rates = [_number(rate) for rate in saw["rates"]]
    wrong = [
        i for i, (rate, case) in enumerate(zip(rates, cases, strict=True)) if not _equal(rate, _right(*case))
    ]
    place = wrong[0] if wrong else 0
    case, rate, got = cases[place], rates[place], saw["rates"][place]
    mistake = None
    if got is None:
        mistake = "returns_nothing"
    elif isinstance(got, (list, torch.Tensor)) and rate is None:
        mistake = "one_each"
    elif wrong:
        mistake = _recognise(rates, cases)
    return [
        Criterion(
            "rate",
            not wrong,
            points=3,
            essential=True,
            given=f"cams: {_N}×{_H}×{_W}; boxes: {_N}×4, boxes[0] == {show(case[1][0])}",
            expected=f"{_right(*case):g}",
            got=show(got) if rate is None else f"{rate:g}",
            mistake=mistake,
        ),
        Criterion(
            "untouched",
            saw["untouched"] is True,
            essential=True,
            given="hit_rate(cams, boxes)",
            expected=Text(zh="`cams` 和 `boxes` 没有变", en="`cams` and `boxes` are as they were"),
            got=Text(zh="它们变了", en="they have changed"),
            mistake="changes_arguments",
        ),
    ]


def _says(id: str, zh: str, en: str, fails: str = "rate", raises: str = "") -> Mistake:
    return Mistake(id, Text(zh=zh, en=en), fails, raises)


HIT_RATE = Exercise(
    id="11.3",
    title=Text(zh="指点游戏", en="The pointing game"),
    answer="hit_rate",
    points=3,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`cams.flatten(1).argmax(dim=1)` 给出每张图最高点的编号，一行一行地数。怎样由编号得到行和列？",
            en="`cams.flatten(1).argmax(dim=1)` gives the number of each map's highest point, counted row by row. How do "
            "you get its row and column?",
        ),
        Text(
            zh="编号除以**宽**：商是行 `y`，余数是列 `x`。",
            en="Divide the number by the **width**: the quotient is the row, `y`, the remainder the column, `x`.",
        ),
        Text(
            zh="`x0, y0, x1, y1 = boxes.T`，然后 `((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).float().mean().item()`。",
            en="`x0, y0, x1, y1 = boxes.T`, then `((x0 <= x) & (x < x1) & (y0 <= y) & (y < y1)).float().mean().item()`.",
        ),
    ),
    mistakes=(
        _says(
            "end_included",
            "右边或下边多算了一格：框的 `x1`、`y1` 已经在框外，用 `<`，不用 `<=`。",
            "You counted a column or a row too many: `x1` and `y1` lie outside the box already. Use `<`, not `<=`.",
        ),
        _says(
            "start_left_out",
            "左边或上边少算了一格：`x0`、`y0` 在框里，用 `<=`，不用 `<`。",
            "You left out the first column or row: `x0` and `y0` lie in the box. Use `<=`, not `<`.",
        ),
        _says(
            "both_edges",
            "框的两头都反了：`x0`、`y0` 在框里，用 `<=`；`x1`、`y1` 已经在框外，用 `<`。",
            "Both ends of the box are the wrong way round: `x0` and `y0` lie in it, so use `<=`; `x1` and `y1` lie outside, so use `<`.",
        ),
        _says(
            "nothing_hit",
            "一张都没命中。常见的原因有两个：`argmax()` 没有写 `dim=1`，给出的编号数遍了整批图；或者用 `//` 求比例，小数部分没有了。",
            "Not one hit. There are two common reasons: `argmax()` without `dim=1` gives a number that counts through the whole batch, "
            "or the share was taken with `//`, which drops all behind the point.",
        ),
        _says(
            "swapped",
            "`x` 和 `y` 反了：行号是 `y`，列号是 `x`，切片要写 `cam[y0:y1, x0:x1]`。正方形的图上这样的错很难发现。",
            "`x` and `y` are swapped: the row is `y`, the column `x`, and a slice reads `cam[y0:y1, x0:x1]`. On square pictures "
            "this is hard to notice.",
            raises=r"max\(\): Expected reduction dim",
        ),
        _says(
            "wrong_width",
            "你用高去除编号了。一行有「宽」那么多格：除以 `cams.shape[2]`。",
            "You divided by the height. A row holds as many points as the map is wide: divide by `cams.shape[2]`.",
        ),
        _says(
            "fixed_width",
            "你把宽写死成 64 了。`cams` 可以是别的大小：除以 `cams.shape[2]`。",
            "You took the width to be 64. `cams` may have another size: divide by `cams.shape[2]`.",
        ),
        _says(
            "centre_of_mass",
            "你算的是重心，不是最高点。一张图亮两处，重心会落在中间的暗处。用 `argmax`。",
            "You took the centre of mass, not the highest point. Where a map is bright in two places, that lies in the dark between "
            "them. Use `argmax`.",
        ),
        _says(
            "sizes",
            "你把框的后两个数当成了宽和高。它们是右下角 `x1`、`y1`：直接和 `x`、`y` 比，不要再加 `x0`、`y0`。",
            "You took a box's last two numbers for its width and height. They are the corner `x1`, `y1`: compare `x` and `y` with "
            "them, without adding `x0` and `y0`.",
        ),
        _says(
            "share_of_sum",
            "这是框里的值占整张图总和的比例。指点游戏只看最高的那一点：在框里，或者不在。",
            "This is the share of the map's sum that lies in the box. The pointing game looks at the highest point only: "
            "in the box, or not.",
        ),
        Mistake(
            "mean_of_bools",
            Text(
                zh="`bool` 张量不能求平均：先变成数，`hits.float().mean()`。",
                en="A tensor of `bool` has no `mean()`: make numbers of it first, `hits.float().mean()`.",
            ),
            raises=r"mean\(\): could not infer output dtype",
        ),
        _says(
            "lowest",
            "你找的是最低点。要最高的：`argmax`。",
            "You looked for the lowest point. Take the highest: `argmax`.",
        ),
        _says(
            "one_peak",
            "你在整批图里只找了一个最高点。每张图找一个：先 `flatten(1)`，再 `argmax(dim=1)`。",
            "You took one highest point of the whole batch. Find one for each picture: `flatten(1)`, then `argmax(dim=1)`.",
        ),
        _says(
            "one_axis",
            "只比了一个方向。`x` 和 `y` 都要在框里。",
            "You compared one direction only. Both `x` and `y` must lie in the box.",
        ),
        _says(
            "percent",
            "你给的是百分数。要的是 0 到 1 的比例。",
            "You returned a percentage. A share from 0 to 1 is wanted.",
        ),
        _says(
            "counts",
            "你返回的是命中的张数。除以总张数，也就是用 `mean()`，不用 `sum()`。",
            "You returned the number of hits. Divide by the number of pictures: `mean()` in place of `sum()`.",
        ),
        _says("misses", "你算的是没命中的比例。", "You computed the share of misses."),
        _says(
            "one_each",
            "每张图一个结果还不是答案：最后取平均，只返回一个数。",
            "One result for each picture is not the answer yet: average them, and return one number.",
        ),
        _says(
            "returns_nothing",
            "`hit_rate` 返回了 `None`，也就是没有 `return`。",
            "`hit_rate` returned `None`: a `return` is missing.",
        ),
        _says(
            "changes_arguments",
            "调用者的 `cams` 或 `boxes` 被你改掉了。不要就地修改，算出新的张量。",
            "You changed the caller's `cams` or `boxes`. Do not work in place; compute new tensors.",
            fails="untouched",
        ),
    ),
    insight=Text(
        zh="一张好看的热图不是证据，一个比例才是：它能和「瞎猜中间」相比，也可能不及格。",
        en="A pretty heat map is no evidence; a rate is: it can be compared with a blind guess at the middle, and it can fail.",
    ),
)
