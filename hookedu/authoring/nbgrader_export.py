"""`hookedu export-nbgrader`: export the lessons as assignments of an nbgrader course.

The solution notebooks already contain nbgrader's cell metadata and solution markers; the export removes
outputs, execution counts and checksums. nbgrader makes the students' version itself (`nbgrader
generate_assignment`). The file `.hookedu.json` records what was written, so that a later export replaces
unchanged files and keeps those that the school has changed.
"""

from pathlib import Path

import nbformat

from hookedu import manifest
from hookedu.authoring.build import CELL_TIMEOUT
from hookedu.authoring.notebooks import CODE_STUB
from hookedu.catalog import CourseError, Lesson
from hookedu.language import Text

_CONFIG = "nbgrader_config.py"

# The settings that the lessons need; everything else is up to the school.
_SETTINGS = f"""\
c = get_config()  # noqa: F821

# The stub by which hookedu recognises an exercise that nobody tried.
c.ClearSolutions.code_stub = {CODE_STUB!r}
# Some demonstrations train a model or start processes of their own, and many may be graded at once: seconds.
c.Execute.timeout = {CELL_TIMEOUT}
c.Execute.iopub_timeout = 30
# A check that a student deleted is put back, and its points with it.
c.OverwriteCells.add_missing_cells = True
"""

_README = """\
# PyTorch 钩子 · PyTorch hooks

<div lang="zh">

这是一门 nbgrader 课程，由 `hookedu export-nbgrader` 写成，每一课是一个作业，下面以 `02_tensor_hooks` 为例。命令都在这个文件夹里运行。
批改的机器和学生的机器上都要装好 `hookedu`。

1. 生成学生版（没有答案）：`nbgrader generate_assignment 02_tensor_hooks`
2. 分发 `release/02_tensor_hooks`：用 `nbgrader release_assignment 02_tensor_hooks`、教学平台或 nbgitpuller。
3. 收作业到 `submitted/学生/02_tensor_hooks/02_tensor_hooks.ipynb`：用 `nbgrader collect 02_tensor_hooks`，或 `nbgrader zip_collect 02_tensor_hooks`。
4. 评分并导出：`nbgrader autograde 02_tensor_hooks`，然后 `nbgrader export`，得到 `grades.csv`。

nbgrader 在你的账户下直接运行学生的代码，没有沙箱；笔记本里的代码可以改动它自己的分数。要在沙箱里评同一批作业、并得到双语的反馈和报告：
`hookedu grade submitted --out grades`。没有动过手脚的作业，两种评分给出同样的分数。

</div>
<div lang="en">

This is an nbgrader course, written by `hookedu export-nbgrader`; every lesson is an assignment, and
`02_tensor_hooks` stands here for any of them. Run the commands in this folder. `hookedu` must be installed where you grade
and where students work.

1. Make the students' version, without answers: `nbgrader generate_assignment 02_tensor_hooks`
2. Hand out `release/02_tensor_hooks`: with `nbgrader release_assignment 02_tensor_hooks`, your learning platform or nbgitpuller.
3. Collect into `submitted/STUDENT/02_tensor_hooks/02_tensor_hooks.ipynb`: with `nbgrader collect 02_tensor_hooks` or
   `nbgrader zip_collect 02_tensor_hooks`.
4. Grade and export: `nbgrader autograde 02_tensor_hooks`, then `nbgrader export`, which writes `grades.csv`.

nbgrader runs the students' code under your own account, without a sandbox, and code in a notebook can change its own
points. To grade the same notebooks in a sandbox, with bilingual feedback and reports:
`hookedu grade submitted --out grades`. For a submission that does not tamper, both give the same points.

</div>
"""

_NOT_BUILT = Text(
    zh="没有 `{file}`：先运行 `hookedu build {id}`。",
    en="There is no `{file}`: run `hookedu build {id}` first.",
)
_CANNOT_WRITE = Text(
    zh="无法写入文件夹 `{folder}`（{error}）。换一个文件夹。",
    en="The folder `{folder}` cannot be written to ({error}). Choose another.",
)
_KEPT = Text(
    zh="`{file}` 是你的，原样保留。要换成课程的版本：删掉它，再导出一次。",
    en="`{file}` is yours and stays as it is. For the course's version delete it and export again.",
)
_CONFIG_KEPT = Text(
    zh="`{file}` 是你的，原样保留。请确认其中有下面这些行。",
    en="`{file}` is yours and stays as it is. Make sure that it has these lines:\n\n{settings}",
)


def export(folder: Path, lessons: list[Lesson]) -> list[Text]:
    """Write the lessons into `folder` as an nbgrader course and return one message per file that was kept.

    A file is kept if the school has changed it or if it existed before. Raises CourseError if a lesson is not
    built, before anything is written, and if the folder cannot be written to.
    """
    files = {f"source/{le.file}/{le.file}.ipynb": _assignment(le) for le in lessons}
    files[_CONFIG] = _SETTINGS
    files["README.md"] = _README
    said = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        given = manifest.given(folder)
        for name, text in files.items():
            path, new = folder / name, text.encode()
            old = path.read_bytes() if path.exists() else None
            if old not in (None, new) and given.get(name) != manifest.digest(old):
                kept = _CONFIG_KEPT if name == _CONFIG else _KEPT
                said.append(kept.format(file=name, settings=_SETTINGS))
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(new)
            given[name] = manifest.digest(new)
        manifest.remember(folder, given)
    except OSError as error:
        raise CourseError(_CANNOT_WRITE.format(folder=folder, error=error.strerror)) from error
    return said


def _assignment(lesson: Lesson) -> str:
    """Return the instructor's version of a lesson for nbgrader: with answers, without outputs."""
    try:
        notebook = nbformat.read(lesson.solution, as_version=4)
    except OSError as error:
        file = f"{lesson.solution.parent.name}/{lesson.solution.name}"
        raise CourseError(_NOT_BUILT.format(file=file, id=lesson.id)) from error
    for cell in notebook.cells:
        # The checksum of the outputs, and the cell in every language: nbgrader would leave the answers in there.
        cell.metadata.pop("hookedu", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            if "setup" in cell.metadata.get("tags", ()):
                cell.metadata["deletable"] = False  # no check runs without its imports
    return nbformat.writes(notebook) + "\n"
