"""Bilingual text: every sentence that hookedu shows to people is a `Text`, and `preference` says in which language.

Plain text is in the chosen language alone. HTML contains both, in elements with a `lang` attribute, and the attribute
`hidden` on those of the language that is not chosen (see `shown`): that needs no style sheet, and a later choice can show
them after all.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from hookedu import storage

LANGUAGES = ("zh", "en")
BOTH = "both"
# A tag in one language, and the dot between two; values of learners are escaped and cannot look like one.
_LANG = re.compile(r'<\w+ (?:lang="(?P<lang>zh|en)"|class="hookedu-dot")')
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_CHINESE_BREAK = re.compile(
    r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=\**[\u3000-\u9fff\uff00-\uffef])|(?<=[，。；：、！？）」])\n(?=[`*$A-Za-z])"
)


class Preference:
    """The language in which this process speaks to people: "zh", "en", or "both".

    At first it is the saved choice; "both" if nobody has chosen yet.
    """

    def __init__(self) -> None:
        self._language: str | None = None
        self._observers: list[Callable[[], object]] = []

    @property
    def language(self) -> str:
        """The language; setting it changes this process only, and raises ValueError if there is no such language."""
        if self._language is None:
            self._language = self.saved() or BOTH
        return self._language

    @language.setter
    def language(self, language: str) -> None:
        if language not in (*LANGUAGES, BOTH):
            raise ValueError(f"language must be 'zh', 'en' or 'both', not {language!r}")
        before, self._language = self.language, language
        if language != before:
            for observer in tuple(self._observers):
                observer()

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that are shown: ("zh",), ("en",) or ("zh", "en")."""
        return LANGUAGES if self.language == BOTH else (self.language,)

    @staticmethod
    def saved() -> str | None:
        """Return the language that was chosen last, in any process; None if none was."""
        saved = storage.load_settings().get("language")
        return saved if saved in (*LANGUAGES, BOTH) else None

    def choose(self, language: str) -> None:
        """Use a language in this process, and in those that start later."""
        self.language = language
        storage.save_setting("language", language)

    def observe(self, observer: Callable[[], object]) -> None:
        """Call `observer` after each change of the language."""
        self._observers.append(observer)

    def unobserve(self, observer: Callable[[], object]) -> None:
        """Call `observer` no longer."""
        self._observers.remove(observer)


preference = Preference()


@dataclass(frozen=True)
class Text:
    """A text in Chinese and in English.

    It is shown in the language chosen with ``LanguageToggle``; where none is chosen, in both, Chinese first.

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
        return self.plain()

    def plain(self, languages: tuple[str, ...] | None = None, between: str = "\n") -> str:
        """Return plain text.

        Parameters
        ----------
        languages : tuple of str, optional
            The languages to include, in this order; those of the preference if left out. What is written for other
            people, such as a report, names them.
        between : str, default a line break
            What stands between the languages.

        Returns
        -------
        str
            The text, once if the languages do not differ.

        Examples
        --------
        >>> from hookedu import Text
        >>> Text(zh="层", en="layer").plain(("zh", "en"), between=" · ")
        '层 · layer'
        """
        said = (getattr(self, language) for language in languages or preference.languages)
        return between.join(dict.fromkeys(said))

    def inline(self, languages: tuple[str, ...] | None = None) -> str:
        """Return plain text on one line: in one language, or ``中文 · English``; see `plain`."""
        return self.plain(languages, between=" · ")

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
        return shown(self.html())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the text where IPython cannot show HTML."""
        printer.text(str(self))


class CourseError(Exception):
    """An error that the user of a command can fix; each text says what is wrong and what to do."""

    def __init__(self, *says: Text):
        self.says = says
        super().__init__("\n".join(map(str, says)))


def counted(n: int, noun: str) -> str:
    """Return a number with an English noun, which is in the plural unless there is one: "1 tensor", "2 tensors"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def in_both(text: Text) -> str:
    """Return a text on one line in both languages, whichever is chosen: for what people of either language read."""
    return text.inline(LANGUAGES)


def shown(html: str) -> str:
    """Return HTML in both languages with the one that is not chosen hidden: what a notebook displays.

    Every ``_repr_html_`` of hookedu returns its HTML through this function.
    """
    if preference.language == BOTH:
        return html
    return _LANG.sub(lambda tag: tag[0] if tag["lang"] == preference.language else f"{tag[0]} hidden", html)


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
