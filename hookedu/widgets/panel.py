"""What the widgets share: labels in the reader's language, errors in their place, one answer to many clicks."""

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

_BURST = 0.01  # seconds: clicks that come faster than this are answered together
_WIDEST = 34  # characters of a column in a list


class Panel(ipywidgets.VBox):
    """The base of hookedu's widgets.

    A subclass makes its controls, gives them labels with `label`, `options` and `say`, lets them call `changed`, and
    answers in `_update`. `error` is the exception that the panel shows at the moment, or None.

    Everything that runs the model or draws happens in the kernel's main loop, never beside it: JupyterLab delivers
    clicks in a thread of their own, and a model must not run for a picture while a cell is training it.
    """

    error = traitlets.Instance(Exception, allow_none=True)
    closed = True  # until it has been made

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self._labels: dict[tuple[ipywidgets.Widget, str], Any] = {}
        self._lock = threading.RLock()
        self._waiting = self._updating = False
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:  # a plain script: every change is answered at once
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

    # -- language ----------------------------------------------------------------------------------------------

    def label(self, widget: ipywidgets.Widget, **texts: Text) -> Any:
        """Keep traits such as `description`, `tooltip` and `placeholder` in the reader's language."""
        for trait, text in texts.items():
            self._labels[widget, trait] = text
            setattr(widget, trait, plain(text))
        return widget

    def options(
        self, widget: ipywidgets.Widget, options: Sequence[tuple[Text | str, Any]], value: Any
    ) -> None:
        """Give a selection its options, and keep their labels in the reader's language."""
        self._labels[widget, "options"] = options
        _set_options(widget, options, value)

    def say(self, widget: ipywidgets.HTML, text: Text | None) -> None:
        """Show a text, or nothing and no room for it."""
        self._labels[widget, "value"] = text
        widget.value = rich(text) if text else ""
        widget.layout.display = None if text else "none"

    def stepper(self, select: ipywidgets.Select) -> ipywidgets.HBox:
        """Buttons that move the choice in a list: JupyterLab takes the arrow keys of a focused list for itself."""

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
        with self._lock:
            for (widget, trait), text in list(self._labels.items()):
                if trait == "options":
                    _set_options(widget, text, widget.value)
                elif trait == "value":
                    widget.value = rich(text) if text else ""
                else:
                    setattr(widget, trait, plain(text))

    # -- clicks ------------------------------------------------------------------------------------------------

    def changed(self, _: Any = None) -> None:
        """Something has been chosen: answer soon, once for all that has been chosen until then."""
        if self._loop is None or not self._loop.is_running():
            self._answer()
        elif not self._waiting:
            self._waiting = True
            self._loop.call_soon_threadsafe(self._loop.call_later, _BURST, self._answer)

    def settle(self) -> None:
        """Answer now what is still waiting, for somebody who reads the result in the same cell."""
        if self._waiting:
            self._answer()

    def _answer(self) -> None:
        self._waiting = False
        if self.closed or self._updating:  # what `_update` itself sets is no choice of the reader's
            return
        with self._lock:
            self._updating = True
            try:
                with self._showing_errors():
                    self._update()
            finally:
                self._updating = False

    def _update(self) -> None:
        """Bring what is shown in line with what is chosen; must not do it again where nothing has changed."""

    # -- errors ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _showing_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever a model raises belongs on the screen, and the widget lives on
            trace = "".join(traceback.format_exception(error))
            traceback.clear_frames(error.__traceback__)  # the frames would keep every activation alive
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

    # -- the end -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Take the widget off the page and let go of the model, the recordings and the picture."""
        if self.closed:
            return
        self.closed = True
        preference.unobserve(self._speak, "language")
        self._labels.clear()
        self._release()
        close_with_parts(self)

    def _release(self) -> None:
        """Let go of what is large."""

    def __repr__(self) -> str:
        # Stored in notebooks and compared by nbval: it must not depend on what was chosen.
        return f"{type(self).__name__}()"


def _languages() -> tuple[str, ...]:
    return LANGUAGES if preference.language == "both" else (preference.language,)


def plain(text: Text | str) -> str:
    """A label: in one language, or in both on one line."""
    if isinstance(text, str):
        return text
    return " · ".join(dict.fromkeys(getattr(text, language) for language in _languages()))


def rich(text: Text) -> str:
    """HTML in the reader's language, or in both."""
    return text.html(_languages())


def _set_options(widget: ipywidgets.Widget, options: Sequence[tuple[Text | str, Any]], value: Any) -> None:
    with widget.hold_sync():  # one message, so that nothing blinks
        widget.index = None  # or ipywidgets would choose the first option in between
        widget.options = [(plain(label), choice) for label, choice in options]
        if any(choice == value for _, choice in options):
            widget.value = value


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns in the lines of a list, which has no table: no-break spaces, for a browser would join plain ones."""
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [line.rstrip().replace(" ", "\u00a0") for line in lines]


def limit(control: ipywidgets.BoundedIntText, n: int) -> None:
    """Values from 0 to n - 1; out of sight where there is no choice."""
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
