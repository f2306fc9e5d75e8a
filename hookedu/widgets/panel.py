"""Panel, the base class of the widgets that are made of ipywidgets: translated labels and error display."""

from collections.abc import Sequence
from html import escape
from typing import Any

import ipywidgets

from hookedu.language import Text, preference
from hookedu.widgets.answering import Answering
from hookedu.widgets.style import CSS

_Chooser = ipywidgets.Dropdown | ipywidgets.Select | ipywidgets.ToggleButtons


class Panel(Answering, ipywidgets.VBox):
    """Base class of the widgets that are made of ipywidgets.

    A subclass creates its controls, labels them with `label`, `options` and `say`, makes them call `changed`,
    and implements `_update`.
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

    def _speak(self) -> None:
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


def plain(text: Text | str) -> str:
    """Return a label as plain text: in the chosen language, or in both on one line."""
    return text if isinstance(text, str) else text.inline()


def rich(text: Text) -> str:
    """Return HTML in the chosen language, or in both."""
    return text.html(preference.languages)


def _set_options(widget: _Chooser, options: Sequence[tuple[Text | str, Any]], value: Any) -> None:
    with widget.hold_sync():  # one message, so that nothing flickers
        widget.index = None  # otherwise ipywidgets selects the first option in between
        widget.options = [(plain(label), choice) for label, choice in options]
        if any(choice == value for _, choice in options):
            widget.value = value


def limit(control: ipywidgets.BoundedIntText, n: int) -> None:
    """Limit a control to 0 to n - 1, and hide it if that leaves no choice."""
    control.max = max(n - 1, 0)
    control.layout.display = None if n > 1 else "none"
