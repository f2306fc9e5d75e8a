"""Read the cells of a submitted notebook, whose size and shape are not trusted.

Nothing here requires a valid notebook; a cell needs a source and nothing else. A small file is read at once. Of a large
one, outputs are cut away and everything else is counted before it is made into objects: plots of 200 MB cost little, and
20 MB of empty cells end in a reason instead of gigabytes. All of it is done by Python's own json and re: a parser in C
(ijson with yajl) crashed on a number of a million digits, and with it the process that keeps the grades.
"""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hookedu.grading.cleaning import clean
from hookedu.grading.rows import Unreadable
from hookedu.language import Text

MAX_CELLS = 20_000
_AT_ONCE = 2**20  # bytes; whatever so few of them hold is harmless
_MAX_TOKENS = 2_000_000  # strings, brackets and commas in one file
_MAX_DEPTH = 60  # levels of nesting
_MAX_KEPT = 20 * 2**20  # bytes of everything but what is dropped
# A key whose value is dropped, since no cell's code is in it; a string; a bracket or a comma.
_TOKEN = re.compile(
    rb"""(?P<dropped>"(?:outputs|attachments|widgets|hookedu)"\s*+:)"""
    rb"""|(?P<open>")(?:[^"\\]++|\\.)*+(?P<closed>"?)|[][{},]""",
    re.DOTALL,
)
_COMMA = ord(",")

_EMPTY = Text(zh="文件是空的", en="the file is empty")
_NOT_JSON = Text(zh="不是完整的 JSON：{error}", en="not complete JSON: {error}")
_NOT_A_NOTEBOOK = Text(zh="里面没有单元格，不是笔记本", en="there are no cells in it: not a notebook")
_TOO_MUCH = Text(
    zh="内容太多，没有读取：单元格超过 {cells} 个，或者代码和文字超过 {mib} MiB",
    en="too much to read: more than {cells} cells, or more than {mib} MiB of code and text",
).format(cells=MAX_CELLS, mib=_MAX_KEPT // 2**20)


@dataclass(frozen=True)
class Cell:
    """The relevant parts of one cell, independent of the notebook format's version."""

    kind: str
    source: str
    grade_id: str = ""
    id: str = ""
    tags: tuple[str, ...] = ()

    @cached_property
    def plain(self) -> str:
        """Source without blank lines and trailing whitespace; cells that differ only there count as equal."""
        return "\n".join(line.rstrip() for line in self.source.splitlines() if line.strip())


def read_cells(data: bytes) -> list[Cell]:
    """Return the cells of a notebook of any version; raise Unreadable with the reason if there are none."""
    if not data.strip():
        raise Unreadable(_EMPTY)
    try:
        # json.loads detects UTF-8, UTF-16 and a byte order mark.
        notebook = json.loads(data) if len(data) <= _AT_ONCE else _without_outputs(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable(_NOT_JSON.format(error=clean(str(error))[:100])) from None
    old = _is_old(notebook)
    sheets = (_get(notebook, "worksheets", list) if old else []) or [notebook]
    cells = [cell for sheet in sheets for cell in _get(sheet, "cells", list)]
    if not cells:
        raise Unreadable(_NOT_A_NOTEBOOK)
    if len(cells) > MAX_CELLS:
        raise Unreadable(_TOO_MUCH)
    return [_cell(cell, old) for cell in cells]


def _is_old(notebook: Any) -> bool:
    """Check whether a notebook is of format version 2 or 3, with worksheets and the `input` of code cells.

    What Jupyter shows must be what is graded: the answers of a newer notebook must not lie in the places of an old one.
    """
    version = _get(notebook, "nbformat", int)
    return 0 < version < 4 if version else not _get(notebook, "cells", list)


def _without_outputs(data: bytes) -> Any:
    """Parse a large notebook without its outputs; raise Unreadable if what is left is still too much."""
    encoding = json.detect_encoding(data)
    text = data if encoding == "utf-8" else data.decode(encoding).encode()
    if text.startswith(b"\0"):
        raise ValueError("it begins with a zero byte")
    return json.loads(_cut(text))


def _cut(data: bytes) -> bytes:
    """Return JSON in which null replaces each dropped value; only strings, brackets and commas are looked at."""
    kept, start, size, depth = [], 0, 0, 0
    dropped_at = 0  # depth of the object whose value is dropped at the moment; 0 if none is
    for seen, token in enumerate(_TOKEN.finditer(data)):
        first = data[token.start()]
        depth += (first in b"[{") - (first in b"]}")
        if seen > _MAX_TOKENS or depth > _MAX_DEPTH or size > _MAX_KEPT:
            raise Unreadable(_TOO_MUCH)
        if token["open"] is not None and not token["closed"]:
            raise ValueError(f"a string without an end at byte {token.start()}")
        if dropped_at:
            if depth < dropped_at or (depth == dropped_at and first == _COMMA):
                start, dropped_at = token.start(), 0
        elif token["dropped"]:
            kept += data[start : token.end()], b"null"
            size += token.end() - start
            dropped_at = depth
    kept.append(b"" if dropped_at else data[start:])
    if size + len(kept[-1]) > _MAX_KEPT:
        raise Unreadable(_TOO_MUCH)
    return b"".join(kept)


def _get(node: Any, name: str, kind: type) -> Any:
    value = node.get(name) if isinstance(node, dict) else None
    return value if isinstance(value, kind) else kind()


def _cell(node: Any, old: bool) -> Cell:
    name = "input" if old and _get(node, "cell_type", str) == "code" else "source"
    lines = _get(node, name, list)
    source = _get(node, name, str) or "".join(line for line in lines if isinstance(line, str))
    metadata = _get(node, "metadata", dict)
    return Cell(
        kind=clean(_get(node, "cell_type", str)[:20]) or "code",
        source=source.encode("utf-8", "replace").decode("utf-8"),  # JSON can hold lone surrogates
        grade_id=_get(_get(metadata, "nbgrader", dict), "grade_id", str),
        id=_get(node, "id", str),
        tags=tuple(tag for tag in _get(metadata, "tags", list) if isinstance(tag, str)),
    )
