"""Terminal output for the instructor: a progress bar, and a table at the end.

Names, notes and everything else from outside are printed as `rich` text, never as markup: a student named "[red]" is
shown under that name.
"""

from collections import Counter
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.progress import TimeRemainingColumn as TimeLeft
from rich.table import Table
from rich.text import Text as Line

from hookedu.grading.rows import LOST, Graded, Result, Row, Status
from hookedu.language import Text, in_both

WHOLE_TABLE = 40  # rows; for a larger class a summary and the rows that need attention are shown
ATTENTION = 30  # maximum number of rows that need attention

LOOKS = {
    Status.GRADED: ("green", Text(zh="已评分", en="graded")),
    Status.NOT_ATTEMPTED: ("blue", Text(zh="未作答", en="not attempted")),
    Status.TIMEOUT: ("red", Text(zh="超时", en="timeout")),
    Status.OUT_OF_MEMORY: ("red", Text(zh="内存超限", en="out of memory")),
    Status.KILLED: ("red", Text(zh="进程中断", en="killed")),
    Status.UNREADABLE: ("yellow", Text(zh="无法读取", en="unreadable")),
    Status.NO_NOTEBOOK: ("yellow", Text(zh="没有笔记本", en="no notebook")),
    Status.TAMPERED: ("bold red", Text(zh="结果被改动", en="tampered")),
    Status.GRADER_ERROR: ("magenta", Text(zh="评分程序出错", en="grader error")),
}
_HEAD = {
    "student": Text(zh="学生", en="Student"),
    "lesson": Text(zh="课", en="Lesson"),
    "points": Text(zh="得分", en="Points"),
    "exercises": Text(zh="各题", en="Exercises"),
    "status": Text(zh="状态", en="Status"),
}
_GRADING = Text(zh="评分", en="Grading")
_PER_MINUTE = Text(zh="{n:.0f} 份/分", en="{n:.0f} a minute")
_DONE = Text(
    zh="评了 {n} 份，用时 {seconds:.0f} 秒；{skipped} 份没有变化，保留原有成绩。",
    en="Graded {n} in {seconds:.0f} seconds; {skipped} had not changed and keep their grades.",
)
_OUTSIDE = Text(
    zh="有 {n} 个笔记本不在任何学生的文件夹里，没有评分：{names}",
    en="{n} notebooks lie outside any student's folder and were not graded: {names}",
)
_ASIDE = Text(
    zh="还有 {n} 个文件不是笔记本，没有看：{names}",
    en="{n} other files are no notebooks and were left aside: {names}",
)
_NAMED = 5  # paths named in a line
_MORE = Text(zh="还有 {n} 份需要看一下，见 `{path}`", en="{n} more need a look, see `{path}`")
_WHERE = Text(
    zh="成绩在 `{path}`；`hookedu report {folder}` 写出每人的反馈页和全班报告",
    en="Grades are in `{path}`; `hookedu report {folder}` writes a page for each student and one on the class",
)


class _Rate(ProgressColumn):
    """Progress column with the submissions per minute."""

    def render(self, task: Task) -> Line:
        """Return the text of the column, as rich requires."""
        return Line(in_both(_PER_MINUTE.format(n=60 * (task.speed or 0))))


def progress(console: Console) -> Progress:
    """Return the progress bar of a batch: number done, rate, time left."""
    grading = TextColumn(in_both(_GRADING), markup=False)
    columns = (grading, BarColumn(), MofNCompleteColumn(), _Rate(), TimeLeft())
    return Progress(*columns, console=console, transient=True)


def closing(
    console: Console, graded: Graded, outside: list[str], aside: list[str], csv: Path, remarks: list[Text]
) -> None:
    """Print the table of a batch, remarks on the gradebook as a whole, and where the grades are.

    Parameters
    ----------
    console : Console
        Where to print.
    graded : Graded
        The result of the batch.
    outside, aside : list of str
        Notebooks outside any student's folder; files of students with a notebook that are none. See `Collected`.
    csv : Path
        Path of grades.csv.
    remarks : list of Text
        Remarks on the gradebook, see `Gradebook.remarks`.
    """
    if graded.rows:
        rows = sorted(graded.rows, key=lambda row: not row.reached)
        if len(rows) <= WHOLE_TABLE:
            console.print(_table(rows))
            _notes(console, rows)
        else:
            console.print(_summary(rows))
            attention = [row for row in rows if row.needs_a_look]
            if attention:
                console.print(_table(attention[:ATTENTION]))
                _notes(console, attention[:ATTENTION])
            if len(attention) > ATTENTION:
                _say(console, _MORE.format(n=len(attention) - ATTENTION, path=csv))
    _say(console, _DONE.format(n=len(graded.rows), seconds=graded.seconds, skipped=graded.skipped))
    if outside:
        _say(console, _OUTSIDE.format(n=len(outside), names=_some(outside)))
    if aside:
        _say(console, _ASIDE.format(n=len(aside), names=_some(aside)))
    for remark in remarks:
        _say(console, remark)
    _say(console, _WHERE.format(path=csv, folder=csv.parent))


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")


def _say(console: Console, text: Text) -> None:
    console.print(Line(str(text)), soft_wrap=True)


def _table(rows: list[Row]) -> Table:
    """Return a table with one line per row; where the terminal is narrow, long names and statuses are folded."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("student", "lesson", "points", "exercises", "status"):
        folds = name in ("student", "status")
        table.add_column(
            Line(str(_HEAD[name])),
            justify="right" if name == "points" else "left",
            overflow="fold",
            no_wrap=not folds,
            min_width=12 if folds else None,
        )
    for row in rows:
        table.add_row(
            *(Line(row.student), Line(row.lesson), Line(f"{row.points}/{row.max_points}")),
            *(Line(" ").join(map(_points, row.results)), _status(row.status, row.reached)),
        )
    return table


def _notes(console: Console, rows: list[Row]) -> None:
    """Print the notes on single submissions below the table, where there is room for them."""
    for row in rows:
        for note in row.notes:
            console.print(Line(f"{row.source}: {in_both(note)}"), soft_wrap=True)


def _points(result: Result) -> Line:
    if result.outcome == LOST:
        return Line(" – ", style="dim")
    full = result.points == result.max_points
    return Line(f"{result.points}/{result.max_points}", style="green" if full else "")


def _status(status: Status, reached: tuple[str, ...] = ()) -> Line:
    """Return a status as text; of a row that reached behind the scenes, with a mark (its notes say more)."""
    colour, text = LOOKS[status]
    return Line(("⚑ " if reached else "") + in_both(text), style="bold red" if reached else colour)


def _summary(rows: list[Row]) -> Table:
    """Return a table with the number of submissions and their mean points by status."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(Line(in_both(_HEAD["status"])), justify="left")
    table.add_column(Line(in_both(Text(zh="份数", en="Count"))), justify="right")
    table.add_column(Line(in_both(Text(zh="平均得分", en="Mean points"))), justify="right")
    counts = Counter(row.status for row in rows)
    for status in Status:
        if counts[status]:
            mean = sum(row.points for row in rows if row.status is status) / counts[status]
            table.add_row(_status(status), Line(str(counts[status])), Line(f"{mean:.1f}"))
    return table
