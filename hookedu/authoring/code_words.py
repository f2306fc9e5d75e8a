"""The code of a lesson in one language: docstrings, comments, and strings with words.

Code in course/NN_name.py is English, and names stay as they are. Its Chinese words stand beside it, in
course/NN_name.code.yml, a mapping from the English text to the Chinese one:

    "off again: lesson 02 tells why": 用完取下：原因在第 02 课
    "the hook saw:": 钩子看到：
    "{} samples of {}": 共 {1} 个样本，其中 {0} 个

parso reads the code, because its tokens do not depend on the version of Python that runs it: `tokenize` gives an f-string
as one token before Python 3.12 and as several since, and a build must not depend on that.
"""

import builtins
import keyword
import re
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from hookedu import yaml_files
from hookedu.catalog import Lesson
from hookedu.language import has_chinese, one_side

PYTHON = "3.11"  # the grammar; the lessons run on this version and later
WIDTH = 98  # columns of a comment that is broken into lines; lint allows 100
_LITERAL = re.compile(r"(?P<prefix>[a-zA-Z]*)(?P<quote>\"{3}|'{3}|\"|')(?P<body>.*)(?P=quote)", re.DOTALL)
_EDGES = re.compile(r"((?:\s|\\n)*)(.*?)((?:\s|\\n)*)", re.DOTALL)
_FIELD = re.compile(r"\{\{|\}\}|\{(\d*)\}")  # escaped braces are none: their group is None
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]+")


def file_of(lesson: Lesson) -> Path:
    """Return the path of the Chinese words of a lesson's code, which may not exist."""
    return lesson.source.with_suffix(".code.yml")


def words_of(lesson: Lesson) -> dict[str, str]:
    """Return the Chinese words of a lesson's code by the English ones; {} if there are none."""
    return yaml_files.load(file_of(lesson))


def columns(text: str) -> int:
    """Return the width of a text in columns; a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "FW" else 1 for letter in text)


def in_language(code: str, language: str, words: Mapping[str, str]) -> str:
    """Return code whose docstrings, comments and strings are in "zh" or "en".

    Texts in both languages keep one: the Chinese or English paragraphs of a docstring, a side of `中文 · English`. All
    other words are English; for "zh", those that `words` has are replaced.
    """
    return _Translation(code, language, words).text


@dataclass(frozen=True)
class CodeText:
    """A text in English code that can have a Chinese one.

    Attributes
    ----------
    text : str
        The key in course/NN_name.code.yml.
    line : int
        Line in the code, counted from 1.
    shown : bool
        Whether readers see it: a comment, a docstring, or a string that is printed.
    fields : int
        Number of replacement fields of an f-string.
    room : int
        Columns of a string that is padded with spaces to align the output; 0 for other texts.
    """

    text: str
    line: int
    shown: bool
    fields: int = 0
    room: int = 0


def texts(code: str) -> list[CodeText]:
    """Return every text of the code that could have a Chinese one, in order."""
    return _Translation(code, "zh", {}).found


def names(code: str) -> set[str]:
    """Return the names that code uses, and those of Python: words that are no prose."""
    return {leaf.value for leaf in _leaves(_parse(code)) if leaf.type == "name"} | _PYTHON


def is_prose(text: str, names: set[str]) -> bool:
    """Check whether a text has a word of prose: two letters or more, no name of the code, no abbreviation."""
    words = (word.strip("""`.,:;!?()[]{}"“”'…=""") for word in text.split())
    return any(_WORD.fullmatch(word) and word not in names and not word.isupper() for word in words)


def fields_of(text: str, of: int) -> list[int] | None:
    """Return which of an f-string's fields a Chinese text places, in its order; None if it is not possible."""
    named = [found[1] for found in _FIELD.finditer(text) if found[1] is not None]
    if all(named) or not any(named):
        places = [int(name or place) for place, name in enumerate(named)]
        if sorted(set(places)) == list(range(of)):
            return places
    return None


_PYTHON = {*keyword.kwlist, *dir(builtins)}


@cache
def _grammar() -> Any:
    from parso.grammar import load_grammar  # a dependency of authors only

    return load_grammar(version=PYTHON)


# Each cell is parsed for every language and every rule; nobody changes a tree.
@lru_cache(maxsize=128)
def _parse(code: str) -> Any:
    return _grammar().parse(code)


def _leaves(node: Any) -> Iterator[Any]:
    if hasattr(node, "children"):
        for child in node.children:
            yield from _leaves(child)
    else:
        yield node


class _Translation:
    """One walk over the code, which writes it anew and notes the texts that it meets."""

    def __init__(self, code: str, language: str, words: Mapping[str, str]):
        self._language, self._words = language, words if language == "zh" else {}
        self.found: list[CodeText] = []
        tree = _parse(code)
        self._aligned = set(_padded(tree))  # widths to which strings are padded in this code
        self.text = self._code(tree)

    def _code(self, node: Any) -> str:
        if _is_docstring(node):
            return self._prefix(node.get_first_leaf()) + self._docstring(node)
        if node.type in ("string", "fstring", "strings"):
            return self._prefix(node.get_first_leaf()) + self._string(node)
        if hasattr(node, "children"):
            return "".join(map(self._code, node.children))
        return self._prefix(node) + node.value

    # -- comments --------------------------------------------------------------------------------------------

    def _prefix(self, leaf: Any) -> str:
        """Return the white space and comments before a token, with the comments in this language."""
        if "#" not in leaf.prefix:
            return leaf.prefix
        line, column = leaf.get_start_pos_of_prefix()
        made: list[str] = []
        block: list[tuple[int, str, str]] = []
        for number, text in enumerate(leaf.prefix.split("\n"), line):
            before, mark, comment = text.partition("#")
            translatable = mark and not comment.startswith("##")  # `### BEGIN SOLUTION` is no comment
            alone = number > line or column == 0
            if not (translatable and alone and (not block or block[0][1] == before)):
                made += self._comments(block)
                block = []
            if translatable and alone:
                block.append((number, before, comment))
            elif translatable:
                made.append(f"{before}# {self._comment(comment, number)}")
            else:
                made.append(text)
        return "\n".join([*made, *self._comments(block)])

    def _comments(self, block: list[tuple[int, str, str]]) -> list[str]:
        """Return the lines of a block of comments; it is one text."""
        if not block:
            return []
        number, before, _ = block[0]
        text = " ".join(comment.strip() for _, _, comment in block)
        said = self._comment(text, number)
        if said == text:
            return [f"{before}#{comment}" for _, _, comment in block]
        return [f"{before}# {line}" for line in _wrapped(said, WIDTH - len(before) - 2)]

    def _comment(self, comment: str, line: int) -> str:
        text = comment.strip()
        said = one_side(text, self._language)
        if said == text and not has_chinese(text):
            self.found.append(CodeText(text, line, shown=True))
            return self._words.get(text, text)
        return said

    # -- docstrings ------------------------------------------------------------------------------------------

    def _docstring(self, node: Any) -> str:
        literal = _LITERAL.fullmatch(node.value)
        assert literal, node.value
        indent = " " * node.start_pos[1]
        paragraphs = textwrap.dedent(indent + literal["body"]).strip().split("\n\n")
        sides = {lang: [p for p in paragraphs if has_chinese(p) == (lang == "zh")] for lang in ("zh", "en")}
        if all(sides.values()):
            paragraphs = sides[self._language]
        elif sides["en"]:
            text = " ".join(" ".join(paragraphs).split())
            self.found.append(CodeText(text, node.start_pos[0], shown=True))
            if text not in self._words:
                return node.value
            paragraphs = [self._words[text]]
        else:
            return node.value
        lines = "\n\n".join(paragraphs).split("\n")
        end = f"\n{indent}" if len(lines) > 1 else ""
        body = "\n".join([lines[0], *(indent + line if line else "" for line in lines[1:])])
        return f"{literal['prefix']}{literal['quote']}{body}{end}{literal['quote']}"

    # -- strings ---------------------------------------------------------------------------------------------

    def _string(self, node: Any) -> str:
        parts = _parts(node)
        as_it_is = self._parts_as_they_are(node)
        if parts is None:
            return as_it_is
        body = _body(parts)
        match = _EDGES.fullmatch(body)
        assert match
        before, text, after = match.groups()
        said = one_side(text, self._language)
        if said == text and not has_chinese(text) and text:
            width, shown = columns(body), _is_printed(node)
            padded = shown and not parts.fields and "\\" not in body and width in self._aligned
            room = width - len(before) if padded else 0
            self.found.append(CodeText(text, node.start_pos[0], shown, len(parts.fields), room))
            said = self._words.get(text, text)
            if padded and said != text:
                after = " " * max(len(after) and 1, room - columns(said))
        if said == text:
            return as_it_is
        fields = [self._code(field) for field in parts.fields]
        if fields:
            counted = iter(range(len(fields)))
            said = _FIELD.sub(
                lambda found: found[0] if found[1] is None else fields[int(found[1] or next(counted))], said
            )
        return f"{parts.prefix}{parts.quote}{before}{said}{after}{parts.quote}"

    def _parts_as_they_are(self, node: Any) -> str:
        """Return a string as it is, but for the strings inside an f-string's fields."""
        if node.type == "strings":
            first, *others = node.children
            return self._parts_as_they_are(first) + "".join(
                self._prefix(other.get_first_leaf()) + self._parts_as_they_are(other) for other in others
            )
        if node.type == "fstring":
            start, *others = node.children
            return start.value + "".join(map(self._code, others))
        return node.value


@dataclass
class _Parts:
    """A string: its prefix and quotes, its text piece by piece, and the nodes of its fields, which are None in the text."""

    prefix: str
    quote: str
    text: list[str | None] = field(default_factory=list)
    fields: list[Any] = field(default_factory=list)


def _parts(node: Any) -> _Parts | None:
    """Return the parts of a string, which may be several in a row; None for bytes and for a mixture of quotes."""
    whole: _Parts | None = None
    for part in node.children if node.type == "strings" else [node]:
        if part.type == "fstring":
            start = part.children[0].value
            quote = start.lstrip("fFrR")
            read = _Parts(start[: -len(quote)], quote)
            for piece in part.children[1:-1]:
                is_field = piece.type == "fstring_expr"
                read.text.append(None if is_field else piece.value)
                read.fields += [piece] if is_field else []
        else:
            literal = _LITERAL.fullmatch(part.value)
            assert literal, part.value
            read = _Parts(literal["prefix"], literal["quote"], [literal["body"]])
        if "b" in read.prefix.lower():
            return None
        if whole is None:
            whole = read
            continue
        if whole.quote != read.quote or "r" in (whole.prefix + read.prefix).lower():
            return None
        # Only one is an f-string: the braces of the other are text.
        if bool(whole.prefix) != bool(read.prefix):
            plain = read if whole.prefix else whole
            plain.text = [text and text.replace("{", "{{").replace("}", "}}") for text in plain.text]
        whole.prefix = whole.prefix or read.prefix
        whole.text += read.text
        whole.fields += read.fields
    return whole


def _body(parts: _Parts) -> str:
    return "".join("{}" if text is None else text for text in parts.text)


def _is_docstring(node: Any) -> bool:
    """Check whether a string is a statement by itself."""
    return node.type == "string" and node.parent.type == "simple_stmt" and node.parent.children[0] is node


def _is_printed(node: Any) -> bool:
    """Check whether a string stands in the parentheses of print(), but in no subscript or other call there."""
    while node.parent is not None:
        node, inner = node.parent, node
        if node.type == "trailer" and inner is not node.children[0]:
            siblings = node.parent.children
            called = siblings[siblings.index(node) - 1]
            return node.children[0].value == "(" and getattr(called, "value", "") == "print"
    return False


def _padded(tree: Any) -> Iterator[int]:
    """Yield the width of every printed string that ends with spaces."""
    for leaf in _leaves(tree):
        if leaf.type == "string" and _is_printed(leaf) and (literal := _LITERAL.fullmatch(leaf.value)):
            body = literal["body"]
            if body.strip() and body.endswith(" ") and "\\" not in body:
                yield columns(body)


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines; between Chinese characters a line may end anywhere but before punctuation."""
    lines, line = [], ""
    for piece in re.findall(
        r"[\u3000-\u9fff\uff00-\uffef][，。；：、！？）」”]*|\s+|[^\s\u3000-\u9fff\uff00-\uffef]+", text
    ):
        if line.strip() and columns(line + piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece if line else piece.lstrip()
    return [*lines, line.rstrip()]
