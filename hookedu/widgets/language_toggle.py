"""LanguageToggle: one choice of language for all notebooks."""

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from hookedu.language import BOTH, LANGUAGES, Text, preference
from hookedu.widgets.lifetime import close_with_parts, end_earlier_run

_HERE = Path(__file__)
# Front ends other than JupyterLab and Notebook let no widget reach its notebook.
_ELSEWHERE = Text(
    zh="消息和输出换了语言；课文要在终端里换：`hookedu hand-out 笔记本所在的文件夹 --language zh`，然后重新打开。",
    en="Messages and outputs have changed their language. For the text, run "
    "`hookedu hand-out FOLDER_OF_THE_NOTEBOOKS --language en` in a terminal and open the notebook again.",
)


class LanguageToggle(anywidget.AnyWidget):
    """Widget with three buttons: show the course in Chinese, in English, or in both.

    A choice takes effect at once, without running anything again, in all lessons of the folder: in their text, in the code
    that the learner has not changed, in the messages of hookedu and in the labels of its widgets. It never touches a cell
    that the learner changed. It is saved as the language of the next start.

    Front ends other than JupyterLab and Jupyter Notebook do not let a widget change the text: there, the choice is of
    messages and outputs, and a line says how to get the lessons in the other language.

    Parameters
    ----------
    language : str, optional
        The language that this notebook is written in: "zh", "en" or "both". Its messages are in that language, until a
        button is pressed. That is no choice of the learner's: it is not saved, and no other notebook follows. A notebook
        that does not say is shown in the language chosen last, in both if none was.

    Raises
    ------
    ValueError
        If there is no such language.

    Examples
    --------
    >>> from hookedu import LanguageToggle
    >>> toggle = LanguageToggle()
    >>> toggle  # the last line of a cell shows the buttons
    LanguageToggle(中文 | English | 双语)
    >>> toggle.close()
    """

    _esm = _HERE.with_suffix(".js")
    _css = _HERE.with_suffix(".css")
    language = traitlets.Enum([*LANGUAGES, BOTH], BOTH).tag(sync=True)
    _own_id = traitlets.Unicode().tag(sync=True)  # by which the module reaches its notebook
    _elsewhere = traitlets.Dict(vars(_ELSEWHERE)).tag(sync=True)

    def __init__(self, language: str | None = None):
        if language is not None:
            preference.language = language
        super().__init__(language=preference.language)
        self._own_id = self.model_id or ""
        self.observe(self._lead, "language")
        self.on_msg(self._pressed)
        preference.observe(self._follow)
        end_earlier_run(self)

    def _pressed(self, _: Any, content: dict[str, Any], __: Any) -> None:
        """Save the choice; pressing the button of the language that is shown is one, too."""
        preference.choose(content["chosen"])

    def _lead(self, _: Any) -> None:
        preference.language = self.language

    def _follow(self) -> None:
        self.language = preference.language

    def close(self) -> None:
        """Remove the buttons from the page; the language stays as it is."""
        if self.comm is not None:
            preference.unobserve(self._follow)
            close_with_parts(self)

    def __repr__(self) -> str:
        # It is stored in notebooks and compared by nbval, so it must not depend on the choice.
        return "LanguageToggle(中文 | English | 双语)"
