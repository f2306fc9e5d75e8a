"""Export grades to files for other programs.

    grades.csv                                one row per attempt, for a spreadsheet
    canvas.csv, moodle.csv                    one row per student, one column per lesson
    moodle_LESSON.csv                         a grading worksheet, for students of a Moodle download
    gradescope/STUDENT/LESSON/results.json    what an autograder passes to Gradescope

A student's folder name is taken as the login name: Canvas's "SIS Login ID", Moodle's user name. Students of a download
from Canvas or Moodle (see `layout`) have names with the number by which the platform knows them. To use hookedu inside
Gradescope, `run_autograder` puts the submission into its own folder, runs `hookedu grade` and `hookedu report`, and
copies results.json from there.
"""

import contextlib
import csv
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from hookedu import catalog
from hookedu.exercises import find
from hookedu.exercises.exercise import Outcome
from hookedu.exercises.feedback import LOOKS
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.book.grades import Grade, Mark, tidy
from hookedu.grading.rows import LOST, Status
from hookedu.language import LANGUAGES, Text, in_both

LATE = Text(zh="迟交 {hours} 小时，扣 {points} 分", en="{hours} hours late: {points} points taken off")
BY_HAND = Text(zh="教师改为 {points} 分：{reason}", en="set to {points} points by the instructor: {reason}")
TOTAL = Text(
    zh="教师把全课改为 {points} 分：{reason}",
    en="the whole lesson set to {points} points by the instructor: {reason}",
)
NO_RESULT = Text(zh="没有结果", en="no result")
ENDED_BEFORE = Text(
    zh="运行在轮到这个练习之前就结束了，或者结果不能算数；原因见这一课开头。",
    en="The run ended before this exercise, or what it gave cannot count; the reason stands above the exercises.",
)
OUR_FAULT = Text(
    zh="评分程序出了错，与你的作业无关；请告诉教师。",
    en="The grader itself failed, through no fault of yours; please tell your instructor.",
)


def write_csv(book: Gradebook) -> None:
    """Rewrite a gradebook's grades.csv; a reader sees either the old file or the new one, never a part."""
    with book.told():
        write_grades(book.csv, book.grades(), book.exercises())


def write_grades(path: Path, grades: Iterable[Grade], exercises: list[str]) -> None:
    """Write grades.csv, one row per attempt.

    The column `counts` is 1 for the attempt that determines the student's grade. `points` are final: they include
    points set by hand, and `late_penalty` is already deducted.

    Parameters
    ----------
    path : Path
        The file to write.
    grades : iterable of Grade
        Every attempt.
    exercises : list of str
        Ids of the exercises, one column each.
    """
    with _fresh(path, "utf-8-sig") as file:  # without a byte order mark Excel garbles Chinese
        write = csv.writer(file).writerow
        write(
            [
                *("student", "lesson", "status", "points", "max_points", *exercises, "attempt", "counts"),
                *("submitted_at", "late_penalty", "by_hand", "notes", "source"),
            ]
        )
        for grade in grades:
            row = grade.row
            points = {mark.result.exercise: tidy(mark.points) for mark in grade.marks}
            by_hand = [f"{m.result.exercise}: {by_hand_text(m).en}" for m in grade.adjusted]
            by_hand += [text.en for text in by_rule(grade) if grade.total]
            notes = map(in_both, row.notes)
            write(
                [
                    *(_cell(row.student), row.lesson, row.status.value, grade.points, row.max_points),
                    *(points.get(exercise, "") for exercise in exercises),
                    *(
                        row.attempt,
                        int(grade.counts),
                        row.submitted.isoformat(timespec="seconds") if row.submitted else "",
                    ),
                    *(grade.penalty, _cell("; ".join(by_hand)), _cell("; ".join(notes)), _cell(row.source)),
                ]
            )


def write_canvas(path: Path, grades: Iterable[Grade]) -> None:
    """Write the file for Canvas (Grades, Import).

    The columns are `Student, ID, SIS Login ID, Section`, then the assignments, each with its points in the row
    `Points Possible`. Canvas matches students by login if ID is empty, and assignments by title.

    The format follows lib/gradebook_importer.rb of canvas-lms.
    """
    students, titles, possible = _by_student(grades)
    with _fresh(path) as file:
        write = csv.writer(file).writerow
        write(["Student", "ID", "SIS Login ID", "Section", *titles.values()])
        write(["Points Possible", "", "", "", *(possible[lesson] for lesson in titles)])
        for student, found in students.items():
            name, number = _numbered(student, "Canvas")
            # Canvas would read a first cell that contains these words as another row of points.
            shown = "" if "Points Possible" in name else _cell(name)
            login = "" if number else _login(student)
            write([shown, number, login, "", *(found[le].points if le in found else "" for le in titles)])


def write_moodle(path: Path, grades: Iterable[Grade]) -> None:
    """Write the file for Moodle (Grades, Import, CSV file), with a grade and a feedback column per lesson.

    `Username` is to be mapped to the user name, and both columns of a lesson are to be mapped: Moodle empties the one
    that is not. "-" means no grade. Moodle imports nothing at all if it does not know one of the user names, so students
    whom a platform knows by number are left out; for those of Moodle see `write_moodle_worksheets`.

    The format follows grade/import/csv/classes/load_data.php of Moodle and its documentation page "Grade import".
    """
    students, titles, _ = _by_student(grades)
    with _fresh(path) as file:
        write = csv.writer(file).writerow
        write(["Username", *(cell for title in titles.values() for cell in (title, f"Feedback: {title}"))])
        for student, found in students.items():
            cells = [
                cell
                for lesson in titles
                for cell in (
                    (found[lesson].points, _cell(summary(found[lesson]))) if lesson in found else ("-", "")
                )
            ]
            if not _numbered(student, r"\w+")[1]:
                write([_login(student), *cells])


def write_moodle_worksheets(folder: Path, grades: Iterable[Grade]) -> list[Path]:
    """Write a grading worksheet per lesson for Moodle (the assignment, Upload grading worksheet), and return their paths.

    They hold the students of a Moodle download, whom it knows as "Participant NUMBER".

    The format follows mod/assign/feedback/offline/importgradeslib.php of Moodle: `Identifier`, `Grade` and `Last
    modified (grade)` must be there; a grade without such a time replaces whatever is in Moodle.
    """
    students, titles, _ = _by_student(grades)
    known = {student: _numbered(student, "Moodle") for student in students}
    paths = []
    for lesson in titles:
        rows = [
            (f"Participant {number}", _cell(name), of[lesson].points, "", _cell(summary(of[lesson])))
            for student, of in students.items()
            if lesson in of and (name := known[student][0]) and (number := known[student][1])
        ]
        if rows:
            paths.append(folder / f"moodle_{lesson}.csv")
            with _fresh(paths[-1]) as file:
                write = csv.writer(file).writerow
                write(["Identifier", "Full name", "Grade", "Last modified (grade)", "Feedback comments"])
                for row in rows:
                    write(row)
    return paths


def write_gradescope(folder: Path, grades: Iterable[Grade]) -> None:
    """Write one results.json per lesson of one student into the student's folder.

    The format follows Gradescope's "Autograder Specifications": `score` overrides the sum of the tests, so that it can
    include a penalty.
    """
    for grade in grades:
        if grade.counts and grade.row.lesson:
            path = folder / grade.row.lesson / "results.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(gradescope(grade), ensure_ascii=False, indent=1))


def gradescope(grade: Grade) -> dict[str, Any]:
    """Return one grade in Gradescope's format."""
    tests = []
    for mark in grade.marks:
        result, exercise = mark.result, find(mark.result.exercise)
        said = [in_both(ENDED_BEFORE) if result.outcome == LOST else result.feedback.text(LANGUAGES)]
        if mark.adjustment:
            said.append(in_both(by_hand_text(mark)))
        tests.append(
            {
                "number": exercise.id,
                "name": in_both(exercise.title),
                "score": tidy(mark.points),
                "max_score": result.max_points,
                "status": "passed" if mark.points >= result.max_points else "failed",
                "output": "\n".join(said),
                "output_format": "text",
            }
        )
    return {
        "score": grade.points,
        "execution_time": round(grade.row.seconds, 3),
        "output": "\n".join(map(in_both, remarks(grade))),
        "output_format": "text",
        "tests": tests,
        "extra_data": {"status": grade.row.status.value, "late_penalty": grade.penalty},
    }


def remarks(grade: Grade) -> list[Text]:
    """Return what a student is told in addition to the exercises: how the run ended, repairs, lateness."""
    # The notes on a defect of the grader may name files of the instructor.
    notes = [OUR_FAULT] if grade.row.status is Status.GRADER_ERROR else list(grade.row.notes)
    return notes + by_rule(grade)


def by_rule(grade: Grade) -> list[Text]:
    """Return what determined a grade in addition to the judge: lateness, and a total set by hand."""
    total = [TOTAL.format(points=tidy(grade.total.points), reason=grade.total.reason)] if grade.total else []
    return ([late_text(grade)] if grade.penalty else []) + total


def late_text(grade: Grade) -> Text:
    """Return the text on lateness and the points deducted for it."""
    return LATE.format(hours=f"{grade.lateness.total_seconds() / 3600:.1f}", points=grade.penalty)


def by_hand_text(mark: Mark) -> Text:
    """Return the text of an adjustment, or an empty text if there is none."""
    by_hand = mark.adjustment
    return (
        BY_HAND.format(points=tidy(by_hand.points), reason=by_hand.reason) if by_hand else Text(zh="", en="")
    )


def summary(grade: Grade) -> str:
    """Return a grade in one paragraph, for a feedback column."""
    lines = []
    for mark in grade.marks:
        sign, _, word = outcome(mark.result.outcome)
        line = f"{sign} {mark.result.exercise} {tidy(mark.points)}/{mark.result.max_points} {in_both(word)}"
        lines.append(f"{line} ({in_both(by_hand_text(mark))})" if mark.adjustment else line)
    return "; ".join([*lines, *map(in_both, remarks(grade))])


def outcome(value: str) -> tuple[str, str, Text]:
    """Return the sign, colour and word of a result's outcome, LOST included."""
    return ("–", "", NO_RESULT) if value == LOST else LOOKS[Outcome(value)]


def file_names(students: Iterable[str]) -> dict[str, str]:
    """Return a unique file name for each student, safe on every system and without any path in it."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for student in students:
        name, longer = possible_file_names(student)
        # Device names of Windows, and "index", which would become the folder's index page.
        reserved = re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d|index)(\..*)?", name)
        if not name or name != student or reserved or name.casefold() in taken:
            name = longer
        while name.casefold() in taken:  # somebody has named a folder so
            name += "_"
        taken.add(name.casefold())
        names[student] = name
    return names


def possible_file_names(student: str) -> tuple[str, str]:
    """Return the file names that a student may have, the second where another has the first or it is not safe."""
    name = re.sub(r"[^\w.-]+", "_", student).strip("._-")[:50]  # at most 200 bytes of UTF-8
    return name, f"{name}-{hashlib.sha256(student.encode()).hexdigest()[:8]}".lstrip("-")


def _by_student(
    grades: Iterable[Grade],
) -> tuple[dict[str, dict[str, Grade]], dict[str, str], dict[str, int]]:
    """Return the grades that count by student and lesson, and the lessons' titles (in order) and points."""
    students: dict[str, dict[str, Grade]] = {}
    possible: dict[str, int] = {}
    for grade in grades:
        if grade.counts and grade.row.lesson:
            students.setdefault(grade.row.student, {})[grade.row.lesson] = grade
            possible[grade.row.lesson] = max(possible.get(grade.row.lesson, 0), grade.row.max_points)
    titles = {lesson: f"{lesson} {catalog.find(lesson).title.en}" for lesson in sorted(possible)}
    return students, titles, possible


def _cell(text: str) -> str:
    """Return the text so that no spreadsheet takes it for a formula.

    Those of East Asia know the full-width signs as well, and where the comma is decimal a semicolon begins a field.
    """
    return re.sub(r"(?:^|(?<=;))(?=[=+\-@＝＋－＠])", "'", text)


def _numbered(student: str, platform: str) -> tuple[str, str]:
    """Return a student's name, and the number by which a platform (a pattern) knows the student, "" if it knows the name."""
    found = re.fullmatch(rf"(.+) \({platform} (\d+)\)", student, re.DOTALL)
    return (found[1], found[2]) if found else (student, "")


def _login(student: str) -> str:
    """Return a login name as it is, so that it is found; only what can be none is kept from being a formula."""
    return student if re.fullmatch(r"[\w.@+=-]+", student) else _cell(student)


def write_text(path: Path, text: str) -> None:
    """Replace a file as a whole."""
    with _fresh(path) as file:
        file.write(text)


@contextlib.contextmanager
def _fresh(path: Path, encoding: str = "utf-8") -> Iterator[IO[str]]:
    """Yield a new file that replaces the old one at the end; a reader sees one or the other, never a part."""
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, delete=False, encoding=encoding, newline=""
    ) as new:
        try:
            yield new
        except BaseException:
            os.unlink(new.name)
            raise
    os.chmod(new.name, 0o644 & ~_umask())
    os.replace(new.name, path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
