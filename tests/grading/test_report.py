"""Output for people: student pages, the class report, files for other systems, one verdict explained.

One small class is graded once, with real markup in a name, a file name and a traceback, and many tests examine the
result.
"""

import contextlib
import csv
import html.parser
import io
import json
import os
import re
import shutil
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hookedu import catalog, exercises
from hookedu.catalog import CourseError
from hookedu.cli import app
from hookedu.exercises import of_lesson
from hookedu.exercises.exercise import Outcome
from hookedu.exercises.feedback import LOOKS
from hookedu.grading.batch import grade, nothing_handed_in
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.book.grades import Rules
from hookedu.grading.explain import explain
from hookedu.grading.limits import Limits
from hookedu.grading.matching import key_of
from hookedu.grading.out import pages
from hookedu.grading.out.overview import sections
from hookedu.grading.rows import Status
from hookedu.language import has_chinese
from tests.grading import notebooks as nb

pytestmark = [pytest.mark.xdist_group("grading-report"), pytest.mark.isolated]
FILE = "02_tensor_hooks.ipynb"
MARKUP = "<img src=x onerror=alert(1)>"
SCRIPT = "<script>alert(2)</script>"
LATE = "wrong-late"
LIMITS = Limits(seconds=5)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Grade a class and write every file; return the class's folder and the folder of its grades."""
    root = tmp_path_factory.mktemp("report")
    folder, out, right = root / "class", root / "out", nb.reference()
    binding = nb.wrong("02.2", "late_binding")[0]
    classmates = {
        "ann": nb.answered(right),
        "李雷": nb.answered(right | {"02.2": binding}),
        LATE: nb.answered(right | {"02.2": binding, "02.1": nb.wrong("02.1", "no_handle")[0]}),
        "endless": nb.answered(right | {"02.3": "while True: pass"}),
        "Points Possible": nb.handed_out(),
        "empty": b"",
    }
    for student, notebook in classmates.items():
        os.utime(nb.hand_in(folder / student / FILE, notebook), (10**9, 10**9))
    os.utime(folder / LATE / FILE, (10**9 + 3600, 10**9 + 3600))
    hostile = nb.answered(
        right | {"02.2": f"def watch_many(tensors, seen):\n    raise ValueError('{SCRIPT}')"}
    )
    os.utime(nb.hand_in(folder / "ann" / "02 first try.ipynb", nb.handed_out()), (10**9, 10**9))
    # A file name cannot contain "/", hence no closing tag.
    nb.hand_in(folder / MARKUP / f"02 {MARKUP}.ipynb", hostile)
    rules = Rules.of_options("best", ["2001-09-09T01:46:40+00:00"], ["10%/day"])
    console = Console(file=open(root / "shown", "w", encoding="utf-8"), width=100)  # noqa: SIM115
    with contextlib.closing(console.file):
        grade(folder, out, time_limit=LIMITS.seconds, rules=rules, console=console, seed=3)
    with contextlib.closing(Gradebook(out)) as book:
        book.adjust("李雷", "02.2", 2.5, f"said {SCRIPT}")
        pages.write(book)
    return folder, out


def page_of(out, student):
    (name,) = [
        p for p in (out / "feedback").iterdir() if f"<title>{escaped(student)} " in p.read_text("utf-8")
    ]
    return name.read_text(encoding="utf-8")


def escaped(text):
    return text.replace("<", "&lt;").replace(">", "&gt;")


class Elements(html.parser.HTMLParser):
    """Parser that collects the elements of a page with their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def columns(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


# --- pages ----------------------------------------------------------------------------------------------------


def test_a_page_for_everybody_and_none_outside_its_folder(graded):
    _, out = graded
    written = sorted(path.name for path in (out / "feedback").iterdir())
    assert len(written) == 7 and {"ann.html", "李雷.html"} <= set(written)
    assert {path.name for path in out.iterdir()} == {
        *("feedback", "gradescope", "report.html", "canvas.csv", "moodle.csv", "grades.csv", "grades.db")
    }


def test_two_files_for_one_lesson_are_two_attempts_and_it_is_reported(graded):
    _, out = graded
    shown = (out.parent / "shown").read_text(encoding="utf-8")
    assert "(ann; 1 in all)" in shown and "--attempt last" in shown and "hookedu report" in shown
    text = Elements(page_of(out, "ann")).text
    assert "2 attempts" in text and "ann/02 first try.ipynb" in text and "15 / 15" in text


def test_a_file_in_the_way_is_reported_and_costs_no_grade(graded, tmp_path):
    shutil.copy(graded[1] / "grades.db", tmp_path)
    (tmp_path / "feedback").write_text("in the way")
    with contextlib.closing(Gradebook(tmp_path)) as book:
        with pytest.raises(CourseError, match=r"Writing to .* failed"):
            pages.write(book)
        assert len(list(book.grades())) == 8


def test_a_row_knows_the_course_it_was_graded_against(graded):
    _, out = graded
    fingerprint = key_of(catalog.find("02")).fingerprint
    with contextlib.closing(Gradebook(out)) as book:
        assert {grade.row.course for grade in book.grades()} == {fingerprint} and fingerprint
        assert not [r for r in book.remarks({"02": fingerprint}) if "changed" in r.en]
    assert key_of(catalog.find("03")).fingerprint != fingerprint


def test_nothing_hostile_becomes_markup(graded):
    _, out = graded
    theirs = page_of(out, MARKUP)
    assert escaped(SCRIPT) in theirs and escaped(f"02 {MARKUP}.ipynb") in theirs, "it is shown"
    for path in [*(out / "feedback").iterdir(), out / "report.html"]:
        page = path.read_text(encoding="utf-8")
        assert SCRIPT not in page and MARKUP not in page
        elements = Elements(page)
        tags = [tag for tag, _ in elements.found]
        assert tags.count("script") == 1 and not {"img", "iframe", "object", "form", "link"} & set(tags)
        assert not [a for _, attributes in elements.found for a in attributes if a.startswith("on")]
        targets = [a["href"] for tag, a in elements.found if tag == "a"]
        assert all(target.startswith("feedback/") for target in targets)
        policy = next(
            a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"
        )
        assert policy.startswith("default-src 'none'") and "script-src 'sha256-" in policy


def test_a_page_says_what_check_says_and_nothing_more(graded):
    _, out = graded
    for student in ("李雷", LATE, MARKUP):
        articles = re.findall(
            r'<article.*?data-exercise="([\d.]+)".*?</article>', page_of(out, student), re.S
        )
        assert articles == [e.id for e in of_lesson("02")]
    page = page_of(out, "李雷")
    article = re.search(r'<article[^>]*"02.2".*?</article>', page, re.S)[0]
    exercise = exercises.find("02.2")
    assert (
        exercise.mistake("late_binding").says.html() in article and 'hint("02.2")' in Elements(article).text
    )
    assert article.count("Expected") == 1, "the first failed criterion alone, as in the notebook"
    (seed,) = (
        sqlite3.connect(out / "grades.db")
        .execute("SELECT seed FROM results WHERE source LIKE '李雷%' AND exercise = '02.2'")
        .fetchone()
    )
    assert str(seed) not in page


def test_a_page_tells_of_nobody_else(graded):
    _, out = graded
    text = page_of(out, "李雷")
    for other in ("ann", LATE, "endless", "Points Possible", MARKUP, escaped(MARKUP), "no_handle"):
        assert not re.search(rf"\b{re.escape(other)}\b", Elements(text).text), other


def test_a_traceback_is_the_students_own(graded):
    _, out = graded
    (trace,) = re.findall(r"<pre.*?</pre>", page_of(out, MARKUP), re.S)
    assert "in watch_many" in trace and "site-packages" not in trace and "hookedu" not in trace


def test_a_page_says_how_a_submission_ended_and_what_to_make_of_it(graded):
    _, out = graded
    loop = Elements(page_of(out, "endless")).text
    assert "ended after 5 seconds" in loop and "5 秒后被终止" in loop
    assert loop.count("The run ended before this exercise") == 1
    assert "the rest was run again without it" in loop
    assert "the file is empty" in page_of(out, "empty")
    assert "Not attempted yet" in page_of(out, "Points Possible")


def test_points_set_by_hand_and_late_work_show_everywhere(graded):
    """李雷 gets 2.5 of 3 points by hand; another is an hour late: a day begun, which costs 1.5 of 15 points."""
    _, out = graded
    kept = nb.wrong("02.2", "late_binding")[1] + nb.wrong("02.1", "no_handle")[1] + 9
    with open(out / "grades.csv", encoding="utf-8-sig", newline="") as file:
        csv_rows = {row["student"]: row for row in csv.DictReader(file)}
    canvas = {row[2]: row[4] for row in columns(out / "canvas.csv")}
    moodle = {row[0]: row[1:] for row in columns(out / "moodle.csv")}
    report = Elements((out / "report.html").read_text(encoding="utf-8")).text
    for student, points, said in (
        ("李雷", "14.5", f"set to 2.5 points by the instructor: said {SCRIPT}"),
        (LATE, f"{kept - 1.5:g}", "1.0 hours late: 1.5 points taken off"),
    ):
        scope = json.loads((out / "gradescope" / student / "02" / "results.json").read_text(encoding="utf-8"))
        assert [csv_rows[student]["points"], canvas[student], moodle[student][0]] == [points] * 3
        assert scope["score"] == float(points)
        assert said in moodle[student][1] and said in json.dumps(scope, ensure_ascii=False)
        page = Elements(page_of(out, student)).text
        assert said in page and f"{points} / 15" in page
        assert said in report and f"{points} / 15" in report
    assert (
        csv_rows["李雷"]["by_hand"].startswith("02.2: set to 2.5") and csv_rows[LATE]["late_penalty"] == "1.5"
    )


# --- the class ------------------------------------------------------------------------------------------------


def test_the_report_says_what_the_class_misunderstood_most_frequent_first(graded):
    _, out = graded
    page = (out / "report.html").read_text(encoding="utf-8")
    found = re.findall(r'data-mistake="([^"]+)".*?</article>', page, re.S)
    assert found == ["02.2:late_binding", "02.1:no_handle", "02.2:ValueError"]
    card = re.search(r"<article[^>]*late_binding.*?</article>", page, re.S)[0]
    text = Elements(card).text
    assert exercises.find("02.2").mistake("late_binding").says.html() in card
    assert "2 of 5 who tried" in text and "02_tensor_hooks" in text
    section = sections("02")["02.2"]
    assert section.en in text and section.zh in text and section.en.startswith("2.8 ")


def test_the_reports_pictures_hold_the_numbers_and_the_pages_ink(graded):
    _, out = graded
    page = (out / "report.html").read_text(encoding="utf-8")
    pictures = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(pictures) == 3
    for picture in pictures:
        assert 'role="img"' in picture and "currentColor" in picture and "<?xml" not in picture
        assert not has_chinese(Elements(picture).text), "no font with Chinese is needed"
        assert has_chinese(re.search('aria-label="(.*?)"', picture)[1]), "a screen reader may read Chinese"
    mistakes = Elements(pictures[0]).text
    assert mistakes.index("02.2 late_binding") < mistakes.index("02.1 no_handle")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_every_exercise_of_the_course_has_a_section():
    for lesson in exercises.lessons():
        assert sections(lesson).keys() == {e.id for e in of_lesson(lesson)}


# --- files for other systems ----------------------------------------------------------------------------------


def test_canvas_takes_the_file(graded):
    """The header, the row of points and the students' rows meet lib/gradebook_importer.rb of canvas-lms."""
    _, out = graded
    header, possible, *students = columns(out / "canvas.csv")
    assert not (out / "canvas.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert "Student" in header[0] and "ID" in header[1] and re.search(r"SIS\s+Login\s+ID", header[2])
    assert "Section" in header[3] and header[4:] == ["02 Tensor hooks"]
    assert "Points Possible" in possible[0] and possible[4:] == ["15"]
    assert len(students) == 7 and all(len(row) == 5 and float(row[4]) <= 15 for row in students)
    assert not [row for row in students if "Points Possible" in row[0]], "no student changes the points"
    assert ["", "", "Points Possible", "", "0"] in students


def test_moodle_takes_the_file(graded):
    """Every row has a user name, a number or "-", and the feedback for it."""
    _, out = graded
    header, *students = columns(out / "moodle.csv")
    assert header == ["Username", "02 Tensor hooks", "Feedback: 02 Tensor hooks"]
    assert len(students) == 7
    for name, points, feedback in students:
        assert name and 0 <= float(points) <= 100 and feedback


def test_gradescope_takes_the_files(graded):
    """The files have the fields of the "Autograder Specifications"; the output of a test is what the student reads."""
    _, out = graded
    files = list((out / "gradescope").glob("*/02/results.json"))
    assert len(files) == 7
    results = {path.parts[-3]: json.loads(path.read_text(encoding="utf-8")) for path in files}
    for result in results.values():
        assert result.keys() == {"score", "execution_time", "output", "output_format", "tests", "extra_data"}
        for test in result["tests"]:
            assert test["status"] == ("passed" if test["score"] == test["max_score"] else "failed")
            assert test["output_format"] == "text" and test["output"]
    assert [t["number"] for t in results["ann"]["tests"]] == [e.id for e in of_lesson("02")]
    assert results["ann"]["score"] == 15 and results["ann"]["output"] == ""
    assert "ended after 5 seconds" in results["endless"]["output"]


# --- one verdict explained, and the commands ------------------------------------------------------------------


def explained(who, folder, out):
    shown = io.StringIO()
    verdict = explain(who, folder, out, LIMITS, console=Console(file=shown, width=200))
    return verdict, shown.getvalue()


def test_a_verdict_repeats_from_its_seed_with_observations_against_expectations(graded):
    folder, out = graded
    before = {path: path.read_bytes() for path in out.glob("grades.*")}
    verdict, shown = explained("李雷/02.2", folder, out)
    assert verdict.message_id == "late_binding" and "The same as in the gradebook" in shown
    failed = {c.id for c in verdict.criteria if not c.passed}
    assert "sees" in failed and {"✗ sees", "✓ handle"} <= {
        line.partition(":")[0] for line in shown.splitlines()
    }
    assert str(verdict.failed.expected) in shown and str(verdict.failed.got) in shown
    assert "observed" in shown and "late_binding" in shown
    assert {path: path.read_bytes() for path in out.glob("grades.*")} == before, "nothing is written"


@pytest.mark.parametrize(
    ("who", "says"),
    [
        ("empty/02.1", "no run of `empty/02.1` to repeat: unreadable"),
        ("Points Possible/02.1", "no run of `Points Possible/02.1` to repeat: not attempted"),
        ("ana/02.1", "The nearest: `ann`"),
        ("ann", "STUDENT/EXERCISE"),
        ("ann/02.9", "no exercise `02.9`"),
    ],
)
def test_what_cannot_be_explained_is_reported(graded, who, says):
    with pytest.raises(CourseError, match=re.escape(says)):
        explained(who, *graded)


def test_a_file_that_changed_or_went_is_not_explained(graded, tmp_path):
    folder, out = graded
    shutil.copytree(folder / "ann", tmp_path / "class" / "ann")
    with pytest.raises(CourseError, match="does not hold `李雷/"):
        explained("李雷/02.2", tmp_path / "class", out)
    nb.hand_in(tmp_path / "class" / "ann" / FILE, nb.handed_out())
    with pytest.raises(CourseError, match="has changed since it was graded"):
        explained("ann/02.2", tmp_path / "class", out)


def test_the_commands_report_and_adjust(graded, tmp_path):
    """Write everything again, from a copy of grades.db alone, with `last` instead of `best`."""
    _, out = graded
    shutil.copy(out / "grades.db", tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, [*map(str, arguments)])

    done = run("adjust", tmp_path, "ann/02.1", "1", "--reason", "<b>why</b>")
    assert done.exit_code == 0 and "ann/02.1 now has 1 of 3 points" in done.output
    done = run("report", tmp_path, "--attempt", "last", "--late", "none")
    assert done.exit_code == 0 and "report.html" in done.output
    page = page_of(tmp_path, "ann")
    assert "&lt;b&gt;why" in page and f"{LOOKS[Outcome.CORRECT][2].en}" in page
    assert "taken off" not in page_of(tmp_path, LATE)
    assert "ann/02.1 now has 3 of 3 points" in run("adjust", tmp_path, "ann/02.1", "--undo").output


def test_somebody_who_handed_in_nothing_can_be_credited(graded, tmp_path):
    shutil.copy(graded[1] / "grades.db", tmp_path)

    def run(*arguments):
        return CliRunner().invoke(app, ["adjust", str(tmp_path), *arguments])

    refused = run("zoe/02", "7", "--reason", "was ill")
    assert "--new" in str(refused.exception)
    done = run("zoe/02", "7", "--reason", "was ill", "--new")
    assert done.exit_code == 0 and "zoe/02 now has 7 of 15 points" in done.output
    assert run("zoe/02.1", "2", "--reason", "on paper", "--new").exit_code == 0
    with contextlib.closing(Gradebook(tmp_path)) as book:
        (grade,) = book.grades("zoe")
        assert (grade.points, grade.row.status) == (7, Status.NO_NOTEBOOK)
        # What she hands in later counts.
        later = replace(grade.row, source="zoe/02.ipynb", status=Status.GRADED, submitted=datetime.now(UTC))
        book.save(later)
        assert [g.counts for g in book.grades("zoe") if g.row.source == later.source] == [True]


def test_a_student_who_is_forgotten_is_nowhere_in_the_folder(graded, tmp_path):
    """No file contains the name, although there were pages, adjustments, and a deleted row that SQLite had kept."""
    shutil.copytree(graded[1], tmp_path, dirs_exist_ok=True)
    name = "李雷"
    with contextlib.closing(sqlite3.connect(tmp_path / "grades.db")) as connection, connection:
        connection.execute("PRAGMA secure_delete = OFF")  # some builds of SQLite enable it by default
        connection.execute("INSERT INTO rules VALUES ('late', ?, '')", (name * 100,))
        connection.execute("DELETE FROM rules WHERE lesson = ?", (name * 100,))
    with contextlib.closing(Gradebook(tmp_path)) as book:
        before = {grade.row.source: grade for grade in book.grades() if grade.row.student != name}
        pages.forget(book, name)
        assert {grade.row.source: grade for grade in book.grades()} == before
    for path in tmp_path.rglob("*"):
        assert name not in path.name
        assert not path.is_file() or name.encode() not in path.read_bytes(), path
    assert f"{name}.html" in {path.name for path in (graded[1] / "feedback").iterdir()}, "it would be noticed"


def test_the_last_student_can_be_forgotten_and_nobody_else(graded, tmp_path):
    shutil.copy(graded[1] / "grades.db", tmp_path)
    with contextlib.closing(Gradebook(tmp_path)) as book:
        with pytest.raises(CourseError, match="The nearest: `ann`"):
            pages.forget(book, "an")
        *others, last = book.students()
        for student in others:
            pages.forget(book, student)
        (tmp_path / "report.html").touch()  # so that the pages are updated
        pages.forget(book, last)
        assert list(book.grades()) == [] and columns(tmp_path / "canvas.csv")[1:] == [
            ["Points Possible", "", "", ""]
        ]
    done = CliRunner().invoke(app, ["forget", str(tmp_path), "ann"])
    assert isinstance(done.exception, CourseError) and "no student `ann`" in str(done.exception)


def test_a_name_typed_in_the_other_form_of_unicode_is_forgotten(tmp_path):
    with contextlib.closing(Gradebook(tmp_path)) as book:
        book.save(nothing_handed_in("Zo\u00eb", catalog.find("02")))
        done = CliRunner().invoke(app, ["forget", str(tmp_path), "Zoe\u0308"])
        assert done.exit_code == 0 and book.students() == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ann/02.1", "2"], "a reason"),
        (["ann/02.1", "--reason", "x"], "a reason"),
        (["ann/02.1", "2", "--reason", "x", "--undo"], "a reason"),
        (["ann/02.1", "4", "--reason", "x"], "between 0 and 3"),
        (["ann/02.1", "nan", "--reason", "x"], "between 0 and 3"),
    ],
)
def test_points_that_cannot_be_set_are_said(graded, tmp_path, arguments, says):
    shutil.copy(graded[1] / "grades.db", tmp_path)
    done = CliRunner().invoke(app, ["adjust", str(tmp_path), *arguments])
    assert isinstance(done.exception, CourseError) and says in str(done.exception)
    with contextlib.closing(Gradebook(tmp_path)) as book:
        assert not [m for g in book.grades("ann") for m in g.adjusted]
