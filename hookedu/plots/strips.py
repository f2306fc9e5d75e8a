"""Heat strips of a training run: one per statistic, with a row per layer and a column per step."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hookedu.hooks.monitor import Reading
from hookedu.language import Text

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

# Attribute of a Reading, title, kind of scale.
STATISTICS = (
    ("mean", Text(zh="激活的均值", en="activation: mean"), "signed"),
    ("std", Text(zh="激活的标准差", en="activation: std"), "log"),
    ("gradient", Text(zh="输出处梯度的范数", en="norm of the gradient at the output"), "log"),
    ("ratio", Text(zh="更新比例", en="update ratio"), "log"),
    ("dead", Text(zh="这一步里从不为正的 ReLU 单元", en="ReLU units not positive in the step"), "share"),
)
LOG = Text(zh="对数刻度", en="log scale")
COLOURS = {"signed": "RdBu_r", "log": "viridis", "share": "cividis"}  # matplotlib's names
NONE, ZERO, ODD = "#d0d0d0", "#000000", "#e600e6"  # no value; exactly 0 on a log scale; nan or inf
_DECADES = 8  # of a log scale, below its largest value
# In inches: the figure, a row of a strip, what is above a strip (its title, and the steps of the one before), the legend,
# and the curve of the loss.
_WIDTH, _ROW, _ABOVE, _BELOW, _CURVE = 10.0, 0.13, 0.42, 0.42, 0.8

_SMALL = 7.5  # points: of all but the titles


@dataclass(frozen=True)
class Strip:
    """One statistic of a run: `values` has a row per layer and a column per step, with None where there is no value."""

    name: str
    title: Text
    scale: str
    layers: list[str]
    values: list[list[float | None]]

    def numbers(self) -> "np.ndarray":
        """Return the values as floating-point numbers, nan for None."""
        import numpy as np

        return np.array([[math.nan if v is None else v for v in line] for line in self.values], dtype=float)

    def kinds(self) -> "np.ndarray":
        """Return 0 for a value that the scale has a colour for, 1 for none, 2 for a 0 on a log scale, 3 for nan or inf."""
        import numpy as np

        values = self.numbers()
        none = np.array([[v is None for v in line] for line in self.values])
        kinds = np.where((values == 0) & (self.scale == "log"), 2, 0)
        kinds[~np.isfinite(values)] = 3
        kinds[none] = 1
        return kinds

    def ends(self) -> tuple[float, float]:
        """Return the values that have the first and the last colour."""
        import numpy as np

        finite = [abs(v) for line in self.values for v in line if v is not None and np.isfinite(v)]
        if self.scale == "share":
            return 0.0, 1.0
        if self.scale == "signed":
            largest = max(finite, default=1.0) or 1.0
            return -largest, largest
        positive = [v for v in finite if v > 0]
        high = max(positive, default=1.0)
        low = max(min(positive), high * 10.0**-_DECADES) if positive else 0.1
        return (low if low < high else high / 10), high

    def places(self) -> "np.ndarray":
        """Return where each value is on its scale, from 0 to 1; something for those that have no colour on it."""
        import numpy as np

        low, high = self.ends()
        values = np.clip(np.where(self.kinds() == 0, self.numbers(), high), low, high)
        if self.scale == "log":
            return np.log(values / low) / np.log(high / low)
        return (values - low) / (high - low)


def strips_of(rows: Sequence[Reading], steps: Sequence[int]) -> list[Strip]:
    """Return the strips of these steps; a statistic that no layer has is left out."""
    layers = list(dict.fromkeys(row.layer for row in rows))
    at = {(row.layer, row.step): row for row in rows}
    shown = []
    for name, title, scale in STATISTICS:
        table = {layer: [getattr(at.get((layer, step)), name, None) for step in steps] for layer in layers}
        # Layers that never have this statistic take no row; but all have a gradient, or else lack one.
        having = [
            layer
            for layer, line in table.items()
            if name == "gradient" or any(value is not None for value in line)
        ]
        if having:
            shown.append(Strip(name, title, scale, having, [table[layer] for layer in having]))
    return shown


def draw_strips(figure: "Figure", rows: Sequence[Reading], losses: Sequence[tuple[int, float]]) -> None:
    """Draw the strips into an empty figure, below the curve of (step, loss) if there is any, and set its height."""
    steps = max((row.step for row in rows), default=-1) + 1
    shown = strips_of(rows, range(steps))
    pairs = [shown[n : n + 2] for n in range(0, len(shown), 2)]
    heights = [_ROW * max(len(strip.layers) for strip in pair) for pair in pairs]
    total = sum(heights) + _ABOVE * len(pairs) + _BELOW + (_ABOVE + _CURVE if losses else 0)
    figure.set_size_inches(_WIDTH, total)
    top = total
    if losses:
        top -= _ABOVE + _CURVE
        ax = figure.add_axes((0.105, top / total, 0.33, _CURVE / total))
        ax.plot(*zip(*losses, strict=True), lw=1, color="#2166ac")
        ax.set_xlim(-0.5, steps - 0.5)
        _label(ax, "loss")
    for pair, height in zip(pairs, heights, strict=True):
        top -= _ABOVE
        for place, strip in enumerate(pair):
            own = _ROW * len(strip.layers)
            ax = figure.add_axes((0.105 + 0.5 * place, (top - own) / total, 0.33, own / total))
            _draw(figure, ax, strip)
            ax.set_yticks(
                range(len(strip.layers)), [layer or "(model)" for layer in strip.layers], fontsize=_SMALL
            )
            _label(ax, strip.title.en)
        top -= height
    legend = "a row per layer, a column per step; grey: none, black: 0, magenta: nan or inf"
    figure.text(0.01, 0.05 / total, legend, fontsize=_SMALL, color="#595959")


def _label(ax: Any, title: str) -> None:
    ax.set_title(title, fontsize=8, loc="left", pad=4)
    ax.tick_params(labelsize=_SMALL, pad=1, length=2)
    ax.locator_params(axis="x", integer=True)


def _draw(figure: "Figure", ax: Any, strip: Strip) -> None:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize, to_rgba

    cmap, kinds, ends = colormaps[COLOURS[strip.scale]], strip.kinds(), strip.ends()
    colours = cmap(strip.places())
    for kind, colour in enumerate((NONE, ZERO, ODD), 1):
        colours[kinds == kind] = to_rgba(colour)
    ax.imshow(colours, aspect="auto", interpolation="nearest")
    box = ax.get_position()
    norm = (LogNorm if strip.scale == "log" else Normalize)(*ends)
    bar = figure.colorbar(
        ScalarMappable(norm, cmap), cax=figure.add_axes((box.x1 + 0.008, box.y0, 0.008, box.height))
    )
    bar.ax.minorticks_off()
    bar.set_ticks(ends, labels=[short(end) for end in ends])
    bar.ax.tick_params(labelsize=_SMALL, pad=1, length=2)
    if strip.scale == "log":
        bar.ax.annotate(
            LOG.en, (0, 1), (0, 4), "axes fraction", textcoords="offset points", va="bottom", fontsize=_SMALL
        )


def short(value: float) -> str:
    """Return a number with two digits, written as the widget writes it (`short` in marks.js)."""
    import numpy as np

    rounded = float(f"{value:.1e}")
    if rounded and not 1e-4 <= abs(rounded) < 1e6:
        return np.format_float_scientific(rounded, trim="-", exp_digits=1).replace("e+", "e")
    return np.format_float_positional(rounded, trim="-")
