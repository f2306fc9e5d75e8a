"""LanguageToggle: one choice of language per notebook, saved as the default of the next one."""

import secrets

import ipywidgets
import traitlets

from hookedu import storage
from hookedu.widgets.lifetime import close_with_parts, end_earlier_run

# CSS class that marks the notebook of this kernel. Several notebooks share one JupyterLab page, and a rule
# without it would hide Chinese in this notebook because another one is read in English.
_MARK = f"hookedu-language-{secrets.token_hex(4)}"


class _Preference(traitlets.HasTraits):
    """The language of this kernel, observed by every toggle and every widget with labels."""

    language = traitlets.Enum(["zh", "en", "both"], "both")

    @traitlets.default("language")
    def _remembered(self) -> str:
        saved = storage.load_settings().get("language")
        return saved if saved in ("zh", "en", "both") else "both"

    @traitlets.observe("language")
    def _remember(self, change) -> None:
        storage.save_setting("language", change["new"])


preference = _Preference()


class LanguageToggle(ipywidgets.VBox):
    """Widget with three buttons: show the notebook in Chinese, in English, or in both.

    The choice covers the text of the notebook, the messages of hookedu and the labels of its widgets. It
    takes effect at once, without running anything again, and is saved as the default of the next notebook.
    All toggles of a notebook stay in sync.

    The text is hidden by a style sheet in the output of the cell. Front ends that do not allow that (GitHub,
    for example) show both languages.

    Examples
    --------
    >>> from hookedu import LanguageToggle
    >>> toggle = LanguageToggle()
    >>> toggle  # the last line of a cell shows the buttons
    LanguageToggle(中文 | English | 双语)
    >>> toggle.close()
    """

    def __init__(self):
        buttons = ipywidgets.ToggleButtons(
            options=[("中文", "zh"), ("English", "en"), ("双语 · Both", "both")],
            value=preference.language,
            tooltips=["只显示中文", "Show English only", "中文和英文都显示 · Show Chinese and English"],
            style={"button_width": "8em"},
        )
        self._style = ipywidgets.HTML(layout={"display": "none"})
        super().__init__([buttons, self._style])
        self.add_class(_MARK)
        self._links = (
            traitlets.link((preference, "language"), (buttons, "value")),
            traitlets.dlink((preference, "language"), (self._style, "value"), style_sheet),
        )
        end_earlier_run(self)

    def close(self) -> None:
        """Remove the buttons from the page; the language stays as it is."""
        for link in self._links:
            link.unlink()
        self._links = ()
        close_with_parts(self)

    def __repr__(self) -> str:
        # It is stored in notebooks and compared by nbval, so it must not depend on the choice.
        return "LanguageToggle(中文 | English | 双语)"


def style_sheet(language: str) -> str:
    """Return the style sheet that hides the other language in this notebook; "" for both languages."""
    if language == "both":
        return ""
    notebook = f".jp-NotebookPanel:has(.{_MARK})"
    other = {"zh": "en", "en": "zh"}[language]
    return (
        f'<style>{notebook} [lang="{other}"], {notebook} .hookedu-dot {{ display: none !important; }}</style>'
    )
