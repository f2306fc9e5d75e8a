"""Panel, the base class of widgets that are made of ipywidgets: translated labels and error display."""

from html import escape
from typing import Any

import ipywidgets

from hookedu.language import Text, preference
from hookedu.widgets.answering import Answering
from hookedu.widgets.style import CSS


class Panel(Answering, ipywidgets.VBox):
    """Base class of widgets that are made of ipywidgets.

    A subclass creates its parts, labels them with `label` and `say`, and implements `_update`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._labels: dict[tuple[ipywidgets.Widget, str], Any] = {}
        self._style = ipywidgets.HTML(CSS, layout={"display": "none"})
        self._error_says, self._error_report = ipywidgets.HTML(), ipywidgets.HTML()
        self._error_box = ipywidgets.VBox(
            [self._error_says, self._error_report], layout={"display": "none"}
        ).add_class("hookedu-error")
        self.add_class("hookedu-widget")
        self._begin()

    def _show(self, *children: ipywidgets.Widget) -> None:
        self.children = [self._style, *children, self._error_box]

    # -- language --------------------------------------------------------------------------------------------

    def label(self, widget: ipywidgets.Widget, **texts: Text) -> Any:
        """Set traits such as `description` and `tooltip`, now and whenever the language changes."""
        for trait, text in texts.items():
            self._labels[widget, trait] = text
            setattr(widget, trait, text.inline())
        return widget

    def say(self, widget: ipywidgets.HTML, text: Text | None) -> None:
        """Show a text, or hide the widget if there is none."""
        self._labels[widget, "value"] = text
        widget.value = rich(text) if text else ""
        widget.layout.display = None if text else "none"

    def _speak(self) -> None:
        """Set every label again, after a change of the language."""
        with self._lock:
            for (widget, trait), text in list(self._labels.items()):
                if trait == "value":
                    assert isinstance(widget, ipywidgets.HTML)
                    widget.value = rich(text) if text else ""
                else:
                    setattr(widget, trait, text.inline())

    # -- errors and closing ----------------------------------------------------------------------------------

    def _show_failure(self, says: Text, error: str, trace: str) -> None:
        self.say(self._error_says, says)
        self._error_report.value = (
            f'<pre role="alert">{escape(error)}</pre>'
            f"<details><summary>Traceback</summary><pre>{escape(trace)}</pre></details>"
        )
        self._error_box.layout.display = None

    def _no_error(self) -> None:
        self.error = None
        self._error_box.layout.display = "none"

    def close(self) -> None:
        """Remove the widget from the page, and release the model, the recordings and the figure."""
        super().close()
        self._labels.clear()


def rich(text: Text) -> str:
    """Return HTML in the chosen language, or in both."""
    return text.html(preference.languages)
