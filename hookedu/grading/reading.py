"""Read the cells of a submitted notebook, whose size and shape are not trusted.

Nothing here requires a valid notebook; a cell needs a source and nothing else. A small file is read at once. A large one
is read as a stream, in which outputs are dropped and everything else is counted before it is made into objects: plots
of 200 MB cost little, and 20 MB of empty cells end in a reason instead of gigabytes.
"""

import io
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ijson

from hookedu.grading.rows import Unreadable, clean
from hookedu.language import Text

MAX_CELLS = 20_000
_AT_ONCE = 2**20  # bytes; whatever so few of them hold is harmless
_MAX_VALUES = 1_000_000  # JSON values, keys and brackets in one file
_MAX_DEPTH = 60  # levels of nesting
_MAX_KEPT = 20 * 2**20  # characters of everything but what is dropped
_DROPPED = frozenset(("outputs", "attachments", "widgets"))  # no cell's code is in them

_EMPTY = Text(zh="文件是空的", en="the file is empty")
_NOT_JSON = Text(zh="不是完整的 JSON：{error}", en="not complete JSON: {error}")
_NOT_A_NOTEBOOK = Text(zh="里面没有单元，不是笔记本", en="there are no cells in it: not a notebook")
_TOO_MUCH = Text(
    zh="内容太多，没有读取：单元超过 {cells} 个，或者代码和文字超过 {mib} MiB",
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
    except (ValueError, RecursionError, ijson.JSONError) as error:
        raise Unreadable(_NOT_JSON.format(error=clean(str(error))[:100])) from None
    sheets = _get(notebook, "worksheets", list) or [notebook]  # format versions 2 and 3 have worksheets
    cells = [cell for sheet in sheets for cell in _get(sheet, "cells", list)]
    if not cells:
        raise Unreadable(_NOT_A_NOTEBOOK)
    if len(cells) > MAX_CELLS:
        raise Unreadable(_TOO_MUCH)
    return [_cell(cell) for cell in cells]


def _without_outputs(data: bytes) -> Any:
    """Parse a large notebook without its outputs; raise Unreadable if what is left is still too much."""
    encoding = json.detect_encoding(data)
    if encoding != "utf-8":
        data = data.decode(encoding).encode()
    try:
        return _parsed(data)
    except ijson.JSONError:
        # Python writes NaN and Infinity into outputs, which are no JSON.
        return _parsed(re.sub(rb"(?<=[\s:,\[])(?:NaN|-?Infinity)(?=[\s,\]}])", b"null", data))


def _parsed(data: bytes) -> Any:
    built, kept, depth = ijson.ObjectBuilder(), 0, 0
    dropping, skipped = False, 0  # whether the next value is dropped; brackets open in the one that is
    for seen, (event, value) in enumerate(ijson.basic_parse(io.BytesIO(data))):
        opens, closes = event in ("start_map", "start_array"), event in ("end_map", "end_array")
        depth += opens - closes
        if seen > _MAX_VALUES or depth > _MAX_DEPTH or kept > _MAX_KEPT:
            raise Unreadable(_TOO_MUCH)
        if skipped or dropping:
            skipped, dropping = skipped + opens - closes, False
        elif event == "map_key" and value in _DROPPED:
            dropping = True
        else:
            kept += len(value) if isinstance(value, str) else 1
            built.event(event, value)
    return built.value


def _get(node: Any, name: str, kind: type) -> Any:
    value = node.get(name) if isinstance(node, dict) else None
    return value if isinstance(value, kind) else kind()


def _cell(node: Any) -> Cell:
    source = ""
    for name in ("source", "input"):  # code cells of format version 3 have "input"
        lines = _get(node, name, list)
        source = source or _get(node, name, str) or "".join(line for line in lines if isinstance(line, str))
    metadata = _get(node, "metadata", dict)
    return Cell(
        kind=clean(_get(node, "cell_type", str)[:20]) or "code",
        source=source.encode("utf-8", "replace").decode("utf-8"),  # JSON can hold lone surrogates
        grade_id=_get(_get(metadata, "nbgrader", dict), "grade_id", str),
        id=_get(node, "id", str),
        tags=tuple(tag for tag in _get(metadata, "tags", list) if isinstance(tag, str)),
    )
