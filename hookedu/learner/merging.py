"""Bring a learner's copy of a lesson up to date: every cell is the new version's, unless the learner changed it.

A copy is compared with the version that was handed out, cell by cell, and of a cell only its kind and its source count: in
any language, since the buttons of a notebook switch cells from one to another. Metadata and outputs, which a front end
writes on its own, change nothing.

- A cell that the learner did not change becomes the new version's, in the language of the hand-out. Its outputs stay if its
  code does.
- A cell that the learner changed or added stays as it is, to the byte. If the new version has other words for it, they
  follow in a cell of prose below.
- A cell that the learner deleted stays deleted.
- The order is that of the new version; a cell that it does not have follows the one that it followed in the copy.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hookedu.cells import Cell, said_in, source_of, variants_of
from hookedu.language import BOTH, LANGUAGES, Text

Notebook = dict[str, Any]
# What was handed out: of each cell, by its id, its kind and the digests of its source by language.
Base = dict[str, dict[str, str]]

_NEW_VERSION = Text(
    zh="**新版本**：上面这个单元格你改过，所以原样保留。课程里现在是这样写的（看完可以删掉这个单元格）：",
    en="**New version**: you changed the cell above, so it stays as it is. This is what the course has there now (delete this "
    "cell when you have read it):",
)


@dataclass(frozen=True)
class Merged:
    """A copy that has been brought up to date.

    Attributes
    ----------
    notebook : dict
        The copy.
    kept : int
        Number of cells that the learner changed or added.
    offered : int
        Number of cells below which the new version has been put.
    """

    notebook: Notebook
    kept: int
    offered: int


def base_of(notebook: Notebook) -> Base:
    """Return what a notebook is when it is handed out, to compare it with later."""
    return {cell["id"]: _entry(cell) for cell in notebook["cells"] if "id" in cell}


def carried(copy: Notebook) -> Base:
    """Return what a copy says itself about the version it was: less than `base_of`, but it is never lost."""
    return {cell["id"]: _entry(cell) for cell in copy["cells"] if "id" in cell and variants_of(cell)}


def in_language(notebook: Notebook, language: str) -> Notebook:
    """Return a built notebook in a language."""
    return notebook | {"cells": [_in_language(cell, language) for cell in notebook["cells"]]}


def merged(copy: Notebook, base: Base, new: Notebook, language: str) -> Merged:
    """Bring a copy up to date.

    Parameters
    ----------
    copy : dict
        The learner's notebook.
    base : dict
        What was handed out, as `base_of` or `carried` returns it.
    new : dict
        The built notebook to bring it up to.
    language : str
        The language of the hand-out: "zh", "en" or "both".

    Returns
    -------
    Merged
        The new state of the copy.
    """
    mine = _matched(copy["cells"], base, new)
    here = {id: cell for id, cell in mine if id is not None}
    ids = {cell.get("id") for cell in copy["cells"]}
    kept = offered = 0
    first: list[Cell] = []
    groups: dict[str, list[Cell]] = {}  # each cell of the new version, and what follows it
    for cell in new["cells"]:
        id, fresh = cell["id"], _in_language(cell, language)
        if id not in here:
            groups[id] = [] if id in base else [fresh]
        elif _is_ours(here[id], base.get(id, {}), _entry(cell)):
            groups[id] = [_updated(here[id], fresh)]
        else:
            groups[id] = [here[id]]
            offer = _offer(here[id], base.get(id, {}), fresh, language)
            if offer and offer["id"] not in ids:
                groups[id].append(offer)
                offered += 1
            kept += 1
    group = first
    for id, cell in mine:
        if id in groups:
            group = groups[id]
        elif id is None or not _is_ours(cell, base[id]):
            group.append(cell)
            kept += 1
    cells = [cell for part in (first, *groups.values()) for cell in part]
    metadata = copy["metadata"]
    if _kernel(copy) in ("", _kernel(new)):  # else the learner chose another one
        metadata = metadata | new["metadata"]
    minor = max(copy.get("nbformat_minor", 0), new["nbformat_minor"])
    return Merged(
        copy | {"cells": _with_ids(cells), "metadata": metadata, "nbformat_minor": minor}, kept, offered
    )


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _entry(cell: Cell) -> dict[str, str]:
    return {"kind": cell["cell_type"]} | {lang: digest(said_in(cell, lang)) for lang in (BOTH, *LANGUAGES)}


def _in_language(cell: Cell, language: str) -> Cell:
    return cell | {"source": said_in(cell, language).splitlines(True)}


def _matched(cells: list[Cell], base: Base, new: Notebook) -> list[tuple[str | None, Cell]]:
    """Return each cell of a copy with the id of the cell that it was handed out as; None for the learner's own."""
    known = {*base, *(cell["id"] for cell in new["cells"])}
    found: list[str | None] = [None] * len(cells)

    def match(by: Callable[[Cell], str | None]) -> None:
        for place, cell in enumerate(cells):
            if found[place] is None and (id := by(cell)) in known and id not in found:
                found[place] = id

    match(lambda cell: cell.get("id"))
    # A cell that was cut and pasted has a new id, and a front end that knows no ids writes none.
    match(lambda cell: cell["metadata"].get("nbgrader", {}).get("grade_id"))
    match(lambda cell: next((id for id in base if id not in found and _is_ours(cell, base[id])), None))
    return list(zip(found, cells, strict=True))


def _is_ours(cell: Cell, *entries: dict[str, str]) -> bool:
    """Check whether a cell is, in any language, as in one of the versions."""
    text = digest(source_of(cell))
    return any(entry.get("kind") == cell["cell_type"] and text in entry.values() for entry in entries)


def _updated(cell: Cell, fresh: Cell) -> Cell:
    """Return a cell of the new version in place of the learner's, which is as it was handed out."""
    made = fresh | {"metadata": cell["metadata"] | fresh["metadata"]}
    if fresh["cell_type"] == "code" and source_of(cell) in {*variants_of(fresh).values(), source_of(fresh)}:
        made |= {key: cell[key] for key in ("outputs", "execution_count") if key in cell}
    return made


def _offer(cell: Cell, entry: dict[str, str], fresh: Cell, language: str) -> Cell | None:
    """Return a cell that shows what the new version has in place of a changed one; None if that is nothing new."""
    source = source_of(fresh)
    if entry.get(language, digest(source)) == digest(source):
        return None
    said = _NEW_VERSION.plain(LANGUAGES if language == BOTH else (language,), between="\n\n")
    shown = f"````python\n{source}\n````" if fresh["cell_type"] == "code" else f"---\n\n{source}"
    return {
        "cell_type": "markdown",
        "id": f"{fresh['id'][:40]}-new-{digest(source)}",
        "metadata": {},
        "source": f"{said}\n\n{shown}".splitlines(True),
    }


def _kernel(notebook: Notebook) -> str:
    return notebook["metadata"].get("kernelspec", {}).get("name", "")


def _with_ids(cells: list[Cell]) -> list[Cell]:
    """Give an id to each cell that has none, or one that an earlier cell has."""
    seen: set[str] = set()
    made = []
    for place, cell in enumerate(cells):
        if cell.get("id") in (None, *seen):
            cell = cell | {"id": f"own-{place}-{digest(source_of(cell))}"}
        seen.add(cell["id"])
        made.append(cell)
    return made
