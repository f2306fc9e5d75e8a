"""Turn Python source of any shape into tokens that a new name, comment or line break does not change.

A regular expression reads the source, for three reasons. It cannot crash: `ast` and, since Python 3.12, `tokenize` use
the compiler's own code, which deep nesting can exhaust. It needs no valid program: half an answer or a cell with `%%time`
has tokens as well. Its time is proportional to the length: every loop in it is possessive, so nothing is read twice.
"""

import builtins
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LEXEME = re.compile(
    r"""
    (?P<skip> \#[^\n]*+ | [ \t\f]++ | \\\n )
  | (?P<newline> \n )
  | (?P<string> [rbfuRBFU]{0,2} (?:
        \"{3} (?: [^"\\] | \\. | "(?!"") )*+ (?: \"{3} | \\? \Z )
      | '{3} (?: [^'\\] | \\. | '(?!'') )*+ (?: '{3} | \\? \Z )
      | " (?: [^"\\\n] | \\. )*+ "?
      | ' (?: [^'\\\n] | \\. )*+ '?
    ))
  | (?P<number> \.?[0-9] (?: [eE][-+]?[0-9] | [\w.] )*+ )
  | (?P<name> \w++ )
  | (?P<operator> \*\*=? | //=? | -> | <<=? | >>=? | [-+*/%@&|^<>=!:]= | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_BUILTINS = frozenset(dir(builtins))
_STRING = '"'


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes
    ----------
    text : str
        What it says. The content of strings is left out.
    line : int
        Its line, or its first one, counted from 0.
    chosen : bool
        Whether it is a name that the author of the code could have chosen otherwise.
    """

    text: str
    line: int
    chosen: bool = False


def tokens(sources: Sequence[str]) -> list[list[Token]]:
    """Return the tokens of each cell of one submission, without comments, docstrings, imports and white space.

    Names are chosen by the author, with these exceptions: keywords, builtins where they are called, and attributes,
    unless the submission itself defines or assigns one of that name.
    """
    cells = [list(_telling(_lexemes(source))) for source in sources]
    own = {name for cell in cells for name in _own_attributes(cell)}
    return [[_token(cell, i, own) for i in range(len(cell))] for cell in cells]


def _lexemes(source: str) -> Iterator[tuple[str, str, int]]:
    """Yield (kind, text, line); a newline within brackets is left out, as it ends no statement."""
    line = depth = 0
    for match in _LEXEME.finditer(source):
        kind, text = match.lastgroup or "", match[0]
        if kind == "operator":
            depth = max(0, depth + (text in "([{") - (text in ")]}"))
        if kind == "string":
            yield kind, _STRING, line
        elif kind == "number":
            yield kind, text.lower().replace("_", ""), line
        elif kind != "skip" and not (kind == "newline" and depth):
            yield kind, text, line
        line += text.count("\n")


def _telling(lexemes: Iterator[tuple[str, str, int]]) -> Iterator[tuple[str, str, int]]:
    """Yield the lexemes without newlines, imports and statements that are only a string, as docstrings are."""
    statement: list[tuple[str, str, int]] = []
    for lexeme in (*lexemes, ("newline", "\n", 0)):
        if lexeme[0] != "newline":
            statement.append(lexeme)
            continue
        imports = statement and statement[0][1] in ("import", "from")
        if not imports and any(kind != "string" for kind, _, _ in statement):
            yield from statement
        statement = []


def _own_attributes(cell: list[tuple[str, str, int]]) -> Iterator[str]:
    for (_, before, _), (kind, name, _), (_, after, _) in zip(
        cell, cell[1:], [*cell[2:], ("", "", 0)], strict=False
    ):
        if kind == "name" and (before == "def" or (before == "." and after == "=")):
            yield name


def _token(cell: list[tuple[str, str, int]], i: int, own: set[str]) -> Token:
    kind, text, line = cell[i]
    before = cell[i - 1][1] if i else ""
    after = cell[i + 1][1] if i + 1 < len(cell) else ""
    if kind != "name" or keyword.iskeyword(text):
        return Token(text, line)
    if before == ".":
        return Token(text, line, text in own)
    return Token(text, line, not (text in _BUILTINS and after == "("))
