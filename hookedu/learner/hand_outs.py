"""Hand out the lessons: copies of the built notebooks in a learner's folder, in the learner's language.

The lessons of the course itself are never edited, so that an update never conflicts with a learner's work. A folder that
has been handed out before is brought up to date, cell by cell (see `merging`). The file `.hookedu.json` in it records what
was handed out.
"""

import json
import os
import platform
import sys
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
    if not path.exists():
        write(path, in_language(new, language))
        given[path.name] = now
        return []
    mine = readable(path.read_bytes())
    base = _known(mine, before, path) if mine else {}
    if not mine or not base:
        return [_UNKNOWN.format(file=path.name)]
    result = merged(mine, base, new, language)
    if result.notebook != mine:
        write(path, result.notebook)
    given[path.name] = now
    if not result.kept or before == now:
        return []
    says = _OFFERED if result.offered else _MERGED
    return [says.format(file=path.name, kept=result.kept, offered=result.offered)]


def _known(mine: Notebook, before: Any, path: Path) -> Base:
    """Return what was handed out; {} if that is not known."""
    if isinstance(before, dict):
        return before
    if before == manifest.digest(path.read_bytes()):  # as an earlier version of hookedu recorded it
        return base_of(mine)
    return carried(mine)


def _read(path: Path) -> Notebook:
    return json.loads(path.read_text(encoding="utf-8"))


def readable(data: bytes) -> Notebook | None:
    """Return a learner's notebook, or None for anything else."""
    try:
        notebook = json.loads(data)
        if notebook["nbformat"] != 4 or not isinstance(notebook["metadata"], dict):
            return None
        for cell in notebook["cells"]:
            source = cell["source"]
            lines = [source] if isinstance(source, str) else source
            if not isinstance(cell["metadata"], dict) or not isinstance(cell["cell_type"], str):
                return None
            if not all(isinstance(line, str) for line in lines):
                return None
    except (ValueError, TypeError, KeyError):
        return None
    return notebook


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
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can hold and UTF-8 cannot
        return json.dumps(notebook, indent=1, sort_keys=True).encode()


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
    except (ValueError, AttributeError, KeyError, TypeError):  # damaged, or text that cannot be signed
        return False
