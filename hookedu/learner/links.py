"""Links from a notebook's outputs to the lessons that lie in the same folder."""

import json
import os
from functools import cache
from html import escape
from pathlib import Path

from hookedu.catalog import Lesson
from hookedu.exercises.exercise import Exercise


class Links:
    """Links relative to the notebook that is running; each target is read once."""

    def __init__(self) -> None:
        # Set by a Jupyter server. Where there is none (nbval, nbconvert, a build) nothing could follow a link.
        running = os.environ.get("JPY_SESSION_NAME")
        self.can_be_followed = running is not None
        self.here = Path(running or "").name  # the notebook that is running
        self.cells = cache(_cell_ids)

    def to(self, lesson: Lesson, exercise: Exercise | None = None) -> str | None:
        """Return the address of a lesson or of the task of an exercise, or None if it leads nowhere."""
        name = lesson.notebook.name
        cells = self.cells(name) if self.can_be_followed else None
        if cells is None:
            return None
        # A link to the notebook itself, without a cell, would do nothing.
        if exercise is None and name == self.here and cells:
            return f"{name}#cell-id={cells[0]}"
        # JupyterLab resolves the address relative to this notebook and scrolls to the cell with that id, even if the
        # notebook is open already. It can scroll to a heading as well, but not to one in Chinese.
        if exercise and exercise.slug in cells[1:]:
            return f"{name}#cell-id={cells[cells.index(exercise.slug) - 1]}"
        return name

    def around(self, inner: str, lesson: Lesson, exercise: Exercise | None = None, style: str = "") -> str:
        """Return HTML that links `inner` to the lesson or to the task; `inner` alone if it would lead nowhere."""
        address = self.to(lesson, exercise)
        return inner if address is None else f'<a href="{escape(address)}" style="{style}">{inner}</a>'


def _cell_ids(name: str) -> list[str] | None:
    """Return the cell ids of a notebook in order, or None if it is missing or not a notebook."""
    try:
        cells = json.loads(Path(name).read_text(encoding="utf-8"))["cells"]
        return [str(cell.get("id", "")) for cell in cells]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
