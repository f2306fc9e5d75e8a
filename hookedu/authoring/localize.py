"""Cells of a lesson in one language, made from the bilingual ones when a lesson is built.

`<div lang>` blocks of the other language vanish, and those of the chosen one become plain Markdown, so that every front end
shows one language, without scripts or style sheets. Headings and other lines `中文 · English` keep one side.

In the bilingual cell such lines become spans, so that the style sheet of `LanguageToggle` can hide one side.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from hookedu.authoring import code_words
from hookedu.language import BOTH, LANGUAGES, one_side

_PIECE = re.compile(
    r'<div lang="(?P<lang>zh|en)">\n(?P<block>.*?)\n</div>'
    r"|(?P<fence>^```python\n(?P<code>.*?)^```$)|(?P<other>^```.*?^```$)",
    re.DOTALL | re.MULTILINE,
)
# What stands around the words of a line: the number of a heading, asterisks. A picture is none: its words are _ALT.
_LINE = re.compile(r"(?!!\[)(?P<before>(?:#+ )?(?:[\d.]+ )?(?:\*\*)?)(?P<words>.* · .*?)(?P<after>(?:\*\*)?)")
_ALT = re.compile(r"(?<=^!\[)[^\]]+(?=\]\()", re.MULTILINE)  # plain text: no spans in "both"
_MINUTES = re.compile(r"^(●+ · \d+) min\b", re.MULTILINE)


def variants(source: str, is_code: bool, words: Mapping[str, str]) -> dict[str, str]:
    """Return a cell in both languages and in each.

    Parameters
    ----------
    source : str
        The bilingual cell, as in course/NN_name.py.
    is_code : bool
        Whether it is code.
    words : mapping of str to str
        Chinese words of the code by the English ones, as `code_words.words_of` returns them.

    Returns
    -------
    dict of str to str
        The cell's source by "both", "zh" and "en".
    """
    both = source if is_code else _each_line(source, _spans)
    return {BOTH: both} | {language: localized(source, is_code, language, words) for language in LANGUAGES}


def localized(source: str, is_code: bool, language: str, words: Mapping[str, str]) -> str:
    """Return a bilingual cell in "zh" or "en"; the parameters are those of `variants`."""
    if is_code:
        # A hand-out in one language is in it from its first cell on.
        source = source.replace("LanguageToggle()", f'LanguageToggle("{language}")')
        return code_words.in_language(source, language, words)
    return _prose(source, language, words)


def fenced(source: str, line: int) -> Iterator[tuple[str, int]]:
    """Yield the Python code in a prose cell outside its language blocks, and the line before it."""
    for found in _PIECE.finditer(source):
        if found["fence"]:
            yield found["code"], line + 1 + source.count("\n", 0, found.start())


def _prose(source: str, language: str, words: Mapping[str, str]) -> str:
    pieces, at = [], 0
    for found in _PIECE.finditer(source):
        pieces.append(_outside(source[at : found.start()], language))
        at = found.end()
        if found["lang"] == language:
            pieces.append(found["block"])
        elif found["fence"]:
            pieces.append(f"```python\n{code_words.in_language(found['code'], language, words)}```")
        elif found["other"]:
            pieces.append(found["other"])
    pieces.append(_outside(source[at:], language))
    return "\n\n".join(filter(None, (piece.strip("\n") for piece in pieces)))


def _outside(text: str, language: str) -> str:
    """Return Markdown from outside the blocks of a language."""
    if language == "zh":
        text = _MINUTES.sub(r"\1 分钟", text)
    text = _ALT.sub(lambda found: one_side(found[0], language), text)
    lines = _each_line(text, lambda words: one_side(words, language))
    return re.sub(r"\n{3,}", "\n\n", lines)


def _each_line(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to the words of each line `中文 · English`."""

    def changed(line: str) -> str:
        found = _LINE.fullmatch(line)
        if not found or one_side(found["words"], "zh") == found["words"]:
            return line
        return found["before"] + change(found["words"]) + found["after"]

    return "\n".join(map(changed, text.split("\n")))


def _spans(words: str) -> str:
    zh, en = (f'<span lang="{language}">{one_side(words, language)}</span>' for language in LANGUAGES)
    return f'{zh}<span class="hookedu-dot"> · </span>{en}'
