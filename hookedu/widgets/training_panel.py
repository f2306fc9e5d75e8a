"""TrainingPanel: strips that show, while a model trains, what each layer does at each step."""

import time
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets
import torch
from torch import nn

from hookedu.hooks.monitor import Monitor, Reading, Source
from hookedu.language import Text, counted
from hookedu.plots.strips import draw_strips
from hookedu.widgets.panel import Panel
from hookedu.widgets.pictures import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAUSE = 0.1  # seconds between two pictures, at least
_SHARE = 4  # and this many times as long as drawing takes, so that training is not held up


class TrainingPanel(Panel):
    """Widget that shows activations, dead ReLUs, gradients and updates of each layer while a model trains.

    Use it as a context manager around the training loop. It has one strip per statistic, with a row per layer and a
    column per step. What it shows comes from hooks, which come off at the end; neither model nor optimizer is changed.
    Layers are the modules without children. A step ends with ``optimizer.step()``. Calls in which gradients are off, such
    as those of a validation, are not noted.

    Where widgets are not shown, a notebook keeps a still picture of the strips; ``figure`` is a matplotlib figure of them,
    and ``rows`` holds the numbers.

    Parameters
    ----------
    model : torch.nn.Module
        The model that is trained.
    optimizer : torch.optim.Optimizer
        The optimizer that trains it.

    Attributes
    ----------
    rows : list of Reading
        A reading per step and layer, with ``step``, ``layer``, ``mean``, ``std``, ``dead``, ``gradient`` and ``ratio``.
    source : Source or None
        The first nan or inf that a layer put out, with ``step``, ``layer`` and ``sample``; None if there was none.
    figure : matplotlib.figure.Figure or None
        The strips of all steps so far; None before the first.

    Raises
    ------
    TypeError
        If ``model`` is not an ``nn.Module``, or ``optimizer`` is not an optimizer.
    RuntimeError
        On entering it a second time, inside its own ``with`` block.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hookedu import TrainingPanel
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> panel = TrainingPanel(model, optimizer)  # the last line of a cell shows it
    >>> with panel:
    ...     for step in range(3):
    ...         optimizer.zero_grad()
    ...         model(torch.rand(16, 4)).square().mean().backward()
    ...         optimizer.step()
    >>> [(row.step, row.layer) for row in panel.rows][:4]
    [(0, '0'), (0, '1'), (0, '2'), (1, '0')]
    >>> panel.rows[1].dead <= 1 and panel.rows[0].ratio > 0 and panel.source is None
    True
    >>> panel.close()
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        monitor = Monitor(model, optimizer)  # first: it raises for anything else
        super().__init__()
        self._monitor: Monitor | None = monitor  # None once closed
        self._ticker: Any = None
        self._optimizer: torch.optim.Optimizer | None = optimizer
        self._due, self._drawn = 0.0, -1  # time of the next picture; number of rows in the last one
        self._says, self._table = ipywidgets.HTML(), ipywidgets.HTML()
        self._picture = Picture()
        self.label(self._picture, tooltip=ALTERNATIVE)
        self._show(self._says, self._picture, self._table)
        self._answer()

    def __enter__(self) -> "TrainingPanel":
        if self._monitor is None or self._optimizer is None:
            raise RuntimeError(str(CLOSED))
        self._monitor.__enter__()
        # After the hook of the monitor, which completes the step.
        self._ticker = self._optimizer.register_step_post_hook(self._tick)
        self._drawn, self._due = -1, time.monotonic() + _PAUSE
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        self._answer()

    def _stop(self) -> None:
        if self._ticker is not None:
            self._ticker.remove()
            self._ticker = None
        if self._monitor is not None:
            self._monitor.__exit__()

    def _tick(self, *_: Any) -> None:
        if time.monotonic() >= self._due:
            begun = time.monotonic()
            self._answer()  # an error while drawing is shown, and training goes on
            now = time.monotonic()
            self._due = now + max(_PAUSE, _SHARE * (now - begun))

    def _update(self) -> None:
        assert self._monitor is not None  # a closed widget is not updated
        rows = self._monitor.rows
        if len(rows) == self._drawn:
            return
        self._drawn = len(rows)
        if not rows:
            self._picture.clear()
            self._table.value = ""
            self.say(self._says, WAITING)
            return
        self._picture.draw(lambda figure: draw_strips(figure, rows))
        self.say(self._says, _summary(rows, self._monitor.source))
        self._table.value = _table(rows)

    def _still(self) -> "Figure | None":
        return self._picture.figure

    @property
    def rows(self) -> list[Reading]:
        """A reading per step and layer."""
        return self._monitor.rows if self._monitor is not None else []

    @property
    def source(self) -> Source | None:
        """The first nan or inf."""
        return self._monitor.source if self._monitor is not None else None

    @property
    def figure(self) -> "Figure | None":
        """The strips of all steps so far."""
        if self._monitor is not None and len(self._monitor.rows) != self._drawn:
            self._answer()
        return self._picture.figure

    def _release(self) -> None:
        self._stop()
        self._monitor = self._optimizer = None
        self._picture.figure = None


def _summary(rows: list[Reading], source: Source | None) -> Text:
    """Return in words what matters most in the strips."""
    last = rows[-1].step
    now = [row for row in rows if row.step == last]
    steps, layers = last + 1, len({row.layer for row in rows})
    said = {"steps_en": counted(steps, "step"), "layers_en": counted(layers, "layer")}
    parts = [STATE.format(steps=steps, layers=layers, **said)]
    without = [row.layer for row in now if row.gradient is None]
    if without:
        parts.append(NO_GRADIENT.format(layers=_names(without)))
    still = [row.layer for row in now if row.ratio == 0]
    if still:
        parts.append(STILL.format(layers=_names(still)))
    dead = [row.layer for row in now if row.dead is not None and row.dead > 0.5]
    if dead:
        parts.append(DEAD.format(layers=_names(dead)))
    if source is not None:
        parts.append(FIRST_NAN.format(step=source.step, layer=source.layer, sample=source.sample))
    return Text(zh="".join(part.zh for part in parts), en=" ".join(part.en for part in parts))


def _names(layers: list[str]) -> str:
    return ", ".join(f"`{layer or '(model)'}`" for layer in layers)


def _table(rows: list[Reading]) -> str:
    """Return the readings of the last step as a table, for those who do not see the strips."""
    last = rows[-1].step
    heads = ("layer", "mean", "std", "dead", "gradient", "ratio")
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(getattr(row, name))}</td>" for name in heads) + "</tr>"
        for row in rows
        if row.step == last
    )
    return f"<details><summary>step {last}</summary><table><tr>{head}</tr>{body}</table></details>"


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    return escape(value or "(model)") if isinstance(value, str) else f"{value:.3g}"


WAITING = Text(
    zh="还没有数据：把训练循环放进 `with panel:` 里。",
    en="Nothing yet: put the training loop inside `with panel:`.",
)
ALTERNATIVE = Text(
    zh="每个统计量一条：每行一层，每列一步。最后一步的数在下面的表里",
    en="A strip per statistic, with a row per layer and a column per step; the table below has the last step",
)
STATE = Text(zh="{steps} 步，{layers} 层。", en="{steps_en}, {layers_en}.")
NO_GRADIENT = Text(zh="没有梯度到达：{layers}。", en="No gradient arrives at {layers}.")
STILL = Text(zh="参数不动：{layers}。", en="Parameters stand still in {layers}.")
DEAD = Text(
    zh="一半以上的单元从不为正：{layers}。", en="More than half of the units are never positive in {layers}."
)
FIRST_NAN = Text(
    zh="第一个 `nan` 或 `inf`：第 {step} 步，`{layer}`，样本 {sample}。",
    en="The first `nan` or `inf`: step {step}, `{layer}`, sample {sample}.",
)
CLOSED = Text(zh="这个面板已经关闭；请另建一个", en="this panel is closed; make another one")
