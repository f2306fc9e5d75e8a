"""Submitted notebooks for the grader's tests, made from the lesson and from the answers in tests/answers."""

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hookedu import catalog
from hookedu.exercises import of_lesson
from tests.answers import answers

LESSON = "02"


def handed_out() -> dict[str, Any]:
    """Return the lesson's notebook as a learner receives it."""
    return json.loads(catalog.find(LESSON).notebook.read_text(encoding="utf-8"))


def cell_of(notebook: dict[str, Any], exercise_id: str) -> dict[str, Any]:
    """Return the cell for the answer to an exercise."""
    slug = "exercise-" + exercise_id.replace(".", "-")
    return next(cell for cell in notebook["cells"] if cell["id"] == slug)


def check_of(notebook: dict[str, Any], exercise_id: str) -> dict[str, Any]:
    """Return the cell that checks an exercise."""
    slug = "exercise-" + exercise_id.replace(".", "-")
    return next(cell for cell in notebook["cells"] if cell["id"] == slug + "-check")


def answered(sources: dict[str, str], notebook: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a copy of a notebook (by default the lesson's) with `sources` in the cells of these exercises."""
    notebook = copy.deepcopy(notebook or handed_out())
    for exercise_id, source in sources.items():
        cell_of(notebook, exercise_id)["source"] = source
    return notebook


def right(n: int = 0) -> dict[str, str]:
    """Return the n-th right answer to every exercise, modulo the number of right answers."""
    found = {}
    for exercise in of_lesson(LESSON):
        given = [a for a in answers() if a.exercise == exercise.id and a.mistake is None]
        found[exercise.id] = given[n % len(given)].typed()
    return found


def wrong(exercise_id: str, mistake: str) -> tuple[str, int]:
    """Return the source of a known mistake and the points that it still gets."""
    given = next(a for a in answers() if (a.exercise, a.mistake) == (exercise_id, mistake))
    return given.typed(), given.points


def reference() -> dict[str, str]:
    """Return the reference answers from the course's source, including the solution markers."""
    text = catalog.find(LESSON).source.read_text(encoding="utf-8")
    parts = text.split('# %% exercise="')[1:]
    return {part[:4]: part.split("\n", 1)[1].split("# %%")[0].strip() for part in parts}


def code(source: str, **more: Any) -> dict[str, Any]:
    """Return a code cell as a learner would add it."""
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": []} | more


def hand_in(path: Path, notebook: dict[str, Any] | bytes | str) -> Path:
    """Write a notebook into a student's folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = notebook if isinstance(notebook, (bytes, str)) else json.dumps(notebook, ensure_ascii=False)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def before(notebook: dict[str, Any], exercise_id: str, cells: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Insert cells before the cell for an exercise, and return the notebook."""
    place = notebook["cells"].index(cell_of(notebook, exercise_id))
    notebook["cells"][place:place] = cells
    return notebook
