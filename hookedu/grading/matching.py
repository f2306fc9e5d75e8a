"""Match a submitted notebook to its lesson: which cells run, and after which cell each exercise is probed.

Notebooks come back damaged: with cells copied, moved, turned into Markdown or stripped of their metadata. The cell of
an exercise is identified by its grade_id, else by its cell id, else by the name that it defines. A regular expression
finds that name: compiling hostile source, even only into a syntax tree, can crash an interpreter, and the grader's
interpreter must not crash.
"""

import functools
import hashlib
import json
import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hookedu import catalog, exercises
from hookedu.cells import source_of, variants_of
from hookedu.exercises import words
from hookedu.exercises.exercise import Exercise
from hookedu.grading.cleaning import clean
from hookedu.grading.reading import Cell, read_cells
from hookedu.grading.rows import Unreadable
from hookedu.language import Text

_NO_LESSON = Text(
    zh="看不出是哪一课：文件名和单元格都没有说明。把它改名，例如 `02_tensor_hooks.ipynb`，再评一次",
    en="of no lesson: neither its name nor its cells say which. Rename it, to `02_tensor_hooks.ipynb` say, and "
    "grade again",
)
_NAMED_OTHERWISE = Text(
    zh="文件名说的是第 {named} 课，单元格是第 {lesson} 课的；按第 {lesson} 课评",
    en="the file's name says lesson {named}, its cells are of lesson {lesson}; graded as lesson {lesson}",
)
_OTHERS_TOO = Text(
    zh="里面还有第 {others} 课的练习，没有评；请把它们分到各自的文件里再评一次",
    en="exercises of lesson {others} are in it as well and were not graded; put each lesson into a file of its own and "
    "grade again",
)
_BY_ID = Text(zh="{id}：元数据丢失，按单元格 id 找到", en="{id}: metadata lost, found by its cell id")
_BY_NAME = Text(
    zh="{id}：元数据丢失，按名字 `{name}` 找到", en="{id}: metadata lost, found by the name `{name}`"
)
_ELSEWHERE = Text(
    zh="{id}：答案写在另一个单元格里，按名字 `{name}` 找到",
    en="{id}: answered in another cell, found by the name `{name}`",
)
_RETYPED = Text(
    zh="{id}：单元格类型被改成了 {kind}，仍按代码运行",
    en="{id}: the cell was turned into {kind}; run as code",
)
_CHECKED = Text(
    zh="{id}：检查的是 `{value}`，按它评", en="{id}: what is checked is `{value}`; that is what was graded"
)
_COPIED = Text(
    zh="{id}：有 {n} 个单元格作答，以最后一个为准", en="{id}: {n} cells answer it; the last one counts"
)


_IMPORT = re.compile(r"^ *from (hookedu[\w.]*) import (\([^)]*\)|[^\n#]*)", re.MULTILINE)


@dataclass(frozen=True)
class LessonKey:
    """A lesson as handed out, read from the repository.

    Attributes
    ----------
    lesson : catalog.Lesson
        The lesson itself.
    exercises : tuple of Exercise
        Its exercises, in order.
    setup : tuple of str
        Sources of the setup cells, which run before anything of the learner's.
    known : frozenset of str
        `Cell.plain` of every code cell in every language: what the learner did not write.
    fingerprint : str
        Hash that changes when the notebook, a probe, a judge or a message of the lesson changes.
    """

    lesson: catalog.Lesson
    exercises: tuple[Exercise, ...]
    setup: tuple[str, ...]
    known: frozenset[str]
    fingerprint: str = ""


@dataclass(frozen=True)
class Step:
    """One cell to run, with the ids of the exercises to probe right after it, and its number in the notebook from 1."""

    source: str
    probes: tuple[str, ...] = ()
    cell: int = 0


@dataclass(frozen=True)
class Plan:
    """The cells of one submission that run, and notes on what had to be repaired to find them."""

    steps: tuple[Step, ...]
    notes: tuple[Text, ...]

    @property
    def probes(self) -> tuple[str, ...]:
        """Ids of all exercises that are probed, in the order of probing."""
        return tuple(exercise for step in self.steps for exercise in step.probes)


def key_of(lesson: catalog.Lesson) -> LessonKey:
    """Return the key of a lesson, read from its built notebook; raise OSError if that is missing."""
    notebook = lesson.notebook.read_bytes()
    cells = [cell for cell in read_cells(notebook) if cell.kind == "code"]
    return LessonKey(
        lesson=lesson,
        exercises=exercises.of_lesson(lesson.id),
        setup=tuple(cell.source for cell in cells if "setup" in cell.tags),
        known=frozenset(Cell("code", text).plain for text in _variants(notebook)),
        fingerprint=_fingerprint(notebook, lesson.id),
    )


def _variants(notebook: bytes) -> set[str]:
    """Return the source of every code cell of a built notebook, in every language."""
    code = [cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    return {text for cell in code for text in (source_of(cell), *variants_of(cell).values())}


def _fingerprint(notebook: bytes, lesson: str) -> str:
    parts = [notebook, *(source.read_bytes() for source in _sources(lesson))]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]


def _sources(lesson: str) -> list[Path]:
    """Return every file that a verdict on this lesson and its message depend on.

    These are its probes and checks, the engine (probing, judging, feedback), whatever they import, and the words.
    """
    package = Path(exercises.__file__).parent
    engine = [package / f"{name}.py" for name in ("probing", "judging", "feedback")]
    waiting = [*package.glob(f"*/lesson_{lesson}/*.py"), *engine]
    found = {catalog.ROOT / "course" / name for name in (words.file_of(lesson), words.SHARED)}
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported(path)
    return sorted(found)


@functools.cache
def _imported(path: Path) -> list[Path]:
    """Return the modules of hookedu that a file imports. They are read, not loaded: a lesson's exercises load torch."""
    root = Path(exercises.__file__).parents[2]
    modules = []
    for package, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        within = root.joinpath(*package.split("."))
        candidates = [
            within.with_suffix(".py"),
            within / "__init__.py",
            *(within / f"{name}.py" for name in re.findall(r"\w+", names)),
        ]
        modules += [module for module in candidates if module.is_file()]
    return modules


def lesson_by_name(stem: str) -> catalog.Lesson | None:
    """Return the lesson that a file name refers to: "02_tensor_hooks (1)", "02-final", "ann_02_tensor_hooks"."""
    stem = re.sub(r"[\s-]+", "_", stem.lower())
    for lesson in catalog.lessons():
        if lesson.file.lower() in stem or re.match(rf"{lesson.id}(?![0-9])", stem):
            return lesson
    return None


def lesson_of(cells: list[Cell], named: catalog.Lesson | None) -> tuple[catalog.Lesson, list[Text]]:
    """Return the lesson of a notebook, with notes if its file name says another one, or if others are in it as well.

    The cells decide: the ids of exercises that they carry, else the names that they define. Only a notebook that shows
    neither, or all exercises of the lesson that its file name says, is of that lesson.

    Parameters
    ----------
    cells : list of Cell
        The cells of the notebook.
    named : catalog.Lesson or None
        What `lesson_by_name` makes of the file name.

    Raises
    ------
    Unreadable
        If neither the cells nor the name say which.
    """
    carried = {name for cell in cells for name in (cell.grade_id, cell.id)}
    defined = {name for cell in cells for name in _defined(cell.source)}

    def shown(lesson: catalog.Lesson) -> tuple[bool, int, int, bool]:
        of = exercises.of_lesson(lesson.id)
        ids = sum(e.slug in carried for e in of)
        return (
            lesson == named and ids == len(of),
            ids,
            len(defined & {e.answer for e in of}),
            lesson == named,
        )

    lesson = max(catalog.lessons(), key=shown)
    if not any(shown(lesson)[1:3]):
        if named is None:
            raise Unreadable(_NO_LESSON)
        return named, []
    told = []
    if named is not None and lesson != named:
        told.append(_NAMED_OTHERWISE.format(named=named.id, lesson=lesson.id))
    if others := [other.id for other in catalog.lessons() if other != lesson and shown(other)[1]]:
        told.append(_OTHERS_TOO.format(others=", ".join(others)))
    return lesson, told


def plan(cells: list[Cell], key: LessonKey) -> Plan:
    """Return the cells that the learner wrote or changed, in order, each with the exercises probed after it."""
    cells = list(map(_unfenced, cells))
    slugs = {exercise.slug for exercise in key.exercises}
    checks, answers = {slug + "-check" for slug in slugs}, {exercise.answer for exercise in key.exercises}

    def written(cell: Cell) -> bool:
        marks = {cell.grade_id, cell.id}
        if cell.kind != "code" and not marks & slugs:
            return False
        if not cell.plain or cell.plain in key.known:
            return False
        # Otherwise it only checks, perhaps others than it was made for.
        return not marks & checks or bool(_defined(cell.source) & answers)

    own = [i for i, cell in enumerate(cells) if written(cell)]
    probes: dict[int, list[str]] = {}
    run, notes, sources = set(own), [], [cell.source for cell in cells]
    checked = [
        (i, *found)
        for i, cell in enumerate(cells)
        if cell.kind == "code"
        for found in _CHECK.findall(cell.source)
    ]
    for exercise in key.exercises:
        given = None if _defining(exercise, cells, own) else _given(exercise, checked)
        if given:
            i, value = given
            answering, said = [i], [_CHECKED.format(id=exercise.id, value=clean(value)[:60])]
            sources[i] = f"{sources[i] if i in own else ''}\n{exercise.answer} = {value}"
        else:
            answering, said = _answering(exercise, cells, own)
        notes += said
        if answering:
            run |= set(answering)
            probes.setdefault(answering[-1], []).append(exercise.id)
    steps = tuple(Step(sources[i], tuple(probes.get(i, ())), i + 1) for i in sorted(run))
    return Plan(steps, tuple(notes))


def _given(exercise: Exercise, checked: list[tuple[int, str, str]]) -> tuple[int, str] | None:
    """Return the last cell that checks something else than the exercise's own name, and what it checks.

    As in the notebook, it counts: a learner may rename the function, or write it into the check.
    """
    given = [(i, value) for i, id, value in checked if id == exercise.id and value != exercise.answer]
    return given[-1] if given else None


def _defining(exercise: Exercise, cells: list[Cell], places: list[int]) -> list[int]:
    """Return those of the cells at these places that define the exercise's name."""
    return [i for i in places if exercise.answer in _defined(cells[i].source)]


def _binding(exercise: Exercise, cells: list[Cell], places: list[int]) -> list[int]:
    """Return those of the cells at these places that may define the exercise's name in another way than most do."""
    return [i for i in places if _binds(cells[i].source, exercise.answer)]


def _answering(exercise: Exercise, cells: list[Cell], own: list[int]) -> tuple[list[int], list[Text]]:
    """Return the indices of the cells that answer an exercise, in order, and notes on what was repaired."""

    defining = partial(_defining, exercise, cells)
    marked = [i for i, cell in enumerate(cells) if exercise.slug in (cell.grade_id, cell.id)]
    edited = [i for i in marked if i in own]

    def say(text: Text, **values: object) -> None:
        notes.append(text.format(id=exercise.id, name=exercise.answer, **values))

    found, notes = defining(edited), []
    if found or (edited and not defining(own)):
        # The name may be defined in a way that the regular expression misses: imported, by %run.
        anywhere = [i for i in own if _UNNAMED.search(cells[i].source)]
        found = found or sorted({*edited, *anywhere, *_binding(exercise, cells, own)})
        if all(cells[i].grade_id != exercise.slug for i in found):
            say(_BY_ID)
    else:
        texts = [i for i, cell in enumerate(cells) if cell.kind != "code" and i not in marked]
        found = defining(own) or defining(texts) or _binding(exercise, cells, own)
        if found:
            say(_ELSEWHERE if marked else _BY_NAME)
    for kind in sorted({cells[i].kind for i in found} - {"code"}):
        say(_RETYPED, kind=kind)
    if len(found) > 1:
        say(_COPIED, n=len(found))
    return found, notes


# What an unindented statement checks: check("02.1", watch).
_CHECK = re.compile(
    r"""(?m)^(?:\w++[ ]*+=[ ]*+)?check\(\s*+["'](\d\d\.\d+)["']\s*+,\s*+(?:answer[ ]*+=[ ]*+)?"""
    r"""(\S|\S.*?\S)\s*+,?\s*+\)[ ;]*+(?:\#.*)?$"""
)


def _unfenced(cell: Cell) -> Cell:
    """Return a cell of text as the code that it quotes, if it does."""
    quoted = _fenced(cell.source) if cell.kind != "code" else []
    return replace(cell, source="\n".join(quoted)) if quoted else cell


def _fenced(markdown: str) -> list[str]:
    """Return the blocks between lines of three backticks; each line is read once, also where no block ends."""
    blocks: list[str] = []
    block: list[str] | None = None
    for line in markdown.split("\n"):
        after = line[3:] if line.startswith("```") else None
        if block is None:
            block = [] if after is not None and "`" not in after else None
        elif after is not None and not after.strip(" "):
            blocks.append("".join(block))
            block = None
        else:
            block.append(line + "\n")
    return blocks


# What an unindented line defines: "def name", "class name", "name = ...".
_DEFINED = re.compile(r"(?m)^(?:(?:(?:async[ ]+)?def|class)[ ]+(\w+)|(\w+)[ ]*(?::[^=\n]+)?=(?!=))")


# What defines names without saying which.
_UNNAMED = re.compile(r"(?m)^(?:%run[ ]|from[ ][^\n]*[ ]import[ ]+\*)")
# A cell that only writes a file.
_WRITES = re.compile(r"\s*%%(?:writefile|file)\b")


def _binds(source: str, name: str) -> bool:
    """Check whether a cell imports a name, or assigns it together with others."""
    if name not in source or _WRITES.match(source):
        return False
    word = re.compile(rf"\b{name}\b")
    for line in source.splitlines():
        targets, _, value = line.partition("=")
        assigned = "," in targets and "(" not in targets and value and not value.startswith("=")
        if (assigned or line.startswith(("from ", "import "))) and word.search(targets):
            return True
    return False


def _defined(source: str) -> set[str]:
    if _WRITES.match(source):
        return set()
    return {defined or assigned for defined, assigned in _DEFINED.findall(source)}
