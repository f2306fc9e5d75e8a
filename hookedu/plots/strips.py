"""Heat strips of a training run: one per statistic, with a row per layer and a column per step."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hookedu.hooks.monitor import Reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Attribute of a Reading, title, kind of scale.
STATISTICS = (
    ("mean", "activation: mean", "signed"),
    ("std", "activation: std", "log"),
    ("gradient", "norm of the gradient at the output", "log"),
    ("ratio", "update ratio", "log"),
    ("dead", "ReLU units not positive in the step", "share"),
)
NONE, ZERO, ODD = "#d0d0d0", "#000000", "#e600e6"  # no value; exactly 0 on a log scale; nan or inf
_DECADES = 8  # of a log scale, below its largest value
# In inches: the figure, a row of a strip, what is above a strip (its title, and the steps of the one before), the legend.
_WIDTH, _ROW, _ABOVE, _BELOW = 10.0, 0.115, 0.4, 0.4


def draw_strips(figure: "Figure", rows: Sequence[Reading]) -> None:
    """Draw the strips into an empty figure, and set its height; a statistic that no layer has is left out."""
    layers = list(dict.fromkeys(row.layer for row in rows))
    steps = max((row.step for row in rows), default=-1) + 1
    shown = []
    for name, title, scale in STATISTICS:
        values = {(row.layer, row.step): getattr(row, name) for row in rows}
        # Layers that never have this statistic take no row; but all have a gradient, or else lack one.
        having = [
            layer
            for layer in layers
            if name == "gradient" or any(values.get((layer, step)) is not None for step in range(steps))
        ]
        if having:
            table = [[values.get((layer, step)) for step in range(steps)] for layer in having]
            shown.append((title, scale, having, table))
    pairs = [shown[n : n + 2] for n in range(0, len(shown), 2)]
    heights = [_ROW * max(len(having) for _, _, having, _ in pair) for pair in pairs]
    total = sum(heights) + _ABOVE * len(pairs) + _BELOW
    figure.set_size_inches(_WIDTH, total)
    top = total
    for pair, height in zip(pairs, heights, strict=True):
        top -= _ABOVE
        for place, (title, scale, having, table) in enumerate(pair):
            own = _ROW * len(having)
            ax = figure.add_axes((0.105 + 0.5 * place, (top - own) / total, 0.33, own / total))
            _strip(figure, ax, table, scale)
            ax.set_title(title, fontsize=8, loc="left", pad=2)
            ax.set_yticks(range(len(having)), [layer or "(model)" for layer in having], fontsize=6)
            ax.tick_params(labelsize=6, pad=1, length=2)
            ax.locator_params(axis="x", integer=True)
        top -= height
    legend = "a row per layer, a column per step; grey: none, black: 0, magenta: nan or inf"
    figure.text(0.01, 0.05 / total, legend, fontsize=7, color="#595959")


def _strip(figure: "Figure", ax: Any, table: list[list[float | None]], scale: str) -> None:
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize, to_rgba

    values = np.array([[math.nan if v is None else v for v in line] for line in table], dtype=float)
    none = np.array([[v is None for v in line] for line in table])
    odd = ~np.isfinite(values) & ~none
    finite = np.abs(values[np.isfinite(values)])
    largest = float(finite.max()) if finite.size else 1.0
    if scale == "log":
        positive = finite[finite > 0]
        high = float(positive.max()) if positive.size else 1.0
        low = max(float(positive.min()), high * 10.0**-_DECADES) if positive.size else 0.1
        ends, cmap = (low if low < high else high / 10, high), colormaps["viridis"]
    elif scale == "share":
        ends, cmap = (0.0, 1.0), colormaps["cividis"]
    else:
        ends, cmap = (-largest or -1.0, largest or 1.0), colormaps["RdBu_r"]
    norm = (LogNorm if scale == "log" else Normalize)(*ends)
    with np.errstate(all="ignore"):
        safe = np.where(none | odd | ((values == 0) & (scale == "log")), ends[1], values)
        colours = cmap(np.clip(np.asarray(norm(np.clip(safe, *ends))), 0, 1))
    colours[none], colours[odd] = to_rgba(NONE), to_rgba(ODD)
    if scale == "log":
        colours[values == 0] = to_rgba(ZERO)
    ax.imshow(colours, aspect="auto", interpolation="nearest")
    box = ax.get_position()
    bar = figure.colorbar(
        ScalarMappable(norm, cmap), cax=figure.add_axes((box.x1 + 0.008, box.y0, 0.008, box.height))
    )
    bar.ax.minorticks_off()
    bar.set_ticks(ends, labels=[f"{end:.0e}" if scale == "log" else f"{end:.2g}" for end in ends])
    bar.ax.tick_params(labelsize=6, pad=1, length=2)
