"""Exercise 07.2, `pool_mask(features, size)`: the positions that receive a gradient through a max pool."""

import random
from typing import Any, TypedDict

import torch
import torch.nn.functional as F

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.tools import copies, same
from hookedu.language import Text


class _Shown(TypedDict):
    given: str
    expected: str
    got: str


def _cases(rng: random.Random) -> tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (size, distinct, tied, bordered): maps of distinct values, of one value, with a row too many."""
    size = rng.choice([2, 3])
    side = 2 * size
    while True:
        values = torch.tensor([float(v) for v in rng.sample(range(-60, 60), 2 * side * side)])
        distinct = values.reshape(1, 2, side, side)
        distinct[0, 0, :size, :size] -= 120  # a window of negative values has a maximum too
        masks = [_mask(distinct, size), *_misunderstood(distinct, size).values()]
        if not any(torch.equal(a, b) for i, a in enumerate(masks) for b in masks[:i]):
            break  # every misunderstanding gives another mask on this input
    tied = torch.full((1, 2, side, side), float(rng.randint(2, 9)))
    bordered = torch.tensor([float(v) for v in rng.sample(range(-60, 60), (side + 1) * side)])
    bordered = bordered.reshape(1, 1, side + 1, side)
    bordered[..., -1, 0] = 99.0  # the largest value is outside of all windows
    return size, distinct, tied, bordered


def _mask(features: torch.Tensor, size: int) -> torch.Tensor:
    index = F.max_pool2d(features, size, return_indices=True)[1]
    mask = torch.zeros_like(features, dtype=torch.bool).flatten(2)
    return mask.scatter(2, index.flatten(2), True).reshape(features.shape)


def _misunderstood(features: torch.Tensor, size: int) -> dict[str, torch.Tensor]:
    """Return the masks that known mistakes give for maps of distinct values, by name."""
    mask, flat = _mask(features, size), features.flatten(2)
    counted = F.max_pool2d(features, size, return_indices=True)[1].flatten()
    overlapping = F.max_pool2d(features, size, stride=1, return_indices=True)[1].flatten(2)
    of_both = F.max_pool2d(features, size).amax(1, keepdim=True)
    return {
        "per_channel": (flat == flat.amax(2, keepdim=True)).reshape(features.shape),
        "per_map": features == features.max(),
        "across_channels": features == of_both.repeat_interleave(size, 2).repeat_interleave(size, 3),
        "only_larger_channel": mask & (features == features.amax(1, keepdim=True)),
        "only_positive": features > 0,
        "only_nonzero": features != 0,
        "inverted": ~mask,
        "relu_first": _mask(features.relu(), size),
        "one_count": torch.zeros_like(mask).flatten().index_fill(0, counted, True).reshape(mask.shape),
        "stride_one": torch.zeros_like(mask).flatten(2).scatter(2, overlapping, True).reshape(mask.shape),
        "first_map_only": torch.cat([mask[:, :1], torch.zeros_like(mask[:, 1:])], 1),
    }


def _probe(pool_mask: Any, rng: random.Random) -> dict[str, Any]:
    size, distinct, tied, bordered = _cases(rng)
    report = {"distinct": copies(pool_mask(distinct.clone(), size))}
    report["tied"] = copies(pool_mask(tied.clone(), size))
    try:
        report["bordered"] = copies(pool_mask(bordered.clone(), size))
    except (RuntimeError, IndexError, ValueError) as error:  # all that sizes which do not fit may raise
        report["bordered"] = f"{type(error).__name__}: {error}"[:120]
    return report


def _mistake(got: Any, features: torch.Tensor, size: int) -> str | None:
    """Return the mistake that gives `got` for maps of distinct values, or None."""
    if not isinstance(got, torch.Tensor):
        return None
    pooled = F.max_pool2d(features, size)
    if got.shape != features.shape:
        return "pooled_shape" if got.shape == pooled.shape else None
    if same(got.bool(), _mask(features, size)):
        return "not_bool"
    known = _misunderstood(features, size)
    names = {
        "per_map": "per_channel",
        "only_larger_channel": "across_channels",
        "only_nonzero": "only_positive",
    }
    found = next((name for name, mask in known.items() if torch.equal(got.bool(), mask)), None)
    return names.get(found, found) if found else None


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    size, distinct, tied, bordered = _cases(rng)
    tie_mistake = "marks_ties" if same(saw["tied"], torch.ones_like(tied, dtype=torch.bool)) else "other_tie"
    wanted = {name: _mask(maps, size) for name, maps in (("d", distinct), ("t", tied), ("b", bordered))}

    def shown(maps: torch.Tensor, got: Any, mask: torch.Tensor) -> _Shown:
        """Describe the first map that differs; the very first if the shape of `got` does not fit."""
        fits = isinstance(got, torch.Tensor) and got.shape == mask.shape
        differs = (got != mask).flatten(2).any(2).nonzero().tolist() if fits else []
        place = tuple(differs[0]) if differs else (0, 0)
        at = "[" + ", ".join(map(str, place)) + "]"
        return {
            "given": f"features{at} = {show(maps[place])}, size = {size}",
            "expected": f"mask{at} = {show(mask[place])}",
            "got": f"mask{at} = {show(got[place])}" if fits else show(got).strip("<>"),
        }

    return [
        Criterion(
            "routes",
            same(saw["distinct"], wanted["d"]),
            points=2,
            essential=True,
            mistake=_mistake(saw["distinct"], distinct, size),
            **shown(distinct, saw["distinct"], wanted["d"]),
        ),
        Criterion(
            "ties",
            same(saw["tied"], wanted["t"]),
            points=1,
            mistake=tie_mistake,
            **shown(tied, saw["tied"], wanted["t"]),
        ),
        Criterion(
            "border",
            same(saw["bordered"], wanted["b"]),
            points=1,
            mistake="border",
            **shown(bordered, saw["bordered"], wanted["b"]),
        ),
    ]


POOL_MASK = Exercise(
    id="07.2",
    title=Text(zh="零从哪里来", en="Where the zeros come from"),
    answer="pool_mask",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="最大池化在每个窗口里只取一个值。梯度原路返回：只有被取走的位置才有，其余都是 `0`。",
            en="Max pooling takes one value from each window. The gradient goes back the same way: only the position that "
            "was taken gets any, all others get `0`.",
        ),
        Text(
            zh="`F.max_pool2d(features, size, return_indices=True)` 会说出取走了哪些位置。另一条路：让 autograd 自己去走一遍，看梯度哪里不是 `0`。",
            en="`F.max_pool2d(features, size, return_indices=True)` tells which positions were taken. Another way: let "
            "autograd walk back by itself and see where the gradient is not `0`.",
        ),
        Text(
            zh="`x = features.detach().clone().requires_grad_()`；`F.max_pool2d(x, size).sum().backward()`；`return x.grad != 0`。",
            en="`x = features.detach().clone().requires_grad_()`; `F.max_pool2d(x, size).sum().backward()`; `return x.grad != 0`.",
        ),
    ),
    mistakes=(
        Mistake(
            "per_channel",
            Text(
                zh="你在整张特征图里只标了一个最大值。最大池化是**每个窗口**各取一个。",
                en="You marked one largest value for a whole map. Max pooling takes one from **each window**.",
            ),
            fails="routes",
        ),
        Mistake(
            "across_channels",
            Text(
                zh="你让不同的通道互相比较了。池化在每个通道里单独进行，每个通道都有自己的赢家。",
                en="You let the channels compete with each other. Pooling works on each channel alone, and each has its own winners.",
            ),
            fails="routes",
        ),
        Mistake(
            "pooled_shape",
            Text(
                zh="你返回的是池化之后的大小。要的是池化**之前**的大小：`features` 的每个位置一个 `True` 或 `False`。",
                en="What you returned has the size after pooling. Wanted is the size **before** it: one `True` or `False` "
                "for each position of `features`.",
            ),
            fails="routes",
        ),
        Mistake(
            "not_bool",
            Text(
                zh="位置都对，但它不是 `torch.bool`。返回掩码本身，例如加一个 `!= 0`。",
                en="The positions are right, but it is no `torch.bool`. Return the mask itself, for example with `!= 0`.",
            ),
            fails="routes",
        ),
        Mistake(
            "only_positive",
            Text(
                zh="特征值本身是正是零并不要紧，那是 ReLU 的规则。最大池化只问：你是不是这个窗口里最大的？负数也可以是。",
                en="Whether a feature is positive or zero does not matter here; that is ReLU's rule. A max pool only asks: "
                "are you the largest of your window? A negative number can be.",
            ),
            fails="routes",
        ),
        Mistake(
            "inverted",
            Text(
                zh="正好反了：你标出的是梯度为 `0` 的地方。",
                en="Just the other way round: you marked the places where the gradient is `0`.",
            ),
            fails="routes",
        ),
        Mistake(
            "relu_first",
            Text(
                zh="负数窗口也有赢家：别先做 `relu`，也别用 `0` 填充。",
                en="A window of negatives has a winner too: do not apply `relu` or pad with `0` first.",
            ),
            fails="routes",
        ),
        Mistake(
            "one_count",
            Text(
                zh="`return_indices` 在每张图里都从 `0` 数起，你却把它当成整个张量里的序号，赢家全落进了最前面的图。先 `flatten(2)`，再 `scatter_`。",
                en="`return_indices` counts from `0` in each map; you took it as a count through the whole tensor, so all winners fell "
                "into the first maps. Use `flatten(2)`, then `scatter_`.",
            ),
            fails="routes",
        ),
        Mistake(
            "stride_one",
            Text(
                zh="你的窗口每次只移动 1 格，互相重叠。这里的窗口一个挨一个：步长就是 `size`，不写 `stride` 时正是如此。",
                en="Your windows move by 1 and overlap. Here they stand side by side: the stride is `size`, which is what you get "
                "without `stride`.",
            ),
            fails="routes",
        ),
        Mistake(
            "first_map_only",
            Text(
                zh="只有第一个通道的图填好了。每一张图（批里的每个样本，每个通道）都有自己的赢家。",
                en="Only the maps of the first channel are filled. Every map (each sample of the batch, each channel) has its own winners.",
            ),
            fails="routes",
        ),
        Mistake(
            "marks_ties",
            Text(
                zh="几个数一样大时你全标上了。最大池化只取其中第一个（先上后下，先左后右），梯度也只回到那里：第 7.4 节里只有左上角不是 `0`，正是这个原因。",
                en="Where several numbers are equally large you marked them all. Max pooling takes only the first of them (top to "
                "bottom, left to right), and the gradient returns only there: that is why in section 7.4 only the top left corner "
                "is not `0`.",
            ),
            fails="ties",
        ),
        Mistake(
            "other_tie",
            Text(
                zh="几个数一样大时，你选的不是第一个。最大池化从左到右、从上到下扫描，只有**更大**的才会取代先来的。",
                en="Where several numbers are equally large you did not take the first. Max pooling scans left to right and top to "
                "bottom, and only a **larger** one replaces what came before.",
            ),
            fails="ties",
        ),
        Mistake(
            "border",
            Text(
                zh="高度不能被窗口整除时出了问题。凑不满一个窗口的那一行被池化丢掉了，从来没有人看过它，所以那里全是 `False`。",
                en="It fails where the height is no multiple of the window. Pooling drops the row that fills no window; nobody ever "
                "looked at it, so it is `False` throughout.",
            ),
            fails="border",
        ),
    ),
    insight=Text(
        zh="池化不做加权，只做挑选：它把整个梯度交给每个窗口的赢家。所以在 `2×2` 的池化之前，至少有四分之三的梯度是 `0`。",
        en="A max pool does not weigh, it picks: it hands the whole gradient to the winner of each window. So before a `2×2` "
        "pool at least three quarters of the gradient are `0`.",
    ),
)
