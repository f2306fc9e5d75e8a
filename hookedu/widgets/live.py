"""LiveWidget, the base class of the widgets that are drawn by a module of their own in the browser."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import traitlets
from anywidget import AnyWidget

from hookedu.hooks.tensors import real
from hookedu.language import Text, preference
from hookedu.widgets.answering import FAILED, OUT_OF_MEMORY, Answering
from hookedu.widgets.modules import css, esm


class LiveWidget(Answering, AnyWidget):
    """Base class of the widgets with a module in js/.

    A subclass names its module (``class Guess(LiveWidget, module="guess")``), lists what it says in `WORDS`, and declares
    what both sides know of the selection as traits with ``sync=True``. These are small: a notebook may store them. Numbers
    are sent with `post`, and are not stored. What the browser changes must do no work in the thread in which it arrives:
    observe the trait with ``self.changed``, or note the message in `_heard` and call ``self.changed()``; then `_update`
    does it.

    Attributes
    ----------
    words : dict
        All texts of the module by key, in both languages.
    language : str
        The chosen language, "zh", "en" or "both"; it follows the preference.
    failure : dict
        The exception that the widget shows, as words; {} if there is none.
    """

    WORDS: ClassVar[Mapping[str, Text]] = {}

    words = traitlets.Dict().tag(sync=True)
    language = traitlets.Unicode().tag(sync=True)
    failure = traitlets.Dict().tag(sync=True)

    def __init_subclass__(cls, module: str = "", **kwargs: Any) -> None:
        if module:
            cls._esm, cls._css = esm(module), css(module)
        super().__init_subclass__(**kwargs)

    def __init__(self, **traits: Any) -> None:
        words = {key: sides(text) for key, text in (_WORDS | dict(self.WORDS)).items()}
        super().__init__(words=words, language=preference.language, **traits)
        self._posted: dict[str, tuple[dict[str, Any], list[bytes]]] = {}
        self._seen = False  # whether it has been shown; nobody gets what is sent before
        self.on_msg(self._receive)
        self._begin()

    # -- to the browser --------------------------------------------------------------------------------------

    def say(self, **texts: Text) -> None:
        """Replace words by their keys; the module shows them at once."""
        self.words = self.words | {key: sides(text) for key, text in texts.items()}

    def post(self, kind: str, content: Mapping[str, Any] | None = None, **tensors: torch.Tensor) -> None:
        """Send a message with tensors, for which the module has a ``view.receive(kind, ...)``.

        A place in which the widget is shown later gets the last message of each kind as well. Floating-point tensors
        arrive as float32, integers as int32, booleans and bytes as uint8.
        """
        packed = {name: _plain(tensor) for name, tensor in tensors.items()}
        kinds = [
            {"name": name, "shape": list(tensor.shape), "kind": str(tensor.dtype).removeprefix("torch.")}
            for name, tensor in packed.items()
        ]
        message = {"kind": kind, "content": dict(content or {}), "tensors": kinds}
        self._posted[kind] = message, [tensor.numpy().tobytes() for tensor in packed.values()]
        if self._seen:
            self.send(*self._posted[kind])

    def _receive(self, _: Any, message: Any, buffers: list[Any]) -> None:
        message = message if isinstance(message, dict) else {}
        kind = str(message.get("kind"))
        if kind == "ready":
            self._seen = True
            for posted in list(self._posted.values()):
                self.send(*posted)
        else:
            self._heard(kind, message, buffers)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the browser has chosen; it gets back what was there before if that is no value to choose."""
        try:
            super().set_state(sync_data)
        except traitlets.TraitError:
            self.send_state(sync_data.keys() & set(self.keys))

    def _heard(self, kind: str, message: Mapping[str, Any], buffers: list[Any]) -> None:
        """Note a message that the module sent with ``view.send(kind, ...)``; may run in another thread.

        A message may hold anything, as from a page whose kernel has been restarted: what asks for nothing is left alone.
        """

    # -- language, errors, closing ---------------------------------------------------------------------------

    def _speak(self) -> None:
        self.language = preference.language

    def _show_failure(self, says: Text, error: str, trace: str) -> None:
        key = "out_of_memory" if says is OUT_OF_MEMORY else "failed"
        self.failure = {"says": key, "error": error, "trace": trace}

    def _no_error(self) -> None:
        self.error, self.failure = None, {}

    def close(self) -> None:
        """Remove the widget from the page, and release the model, the recordings and the numbers sent."""
        if not self.closed:  # as it is where the constructor of a subclass has failed
            super().close()
            self._posted.clear()


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor on the CPU, in one of the three types that the browser gets."""
    tensor = tensor.detach()
    if tensor.dtype in (torch.bool, torch.uint8):
        return tensor.to("cpu", torch.uint8).contiguous()
    if tensor.dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        return tensor.to("cpu", torch.int32).contiguous()
    return real(tensor).to("cpu", torch.float32).contiguous()


def sides(text: Text) -> dict[str, str]:
    """Return a text as the browser gets it."""
    return {"zh": text.zh, "en": text.en}


FAILED_HERE = Text(
    zh="这个控件在浏览器里出了错，其余部分可以继续用。重新运行这个单元格，它就回到开始的样子。",
    en="Something went wrong in the browser's part of this widget; the rest of it still works. Run the cell again to "
    "begin anew.",
)
ENDED = Text(
    zh="内核重启过，这个控件不会再回应：重新运行这个单元格，它就回来了。",
    en="The kernel has been restarted, and this no longer answers: run its cell again to have it back.",
)
TRACEBACK = Text(zh="详细的报错信息", en="Traceback")
_WORDS = {
    "failed": FAILED,
    "out_of_memory": OUT_OF_MEMORY,
    "failed_here": FAILED_HERE,
    "ended": ENDED,
    "traceback": TRACEBACK,
    "copy": Text(zh="复制", en="Copy"),
    "copied": Text(zh="已复制", en="Copied"),
    "not_copied": Text(zh="没能复制，请选中代码来复制", en="Could not copy; select the code instead"),
}
