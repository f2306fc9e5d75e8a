"""Bilingual text: every sentence that hookedu shows to people is a `Text`.

HTML contains both languages in elements with a `lang` attribute, and `LanguageToggle` hides one of them with
a style sheet. Where no style sheet applies (a terminal, GitHub, VS Code), both are shown, Chinese first.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

LANGUAGES = ("zh", "en")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_CHINESE_BREAK = re.compile(
    r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=\**[\u3000-\u9fff\uff00-\uffef])|(?<=[，。；：、！？）」])\n(?=[`*$A-Za-z])"
)


@dataclass(frozen=True)
class Text:
    """A text in Chinese and in English.

    It prints as two lines, Chinese first; in a notebook, ``LanguageToggle`` chooses which one is visible.

    Parameters
    ----------
    zh : str
        The Chinese text. It may contain inline Markdown: code in backticks, emphasis with asterisks.
    en : str
        The English text, likewise.

    Examples
    --------
    >>> from hookedu import Text
    >>> text = Text(zh="共 {n} 个张量", en="{n} tensors in all")
    >>> print(text.format(n=3))
    共 3 个张量
    3 tensors in all
    >>> text.format(n=3).en
    '3 tensors in all'
    """

    zh: str
    en: str

    def format(self, **values: Any) -> "Text":
        """Return the text with its replacement fields filled in.

        Parameters
        ----------
        **values : object
            The values of the fields ``{name}``, as for ``str.format``. Of a value that is a ``Text`` itself,
            each language gets its own side.

        Returns
        -------
        Text
            The text with both languages filled in.

        Raises
        ------
        KeyError
            If a field has no value.

        Examples
        --------
        >>> from hookedu import Text
        >>> shape = Text(zh="形状", en="shape")
        >>> Text(zh="{what}不对", en="wrong {what}").format(what=shape).en
        'wrong shape'
        """
        return Text(
            zh=self.zh.format(**{k: v.zh if isinstance(v, Text) else v for k, v in values.items()}),
            en=self.en.format(**{k: v.en if isinstance(v, Text) else v for k, v in values.items()}),
        )

    def __str__(self) -> str:
        return f"{self.zh}\n{self.en}"

    def html(self, languages: tuple[str, ...] = LANGUAGES) -> str:
        """Return the text as HTML, one ``<div lang=...>`` per language.

        Inline Markdown is rendered and raw HTML is escaped.

        Parameters
        ----------
        languages : tuple of str, default ("zh", "en")
            The languages to include, in this order.

        Returns
        -------
        str
            The HTML.

        Examples
        --------
        >>> from hookedu import Text
        >>> print(Text(zh="看 `x`", en="see `x`").html(languages=("en",)))
        <div lang="en">see <code>x</code></div>
        """
        return "".join(f'<div lang="{lang}">{_inline(getattr(self, lang))}</div>' for lang in languages)

    def inline_html(self) -> str:
        """Return the text as inline HTML, with a dot between the languages: ``中文 · English``.

        The style sheet of ``LanguageToggle`` hides the dot together with one of the languages.

        Returns
        -------
        str
            The HTML, three ``<span>`` elements.

        Examples
        --------
        >>> from hookedu import Text
        >>> print(Text(zh="层", en="layer").inline_html())
        <span lang="zh">层</span><span class="hookedu-dot"> · </span><span lang="en">layer</span>
        """
        zh, en = (f'<span lang="{lang}">{_inline(getattr(self, lang))}</span>' for lang in LANGUAGES)
        return f'{zh}<span class="hookedu-dot"> · </span>{en}'

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the text where IPython cannot show HTML."""
        printer.text(str(self))


def has_chinese(text: str) -> bool:
    """Check whether a text has a Chinese character."""
    return bool(_CHINESE.search(text))


def one_side(text: str, language: str) -> str:
    """Return the side of ``中文 · English`` in that language; another text is returned as it is."""
    zh, dot, en = text.partition(" · ")
    if not dot or not has_chinese(zh) or has_chinese(en):
        return text
    return zh if language == "zh" else en


def join_chinese_lines(markdown: str) -> str:
    """Remove the line breaks that would be rendered as a space within Chinese text.

    These are breaks between Chinese characters and after full-width punctuation.
    """
    return _CHINESE_BREAK.sub("", markdown)


def _inline(markdown: str) -> str:
    """Render inline Markdown as HTML; raw HTML is escaped, since messages contain values of learners."""
    return _markdown().renderInline(markdown)


@cache
def _markdown():
    from markdown_it import MarkdownIt  # imported on first use to keep `import hookedu` fast

    return MarkdownIt("zero", {"html": False}).enable(["backticks", "emphasis", "escape", "newline"])
