"""Hand out the lessons: copies of the built notebooks in a learner's folder, in the learner's language.

The lessons of the course itself are never edited, so that an update never conflicts with a learner's work. A folder that
has been handed out before is brought up to date, cell by cell (see `merging`). The file `.hookedu.json` in it records what
was handed out.
"""

import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookedu import catalog, manifest
from hookedu.catalog import CourseError, Lesson
from hookedu.language import BOTH, Text
from hookedu.learner.merging import Base, Notebook, base_of, carried, in_language, merged

_NOT_BUILT = Text(
    zh="还没有生成任何一课：先运行 `hookedu build`。",
    en="No lesson has been built yet: run `hookedu build` first.",
)
_CANNOT_WRITE = Text(
    zh="无法写入文件夹 `{folder}`（{error}）。请换一个文件夹。",
    en="The folder `{folder}` cannot be written to ({error}). Choose another folder.",
)
_THE_COURSES = Text(
    zh="`{folder}` 是课程自己的文件夹，里面的笔记本不能改。请换一个文件夹，例如 `my-lessons`。",
    en="`{folder}` is a folder of the course itself, whose notebooks must stay as they are. Choose another folder, such as "
    "`my-lessons`.",
)
_MERGED = Text(
    zh="{file} 更新了。你改过或加上的单元格原样保留，共 {kept} 个。",
    en="{file} has been brought up to date. The cells that you changed or added stay as they are; there are {kept}.",
)
_OFFERED = Text(
    zh="{file} 更新了。你改过或加上的单元格原样保留，共 {kept} 个；其中 {offered} 个，课程也有新的写法，附在它们下面。",
    en="{file} has been brought up to date. The cells that you changed or added stay as they are; there are {kept}. Of "
    "{offered} of them the course has a new version, too, which stands below.",
)
_UNKNOWN = Text(
    zh="{file} 原样保留：它不是这个版本的课程发的，看不出你改了哪里。想要现在的这一课，把它改个名字，再运行一次。",
    en="{file} stays as it is: it was not handed out by this version of the course, so nobody can tell what you changed. For "
    "the lesson as it is now, rename the file and run this again.",
)
_DAMAGED = Text(
    zh="{file} 坏了，读不出来，所以改名为 {aside} 留着，一个字节都没动；原来的位置放了新的一课。",
    en="{file} is damaged and cannot be read. It is kept, to the byte, as {aside}, and the lesson has been handed out anew.",
)


def hand_out(folder: Path, language: str = BOTH) -> list[Text]:
    """Bring a folder up to date with the lessons.

    Parameters
    ----------
    folder : Path
        The learner's folder, which is made if there is none.
    language : str, default "both"
        The language of the notebooks: "zh", "en" or "both".

    Returns
    -------
    list of Text
        What the learner has to know: which copies with changes have been brought up to date, or could not be.

    Raises
    ------
    CourseError
        If the folder cannot be created or written to, if it is one of the course's own, or if no lesson has been built.
    """
    said = []
    lessons = _built()
    if folder.resolve() in {
        path.parent.resolve() for lesson in lessons for path in (lesson.notebook, lesson.solution)
    }:
        raise CourseError(_THE_COURSES.format(folder=folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        given = manifest.given(folder)
        for lesson in lessons:
            said += _hand_out(lesson, folder / lesson.notebook.name, given, language)
        manifest.remember(folder, given)
    except OSError as error:
        raise CourseError(_CANNOT_WRITE.format(folder=folder, error=error.strerror)) from error
    return said


def _built() -> list[Lesson]:
    built = [lesson for lesson in catalog.lessons() if lesson.notebook.exists()]
    if not built:
        raise CourseError(_NOT_BUILT)
    return built


def _hand_out(lesson: Lesson, path: Path, given: dict[str, Any], language: str) -> list[Text]:
    """Write one lesson, or bring the learner's copy up to date; return what to say about it."""
    new = _for_this_machine(_read(lesson.notebook))
    before, now = given.get(path.name), base_of(new)
    mine = _copy(path)
    if not mine:
        aside = _put_aside(path) if os.path.lexists(path) else None
        write(path, in_language(new, language))
        given[path.name] = now
        return [_DAMAGED.format(file=path.name, aside=aside.name)] if aside else []
    base = _known(mine, before, path)
    if not base:
        return [_UNKNOWN.format(file=path.name)]
    result = merged(mine, base, new, language)
    if result.notebook != mine:
        write(path, result.notebook)
    given[path.name] = now
    if not result.kept or before == now:
        return []
    says = _OFFERED if result.offered else _MERGED
    return [says.format(file=path.name, kept=result.kept, offered=result.offered)]


def _copy(path: Path) -> Notebook | None:
    """Return the learner's copy; None if there is none, or none that can be read."""
    try:
        return readable(path.read_bytes())
    except OSError:
        return None


def _put_aside(path: Path) -> Path:
    """Rename a file that cannot be read, so that nothing in it is lost, and return its new path."""
    names = (f"{path.stem}-damaged{n}{path.suffix}" for n in ("", *range(2, 1_000_000)))
    aside = next(other for name in names if not os.path.lexists(other := path.with_name(name)))
    path.rename(aside)
    return aside


def _known(mine: Notebook, before: Any, path: Path) -> Base:
    """Return what was handed out; {} if that is not known."""
    if isinstance(before, dict) and before and all(isinstance(entry, dict) for entry in before.values()):
        return before
    if before == manifest.digest(path.read_bytes()):  # as an earlier version of hookedu recorded it
        return base_of(mine)
    return carried(mine)


def _read(path: Path) -> Notebook:
    return json.loads(path.read_text(encoding="utf-8"))


def readable(data: bytes) -> Notebook | None:
    """Return a learner's notebook without those parts that are not of the kind they should be, or None for anything else.

    The kind and the source of a cell, which are the learner's own work, are never left out.
    """
    try:
        notebook = json.loads(data)
        cells = notebook["cells"]
        if notebook["nbformat"] != 4 or not isinstance(cells, list):
            return None
        if not all(isinstance(cell["cell_type"], str) and _is_text(cell["source"]) for cell in cells):
            return None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return _sound(notebook, _NOTEBOOK) | {"cells": [_sound(cell, _CELL) for cell in cells]}


def _is_text(source: Any) -> bool:
    return isinstance(source, str) or (
        isinstance(source, list) and all(isinstance(line, str) for line in source)
    )


def _are_texts(variants: Any) -> bool:
    return isinstance(variants, dict) and all(map(_is_text, variants.values()))


# The kinds that are relied on, here and in `merging`, `cells` and `stale_widgets`.
_Kinds = dict[str, "type | Callable[[Any], bool] | _Kinds"]
_NOTEBOOK: _Kinds = {"nbformat_minor": int, "metadata": {"kernelspec": {"name": str}}}
_CELL: _Kinds = {
    "id": str,
    "metadata": {"nbgrader": {"grade_id": str}, "hookedu": {"languages": _are_texts}},
    "outputs": list,
}


def _sound(node: dict[str, Any], kinds: _Kinds) -> dict[str, Any]:
    """Return a JSON object without the values that are not of these kinds; one of a notebook's always has `metadata`."""
    made: dict[str, Any] = {"metadata": {}} if "metadata" in kinds else {}
    for key, value in node.items():
        kind = kinds.get(key, object)
        if isinstance(kind, dict):
            if isinstance(value, dict):
                made[key] = _sound(value, kind)
        elif isinstance(value, kind) if isinstance(kind, type) else kind(value):
            made[key] = value
    return made


def _for_this_machine(notebook: Notebook) -> Notebook:
    """Return a notebook that notes its kernel as a front end would when it opens it, and then ask to save the change."""
    info = {
        "codemirror_mode": {"name": "ipython", "version": sys.version_info.major},
        "nbconvert_exporter": "python",
        "version": platform.python_version(),
    }
    metadata = notebook["metadata"]
    return notebook | {"metadata": metadata | {"language_info": metadata["language_info"] | info}}


def _as_bytes(notebook: Notebook) -> bytes:
    """Return a notebook as Jupyter writes it: saving an untouched one changes no byte."""
    try:
        return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
    # Half a surrogate pair; lists in lists, which the indenting recurses into.
    except (UnicodeEncodeError, RecursionError):
        return json.dumps(notebook, sort_keys=True).encode()


def write(path: Path, notebook: Notebook) -> None:
    """Replace a file as a whole: a learner's work must survive a crash in between.

    Where Jupyter trusts what is replaced, it trusts the new one; else it would show the outputs in both languages.
    """
    path = path.resolve()
    trusted = path.exists() and _is_trusted(path.read_bytes())
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(_as_bytes(notebook))
    os.replace(new, path)
    if trusted:
        import nbformat
        from nbformat.sign import NotebookNotary

        NotebookNotary().sign(nbformat.reads(json.dumps(notebook), as_version=4))


def _is_trusted(data: bytes) -> bool:
    import nbformat
    from nbformat.sign import NotebookNotary

    try:
        return NotebookNotary().check_signature(nbformat.reads(data.decode(), as_version=4))
    except Exception:  # nbformat raises errors of many kinds for what is damaged or cannot be signed
        return False
