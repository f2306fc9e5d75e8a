"""Command line of `hookedu`; an error that the user can fix prints one text and exits with code 2."""

import io
import sys
import textwrap
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hookedu import catalog
from hookedu.catalog import CourseError
from hookedu.grading.command import (
    adjust_command,
    forget_command,
    grade_command,
    named_folder,
    report_command,
    similar_command,
)
from hookedu.language import Text, preference

app = typer.Typer(
    rich_markup_mode=None,
    help="PyTorch 钩子课程 · The course on PyTorch hooks",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; a CourseError prints its text and exits with code 2."""
    for stream in (sys.stdout, sys.stderr):  # a file or a terminal may have no Chinese and no ✓
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except CourseError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


class Language(StrEnum):
    """A language to be named on the command line."""

    ZH, EN, BOTH = "zh", "en", "both"


_LANGUAGE = typer.Option(help="笔记本的语言 · language of the notebooks")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(
    context: typer.Context,
    folder: Annotated[
        Path | None, typer.Option(help="放课程笔记本的文件夹 · where your notebooks lie", parser=named_folder)
    ] = None,
    language: Annotated[Language | None, _LANGUAGE] = None,
) -> None:
    """打开课程 · Open the course in JupyterLab. 其余选项交给 JupyterLab · Other options go to JupyterLab."""
    from hookedu.learner import lab as lab_

    if language:
        preference.choose(language.value)
    speak = lab_.language_at_start()
    folder = (folder or lab_.FOLDER).expanduser().resolve()
    if address := lab_.running(folder):  # a second server would write the same files
        lab_.show_running(address, browser="--no-browser" not in context.args)
    else:
        from hookedu.learner.stale_widgets import replace_widgets

        replace_widgets(_hand_out(folder, speak))
        lab_.open_lab(folder, speak, context.args)


@app.command("hand-out")
def hand_out_command(
    folder: Annotated[
        Path, typer.Argument(help="放笔记本的文件夹 · where the notebooks are to lie", parser=named_folder)
    ],
    language: Annotated[Language | None, _LANGUAGE] = None,
) -> None:
    """发下课程的笔记本，或更新、换语言 · Hand out the notebooks, update them, or change their language."""
    from hookedu.learner import lab as lab_

    _hand_out(folder, lab_.language_at_start(language and language.value))


def _hand_out(folder: Path, language: str) -> Path:
    """Hand out the lessons, say what there is to say, and return the folder's full path."""
    from hookedu.learner.hand_outs import hand_out

    folder = folder.expanduser().resolve()
    for said in hand_out(folder, language):
        print(said)
    print(Text(zh="笔记本在 {folder}", en="The notebooks lie in {folder}").format(folder=folder), flush=True)
    return folder


@app.command()
def build(
    lessons: Annotated[
        list[str] | None, typer.Argument(help="如 02；不写就是全部 · such as 02; all when left out")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="只检查，不写文件 · only say what is stale")] = False,
    prose: Annotated[
        bool,
        typer.Option("--prose", help="代码没变的不运行，留下输出 · where no code changed, keep the outputs"),
    ] = False,
) -> None:
    """由 course/ 生成笔记本 · Build the notebooks from course/ (for authors)."""
    catalog.require_clone()
    chosen = [catalog.find(name) for name in lessons] if lessons else list(catalog.lessons())

    # Imports torch and Jupyter: a misspelt lesson is reported before that.
    from hookedu.authoring import build as build_

    if check:
        stale = build_.check(chosen)
        for difference in stale:
            print(difference, file=sys.stderr)
        if stale:
            print(
                Text(
                    zh="生成的笔记本不要手改：改 course/，再运行 `hookedu build`。",
                    en="Built notebooks are not edited by hand: change course/, then run `hookedu build`.",
                ),
                file=sys.stderr,
            )
            raise typer.Exit(1)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as bar:
        tasks = {lesson: bar.add_task(lesson.file, total=None) for lesson in chosen}
        build_.build(
            chosen,
            lambda lesson, place, of: bar.update(tasks[lesson], completed=place + 1, total=of),
            keep_outputs=prose,
        )


@app.command("new-lesson")
def new_lesson_command(
    number: Annotated[int, typer.Argument(help="编号，如 20 · its number, such as 20")],
    name: Annotated[
        str, typer.Argument(help="文件名里的名字，如 my_topic · as in its file's name, such as my_topic")
    ],
) -> None:
    """写出新的一课：源文件、练习、测试 · Begin a lesson: source, exercise, tests (for authors)."""
    from hookedu.authoring.new_lesson import new_lesson

    for path in new_lesson(catalog.ROOT, number, name):
        print(path.relative_to(catalog.ROOT))
    print(
        Text(
            zh="改写成你的内容，再运行 `hookedu build {number}`；怎么写：`course/guides/authors.zh.md`。",
            en="Make it yours, then run `hookedu build {number}`; how to write it: `course/guides/authors.md`.",
        ).format(number=f"{number:02}")
    )


app.command("grade")(grade_command)
app.command("report")(report_command)
app.command("similar")(similar_command)
app.command("adjust")(adjust_command)
app.command("forget")(forget_command)


@app.command("export-nbgrader")
def export_nbgrader_command(
    folder: Annotated[
        Path,
        typer.Argument(help="nbgrader 课程的文件夹 · the folder of the nbgrader course", parser=named_folder),
    ],
    lessons: Annotated[
        list[str] | None, typer.Argument(help="如 02；不写就是全部 · such as 02; all when left out")
    ] = None,
) -> None:
    """把课写成 nbgrader 的作业 · Write the lessons as assignments of an nbgrader course."""
    chosen = [catalog.find(name) for name in lessons] if lessons else list(catalog.lessons())

    # Imports torch and nbformat: a misspelt lesson is reported before that.
    from hookedu.authoring.nbgrader_export import export

    for said in export(folder, chosen):
        print(said)
    print(
        Text(
            zh="已写入 `{folder}/source`，课数：{n}。接下来的四步见 `{folder}/README.md`。",
            en="Lessons written to `{folder}/source`: {n}. `{folder}/README.md` says the four steps from here.",
        ).format(folder=folder, n=len(chosen))
    )


@app.command()
def doctor() -> None:
    """这台机器能不能上这门课 · Can this machine run the course?"""  # noqa: D400 - a help text
    from hookedu.doctor import OPEN, State, examine

    findings = examine()
    for title, finding in findings:
        print(f"{finding.state.value} {title.inline()}: {finding.detail}")
        if finding.remedy:
            print(textwrap.indent(str(finding.remedy), "    "))
    if any(finding.state is State.FAIL for _, finding in findings):
        print(
            Text(zh="还不能上课：请先处理标 ✗ 的各项。", en="Not ready yet: see to the lines marked ✗ first.")
        )
        raise typer.Exit(1)
    print(Text(zh="一切就绪：运行 `{open}`。", en="All set: run `{open}`.").format(open=OPEN))
