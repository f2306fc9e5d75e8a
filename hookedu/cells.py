"""Cells of a lesson as plain JSON, and the source of each in every language.

A cell of a built notebook that differs from one language to another has all its variants in its metadata:

    "hookedu": {"languages": {"both": [lines], "zh": [lines], "en": [lines]}}

Its source is one of them until a learner changes it. widgets/js/language_toggle.js applies the same rule.
"""

from typing import Any

Cell = dict[str, Any]


def source_of(cell: Cell) -> str:
    """Return the source of a cell, which a file holds as one string or as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def variants_of(cell: Cell) -> dict[str, str]:
    """Return a cell's sources by language; {} if it is the same in all, or is not ours."""
    languages = cell.get("metadata", {}).get("hookedu", {}).get("languages", {})
    return {language: "".join(lines) for language, lines in languages.items()}


def said_in(cell: Cell, language: str) -> str:
    """Return the source of a cell in a language; of a cell that is the same in all, its source."""
    return variants_of(cell).get(language, source_of(cell))
