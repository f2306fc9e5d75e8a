"""What the gradebook stores and which points count: attempts, late work, points set by hand, older files.

The rows are constructed here; tests/grading/test_batch.py tests how submissions become rows.
"""

import contextlib
import csv
import datetime
import sqlite3
import time
from dataclasses import replace

import pytest

from hookedu.catalog import CourseError
from hookedu.exercises.feedback import Feedback
from hookedu.grading.book import grades, opening
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.book.grades import Rules, address
from hookedu.grading.book.schema import VERSION
from hookedu.grading.out import exports, pages
from hookedu.grading.out.exports import file_names, write_csv
from hookedu.grading.rows import Result, Row, Status
from hookedu.language import Text

UTC = datetime.UTC
DAY = datetime.datetime(2026, 12, 1, tzinfo=UTC)
SAYS = Feedback(((Text(zh="输入", en="Input"), "x"),), "line 1\nE: no", (Text(zh="错", en="wrong"),))


def row(student="ann", points=3, sha="a", hours=0.0, source=None, lesson="02", status=Status.GRADED, **more):
    """Return the row of a submission made `hours` after DAY."""
    results = (
        Result("02.1", "correct", 3, points=points, seed=7, feedback=SAYS),
        Result("02.2", "lost", 3),
    )
    submitted = DAY + datetime.timedelta(hours=hours)
    values = {
        "max_points": 6,
        "results": results,
        "submitted": submitted,
        "notes": (Text(zh="注", en="note"),),
    }
    source = source or f"{student}/02.ipynb"
    return Row(source, student, lesson, sha, status, seconds=1.5, **values | more)


@pytest.fixture
def book(tmp_path):
    with contextlib.closing(Gradebook(tmp_path)) as book:
        yield book


def counting(book, student="ann"):
    (found,) = (grade for grade in book.grades(student) if grade.counts)
    return found


# --- attempts -------------------------------------------------------------------------------------------------


def test_what_is_saved_comes_back_whole(book):
    book.save(row())
    (grade,) = book.grades()
    assert grade.row == row(attempt=1)
    assert (grade.points, grade.attempts, grade.counts, grade.penalty) == (3, 1, True, 0)


def test_every_attempt_is_kept_and_a_new_look_at_the_same_bytes_is_none(book):
    for sha, points in (("a", 2), ("b", 3), ("b", 1)):  # the last one as with --again
        book.save(row(sha=sha, points=points))
    assert [(g.row.attempt, g.row.sha256, g.points, g.counts) for g in book.grades()] == [
        (1, "a", 2, False),
        (2, "b", 1, True),
    ]
    assert book.graded() == {"ann/02.ipynb": "b"}


def test_a_file_that_could_not_be_read_is_no_attempt_once_it_can(book):
    book.save(row(sha="a"))
    book.save(row(sha="", status=Status.UNREADABLE, results=()))
    assert book.graded() == {"ann/02.ipynb": ""}, "so that it is tried again"
    book.save(row(sha="a"))
    assert [g.row.sha256 for g in book.grades()] == ["a", "a"] and counting(book).points == 3


@pytest.mark.parametrize("status", Status)
def test_what_the_machine_may_have_caused_does_not_stand(book, status):
    book.save(row(status=status))
    machine = (Status.GRADER_ERROR, Status.TIMEOUT, Status.OUT_OF_MEMORY)
    assert bool(book.graded()) is (status not in machine)


@pytest.mark.parametrize(("rule", "points"), [("last", 1), ("best", 3)])
def test_last_or_best(book, rule, points):
    book.save(row(points=3, hours=1, source="ann/02 first.ipynb"))
    book.save(row(points=1, hours=2, source="ann/02.ipynb"))
    book.change_rules(Rules.of_options(rule, (), ()))
    assert counting(book).points == points and counting(book).attempts == 2
    (remark,) = book.remarks({})
    assert "ann" in remark.en and rule in remark.en and "--attempt" in remark.en


def test_last_is_what_lies_there_now_even_where_its_time_is_older(book):
    book.save(row(sha="a", points=3, hours=2))
    book.save(row(sha="b", points=1, hours=1))
    assert counting(book).points == 1 and book.remarks({}) == [], "one file: nothing to choose"


def test_a_folder_with_a_new_name_is_reported_with_what_stays_behind(book):
    for student, sha in (("bob", "b"), ("bobby", "b"), ("ann", "a"), ("eve", "a")):
        book.save(row(student, sha=sha))
    for student in ("carl", "carla"):  # neither has answered anything
        book.save(row(student, sha="stub", status=Status.NOT_ATTEMPTED))
    (said,) = book.remarks({}, {"bobby", "ann", "eve", "carla"})
    assert "`bobby` handed in exactly what the gradebook holds by `bob`" in said.en
    assert f'forget {book.folder} "bob"' in said.en and f'forget {book.folder} "bob"' in said.zh
    book.forget("bob")
    assert book.remarks({}, {"bobby", "ann", "eve", "carla"}) == []


def test_a_defect_of_the_grader_takes_no_grade_away(book):
    """With `--again` on a machine that cannot grade just now, a class would be left without grades."""
    assert book.save(row(points=3)).notes == row().notes
    failed = row(points=0, status=Status.GRADER_ERROR)
    assert book.save(failed).notes[-1].en == "the grade from before stands"
    assert counting(book).points == 3 and book.graded() == {"ann/02.ipynb": "a"}
    book.save(row(points=0, sha="b", status=Status.GRADER_ERROR))  # of another content nothing is known
    assert (counting(book).row.status, counting(book).row.attempt) == (Status.GRADER_ERROR, 2)
    book.save(row(points=2, sha="b"))
    assert (counting(book).points, counting(book).row.attempt) == (2, 2)


def test_a_lesson_that_changed_is_reported_once_with_the_remedy(book):
    for student in ("ann", "bob"):
        book.save(row(student, course="old"))
    book.save(row("eve", course="new"))
    (remark,) = book.remarks({"02": "new"})
    assert "submissions: 2" in remark.en and "--again" in remark.en and "2 份" in remark.zh
    assert "submissions: 1" in book.remarks({"02": "old"})[0].en and book.remarks({}) == []


# --- late work ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hours", "late", "penalty", "points"),
    [
        (0, "10%/day", 0, 3),  # exactly on time
        (0.1, "10%/day", 0.6, 2.4),  # a day begun counts as a whole one; 10% of the 6 points possible
        (24, "10%/day", 0.6, 2.4),
        (24.1, "10%/day", 1.2, 1.8),
        (1.5, "2.5%/hour", 0.3, 2.7),
        (48, "100%/day", 3, 0),  # never below 0
        (48, None, 0, 3),
    ],
)
def test_what_being_late_costs(book, hours, late, penalty, points):
    book.save(row(hours=hours))
    book.change_rules(Rules.of_options(None, [DAY.isoformat()], [late] if late else []))
    grade = counting(book)
    assert (grade.penalty, grade.points) == (penalty, points)
    assert grade.lateness == datetime.timedelta(hours=hours)


def test_a_lesson_may_have_rules_of_its_own_and_they_stay_until_changed(book, tmp_path):
    book.save(row(hours=1))
    book.change_rules(
        Rules.of_options(None, ["2026-12-01T00:00+00:00", "02=2026-12-02T00:00+00:00"], ["10%/day"])
    )
    assert counting(book).penalty == 0
    with contextlib.closing(Gradebook(tmp_path)) as again:
        again.change_rules(Rules.of_options("best", ["02=none"], []))
        assert counting(again).penalty == 0.6 and again.rules().of("attempt", "02") == "best"


@pytest.mark.parametrize(
    ("given", "due"),
    [
        ("2026-12-01", datetime.datetime(2026, 12, 1, 23, 59, 59).astimezone()),
        ("20261201", datetime.datetime(2026, 12, 1, 23, 59, 59).astimezone()),
        ("2026-W49-2", datetime.datetime(2026, 12, 1, 23, 59, 59).astimezone()),
        ("2026-12-01T18", datetime.datetime(2026, 12, 1, 18, 0, 59).astimezone()),
        ("2026-12-01T18:00", datetime.datetime(2026, 12, 1, 18, 0, 59).astimezone()),
        ("2026-12-01 18:00", datetime.datetime(2026, 12, 1, 18, 0, 59).astimezone()),
        ("2026-12-01T18:00:00", datetime.datetime(2026, 12, 1, 18, 0, 0).astimezone()),
        ("2026-12-01T18:00Z", datetime.datetime(2026, 12, 1, 18, 0, 59, tzinfo=datetime.UTC)),
        ("2026-12-01T18:00+08:00", datetime.datetime(2026, 12, 1, 10, 0, 59, tzinfo=datetime.UTC)),
    ],
)
def test_a_day_is_due_at_its_end_and_a_minute_lasts_sixty_seconds(book, given, due):
    book.change_rules(Rules.of_options(None, [given], ["10%/day"]))
    assert book.rules().of("due", "02") == due
    for late, microseconds in ((False, 999_999), (True, 1_000_000)):
        book.save(replace(row(sha=str(late)), submitted=due + datetime.timedelta(microseconds=microseconds)))
        assert bool(counting(book).lateness) is late


@pytest.mark.parametrize(("fraction", "penalty"), [(999_999, 0.6), (1_000_000, 1.2)])
def test_the_last_second_of_a_day_is_in_that_day_also_when_late(book, fraction, penalty):
    book.change_rules(Rules.of_options(None, [DAY.isoformat()], ["10%/day"]))
    book.save(replace(row(), submitted=DAY + datetime.timedelta(days=1, microseconds=fraction)))
    assert counting(book).penalty == penalty


@pytest.mark.parametrize(
    ("given", "due"),
    [
        ("2026-10-25T02:30", datetime.datetime(2026, 10, 25, 1, 30, 59, tzinfo=datetime.UTC)),  # twice
        ("2026-03-29T02:30", datetime.datetime(2026, 3, 29, 1, 30, 59, tzinfo=datetime.UTC)),  # never
        ("2026-10-25", datetime.datetime(2026, 10, 25, 22, 59, 59, tzinfo=datetime.UTC)),
    ],
)
def test_where_the_clocks_change_the_later_meaning_counts(book, monkeypatch, given, due):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        book.change_rules(Rules.of_options(None, [given], []))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert book.rules().of("due", "02") == due


def test_of_two_at_the_same_time_the_better_counts_and_a_later_fraction_of_a_second_is_later(book):
    when = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
    book.save(replace(row(points=3, source="ann/02 copy.ipynb"), submitted=when))
    book.save(replace(row(points=1, source="ann/02.ipynb"), submitted=when))
    assert counting(book).points == 3
    book.save(
        replace(row(points=1, source="ann/02.ipynb"), submitted=when + datetime.timedelta(milliseconds=1))
    )
    assert counting(book).points == 1


@pytest.mark.parametrize(
    ("attempt", "due", "late", "says"),
    [
        ("first", [], [], "`last` or `best`"),
        (None, ["tomorrow"], [], "no due date"),
        (None, ["99=2026-12-01"], [], "no lesson `99`"),
        (None, [], ["10"], "10%/day"),
        (None, ["2026-12-01"], ["101%/day"], "10%/day"),
        (None, [], ["10%/day"], "needs a due date"),
    ],
)
def test_a_rule_that_cannot_be_is_reported_and_changes_nothing(book, attempt, due, late, says):
    with pytest.raises(CourseError, match=says):
        book.change_rules(Rules.of_options(attempt, due, late))
    assert book.rules().texts == {}


# --- points set by hand ---------------------------------------------------------------------------------------


def test_points_set_by_hand_outlive_grading_again(book):
    book.save(row(points=1))
    book.adjust("ann", "02.1", 2.5, "told me why")
    for sha in ("a", "b"):
        book.save(row(points=0, sha=sha))
        grade = counting(book)
        assert (grade.points, grade.row.points) == (2.5, 0)
        assert [m.adjustment.reason for m in grade.adjusted] == ["told me why"]
    book.adjust("ann", "02.1", None, "")
    assert counting(book).points == 0 and counting(book).adjusted == ()


def test_a_result_that_was_lost_can_be_set_by_hand_too(book):
    book.save(row("ann"))
    book.save(row("bob"))
    book.adjust("ann", "02.2", 3, "on paper")
    assert (counting(book).points, counting(book, "bob").points) == (6, 3)


def test_a_whole_lesson_can_be_set_by_hand_lateness_and_all(book):
    book.save(row(hours=30))
    book.change_rules(Rules.of_options(None, [DAY.isoformat()], ["10%/day"]))
    assert counting(book).points == 1.8
    book.adjust("ann", "02", 5.5, "was ill")
    assert (counting(book).points, counting(book).penalty) == (5.5, 0)
    said = [text.en for text in exports.remarks(counting(book))]
    assert said == ["note", "the whole lesson set to 5.5 points by the instructor: was ill"]
    book.adjust("ann", "02", None, "")
    assert counting(book).points == 1.8


def test_setting_points_for_nobody_names_the_nearest(book):
    book.save(row("anna"))
    with pytest.raises(CourseError, match="`anna`"):
        book.adjust("ann", "02.1", 1, "x")
    with pytest.raises(CourseError, match="lesson 03"):
        book.adjust("anna", "03.1", 1, "x")
    assert counting(book, "anna").adjusted == ()


@pytest.mark.parametrize(
    ("text", "says"), [("ann", "ann/02.1"), ("/02.1", "ann/02.1"), ("ann/02.77", "nearest ids")]
)
def test_an_address_that_is_none(text, says):
    with pytest.raises(CourseError, match=says):
        address(text)
    assert address("a/b/02.1") == ("a/b", "02.1") and address("ann/02", lesson_too=True) == ("ann", "02")


def test_an_address_typed_in_the_other_form_of_unicode_is_the_same_student():
    assert address("Zoe\u0308/02.1") == address("Zo\u00eb/02.1") == ("Zo\u00eb", "02.1")


# --- the file -------------------------------------------------------------------------------------------------

VERSION_1 = """
CREATE TABLE submissions (
    source TEXT PRIMARY KEY, student TEXT NOT NULL, lesson TEXT NOT NULL, sha256 TEXT NOT NULL,
    status TEXT NOT NULL, points INTEGER NOT NULL, max_points INTEGER NOT NULL, seconds REAL NOT NULL,
    notes TEXT NOT NULL, graded_at TEXT NOT NULL, version TEXT NOT NULL
);
CREATE TABLE results (
    source TEXT NOT NULL REFERENCES submissions ON DELETE CASCADE, exercise TEXT NOT NULL,
    outcome TEXT NOT NULL, message_id TEXT NOT NULL, points INTEGER NOT NULL, max_points INTEGER NOT NULL,
    seed INTEGER, error TEXT NOT NULL, feedback TEXT NOT NULL, PRIMARY KEY (source, exercise)
);
INSERT INTO submissions VALUES ('ann/02.ipynb', 'ann', '02', 'a', 'killed', 3, 6, 1.5, '甲 · one' || char(10) || '乙 · two',
    '2026-01-01T00:00:00+00:00', '0.1.0');
INSERT INTO results VALUES ('ann/02.ipynb', '02.1', 'correct', 'correct', 3, 3, 7, '', '✓ 02.1');
INSERT INTO results VALUES ('ann/02.ipynb', '02.2', 'lost', '', 0, 3, NULL, '', '');
PRAGMA user_version = 1;
"""


def test_a_gradebook_of_version_1_is_brought_up_to_date(tmp_path):
    old = sqlite3.connect(tmp_path / "grades.db")
    old.executescript(VERSION_1)
    old.close()
    with contextlib.closing(Gradebook(tmp_path)) as book:
        (grade,) = book.grades()
        assert [note.en for note in grade.row.notes] == ["one", "two"] and grade.row.submitted is None
        assert [(r.exercise, r.points, r.seed) for r in grade.row.results] == [
            ("02.1", 3, 7),
            ("02.2", 0, None),
        ]
        assert grade.row.results[0].feedback.text() == "✓ 02.1"
        assert book.graded() == {"ann/02.ipynb": "a"}, "nothing is graded twice without need"
        book.save(row(sha="b"))
        assert counting(book).attempts == 2
    fresh = Gradebook(tmp_path / "fresh")
    shapes = [_shape(folder) for folder in (tmp_path, tmp_path / "fresh")]
    fresh.close()
    assert shapes[0] == shapes[1], "an old file and a new one hold the same tables"


def _shape(folder):
    with contextlib.closing(sqlite3.connect(folder / "grades.db")) as connection:
        tables = {n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        columns = {t: connection.execute(f"PRAGMA table_info({t})").fetchall() for t in tables}
        keys = {t: connection.execute(f"PRAGMA foreign_key_list({t})").fetchall() for t in tables}
        return connection.execute("PRAGMA user_version").fetchone(), columns, keys


def test_a_migration_that_fails_half_way_leaves_the_file_as_it_was(tmp_path):
    old = sqlite3.connect(tmp_path / "grades.db")
    old.executescript(VERSION_1 + "CREATE TABLE rules (mine TEXT);")  # conflicts with a later step
    old.close()
    before = (tmp_path / "grades.db").read_bytes()
    with pytest.raises(CourseError, match="is not a sound gradebook"):
        Gradebook(tmp_path)
    assert (tmp_path / "grades.db").read_bytes() == before and VERSION == 3


def test_a_newer_gradebook_is_refused_in_one_sentence(tmp_path):
    Gradebook(tmp_path).close()
    newer = sqlite3.connect(tmp_path / "grades.db")
    newer.executescript(f"PRAGMA user_version = {VERSION + 1}")
    newer.close()
    before = (tmp_path / "grades.db").read_bytes()
    with pytest.raises(CourseError) as caught:
        Gradebook(tmp_path)
    (said,) = caught.value.says
    assert f"version {VERSION + 1}" in said.en and "update hookedu" in said.en
    assert f"版本 {VERSION + 1}" in said.zh
    assert (tmp_path / "grades.db").read_bytes() == before


def test_a_gradebook_in_use_is_not_called_broken(book, monkeypatch, tmp_path):
    """It holds grades: who moved it away, as one does with a broken one, would lose them."""
    monkeypatch.setattr(opening, "_PATIENCE", 0.1)
    book.save(row("ann"))
    with contextlib.closing(sqlite3.connect(tmp_path / "grades.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CourseError, match="is in use by another program") as caught:
            Gradebook(tmp_path)
        other.execute("ROLLBACK")
    (said,) = caught.value.says
    assert "move it away" not in said.en and "移走" not in said.zh and "same command again" in said.en
    with contextlib.closing(Gradebook(tmp_path)) as again:
        assert again.students() == ["ann"]


def test_a_gradebook_that_cannot_be_opened_is_not_called_broken(tmp_path):
    (tmp_path / "grades.db").mkdir()  # root may write to any file, but not to a folder
    with pytest.raises(CourseError, match=r"cannot be read and written: .* permissions"):
        Gradebook(tmp_path)


def test_a_full_disk_costs_nothing_that_was_graded(book):
    book.save(row("ann"))
    pages = book._connection.execute("PRAGMA page_count").fetchone()[0]
    book._connection.execute(f"PRAGMA max_page_count = {pages}")  # simulates a full disk
    with pytest.raises(
        CourseError, match=r"full.*written before are still there.*run the same command again"
    ):
        for n in range(1000):
            book.save(row(f"student-{n}"))
    assert counting(book).points == 3


def test_there_is_no_gradebook_to_report_on(tmp_path):
    with pytest.raises(CourseError, match="hookedu grade"):
        Gradebook(tmp_path / "nowhere", create=False)
    assert not (tmp_path / "nowhere").exists()


def test_grades_csv_has_one_row_per_attempt_and_marks_the_one_that_counts(book):
    for sha in "ab":
        book.save(row("=ann", sha=sha, hours=1))
    book.adjust("=ann", "02.2", 2, "on paper")
    book.change_rules(Rules.of_options(None, [DAY.isoformat()], ["10%/day"]))
    write_csv(book)
    with open(book.csv, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["attempt"], r["counts"]) for r in rows] == [("1", "0"), ("2", "1")]
    last = rows[1]
    assert (last["points"], last["02.2"], last["late_penalty"]) == ("4.4", "2", "0.6")
    assert "on paper" in last["by_hand"] and last["student"] == "'=ann", "no formula"
    assert last["submitted_at"] == "2026-12-01T01:00:00+00:00"


def test_a_lesson_not_handed_in_is_no_grade_in_other_systems(book, tmp_path):
    book.save(row("ann"))
    book.save(
        row("ann", source="ann/01.ipynb", lesson="01", results=(Result("01.1", "correct", 4, points=4),))
    )
    book.save(row("bob"))
    book.save(row("bob", source="bob/what.ipynb", lesson="", status=Status.UNREADABLE, results=()))
    exports.write_canvas(tmp_path / "canvas.csv", book.grades())
    exports.write_moodle(tmp_path / "moodle.csv", book.grades())
    canvas, moodle = (
        list(csv.reader((tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines()))
        for name in ("canvas", "moodle")
    )
    assert canvas[0][4:] == ["01 Graph and leaves", "02 Tensor hooks"]
    assert [line[4:] for line in canvas[2:]] == [["4", "3"], ["", "3"]]
    assert [line[1::2] for line in moodle[1:]] == [["4", "3"], ["-", "3"]]


def table(path):
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def test_who_hands_in_after_all_is_no_longer_without_a_notebook(book):
    for student in ("ann", "bob", "bobby"):
        book.save(row(student, source=student, sha="", lesson="", status=Status.NO_NOTEBOOK, results=()))
    book.save(row("bob", source="bob/02.ipynb"))
    assert [(g.row.source, g.row.status) for g in book.grades()] == [
        ("ann", Status.NO_NOTEBOOK),
        ("bob/02.ipynb", Status.GRADED),
        ("bobby", Status.NO_NOTEBOOK),
    ]


def test_students_of_a_download_are_named_by_the_number_that_the_platform_knows(book, tmp_path):
    for student in ("Ada Lovelace (Moodle 123)", "李雷 (Moodle 7)", "lovelaceada (Canvas 45)", "ann"):
        book.save(row(student))
    grades = list(book.grades())
    exports.write_canvas(tmp_path / "canvas.csv", grades)
    ids = {line[0]: line[1:3] for line in table(tmp_path / "canvas.csv")[2:]}
    assert ids["lovelaceada"] == ["45", ""] and ids["ann"] == ["", "ann"]
    exports.write_moodle(tmp_path / "moodle.csv", grades)
    known = (tmp_path / "moodle.csv").read_text(encoding="utf-8")
    assert "Moodle" not in known and "Canvas" not in known, "one unknown name aborts the import"
    (path,) = exports.write_moodle_worksheets(tmp_path, grades)
    head, *lines = table(path)
    assert path.name == "moodle_02.csv" and head[2:4] == ["Grade", "Last modified (grade)"]
    assert [line[:4] for line in lines] == [
        ["Participant 123", "Ada Lovelace", "3", ""],
        ["Participant 7", "李雷", "3", ""],
    ]


@pytest.mark.parametrize("login", ["-ann", "+ann", "=ann", "@ann", "ann@school.edu", "王-1"])
def test_a_login_stays_as_it_is_so_that_it_is_found(book, tmp_path, login):
    book.save(row(login))
    exports.write_canvas(tmp_path / "canvas.csv", book.grades())
    exports.write_moodle(tmp_path / "moodle.csv", book.grades())
    assert table(tmp_path / "canvas.csv")[2][2] == table(tmp_path / "moodle.csv")[1][0] == login


@pytest.mark.parametrize("name", ['=HYPERLINK("x")', "+cmd|' /C calc'!A0", "@SUM(A1:A9)", "-2+3 cmd"])
def test_what_can_be_no_login_is_no_formula_either(book, tmp_path, name):
    book.save(row(name))
    exports.write_canvas(tmp_path / "canvas.csv", book.grades())
    exports.write_moodle(tmp_path / "moodle.csv", book.grades())
    assert table(tmp_path / "canvas.csv")[2][2] == table(tmp_path / "moodle.csv")[1][0] == f"'{name}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *[(f"{sign}1+1", f"'{sign}1+1") for sign in "=+-@＝＋－＠"],
        ("a = b  # ;=HYPERLINK(1)", "a = b  # ;'=HYPERLINK(1)"),  # where a semicolon separates fields
        ("x = 1; y = -x", "x = 1; y = -x"),
    ],
)
def test_no_part_of_a_field_is_a_formula(book, text, shown):
    book.save(row(text))
    exports.write_csv(book)
    with open(book.csv, encoding="utf-8-sig", newline="") as file:
        (last,) = csv.DictReader(file)
    assert last["student"] == shown


# --- names and points -----------------------------------------------------------------------------------------


def test_file_names_are_safe_and_no_two_the_same():
    hostile = [
        "../../etc/passwd",
        "..",
        "",
        "a/b",
        "a\\b",
        "a:b",
        "CON",
        "x" * 300,
        "李" * 300,
        ".hidden",
        "-rf",
        "<b>",
    ]
    names = file_names([*hostile, "ann", "Ann", "ann ", "李雷"])
    assert (names["ann"], names["李雷"]) == ("ann", "李雷"), "an ordinary name stays as it is"
    assert len({name.casefold() for name in names.values()}) == len(names)
    for name in names.values():
        assert (
            name and not set(name) & set('/\\:<>"|?*') and name[0] not in ".-" and len(name.encode()) <= 220
        )
        assert name.upper() != "CON"


def test_nobody_takes_the_file_name_of_another_by_its_hash():
    theirs = file_names(["阿迪力·买买提"])["阿迪力·买买提"]
    names = file_names([theirs, "阿迪力·买买提"])
    assert len(set(names.values())) == 2


def test_who_is_forgotten_leaves_no_page_of_an_earlier_name(tmp_path):
    with contextlib.closing(Gradebook(tmp_path)) as book:
        book.save(row("ann"))
        pages.write(book)
        book.save(row("Ann", sha="b"))  # where capitals do not count, the two need two names
        pages.write(book)
        pages.forget(book, "ann")
    for folder in ("feedback", "gradescope"):
        assert [path.stem for path in (tmp_path / folder).iterdir()] == ["Ann"]


def test_the_end_of_time_in_any_time_zone_is_shown(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert pages._when(datetime.datetime.max.replace(tzinfo=datetime.UTC)) == "9999-12-31 23:59 +0000"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_points_are_shown_without_needless_decimals():
    assert [grades.tidy(p) for p in (3.0, 2.5, 1 / 3, 0.1 + 0.2)] == [3, 2.5, 0.33, 0.3]
