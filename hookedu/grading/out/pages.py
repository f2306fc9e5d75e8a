"""Write grades as HTML pages that open from disk: one per student, and a class report for the instructor.

    feedback/STUDENT.html    points, messages, next steps, the student's own traceback: what `check` shows and no more
    report.html              what the class misunderstood, points per exercise, run times, every student's grade

Each file contains everything it needs: style, script and pictures. Everything that comes from outside is escaped by
Jinja's autoescape, and a content security policy allows only the page's own script to run and nothing to be loaded.
"""

import base64
import contextlib
import datetime
import hashlib
import itertools
import shutil
import urllib.parse
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from hookedu import catalog, exercises
from hookedu.exercises.feedback import POINTS
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.book.grades import Grade, tidy
from hookedu.grading.out import exports, pictures
from hookedu.grading.out.overview import Overview
from hookedu.grading.out.terminal import LOOKS
from hookedu.language import Text

SIMILAR = "similar.html"  # see `comparison`; `forget` deletes it, since it shows the code of many students
MOST = 15  # mistakes in the picture and in the list below it; the rest are folded away

_STUDENT_SAYS = {
    "for_student": Text(
        zh="这是给你的反馈。改好以后，可以在笔记本里用 `check` 再试。",
        en="This is your feedback. Once you have changed something, try it again with `check` in your notebook.",
    ),
    "submitted": Text(zh="{when} 提交", en="handed in {when}"),
    "due": Text(zh="{when} 截止", en="due {when}"),
    "others": Text(zh="一共 {n} 次提交，这里是计分的那一次。其余：", en="{n} attempts; this is the one that counts. The others:"),
}  # fmt: skip
_CLASS_SAYS = {
    "class_title": Text(zh="全班报告", en="The class at a glance"),
    "summary": Text(
        zh="{students} 名学生，{submissions} 份计分的提交，平均得到总分的 {mean}。",
        en="{students} students, {submissions} submissions that count, {mean} of all points on average.",
    ),
    "misunderstood": Text(zh="全班误解了什么", en="What the class misunderstood"),
    "mistakes_caption": Text(
        zh="每种错误有多少名学生犯了，最常见的在上面。横轴是学生人数。",
        en="How many students made each mistake, the most frequent at the top.",
    ),
    "share": Text(zh="{of} 名作答者中 {n} 名", en="{n} of {of} who tried"),
    "rarer": Text(zh="其余 {n} 种错误", en="{n} rarer mistakes"),
    "section": Text(zh="对应的小节", en="The section to look at"),
    "who": Text(zh="哪些学生", en="Which students"),
    "no_mistakes": Text(zh="没有发现错误的答案。", en="No wrong answer was found."),
    "per_exercise": Text(zh="每个练习的得分", en="Points of each exercise"),
    "outcomes_caption": Text(
        zh="每个练习的结果，按学生人数：正确、部分正确、还不对、运行出错、没有作答、没有结果。",
        en="How each exercise went, in students.",
    ),
    "exercise": Text(zh="练习", en="Exercise"),
    "mean": Text(zh="平均分", en="Mean points"),
    "solved": Text(zh="做对", en="Solved"),
    "time": Text(zh="运行时间", en="Time"),
    "time_caption": Text(
        zh="每份提交在评分时运行了几秒。右边很远的那几份，往往有死循环或很慢的代码。",
        en="How many seconds each submission ran while it was graded. Those far to the right often hold an endless "
        "loop or very slow code.",
    ),
    "behind": Text(zh="触及判分的幕后", en="reaches behind the scenes"),
    "attention": Text(zh="需要看一下的提交", en="Submissions that need a look"),
    "students": Text(zh="每名学生", en="Every student"),
    "student": Text(zh="学生", en="Student"),
    "lesson": Text(zh="课", en="Lesson"),
    "points": Text(zh="得分", en="Points"),
    "status": Text(zh="状态", en="Status"),
    "remarks": Text(zh="备注", en="Remarks"),
    "others_short": Text(zh="共 {n} 次提交", en="{n} attempts"),
}  # fmt: skip


def write(book: Gradebook, advance: Callable[[], object] = lambda: None) -> Path:
    """Write every page and file made from a gradebook into its folder, and return the path of the class report.

    `advance` is called after each student.

    Raises
    ------
    CourseError
        If a file cannot be written.
    """
    with book.told():
        return _write(book, advance)


def _write(book: Gradebook, advance: Callable[[], object]) -> Path:
    names = exports.file_names(book.students())
    feedback = book.folder / "feedback"
    feedback.mkdir(exist_ok=True)
    overview = Overview()
    for student, found in itertools.groupby(book.grades(), lambda grade: grade.row.student):
        grades = list(found)
        exports.write_text(feedback / f"{names[student]}.html", student_page(grades))
        exports.write_gradescope(book.folder / "gradescope" / names[student], grades)
        for grade in grades:
            if grade.counts:
                overview.add(grade)
        advance()
    report = book.folder / "report.html"
    links = {student: "feedback/" + urllib.parse.quote(f"{name}.html") for student, name in names.items()}
    exports.write_text(report, class_page(overview, links))
    exports.write_canvas(book.folder / "canvas.csv", overview.grades)
    exports.write_moodle(book.folder / "moodle.csv", overview.grades)
    for path in book.folder.glob("moodle_??.csv"):
        path.unlink()
    exports.write_moodle_worksheets(book.folder, overview.grades)
    exports.write_csv(book)
    return report


def forget(book: Gradebook, student: str) -> None:
    """Delete a student from the gradebook and from every file in its folder.

    Raises
    ------
    CourseError
        If there is no student of that name, or a file cannot be deleted or written.
    """
    names = exports.file_names(book.students())
    book.forget(student)
    # Those of an earlier report as well: who comes later may have taken a name.
    theirs = {names.pop(student), *exports.possible_file_names(student)} - {"", *names.values()}
    with book.told():
        for name in theirs:
            (book.folder / "feedback" / f"{name}.html").unlink(missing_ok=True)
            if (folder := book.folder / "gradescope" / name).exists():
                shutil.rmtree(folder)
        (book.folder / SIMILAR).unlink(missing_ok=True)
        if (book.folder / "report.html").exists():
            _write(book, lambda: None)
        else:
            exports.write_csv(book)


def student_page(grades: list[Grade]) -> str:
    """Return the page of one student, given all of the student's attempts."""
    lessons = [
        (grade, [other for other in grades if other.row.lesson == grade.row.lesson and not other.counts])
        for grade in grades
        if grade.counts
    ]
    return render("student.html", _STUDENT_SAYS, student=grades[0].row.student, lessons=lessons)


def class_page(overview: Overview, links: dict[str, str]) -> str:
    """Return the class report; `links` are the URLs of the students' pages."""
    mistakes = overview.mistakes[:MOST]
    drawn = {
        "mistakes": pictures.mistakes(
            [f"{m.exercise} {m.id}" for m in mistakes], [len(m.students) for m in mistakes]
        )
        if mistakes
        else "",
        "outcomes": pictures.outcomes(
            [e.id for e in overview.exercises], [e.outcomes for e in overview.exercises]
        ),
        "seconds": pictures.seconds([grade.row.seconds for grade in overview.grades]),
    }
    return render("class.html", _CLASS_SAYS, view=overview, links=links, pictures=drawn, most=MOST)


def render(template: str, says: dict[str, Text], **values: Any) -> str:
    """Return a page made from a template and what it says."""
    return _environment().get_template(template).render(says=says, **values)


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.PackageLoader("hookedu.grading.out")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "both": lru_cache(4096)(lambda text: Markup(text.inline_html())),
        "blocks": lru_cache(4096)(lambda text: Markup(text.html())),
        "panel": lambda feedback: Markup(feedback.html()),
        "when": _when,
    }
    script = loader.get_source(environment, "page.js")[0]
    environment.globals |= {
        "style": Markup(loader.get_source(environment, "page.css")[0]),
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "statuses": {status: text for status, (_, text) in LOOKS.items()},
        "titles": {lesson.id: lesson.title for lesson in catalog.lessons()},
        "exercises": {e.id: e.title for lesson in exercises.lessons() for e in exercises.of_lesson(lesson)},
        "outcome": exports.outcome,
        "remarks": exports.remarks,
        "by_hand": exports.by_hand_text,
        "by_rule": exports.by_rule,
        "ended_before": exports.ENDED_BEFORE,
        "points": lambda mark: POINTS.format(points=tidy(mark.points), of=mark.result.max_points),
    }
    return environment


def _when(moment: datetime.datetime) -> str:
    """Format a time in this machine's time zone, with the offset from UTC."""
    with contextlib.suppress(OverflowError):  # the last hours of year 9999 have no local time
        moment = moment.astimezone()
    return moment.strftime("%Y-%m-%d %H:%M %z")
