"""Panel, the base class of the widgets: translated labels, error display, and batching of clicks."""

import asyncio
import contextlib
import threading
import traceback
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import ipywidgets
import torch
import traitlets

from hookedu.language import LANGUAGES, Text
from hookedu.widgets.language_toggle import preference
from hookedu.widgets.lifetime import close_with_parts, end_earlier_run
from hookedu.widgets.style import CSS

_BURST = 0.01  # seconds: faster clicks are answered by one update
_WIDEST = 34  # maximum width of a column in a list, in characters

_Chooser = ipywidgets.Dropdown | ipywidgets.Select | ipywidgets.ToggleButtons


class Panel(ipywidgets.VBox):
    """Base class of the widgets.

    A subclass creates its controls, labels them with `label`, `options` and `say`, makes them call `changed`,
    and implements `_update`.

    The model runs, and figures are drawn, only in the event loop of the kernel's main thread: JupyterLab
    delivers clicks in a thread of their own, and a model must not run for a plot while a cell is training it.

    Attributes
    ----------
    error : Exception or None
        The exception that the panel shows.
    closed : bool
        Whether the widget is closed.
    """

    error = traitlets.Instance(Exception, allow_none=True)
    closed = True  # until __init__ sets it

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self._labels: dict[tuple[ipywidgets.Widget, str], Any] = {}
        self._lock = threading.RLock()
        self._waiting = self._updating = False
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:  # a plain script, where every change is answered immediately
            self._loop = None
        self._style = ipywidgets.HTML(CSS, layout={"display": "none"})
        self._error_says, self._error_report = ipywidgets.HTML(), ipywidgets.HTML()
        self._error_box = ipywidgets.VBox(
            [self._error_says, self._error_report], layout={"display": "none"}
        ).add_class("hookedu-error")
        self.add_class("hookedu-widget")
        preference.observe(self._speak, "language")
        end_earlier_run(self)

    def _show(self, *children: ipywidgets.Widget) -> None:
        self.children = [self._style, *children, self._error_box]

    # -- language --------------------------------------------------------------------------------------------

    def label(self, widget: ipywidgets.Widget, **texts: Text) -> Any:
        """Set traits such as `description` and `tooltip`, now and whenever the language changes."""
        for trait, text in texts.items():
            self._labels[widget, trait] = text
            setattr(widget, trait, plain(text))
        return widget

    def options(self, widget: _Chooser, options: Sequence[tuple[Text | str, Any]], value: Any) -> None:
        """Set the options of a selection widget, and translate their labels whenever the language changes."""
        self._labels[widget, "options"] = options
        _set_options(widget, options, value)

    def say(self, widget: ipywidgets.HTML, text: Text | None) -> None:
        """Show a text, or hide the widget if there is none."""
        self._labels[widget, "value"] = text
        widget.value = rich(text) if text else ""
        widget.layout.display = None if text else "none"

    def stepper(self, select: ipywidgets.Select) -> ipywidgets.HBox:
        """Return buttons that move the selection of a list, as JupyterLab intercepts its arrow keys."""

        def move(by: int) -> None:
            if select.options:
                at = -1 if select.index is None else select.index
                select.index = min(max(at + by, 0), len(select.options) - 1)

        up, down = ipywidgets.Button(icon="chevron-up"), ipywidgets.Button(icon="chevron-down")
        for button, text, by in ((up, PREVIOUS, -1), (down, NEXT, 1)):
            self.label(button, description=text, tooltip=text).layout.width = "auto"
            button.on_click(lambda _, by=by: move(by))
        return ipywidgets.HBox([up, down]).add_class("hookedu-row")

    def _speak(self, _: Any) -> None:
        """Set every label again, after a change of the language."""
        with self._lock:
            for (widget, trait), text in list(self._labels.items()):
                if trait == "options":
                    assert isinstance(widget, _Chooser)
                    _set_options(widget, text, widget.value)
                elif trait == "value":
                    assert isinstance(widget, ipywidgets.HTML)
                    widget.value = rich(text) if text else ""
                else:
                    setattr(widget, trait, plain(text))

    # -- clicks ----------------------------------------------------------------------------------------------

    def changed(self, _: Any = None) -> None:
        """Schedule one update for this change and all that follow within a moment."""
        if self._loop is None or not self._loop.is_running():
            self._answer()
        elif not self._waiting:
            self._waiting = True
            self._loop.call_soon_threadsafe(self._loop.call_later, _BURST, self._answer)

    def settle(self) -> None:
        """Run a scheduled update now, for code that reads the result in the same cell."""
        if self._waiting:
            self._answer()

    def _answer(self) -> None:
        self._waiting = False
        if self.closed or self._updating:  # `_update` may set controls itself
            return
        with self._lock:
            self._updating = True
            try:
                with self._showing_errors():
                    self._update()
            finally:
                self._updating = False

    def _update(self) -> None:
        """Show what is selected; must do nothing if it is shown already."""

    # -- errors ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _showing_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # a model may raise anything: show it, and keep the widget usable
            trace = "".join(traceback.format_exception(error))
            traceback.clear_frames(error.__traceback__)  # frames would keep all activations alive
            self.error = error
            out_of_memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or "out of memory" in str(
                error
            )
            self.say(self._error_says, OUT_OF_MEMORY if out_of_memory else FAILED)
            self._error_report.value = (
                f'<pre role="alert">{escape(f"{type(error).__name__}: {error}")}</pre>'
                f"<details><summary>Traceback</summary><pre>{escape(trace)}</pre></details>"
            )
            self._error_box.layout.display = None

    def _no_error(self) -> None:
        self.error = None
        self._error_box.layout.display = "none"

    # -- closing ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Remove the widget from the page, and release the model, the recordings and the figure."""
        if self.closed:
            return
        self.closed = True
        preference.unobserve(self._speak, "language")
        self._labels.clear()
        self._release()
        close_with_parts(self)

    def _release(self) -> None:
        """Release large objects; called once, by `close`."""

    def __repr__(self) -> str:
        # It is stored in notebooks and compared by nbval, so it must not depend on the selection.
        return f"{type(self).__name__}()"


def _languages() -> tuple[str, ...]:
    return LANGUAGES if preference.language == "both" else (preference.language,)


def plain(text: Text | str) -> str:
    """Return a label as plain text: in the chosen language, or in both on one line."""
    if isinstance(text, str):
        return text
    return " · ".join(dict.fromkeys(getattr(text, language) for language in _languages()))


def rich(text: Text) -> str:
    """Return HTML in the chosen language, or in both."""
    return text.html(_languages())


def _set_options(widget: _Chooser, options: Sequence[tuple[Text | str, Any]], value: Any) -> None:
    with widget.hold_sync():  # one message, so that nothing flickers
        widget.index = None  # otherwise ipywidgets selects the first option in between
        widget.options = [(plain(label), choice) for label, choice in options]
        if any(choice == value for _, choice in options):
            widget.value = value


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the cells of rows for a list, with no-break spaces, as browsers collapse plain ones."""
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [line.rstrip().replace(" ", "\u00a0") for line in lines]


def limit(control: ipywidgets.BoundedIntText, n: int) -> None:
    """Limit a control to 0 to n - 1, and hide it if that leaves no choice."""
    control.max = max(n - 1, 0)
    control.layout.display = None if n > 1 else "none"


PREVIOUS = Text(zh="上一项", en="Previous")
NEXT = Text(zh="下一项", en="Next")
FAILED = Text(
    zh="运行或绘图时出现异常。可以换一个选择；修好模型或输入后，再选一次或点“重新运行”。",
    en="Running or drawing raised an exception. Choose something else; or mend the model or the input, and choose "
    "again or press “Run again”.",
)
OUT_OF_MEMORY = Text(
    zh="内存不足。请换一个更小的输入（更小的批次或图片），再点“重新运行”。",
    en="Out of memory. Use a smaller input (a smaller batch or picture), and press “Run again”.",
)
