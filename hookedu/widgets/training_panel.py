"""TrainingPanel: strips that show, while a model trains, what each layer does at each step."""

import time
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn

from hookedu.hooks.monitor import Monitor, Reading, Source
from hookedu.plots.strips import COLOURS, NONE, ODD, ZERO, draw_strips, strips_of
from hookedu.widgets.live import LiveWidget
from hookedu.widgets.panel_words import CLOSED, WAITING, WORDS, summary
from hookedu.widgets.pictures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAUSE = 0.1  # seconds between two pictures, at least
_SHARE = 4  # and this many times as long as an update takes, so that training is not held up
_COLUMNS = 500  # at most: a screen has no more dots for a strip
_SHADES = 252  # the last number that the browser gets for a colour of the scale; those above stand for NONE, ZERO, ODD


class TrainingPanel(LiveWidget, module="training_panel"):
    """Widget that shows activations, dead ReLUs, gradients and updates of each layer while a model trains.

    Use it as a context manager around the training loop. It has one strip per statistic, with a row per layer and a
    column per step; point at a step with the mouse or the arrow keys, and its numbers are said. What it shows comes from
    hooks, which come off at the end; neither model nor optimizer is changed. Layers are the modules without children. A
    step ends with ``optimizer.step()``. Calls in which gradients are off, such as those of a validation, are not noted.

    ``note(loss)`` in the loop adds the curve of the loss. Of a long run the widget shows every so many steps; ``rows`` has all.

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
    noted : dict of int to float
        The losses that were noted, by step.
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
    ...         loss = model(torch.rand(16, 4)).square().mean()
    ...         loss.backward()
    ...         optimizer.step()
    ...         panel.note(loss)
    >>> [(row.step, row.layer) for row in panel.rows][:4]
    [(0, '0'), (0, '1'), (0, '2'), (1, '0')]
    >>> panel.rows[1].dead <= 1 and panel.rows[0].ratio > 0 and panel.source is None
    True
    >>> list(panel.noted)
    [0, 1, 2]
    >>> panel.close()
    """

    WORDS: ClassVar = WORDS

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._monitor: Monitor | None = Monitor(model, optimizer)  # None once closed
        self._ticker: Any = None
        self._optimizer: torch.optim.Optimizer | None = optimizer
        self._due = 0.0  # time of the next update
        self._shown: Any = None  # what the last update was about, so that none is made twice
        self._figure: Figure | None = None
        self._drawn: Any = None  # what the figure is about
        super().__init__()
        self.say(summary=WAITING)

    def __enter__(self) -> "TrainingPanel":
        if self._monitor is None or self._optimizer is None:
            raise RuntimeError(str(CLOSED))
        self._monitor.__enter__()
        # After the hook of the monitor, which completes the step.
        self._ticker = self._optimizer.register_step_post_hook(self._tick)
        self._shown, self._due = None, time.monotonic() + _PAUSE
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
            self._answer()  # an error is shown, and training goes on
            now = time.monotonic()
            self._due = now + max(_PAUSE, _SHARE * (now - begun))

    def note(self, loss: float | torch.Tensor) -> None:
        """Note the loss of this step, before or after ``optimizer.step()``: it is shown as a curve above the strips.

        Parameters
        ----------
        loss : float or torch.Tensor
            A single real number of any kind; nan and inf are drawn as gaps.

        Raises
        ------
        TypeError
            If it is not a single real number.
        RuntimeError
            If the panel is closed.

        Examples
        --------
        >>> import torch
        >>> from hookedu import TrainingPanel
        >>> model = torch.nn.Linear(2, 1)
        >>> with TrainingPanel(model, torch.optim.SGD(model.parameters(), lr=0.1)) as panel:
        ...     panel.note(model(torch.zeros(1, 2)).square().sum() * 0 + 0.5)
        >>> panel.noted
        {0: 0.5}
        >>> panel.close()
        """
        if self._monitor is None:
            raise RuntimeError(str(CLOSED))
        self._monitor.note(loss)

    # -- showing ---------------------------------------------------------------------------------------------

    def _about(self) -> tuple[int, int, int, bool]:
        steps = 0 if self._monitor is None else self._monitor.steps
        return len(self.rows), steps, len(self.noted), self._ticker is None

    def _update(self) -> None:
        if self._about() == self._shown:
            return
        self._shown = self._about()  # not repeated before there is more to show, also if it fails
        rows = self.rows
        if rows:
            self.say(summary=summary(rows, self.source))
            self._post(rows)
        else:
            self.say(summary=WAITING)
            self.post("strips", {"strips": [], "done": False, "layers": [], "every": 1})
        self._no_error()

    def _post(self, rows: list[Reading]) -> None:
        last = rows[-1].step
        every = -(-(last + 1) // _COLUMNS)
        steps = sorted({*range(0, last + 1, every), last})
        strips, tensors = strips_of(rows, steps), {}
        for strip in strips:
            kinds, shades = strip.kinds(), (strip.places() * _SHADES).round()
            shades[kinds > 0] = _SHADES + kinds[kinds > 0]
            tensors[f"{strip.name}_shades"] = torch.from_numpy(shades).to(torch.uint8)
            tensors[f"{strip.name}_values"] = torch.from_numpy(strip.numbers())
        if self.noted:
            losses = self.noted
            tensors["losses"] = torch.tensor([losses.get(step, torch.nan) for step in steps])
            tensors["noted"] = torch.tensor([step in losses for step in steps])
        self.post(
            "strips",
            {
                "strips": [
                    {
                        "name": strip.name,
                        "layers": [layer or "(model)" for layer in strip.layers],
                        "map": COLOURS[strip.scale],
                        "ends": strip.ends(),
                        "log": strip.scale == "log",
                    }
                    for strip in strips
                ],
                "layers": list(dict.fromkeys(row.layer or "(model)" for row in rows)),
                "shades": _SHADES,
                "colours": [NONE, ZERO, ODD],
                "every": every,
                "done": self._ticker is None,
            },
            steps=torch.tensor(steps),
            **tensors,
        )

    def _still(self) -> "Figure | None":
        return self.figure

    # -- public attributes -----------------------------------------------------------------------------------

    @property
    def rows(self) -> list[Reading]:
        """A reading per step and layer."""
        return self._monitor.rows if self._monitor is not None else []

    @property
    def noted(self) -> dict[int, float]:
        """The losses that were noted, by step."""
        return dict(self._monitor.losses) if self._monitor is not None else {}

    @property
    def source(self) -> Source | None:
        """The first nan or inf."""
        return self._monitor.source if self._monitor is not None else None

    @property
    def figure(self) -> "Figure | None":
        """The strips of all steps so far."""
        if not self.rows:
            return None
        if self._figure is None or self._drawn != self._about():
            figure = new_figure()
            draw_strips(figure, self.rows, sorted(self.noted.items()))
            self._figure, self._drawn = figure, self._about()
        return self._figure

    def _release(self) -> None:
        self._stop()
        self._monitor = self._optimizer = self._figure = self._drawn = None
