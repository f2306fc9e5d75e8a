"""Two languages, one mechanism: every sentence that hookedu says to a person is a `Text`.

HTML carries both languages in elements with a `lang` attribute, and `LanguageToggle` hides one of them with
a style sheet. Where no style sheet can be set (a terminal, GitHub, VS Code), both simply show, Chinese first.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

LANGUAGES = ("zh", "en")
_CHINESE_BREAK = re.compile(
    r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=\**[\u3000-\u9fff\uff00-\uffef])|(?<=[，。；：、！？）」])\n(?=[`*$A-Za-z])"
)


@dataclass(frozen=True)
class Text:
    """One thing said in Chinese and in English; each side may hold inline Markdown (`code`, **bold**).

    >>> print(Text(zh="共 {n} 个张量", en="{n} tensors in all").format(n=3))
    共 3 个张量
    3 tensors in all
    """

    zh: str
    en: str

    def format(self, **values: Any) -> "Text":
        """Both sides with `{name}` filled in, as `str.format` does; a value may itself be a `Text`."""
        return Text(
            zh=self.zh.format(**{k: v.zh if isinstance(v, Text) else v for k, v in values.items()}),
            en=self.en.format(**{k: v.en if isinstance(v, Text) else v for k, v in values.items()}),
        )

    def __str__(self) -> str:
        return f"{self.zh}\n{self.en}"

    def html(self, languages: tuple[str, ...] = LANGUAGES) -> str:
        """A block: one `<div lang>` a language."""
        return "".join(f'<div lang="{lang}">{_inline(getattr(self, lang))}</div>' for lang in languages)

    def inline_html(self) -> str:
        """A run of text inside a line: `中文 · English`; the dot goes away with either language."""
        zh, en = (f'<span lang="{lang}">{_inline(getattr(self, lang))}</span>' for lang in LANGUAGES)
        return f'{zh}<span class="hookedu-dot"> · </span>{en}'

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows where there is no HTML."""
        printer.text(str(self))


def join_chinese_lines(markdown: str) -> str:
    """Markdown without the line breaks that would be drawn as a space: between Chinese characters, or after
    full-width punctuation."""
    return _CHINESE_BREAK.sub("", markdown)


def _inline(markdown: str) -> str:
    """Inline Markdown to HTML. Raw HTML is escaped, so a learner's values can be part of a message."""
    return _markdown().renderInline(markdown)


@cache
def _markdown():
    from markdown_it import MarkdownIt  # on first use: `import hookedu` stays light

    return MarkdownIt("zero", {"html": False}).enable(["backticks", "emphasis", "escape", "newline"])
