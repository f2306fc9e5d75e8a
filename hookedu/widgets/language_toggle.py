"""LanguageToggle: one choice of language for all notebooks."""

from collections.abc import Mapping
from typing import Any, ClassVar

import traitlets

from hookedu.language import Text, preference
from hookedu.widgets.live import LiveWidget


class LanguageToggle(LiveWidget, module="language_toggle"):
    """Widget with three buttons: show the course in Chinese, in English, or in both.

    A choice takes effect at once, without running anything again, in all lessons of the folder: in their text, in the code
    that the learner has not changed, in the messages of hookedu and in the labels of its widgets. It never touches a cell
    that the learner changed. It is saved as the language of the next start.

    Front ends other than JupyterLab and Jupyter Notebook do not let a widget change the text: there, the choice is of
    messages and outputs, and a line says how to get the lessons in the other language.

    Parameters
    ----------
    language : str, optional
        The language that this notebook is written in: "zh", "en" or "both". Its messages are in that language until a
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

    WORDS: ClassVar = {
        "what": Text(zh="语言", en="Language"),
        # Each language is called by its own name.
        "zh": Text(zh="中文", en="中文"),
        "en": Text(zh="English", en="English"),
        "both": Text(zh="双语", en="Both"),
        "elsewhere": Text(
            zh="消息和输出换了语言。课文要在终端里换：运行 `hookedu hand-out 笔记本所在的文件夹 --language zh`，再重新打开。",
            en="Messages and outputs have changed their language. For the text, run `hookedu hand-out "
            "FOLDER_OF_THE_NOTEBOOKS --language en` in a terminal and open the notebook again.",
        ),
    }

    own_id = traitlets.Unicode().tag(sync=True)  # by which the module reaches its notebook

    def __init__(self, language: str | None = None):
        if language is not None:
            preference.language = language
        super().__init__()
        self.own_id = self.model_id or ""

    def _heard(self, kind: str, message: Mapping[str, Any], buffers: list[Any]) -> None:
        match message:
            case {"kind": "choose", "language": "zh" | "en" | "both" as language}:
                preference.choose(language)
            case {
                "kind": "follow",
                "language": "zh" | "en" | "both" as language,
            }:  # another notebook has chosen
                preference.language = language

    def __repr__(self) -> str:
        # It is stored in notebooks and compared by nbval, so it must not depend on the choice.
        return "LanguageToggle(中文 | English | 双语)"
