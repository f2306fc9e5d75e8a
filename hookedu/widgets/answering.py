"""Answering: what every widget does with changes and exceptions, and how it is closed."""

import asyncio
import base64
import contextlib
import io
import threading
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import ipywidgets
import torch
import traitlets

from hookedu.language import Text, preference, shown
from hookedu.widgets.lifetime import close_with_parts, end_earlier_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DENSITY = 2  # dots per pixel of the page in a still picture, as many screens have
_BURST = 0.01  # seconds: faster changes are answered by one update


class Answering(ipywidgets.Widget):
    """Mixin of the widgets: batches changes, keeps exceptions in the widget, and releases what it holds.

    A subclass calls `_begin` in its constructor and `changed` whenever something was chosen; it implements `_update`,
    `_show_failure`, `_speak` and `_release`.

    Models run, and figures are drawn, only in the event loop of the kernel's main thread: JupyterLab delivers clicks in a
    thread of their own, and a model must not run for a picture while a cell is training it.

    Attributes
    ----------
    error : Exception or None
        The exception that the widget shows.
    closed : bool
        Whether the widget is closed.
    """

    error = traitlets.Instance(Exception, allow_none=True)
    closed = True  # until `_begin` sets it

    def _begin(self) -> None:
        """Start to answer changes, and end the widgets of an earlier run of this cell."""
        self.closed = False
        self._lock = threading.RLock()
        self._waiting = self._updating = False
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:  # a plain script, where every change is answered immediately
            self._loop = None
        preference.observe(self._speak)
        self._speak()  # a click, which comes in another thread, may have chosen a language while the widget was made
        end_earlier_run(self)

    def changed(self, _: Any = None) -> None:
        """Schedule one update for this change and all that follow within a moment."""
        if self._loop is None or not self._loop.is_running():
            self._answer()
        elif not self._waiting:
            self._waiting = True
            self._loop.call_soon_threadsafe(self._loop.call_later, _BURST, self._answer)

    def again(self, after: float) -> None:
        """Schedule an update in so many seconds, for work that may wait; a plain script has no time at which to do it."""
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.call_later, after, self._answer)

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

    @contextlib.contextmanager
    def _showing_errors(self) -> Iterator[None]:
        """Show an exception in the widget and keep it in `error`, instead of raising it."""
        try:
            yield
        except Exception as error:  # a model may raise anything: show it, and keep the widget usable
            trace = "".join(traceback.format_exception(error))
            traceback.clear_frames(error.__traceback__)  # frames would keep all activations alive
            self.error = error
            gone = isinstance(error, MemoryError | torch.OutOfMemoryError) or "out of memory" in str(error)
            says = OUT_OF_MEMORY if gone else FAILED
            self._show_failure(says, f"{type(error).__name__}: {error}", trace)

    def _show_failure(self, says: Text, error: str, trace: str) -> None:
        """Display an exception: what it means for the learner, its text, and its traceback."""
        raise NotImplementedError

    def _speak(self) -> None:
        """Show everything in the language that was chosen."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove the widget from the page, and release the model, the recordings and the figure."""
        if self.closed:
            return
        self.closed = True
        preference.unobserve(self._speak)
        self._release()
        close_with_parts(self)
        # ipywidgets sets it to None; ours says that the widget is closed.
        vars(self).pop("_repr_mimebundle_", None)

    def _refuse_if_closed(self) -> None:
        """Raise an error in words where a closed widget is asked for something."""
        if self.closed and self.comm is None:
            raise RuntimeError(str(CLOSED))

    def _release(self) -> None:
        """Release large objects; called once, by `close`."""

    # -- in the notebook -------------------------------------------------------------------------------------

    def _still(self) -> "Figure | Text | None":
        """Return what stands in the widget's place where no widgets are shown; a Text where words say it all.

        It must be the same on every run, because solutions store it.
        """

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return what a notebook stores: the widget, and beside it the still picture; of a closed one, words."""
        if self.closed:
            return {"text/plain": str(CLOSED), "text/html": shown(CLOSED.html())}, {}
        found = super()._repr_mimebundle_(**kwargs)
        assert found is not None  # AnyWidget returns None only without a view
        data, metadata = found if isinstance(found, tuple) else (found, {})
        with self._showing_errors():
            still = self._still()
            if isinstance(still, Text):
                data["text/html"] = shown(still.html())
            elif still is not None:
                data["image/png"] = base64.b64encode(png(still)).decode()
                metadata = metadata | {"image/png": {"width": round(still.get_figwidth() * still.dpi)}}
        return data, metadata

    def __repr__(self) -> str:
        # It is stored in notebooks and compared by nbval, so it must not depend on the selection.
        return f"{type(self).__name__}()"


def png(figure: "Figure") -> bytes:
    """Return a figure as PNG with two dots per pixel of the page."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_DENSITY * figure.dpi)
    return file.getvalue()


CLOSED = Text(
    zh="这个控件已经关闭。要再用它，请重新运行建立它的单元格。",
    en="This widget is closed. To use it again, run the cell that made it once more.",
)
FAILED = Text(
    zh="运行或绘图时出现异常。可以换一个选择；修好模型或输入后，再选一次或点“重新运行”。",
    en="Running or drawing raised an exception. Choose something else; or mend the model or the input, and choose "
    "again or press “Run again”.",
)
OUT_OF_MEMORY = Text(
    zh="内存不足。请换一个更小的输入（更小的批次或图片），再点“重新运行”。",
    en="Out of memory. Use a smaller input (a smaller batch or picture), and press “Run again”.",
)
