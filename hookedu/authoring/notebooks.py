"""Notebooks made from the cells of a lesson's source, before they are run: the learner's and the solution."""

import base64
import copy
from collections.abc import Sequence

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from hookedu import catalog, exercises
from hookedu.authoring import code_words, localize, pictures, source
from hookedu.catalog import Lesson
from hookedu.exercises.probing import STUB
from hookedu.language import BOTH, Text, join_chinese_lines

CODE_STUB = {"python": f'raise NotImplementedError("{STUB}")'}  # what nbgrader puts in place of a solution
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    # The interpreter's version is left out, because it depends on the machine that builds the notebook.
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}


def made_from(lesson: Lesson, cells: Sequence[source.Cell]) -> tuple[NotebookNode, NotebookNode]:
    """Return the learner's notebook, and the solution before it is run; each knows its cells in every language."""
    answered = _answered(lesson, cells)
    made = _for_learners(answered), answered
    words = code_words.words_of(lesson)
    for cell in (cell for notebook in made for cell in notebook.cells):
        variants = localize.variants(cell.source, cell.cell_type == "code", words)
        if len(set(variants.values())) > 1:
            # As lists of lines, like a source in the file: a changed line is a changed line.
            lines = {language: text.splitlines(True) for language, text in variants.items()}
            cell.metadata.setdefault("hookedu", {})["languages"] = lines
        cell.source = variants[BOTH]
    return made


def _answered(lesson: Lesson, cells: Sequence[source.Cell]) -> NotebookNode:
    """Return the solution notebook before it is run."""
    made = [_title(lesson)]
    shown = pictures.load(lesson)
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
        if cell.picture:
            metadata["hookedu"] = {"picture": shown[cell.picture]}
        made.append(new_code_cell(cell.text, id=name, metadata=metadata))
    return new_notebook(cells=made, metadata=METADATA, nbformat_minor=5)


# Own colours instead of JupyterLab's alert classes, which set orange on orange and are hard to read. The text
# keeps the colour of the theme, light or dark.
_MISTAKE = '<div style="border-left: 4px solid orange; padding: 0.6em 1em 0.1em; margin-bottom: 1em; background-color: rgba(255, 165, 0, 0.12)">'


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


# For those who open the notebook by itself, on Colab or in another editor: there the first cell raises.
_WITHOUT_PACKAGE = Text(
    zh="<details><summary>第一个单元格报错 <code>ModuleNotFoundError</code>？</summary>\n\n"
    "课文要用 `hookedu` 这个包。在课程的文件夹里运行 `make lab`，它会装好一切并打开课文。"
    "在别处（例如 Colab、VS Code），把老师给的 wheel 文件装进这个内核的环境：`%pip install hookedu-….whl`，再重启内核。\n\n</details>",
    en="<details><summary>Does the first cell raise <code>ModuleNotFoundError</code>?</summary>\n\n"
    "The lessons need the package `hookedu`. `make lab`, in the folder of the course, installs everything and opens them. "
    "Elsewhere, as on Colab or in VS Code, install the wheel file from your teacher into the environment of this kernel, "
    "`%pip install hookedu-….whl`, and restart the kernel.\n\n</details>",
)


def _title(lesson: Lesson) -> NotebookNode:
    """Return the first cell, made from course.yml."""
    goals = {lang: "\n".join(f"- {getattr(g, lang)}" for g in lesson.goals) for lang in ("zh", "en")}
    facts = [
        "●" * lesson.difficulty,
        f"{lesson.minutes} min",
        *_links(lesson, -1, "← {id}"),
        *_links(lesson, 1, "{id} →"),
    ]
    text = f"""# {lesson.id} {lesson.title.zh} · {lesson.title.en}

{" · ".join(facts)}
{_opening(lesson)}
<div lang="zh">

学完这一课，你能：

{goals["zh"]}

需要：{lesson.needs.zh}。

{_WITHOUT_PACKAGE.zh}

</div>
<div lang="en">

After this lesson you can:

{goals["en"]}

You need: {lesson.needs.en}.

{_WITHOUT_PACKAGE.en}

</div>"""
    cell = new_markdown_cell(text, id=f"{lesson.id}-title")
    if lesson.opening:
        picture = (lesson.images / lesson.opening.picture).read_bytes()
        # Attached, so that the notebook shows it wherever it lies; base64 as Jupyter writes it.
        cell["attachments"] = {lesson.opening.picture: {"image/png": base64.b64encode(picture).decode()}}
    return cell


def _opening(lesson: Lesson) -> str:
    """Return the Markdown of the picture with which a lesson opens, and its caption; "" if it has none."""
    if not (opening := lesson.opening):
        return ""
    return f"""
![{opening.alt.zh} · {opening.alt.en}](attachment:{opening.picture})

<div lang="zh">

{opening.caption.zh}

</div>
<div lang="en">

{opening.caption.en}

</div>
"""


def _links(lesson: Lesson, step: int, words: str) -> list[str]:
    """Return a Markdown link to the lesson that is `step` places further on; [] where the course ends."""
    lessons = catalog.lessons()
    places = [place + step for place, known in enumerate(lessons) if known.id == lesson.id]
    return [
        f"[{words.format(id=lessons[place].id)}]({lessons[place].notebook.name})"
        for place in places
        if 0 <= place < len(lessons)
    ]


def _for_learners(answered: NotebookNode) -> NotebookNode:
    """Return a copy of the notebook in which nbgrader has replaced each solution by the stub."""
    from nbconvert.exporters.exporter import ResourcesDict
    from nbgrader.preprocessors import ClearSolutions

    notebook = copy.deepcopy(answered)
    return ClearSolutions(code_stub=CODE_STUB).preprocess(notebook, ResourcesDict())[0]
