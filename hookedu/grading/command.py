"""The commands `hookedu grade`, `report`, `similar`, `adjust` and `forget`, for `app.command(...)`."""

import contextlib
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from hookedu.catalog import CourseError
from hookedu.grading.cleaning import clean, clean_name, one_form
from hookedu.grading.limits import Limits
from hookedu.language import Text

_BAD_POINTS = Text(
    zh="练习 {exercise} 的分数在 0 和 {most} 之间，不能是 {points}。",
    en="Points for {exercise} lie between 0 and {most}; {points} do not.",
)
_WATCHES_ALL = Text(
    zh="`--watch` 评所有新来的提交，不能和 `--again`、`--only` 一起用：先不加 `--watch` 运行一次。",
    en="`--watch` grades whatever arrives, and does not go with `--again` or `--only`: run the command once without "
    "`--watch` for those.",
)
_NO_POINTS = Text(
    zh='写出分数和理由：`hookedu adjust {grades} {who} 2 --reason "..."`；或用 `--undo` 取消。',
    en='Give the points and a reason: `hookedu adjust {grades} {who} 2 --reason "..."`; or `--undo` to take it back.',
)
_SET = Text(
    zh="{who} 现在是 {points}/{of} 分。`grades.csv` 已更新；`hookedu report {grades}` 更新其余的文件。",
    en="{who} now has {points} of {of} points. `grades.csv` says so; `hookedu report {grades}` brings the other files "
    "up to date.",
)
_REPORTED = Text(
    zh="全班报告：`{report}`。每名学生一页：`{grades}/feedback`；`canvas.csv`、`moodle.csv` 和 `gradescope` 也在 `{grades}` 里。",
    en="The class report: `{report}`. A page for each student: `{grades}/feedback`; `canvas.csv`, `moodle.csv` and "
    "`gradescope` lie in `{grades}` as well.",
)
_FORGOTTEN = Text(
    zh="`{grades}` 里不再有 `{student}`。提交的文件夹和已经导入其他系统的成绩不归它管：请在那里也删掉，不然下次评分又会出现。",
    en="`{grades}` holds nothing about `{student}` any more. The folder of submissions and other systems are not its "
    "to change: delete there as well, or the next grading brings it back.",
)

_NO_FOLDER = Text(
    zh="没有写是哪个文件夹：传来的是空的。当前的文件夹写作 `.`。",
    en="No folder is named: what was given is empty. The current folder is written `.`.",
)
_NOTHING_GIVEN = Text(
    zh="`{option}` 后面是空的：写上它的值，或者去掉它。",
    en="`{option}` is followed by nothing: give its value, or leave it out.",
)
_STOPPED = Text(
    zh="停下了。已经评完的都在 `{out}`；再运行同一条命令，会接着评其余的。",
    en="Stopped. What had been graded by then is in `{out}`; the same command goes on with the rest.",
)
_MOST_JOBS = 1024
_LONGEST = 7 * 24 * 3600  # seconds; larger numbers are more than the system's limits can hold
_LARGEST = 2**24  # MiB


def named_folder(written: str) -> Path:
    """Return the folder; an empty name, such as that of an unset variable, is not the current one."""
    if not written.strip():
        raise CourseError(_NO_FOLDER)
    return Path(written)


Grades = Annotated[
    Path, typer.Argument(help="grades.db 所在的文件夹 · the folder of grades.db", parser=named_folder)
]
Attempt = Annotated[
    str | None,
    typer.Option(help="last|best：多次提交算哪一次 · which of several attempts counts; default: last"),
]
Due = Annotated[
    list[str] | None,
    typer.Option(help="2026-12-01（那天结束时 · the end of that day），02=2026-12-01T18:00：截止 · due"),
]
Late = Annotated[
    list[str] | None,
    typer.Option(help="10%/day, 2%/hour, 02=10%/day：迟交每天扣总分的几成 · off the points possible"),
]


def grade_command(
    folder: Annotated[
        Path,
        typer.Argument(
            help="STUDENT/LESSON.ipynb，或 nbgrader 的 submitted/，或其 zip · or nbgrader's, or a zip",
            parser=named_folder,
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="grades.db 和 grades.csv 的文件夹 · where the grades go", parser=named_folder)
    ],
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, max=_MOST_JOBS, help="同时评几份，默认每核一份 · at once; default: one per processor"
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=1, max=_LONGEST, help="每份的时间，秒 · seconds for each")
    ] = Limits.seconds,
    memory_limit: Annotated[
        int, typer.Option(min=64, max=_LARGEST, help="每份的内存，MiB · memory for each, MiB")
    ] = Limits.memory,
    again: Annotated[
        bool, typer.Option("--again", help="没有变化的也重新评 · also those that have not changed")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="STUDENT", help="只评这名学生，可写多次 · only this student; may be repeated"),
    ] = None,
    isolation: Annotated[
        bool,
        typer.Option(help="--no-isolation：不用沙箱，只评你信任的 · only for submissions that you trust"),
    ] = True,
    seed: Annotated[
        int | None, typer.Option(help="相同的种子给出相同的结果 · the same seed gives the same rows")
    ] = None,
    attempt: Attempt = None,
    due: Due = None,
    late: Late = None,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="STUDENT/EXERCISE",
            help="只重复一个结论，给出全部观察，不写任何东西 · repeat one verdict, show all observations, write nothing",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="一直看着，来一份评一份 · go on and grade whatever arrives")
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(help="Dask 调度器的地址，在集群上运行 · run on a cluster: its scheduler's address"),
    ] = None,
) -> None:
    """给一个班的笔记本评分 · Grade a class's notebooks into grades.db and grades.csv."""
    from hookedu.grading.batch import grade  # loads torch
    from hookedu.grading.book.grades import Rules
    from hookedu.grading.explain import explain as explain_

    # SIGTERM ends the command as Ctrl-C does: all workers are ended, and finished rows are saved.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for option, value in (("--explain", explain), ("--dask", dask)):
        if value is not None and not value.strip():  # an unset variable, not a wish to grade everything here
            raise CourseError(_NOTHING_GIVEN.format(option=option))
    if explain:
        explain_(explain, folder, out, Limits(seconds=time_limit, memory=memory_limit), isolated=isolation)
        return
    limits = {"time_limit": time_limit, "memory_limit": memory_limit}
    rules = Rules.of_options(attempt, due or (), late or ())
    options = {"jobs": jobs, **limits, "isolated": isolation, "seed": seed, "dask": dask, "rules": rules}
    if watch:
        if again or only:
            raise CourseError(_WATCHES_ALL)
        from hookedu.grading.watching import watch as watch_

        with contextlib.suppress(KeyboardInterrupt):
            watch_(folder, out, **options)
        return
    try:
        grade(folder, out, again=again, only=only or (), **options)
    except KeyboardInterrupt:
        print(_STOPPED.format(out=out), file=sys.stderr)
        raise


def report_command(grades: Grades, attempt: Attempt = None, due: Due = None, late: Late = None) -> None:
    """写出每人的反馈页、全班报告和给其他系统的文件 · Pages for students and on the class, files for other systems."""
    from rich.console import Console
    from rich.progress import track

    from hookedu.grading.book.gradebook import Gradebook
    from hookedu.grading.book.grades import Rules
    from hookedu.grading.out import pages

    rules = Rules.of_options(attempt, due or (), late or ())
    with contextlib.closing(Gradebook(grades, create=False)) as book:
        book.change_rules(rules)
        students = iter(track(book.students(), "", console=Console(stderr=True), transient=True))
        report = pages.write(book, lambda: next(students, None))
    print(_REPORTED.format(report=report, grades=grades))


def similar_command(
    grades: Grades,
    most: Annotated[int, typer.Option(min=1, help="最多列几对 · how many pairs at most")] = 20,
) -> None:
    """列出写法一致的提交，由人来判断 · List pairs of submissions that agree, for a person to judge."""
    from rich.console import Console

    from hookedu.grading.book.gradebook import Gradebook
    from hookedu.grading.out import comparison
    from hookedu.grading.similar import similar

    with contextlib.closing(Gradebook(grades, create=False)) as book:
        found = similar(book, most)
        comparison.show(Console(), found, comparison.write(book, found))


def adjust_command(
    grades: Grades,
    who: Annotated[
        str, typer.Argument(metavar="STUDENT/EXERCISE", help="ann/02.1；ann/02 是全课 · is the whole lesson")
    ],
    points: Annotated[
        float | None, typer.Argument(help="这个练习的新分数 · the exercise's new points")
    ] = None,
    reason: Annotated[str, typer.Option(help="理由，学生会看到 · why; the student will read it")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="取消手工分数 · take it back")] = False,
    new: Annotated[
        bool,
        typer.Option("--new", help="这一课什么都没交的学生也行 · also for a student who handed in nothing"),
    ] = False,
) -> None:
    """手工改一个练习的分数，重新评分也不会覆盖 · Set points by hand; grading again never overwrites them."""
    from hookedu import catalog, exercises
    from hookedu.grading.batch import nothing_handed_in
    from hookedu.grading.book.gradebook import Gradebook
    from hookedu.grading.book.grades import address, tidy
    from hookedu.grading.out import exports

    student, what = address(who, lesson_too=True)
    lesson = what.split(".")[0]
    reason = clean(reason.strip())
    if undo == (points is not None) or not (undo or reason):
        raise CourseError(_NO_POINTS.format(grades=grades, who=who))
    most = sum(e.points for e in exercises.of_lesson(lesson) if what in (e.id, lesson))
    if points is not None and not 0 <= points <= most:
        raise CourseError(_BAD_POINTS.format(exercise=what, most=most, points=points))
    with contextlib.closing(Gradebook(grades, create=False)) as book:
        if new and not book.holds(student, lesson):
            book.save(nothing_handed_in(student, catalog.find(lesson)))
        book.adjust(student, what, points, reason)
        exports.write_csv(book)
        grade = next(g for g in book.grades(student) if g.counts and g.row.lesson == lesson)
    marks = {mark.result.exercise: mark.points for mark in grade.marks}
    now = tidy(marks.get(what, 0)) if what != lesson else grade.points
    print(_SET.format(who=who, points=now, of=most, grades=grades))


def forget_command(
    grades: Grades, student: Annotated[str, typer.Argument(help="学生的文件夹名 · the student's folder name")]
) -> None:
    """从成绩和所有报告里删除一名学生，无法恢复 · Delete a student from grades and reports, for good."""
    from hookedu.grading.book.gradebook import Gradebook
    from hookedu.grading.out import pages

    with contextlib.closing(Gradebook(grades, create=False)) as book:
        pages.forget(book, student if student in book.students() else one_form(student))
    print(_FORGOTTEN.format(grades=grades, student=clean_name(student)))
