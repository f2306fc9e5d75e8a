"""Handed-in notebooks for the grader's tests, made from the lesson and from the answers in tests/answers."""

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hookedu import catalog
from hookedu.exercises import of_lesson
from tests.answers import answers, imports

LESSON = "02"


def handed_out() -> dict[str, Any]:
    """The lesson's notebook as a learner gets it."""
    return json.loads(catalog.find(LESSON).notebook.read_text(encoding="utf-8"))


def cell_of(notebook: dict[str, Any], exercise_id: str) -> dict[str, Any]:
    """The cell for the answer to an exercise."""
    slug = "exercise-" + exercise_id.replace(".", "-")
    return next(cell for cell in notebook["cells"] if cell["id"] == slug)


def check_of(notebook: dict[str, Any], exercise_id: str) -> dict[str, Any]:
    """The cell that checks an exercise."""
    slug = "exercise-" + exercise_id.replace(".", "-")
    return next(cell for cell in notebook["cells"] if cell["id"] == slug + "-check")


def answered(sources: dict[str, str], notebook: dict[str, Any] | None = None) -> dict[str, Any]:
    """The notebook, by default the lesson's, with these sources typed into the cells of these exercises."""
    notebook = copy.deepcopy(notebook or handed_out())
    for exercise_id, source in sources.items():
        cell_of(notebook, exercise_id)["source"] = source
    return notebook


def right(n: int = 0) -> dict[str, str]:
    """The n-th right answer to every exercise; n counts round where there are fewer."""
    found = {}
    for exercise in of_lesson(LESSON):
        given = [a for a in answers() if a.exercise == exercise.id and a.mistake is None]
        found[exercise.id] = typed(given[n % len(given)], exercise.answer)
    return found


def wrong(exercise_id: str, mistake: str) -> tuple[str, int]:
    """The source of a known mistake and the points that it keeps."""
    given = next(a for a in answers() if (a.exercise, a.mistake) == (exercise_id, mistake))
    name = next(e.answer for e in of_lesson(LESSON) if e.id == exercise_id)
    return typed(given, name), given.points


def typed(answer, name: str) -> str:
    """An answer as it stands in the cell, its imports on top."""
    return imports(LESSON) + "\n\n" + answer.source(name)


def reference() -> dict[str, str]:
    """The reference answers, from the course's own source, markers included."""
    text = catalog.find(LESSON).source.read_text(encoding="utf-8")
    parts = text.split('# %% exercise="')[1:]
    return {part[:4]: part.split("\n", 1)[1].split("# %%")[0].strip() for part in parts}


def code(source: str, **more: Any) -> dict[str, Any]:
    """A cell that a learner added."""
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": []} | more


def hand_in(path: Path, notebook: dict[str, Any] | bytes | str) -> Path:
    """Put a notebook into a student's folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = notebook if isinstance(notebook, (bytes, str)) else json.dumps(notebook, ensure_ascii=False)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def before(notebook: dict[str, Any], exercise_id: str, cells: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The notebook with cells put in before the one for an exercise."""
    place = notebook["cells"].index(cell_of(notebook, exercise_id))
    notebook["cells"][place:place] = cells
    return notebook
