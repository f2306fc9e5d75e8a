"""Builder of notebooks: course/NN_name.py gives lessons/NN_name.ipynb and solutions/NN_name.ipynb.

The lesson has no answers and no outputs; the solution has both.

Builds are reproducible byte for byte: cell ids are derived from the lesson and the position of the cell, and
a notebook does not record when or where it was run. Each code cell of a solution stores a checksum of its
outputs, so that `check()` finds a changed character anywhere in a built notebook without running it. Whether
the stored outputs are still what the code prints is tested by nbval. The truth of each guess is evaluated while
the solution runs; a checksum of the guess shows that this has been done.
"""

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

from hookedu import guesses
from hookedu.authoring import lint, notebooks, pictures, source
from hookedu.catalog import CourseError, Lesson
from hookedu.language import Text

CELL_TIMEOUT = 120  # seconds


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
                zh="{file}，单元格 {cell}：与源文件不一致。",
                en="{file}, cell {cell}: differs from its source.",
            )
            if self.cell
            else Text(zh="{file}：与源文件不一致。", en="{file}: differs from its source.")
        )
        return f"{says.format(file=self.file, cell=self.cell)}\n{self.diff}"


def build(
    lessons: Iterable[Lesson],
    on_cell: Callable[[Lesson, int, int], None] | None = None,
    keep_outputs: bool = False,
) -> None:
    """Build and write both notebooks of each lesson.

    `on_cell(lesson, index, number of cells)` is called before each cell that is executed, and at the end of each lesson
    for its last cell. With `keep_outputs` a solution in which no code has changed is not run: it keeps its outputs.
    Raises BuildError, before anything is written, if one of the lessons cannot be built.
    """
    sources = {lesson: _cells(lesson) for lesson in lessons}
    made: dict[str, str] = {}
    for lesson, cells in sources.items():
        for_learners, answered = notebooks.made_from(lesson, cells)
        made[str(lesson.notebook)] = _as_text(for_learners)
        if not (keep_outputs and _keep_outputs(lesson, answered)):
            run(answered, lesson, on_cell)
        if on_cell:
            on_cell(lesson, len(answered.cells) - 1, len(answered.cells))
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
        for_learners, answered = notebooks.made_from(lesson, _cells(lesson))
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


# --- running -------------------------------------------------------------------------------------------------------


def run(
    notebook: NotebookNode, lesson: Lesson, on_cell: Callable[[Lesson, int, int], None] | None = None
) -> None:
    """Execute a notebook in place, as for a new learner: in an empty folder, without progress.

    Raises BuildError if a cell fails, an answer is wrong, or the truth of a guess cannot be found.
    """
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
            # Without it each kernel warns that its connection, which stays on this machine, is not encrypted.
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
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
                    zh="{file}：单元格 {cell} 运行出错。\n{error}",
                    en="{file}: cell {cell} failed when run.\n{error}",
                ).format(file=lesson.file, cell=started[-1].id, error=error)
            ) from error
    # The client has added the interpreter's version.
    notebook.metadata = nbformat.from_dict(notebooks.METADATA)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if "nbval-ignore-output" in cell.metadata.get("tags", ()):
                cell.outputs = []  # such as of progress(), which changes with each new lesson
            for output in cell.outputs:
                # A widget has a random id and shows nothing without its kernel; its plain text is kept.
                output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
            _refuse_addresses(lesson, cell)
            _refuse_pictures_without_words(lesson, cell)
            _refuse_wrong_answers(lesson, cell)
            _seal(lesson, cell)


def _keep_outputs(lesson: Lesson, notebook: NotebookNode) -> bool:
    """Give the code cells the outputs of the solution that is there; False if their code has changed since.

    A changed guess, whose truth has never been evaluated, and a damaged output count as changes.
    """
    try:
        found = nbformat.read(lesson.solution, as_version=4)
    except Exception:  # missing, or damaged in one of many ways
        return False
    before = [cell for cell in found.cells if cell.cell_type == "code"]
    now = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.source for cell in before] != [cell.source for cell in now]:
        return False
    for run, cell in zip(before, now, strict=True):
        _take_outputs(lesson, cell, run)
    seals = ("outputs", "guess")
    return all(
        cell.metadata["hookedu"].get(seal) == run.metadata.get("hookedu", {}).get(seal)
        for run, cell in zip(before, now, strict=True)
        for seal in seals
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


def _take_outputs(lesson: Lesson, cell: NotebookNode, run: NotebookNode) -> None:
    """Give a code cell the outputs of one that has been run, and seal it."""
    cell.execution_count, cell.outputs = run.get("execution_count"), run.get("outputs", [])
    _seal(lesson, cell)


def _seal(lesson: Lesson, cell: NotebookNode) -> None:
    """Record in a code cell's metadata the checksums of its outputs and of the guess that it asks for."""
    cell.metadata.setdefault("hookedu", {}).update({"outputs": _checksum(cell)} | _truth(lesson, cell))


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
                zh="{file}：单元格 {cell} 的输出含有内存地址 `{address}`，每次运行都会变；请换一种打印方式。",
                en="{file}: the output of cell {cell} holds a memory address, `{address}`, which changes with every "
                "run; print something else.",
            ).format(file=lesson.file, cell=cell.id, address=address[0])
        )


def _refuse_pictures_without_words(lesson: Lesson, cell: NotebookNode) -> None:
    """Raise BuildError if an output holds a picture, of which nobody has said what it shows."""
    draws = any("image/png" in output.get("data", {}) for output in cell.outputs)
    if draws and "picture" not in cell.metadata.get("hookedu", {}):
        raise BuildError(
            Text(
                zh='{file}：单元格 {cell} 画了一张图，却没有说图上有什么。给单元格一个名字，`# %% picture="name"`，在 `{words}` 里写。',
                en="{file}: cell {cell} draws a picture, and nothing says what it shows. Give the cell a name, "
                '`# %% picture="name"`, and write it in `{words}`.',
            ).format(file=lesson.file, cell=cell.id, words=pictures.file_of(lesson).name)
        )


def _refuse_wrong_answers(lesson: Lesson, cell: NotebookNode) -> None:
    """Raise BuildError if a reference answer does not pass its own check."""
    if cell.id.endswith("-check") and 'data-outcome="correct"' not in json.dumps(cell.outputs).replace(
        '\\"', '"'
    ):
        said = [output.data.get("text/plain", "") for output in cell.outputs if "data" in output]
        raise BuildError(
            Text(
                zh="{file}：单元格 {cell} 没有通过自己的检查：\n{said}",
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
            _take_outputs(lesson, cell, cells[cell.id])
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
