"""中文 / English / 双语: one choice for a notebook, remembered for the next one."""

import secrets

import ipywidgets
import traitlets

from hookedu import storage
from hookedu.widgets.lifetime import close_with_parts, end_earlier_run

# Marks this kernel's notebook in the page. Several notebooks share one JupyterLab page, and a rule that was
# not held to its own notebook would hide Chinese here because another notebook is read in English.
_MARK = f"hookedu-language-{secrets.token_hex(4)}"


class _Preference(traitlets.HasTraits):
    """The language of this kernel; every toggle and labelled widget follows it."""

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
    """Three buttons that show the notebook's prose and hookedu's messages in one language or in both.

    It puts one style sheet into the page; where a front end does not let outputs do that, both languages show.
    Any number of toggles in a notebook stay in step, and nothing has to be run again after a click.
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
        """Take the buttons off the page; the language stays as it is."""
        for link in self._links:
            link.unlink()
        self._links = ()
        close_with_parts(self)

    def __repr__(self) -> str:
        # Stored in notebooks and compared by nbval: it must not depend on who chose what.
        return "LanguageToggle(中文 | English | 双语)"


def style_sheet(language: str) -> str:
    """The rules that hide the other language inside this notebook; "" for both."""
    if language == "both":
        return ""
    notebook = f".jp-NotebookPanel:has(.{_MARK})"
    other = {"zh": "en", "en": "zh"}[language]
    return (
        f'<style>{notebook} [lang="{other}"], {notebook} .hookedu-dot {{ display: none !important; }}</style>'
    )
