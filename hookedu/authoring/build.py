"""Builder of notebooks: course/NN_name.py gives lessons/NN_name.ipynb and solutions/NN_name.ipynb.

The lesson has no answers and no outputs; the solution has both.

Builds are reproducible byte for byte: cell ids are derived from the lesson and the position of the cell, and
a notebook does not record when or where it was run. Each code cell of a solution stores a checksum of its
outputs, so that `check()` finds a changed character anywhere in a built notebook without running it. Whether
the stored outputs are still what the code prints is tested by nbval. The truth of each guess is evaluated while
the solution runs; a checksum of the guess shows that this has been done.
"""

import copy
import difflib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from hookedu import exercises, guesses
from hookedu.authoring import code_words, lint, localize, source
from hookedu.catalog import CourseError, Lesson
from hookedu.exercises.probing import STUB
from hookedu.language import Text, join_chinese_lines

CELL_TIMEOUT = 120  # seconds
CODE_STUB = {"python": f'raise NotImplementedError("{STUB}")'}  # what nbgrader puts in place of a solution
_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    # The interpreter's version is left out, because it depends on the machine that builds the notebook.
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}


class BuildError(CourseError):
    """Error in a lesson that cannot be built; nothing has been written."""


@dataclass(frozen=True)
class Stale:
    """A difference between a built notebook and what its source gives."""

    file: str  # "lessons/02_tensor_hooks.ipynb"
    cell: str  # cell id, or "" for the notebook as a whole
    diff: str  # unified diff, shortened; or what is wrong with the file

    def __str__(self) -> str:
        says = (
            Text(
                zh="{file}，单元 {cell}：与源文件不一致。", en="{file}, cell {cell}: differs from its source."
            )
            if self.cell
            else Text(zh="{file}：与源文件不一致。", en="{file}: differs from its source.")
        )
        return f"{says.format(file=self.file, cell=self.cell)}\n{self.diff}"


def build(lessons: Iterable[Lesson], on_cell: Callable[[Lesson, int, int], None] | None = None) -> None:
    """Build and write both notebooks of each lesson.

    `on_cell(lesson, index, number of cells)` is called before each cell that is executed. Raises BuildError,
    before anything is written, if one of the lessons cannot be built.
    """
    sources = {lesson: _cells(lesson) for lesson in lessons}
    made: dict[str, str] = {}
    for lesson, cells in sources.items():
        for_learners, answered = _notebooks(lesson, cells)
        made[str(lesson.notebook)] = _as_text(for_learners)
        _run(answered, lesson, on_cell)
        made[str(lesson.solution)] = _as_text(answered)
    for path, text in made.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)


def check(lessons: Iterable[Lesson]) -> list[Stale]:
    """Return the differences between the built notebooks and their sources; [] if they are up to date.

    Runs no cell. Raises BuildError if a source is missing or breaks a rule of `lint`.
    """
    stale = []
    for lesson in lessons:
        for_learners, answered = _notebooks(lesson, _cells(lesson))
        stale += _compare(lesson, lesson.notebook, for_learners)
        stale += _compare(lesson, lesson.solution, answered)
    return stale


def _cells(lesson: Lesson) -> list[source.Cell]:
    if not lesson.source.exists():
        raise BuildError(
            Text(
                zh="course.yml 里有 `{name}`，却没有 `course/{name}.py`。",
                en="course.yml lists `{name}`, but there is no `course/{name}.py`.",
            ).format(name=lesson.file)
        )
    cells = source.read(lesson)
    if found := lint.problems(lesson, cells):
        raise BuildError(*(problem.text for problem in found))
    return cells


# --- from source cells to notebook cells ---------------------------------------------------------------------------


def _notebooks(lesson: Lesson, cells: list[source.Cell]) -> tuple[NotebookNode, NotebookNode]:
    """Return the learner's notebook, and the solution before it is run; each knows its cells in every language."""
    answered = _answered(lesson, cells)
    made = _for_learners(answered), answered
    words = code_words.words_of(lesson)
    for cell in (cell for notebook in made for cell in notebook.cells):
        variants = localize.variants(cell.source, cell.cell_type == "code", words)
        if len(set(variants.values())) > 1:
            # As lists of lines, like a source in the file: a changed line is a changed line.
            lines = {language: text.splitlines(True) for language, text in variants.items()}
            cell.metadata["hookedu"] = {"languages": lines}
        cell.source = variants[localize.BOTH]
    return made


def _answered(lesson: Lesson, cells: list[source.Cell]) -> NotebookNode:
    """Return the solution notebook before it is run."""
    made = [_title(lesson)]
    place = 0
    for cell in cells:
        # A guess is named after the cell that follows: `guess()` waits for it to run.
        place += not cell.guess
        name = f"{lesson.id}-cell-{place + 1:02d}-guess" if cell.guess else f"{lesson.id}-cell-{place:02d}"
        if not cell.is_code:
            made.append(new_markdown_cell(_prose(cell.text), id=name))
            continue
        metadata: dict = {"tags": list(cell.tags)} if cell.tags else {}
        if exercise_id := cell.exercise or cell.check:
            exercise = exercises.find(exercise_id)
            name = exercise.slug if cell.exercise else f"{exercise.slug}-check"
            metadata["nbgrader"] = _nbgrader(name, None if cell.exercise else exercise.points)
        made.append(new_code_cell(cell.text, id=name, metadata=metadata))
    return new_notebook(cells=made, metadata=_METADATA, nbformat_minor=5)


# Own colours instead of JupyterLab's alert classes, which set orange on orange and are hard to read. The text
# keeps the colour of the theme, light or dark.
_MISTAKE = '<div style="border-left: 4px solid orange; padding: 0.6em 1em 0.1em; background-color: rgba(255, 165, 0, 0.12)">'


def _prose(text: str) -> str:
    """Return the Markdown of a prose cell, adapted to how front ends render it."""
    return join_chinese_lines(text).replace('<div class="mistake">', _MISTAKE)


def _nbgrader(name: str, points: int | None) -> dict:
    """Return nbgrader's metadata of an answer cell or, given points, of the read-only cell that grades it."""
    metadata = {
        "grade": points is not None,
        "grade_id": name,
        "locked": points is not None,
        "schema_version": 3,
    }
    metadata |= {"solution": points is None, "task": False}
    return metadata if points is None else metadata | {"points": points}


def _title(lesson: Lesson) -> NotebookNode:
    """Return the first cell, made from course.yml."""
    goals = {lang: "\n".join(f"- {getattr(g, lang)}" for g in lesson.goals) for lang in ("zh", "en")}
    text = f"""# {lesson.id} {lesson.title.zh} · {lesson.title.en}

{"●" * lesson.difficulty} · {lesson.minutes} min

<div lang="zh">

学完这一课，你能：

{goals["zh"]}

需要：{lesson.needs.zh}。

</div>
<div lang="en">

After this lesson you can:

{goals["en"]}

You need: {lesson.needs.en}.

</div>"""
    return new_markdown_cell(text, id=f"{lesson.id}-title")


def _for_learners(answered: NotebookNode) -> NotebookNode:
    """Return a copy of the notebook in which nbgrader has replaced each solution by the stub."""
    from nbconvert.exporters.exporter import ResourcesDict
    from nbgrader.preprocessors import ClearSolutions

    notebook = copy.deepcopy(answered)
    return ClearSolutions(code_stub=CODE_STUB).preprocess(notebook, ResourcesDict())[0]


# --- running -------------------------------------------------------------------------------------------------------


def _run(notebook: NotebookNode, lesson: Lesson, on_cell: Callable[[Lesson, int, int], None] | None) -> None:
    """Execute a notebook in place, as for a new learner: in an empty folder, without progress."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    started: list[NotebookNode] = []

    def starts(cell: NotebookNode, cell_index: int, **_) -> None:
        started.append(cell)
        if on_cell:
            on_cell(lesson, cell_index, len(notebook.cells))

    async def ended(cell: NotebookNode, cell_index: int, **_) -> None:
        before = notebook.cells[cell_index - 1]
        if before.cell_type == "code" and (id := guesses.asked_in(before.source)):
            await _refuse_a_false_truth(client, lesson, id)

    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,  # a printed line may arrive as one message or two
            store_widget_state=False,  # has random ids and no use for a reader
            resources={"metadata": {"path": folder}},
            on_cell_execute=starts,
            on_cell_executed=ended,
        )
        # The kernel runs in another folder: it must import this copy of hookedu, not an installed one.
        paths = os.pathsep.join(filter(None, [str(lesson.root), os.environ.get("PYTHONPATH", "")]))
        try:
            client.execute(env=os.environ | {"XDG_DATA_HOME": folder, "PYTHONPATH": paths})
        except CellExecutionError as error:
            raise BuildError(
                Text(
                    zh="{file}：单元 {cell} 运行出错。\n{error}",
                    en="{file}: cell {cell} failed when run.\n{error}",
                ).format(file=lesson.file, cell=started[-1].id, error=error)
            ) from error
    notebook.metadata = nbformat.from_dict(_METADATA)  # the client has added the interpreter's version
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if "nbval-ignore-output" in cell.metadata.get("tags", ()):
                cell.outputs = []  # such as of progress(), which changes with each new lesson
            for output in cell.outputs:
                # A widget has a random id and shows nothing without its kernel; its plain text is kept.
                output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
            _refuse_addresses(lesson, cell)
            _refuse_wrong_answers(lesson, cell)
            cell.metadata.setdefault("hookedu", {}).update(
                {"outputs": _checksum(cell)} | _truth(lesson, cell)
            )


async def _refuse_a_false_truth(client: Any, lesson: Lesson, id: str) -> None:
    """Raise BuildError if the truth of a guess cannot be evaluated after its cell has run."""
    code = f"__import__('hookedu.guesses', fromlist=['find']).find({id!r}).truth_in(globals())"
    request = client.kc.execute("", silent=True, user_expressions={"truth": code})
    reply = await client.async_wait_for_reply(request)
    found = reply["content"]["user_expressions"]["truth"]
    if found["status"] != "ok":
        raise BuildError(
            Text(
                zh="{file}：猜题 {id} 的 `truth` 求不出来：{name}：{value}",
                en="{file}: the `truth` of guess {id} cannot be evaluated: {name}: {value}",
            ).format(file=lesson.file, id=id, name=found["ename"], value=found["evalue"])
        )


def _truth(lesson: Lesson, cell: NotebookNode) -> dict[str, str]:
    """Return a checksum of the claim that a guess makes, for the metadata of its cell; {} for other cells."""
    id = guesses.asked_in(cell.source)
    asked = guesses.load(guesses.file_of(lesson)).get(id) if id else None
    if asked is None:
        return {}
    claim = json.dumps([asked.kind, asked.truth, list(asked.choices)])
    return {"guess": hashlib.sha256(claim.encode()).hexdigest()[:16]}


def _refuse_addresses(lesson: Lesson, cell: NotebookNode) -> None:
    """Raise BuildError if an output contains a memory address, which differs on every run."""
    if address := re.search(r"\b(?:at )?0x[0-9a-f]{6,}", json.dumps([o for o in cell.outputs])):
        raise BuildError(
            Text(
                zh="{file}：单元 {cell} 的输出含有内存地址 `{address}`，每次运行都会变；请换一种打印方式。",
                en="{file}: the output of cell {cell} holds a memory address, `{address}`, which changes with every "
                "run; print something else.",
            ).format(file=lesson.file, cell=cell.id, address=address[0])
        )


def _refuse_wrong_answers(lesson: Lesson, cell: NotebookNode) -> None:
    """Raise BuildError if a reference answer does not pass its own check."""
    if cell.id.endswith("-check") and 'data-outcome="correct"' not in json.dumps(cell.outputs).replace(
        '\\"', '"'
    ):
        said = [output.data.get("text/plain", "") for output in cell.outputs if "data" in output]
        raise BuildError(
            Text(
                zh="{file}：单元 {cell} 没有通过自己的检查：\n{said}",
                en="{file}: cell {cell} does not pass its own check:\n{said}",
            ).format(file=lesson.file, cell=cell.id, said="\n".join(said))
        )


def _checksum(cell: NotebookNode) -> str:
    """Return a checksum of a code cell's outputs and execution count."""
    text = json.dumps([cell.execution_count, cell.outputs], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- comparing -----------------------------------------------------------------------------------------------------


def _as_text(notebook: NotebookNode) -> str:
    return nbformat.writes(notebook) + "\n"


def _compare(lesson: Lesson, path: Path, expected: NotebookNode) -> list[Stale]:
    """Return the differences between a file and the notebook that it should hold.

    The code of a solution is not run: `expected` takes its outputs from the file, and the checksum shows
    whether they are intact.
    """
    file = f"{path.parent.name}/{path.name}"
    try:
        text = path.read_text(encoding="utf-8")
        found = nbformat.reads(text, as_version=4)
    except FileNotFoundError:
        return [Stale(file, "", "missing")]
    except Exception as error:  # nbformat fails in many ways on a damaged file
        return [Stale(file, "", str(error)[:200])]
    solution = path.parent.name == "solutions"
    cells = {cell.get("id"): cell for cell in found.cells}
    for cell in expected.cells if solution else ():
        if cell.cell_type == "code" and cell.id in cells:
            run = cells[cell.id]
            cell.execution_count, cell.outputs = run.get("execution_count"), run.get("outputs", [])
            cell.metadata.setdefault("hookedu", {}).update(
                {"outputs": _checksum(cell)} | _truth(lesson, cell)
            )
    if _as_text(expected) == text:
        return []
    stale = [
        Stale(file, cell.id, _diff(cells.get(cell.id), cell))
        for cell in expected.cells
        if cells.get(cell.id) != cell
    ]
    known = {cell.id for cell in expected.cells}
    stale += [
        Stale(file, name or "?", _diff(cell, None)) for name, cell in cells.items() if name not in known
    ]
    return stale or [Stale(file, "", _unified(text, _as_text(expected)))]


def _diff(found: NotebookNode | None, expected: NotebookNode | None) -> str:
    def lines(cell: NotebookNode | None) -> str:
        """Return the cell as JSON with one source line per line, as in the file."""
        parts = cell and dict(cell) | {"source": cell.get("source", "").splitlines()}
        return json.dumps(parts, indent=1, ensure_ascii=False, sort_keys=True) if parts else ""

    return _unified(lines(found), lines(expected))


def _unified(found: str, expected: str) -> str:
    lines = difflib.unified_diff(
        found.splitlines(), expected.splitlines(), "file", "source", n=1, lineterm=""
    )
    return "\n".join(line[:160] for line in list(lines)[:12])
