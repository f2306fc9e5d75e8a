"""Reading folders and zips as they come from a class: layouts, names, times, and damaged or hostile archives."""

import datetime
import os
import shutil
import stat
import zipfile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookedu.catalog import CourseError
from hookedu.grading import files as filing
from hookedu.grading.cleaning import clean_name
from hookedu.grading.collect import collect
from hookedu.grading.found import MAX_BYTES
from hookedu.grading.rows import Status, Unreadable

PLAIN = ["ann/02_tensor_hooks.ipynb", "bob/02_tensor_hooks.ipynb"]
NBGRADER = ["submitted/ann/ps1/02_tensor_hooks.ipynb", "submitted/bob/ps1/02_tensor_hooks.ipynb"]
NOISE = [
    *("ann/.ipynb_checkpoints/02_tensor_hooks-checkpoint.ipynb", "ann/.hidden.ipynb", ".git/x/y.ipynb"),
    *("__MACOSX/ann/._02_tensor_hooks.ipynb", "ann/data.csv", "ann/venv/lib/python/site-packages/x.ipynb"),
]


def folder_of(path, names):
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(name.encode())
    return path


def zip_of(path, names):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, name.encode())
    return path


def seen(path):
    return [(s.student, s.source) for s in collect(path)[0]]


def reason(path, number=0):
    with pytest.raises(Unreadable) as caught:
        collect(path)[0][number].read()
    return caught.value.says.en


@pytest.mark.parametrize("names", [PLAIN, NBGRADER, [*NBGRADER, "source/ps1/02_tensor_hooks.ipynb"]])
def test_every_layout_as_folder_and_as_zip(tmp_path, names):
    folder = folder_of(tmp_path / "class", [*names, *NOISE])
    expected = [(s, f"{s}/{'' if names is PLAIN else 'ps1/'}02_tensor_hooks.ipynb") for s in ("ann", "bob")]
    assert seen(folder) == expected
    assert seen(zip_of(tmp_path / "a.zip", [*names, *NOISE])) == expected
    # As a file manager zips a folder: everything below the folder's own name.
    wrapped = [f"class/{name}" for name in [*names, *NOISE]]
    assert seen(zip_of(tmp_path / "class.zip", wrapped)) == expected
    if names is not PLAIN:
        assert seen(folder / "submitted") == expected
    assert collect(folder)[0][0].read() == names[0].encode()
    assert collect(tmp_path / "a.zip")[0][0].read() == names[0].encode()


def test_notebooks_outside_a_students_folder_are_named(tmp_path):
    found, outside, aside = collect(folder_of(tmp_path, [*PLAIN, "key.ipynb", "ann/cat.jpg", "roster.csv"]))
    assert len(found) == 2 and outside == ["key.ipynb"] and aside == ["ann/cat.jpg"]


def test_a_student_without_a_notebook_is_a_row_that_says_what_was_found(tmp_path):
    folder = folder_of(
        tmp_path, [*PLAIN, "dora/answers.pdf", "dora/old/x.py", "eve/.ipynb_checkpoints/02.ipynb"]
    )
    (folder / "carl" / "hw").mkdir(parents=True)
    found = {s.student: s for s in collect(folder).submissions}
    assert found.keys() == {"ann", "bob", "carl", "dora", "eve"}
    for student, said in (
        ("carl", "nothing was handed in"),
        ("dora", "no notebook, only: `dora/answers.pdf`, `dora/old/x.py`"),
        ("eve", "nothing was handed in"),
    ):
        assert found[student].source == student
        with pytest.raises(Unreadable) as caught:
            found[student].read()
        assert (caught.value.says.en, caught.value.status) == (said, Status.NO_NOTEBOOK)


def test_nothing_to_grade_is_reported(tmp_path):
    (tmp_path / "text.zip").write_text("no zip")
    zip_of(tmp_path / "empty.zip", [])
    folder_of(tmp_path / "loose", ["x.ipynb"])
    for name, said in (
        ("missing", "There is no"),
        ("text.zip", "neither a folder nor a zip"),
        ("empty.zip", "no notebooks to grade"),
        ("loose", "no notebooks to grade"),
    ):
        with pytest.raises(CourseError) as caught:
            collect(tmp_path / name)
        assert said in caught.value.says[0].en and name in caught.value.says[0].zh


def test_a_folder_that_cannot_be_opened_is_reported(tmp_path):
    with pytest.raises(filing.OutOfReach, match="cannot be opened: File name too long"):
        collect(tmp_path / ("x" * 300))
    (tmp_path / "gone").mkdir()  # a share that drops out after it was looked at
    with pytest.raises(filing.OutOfReach, match="gone` cannot be opened"):
        files = filing.find(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        list(files)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CourseError, match="neither a folder nor a zip"):
        collect(tmp_path / "pipe")


def test_a_path_longer_than_the_system_takes_costs_its_student_alone(tmp_path, monkeypatch):
    folder = folder_of(tmp_path / "class", [*PLAIN, "mallory/notes.txt"])
    monkeypatch.chdir(folder / "mallory")
    for _ in range(20):  # made from within, as a student's own machine would
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    os.close(os.open("02.ipynb", os.O_CREAT))
    assert [student for student, _ in seen(folder)] == ["ann", "bob", "mallory"]
    assert reason(folder, 2) == "reading failed: File name too long"


def test_the_gradebook_does_not_lie_among_the_students(tmp_path):
    """Its feedback and gradescope would be students there, and `--watch` would find its own files new for ever."""
    folder = folder_of(tmp_path / "class", PLAIN)
    (tmp_path / "link").symlink_to(folder)
    for out in (folder, tmp_path / "link", folder / "ann" / ".."):
        with pytest.raises(CourseError, match=r"is the folder of the submissions.*/grades`"):
            collect(folder, out)


def test_links_pipes_and_giants_are_rows_with_a_reason(tmp_path):
    folder = folder_of(tmp_path / "class", PLAIN)
    secret = tmp_path / "secret.ipynb"
    secret.write_text("secret")
    (folder / "a1").mkdir()
    (folder / "a1" / "02.ipynb").symlink_to(secret)
    (folder / "a2").mkdir()
    os.mkfifo(folder / "a2" / "02.ipynb")
    (folder / "a3").mkdir()
    with open(folder / "a3" / "02.ipynb", "wb") as giant:
        giant.truncate(MAX_BYTES + 1)
    (folder / "a4").symlink_to(folder / "bob")
    assert [student for student, _ in seen(folder)] == ["a1", "a2", "a3", "a4", "ann", "bob"]
    assert [reason(folder, n) for n in range(4)] == [
        "this is a link, not a file; links are not followed",
        "this is not an ordinary file",
        "the file is larger than 256 MiB and was not read",
        "this is a link, not a file; links are not followed",
    ]


def test_paths_that_would_escape_are_rows_and_change_no_other(tmp_path):
    bad = ["../../x/02.ipynb", "/etc/02.ipynb", "c:/x/02.ipynb", "a\\..\\02.ipynb", "./b/02.ipynb"]
    path = zip_of(tmp_path / "class.zip", [*[f"class/{name}" for name in PLAIN], *bad])
    found = collect(path)[0]
    assert len(found) == 7
    good = [s for s in found if s.student in ("ann", "bob")]
    assert [s.source for s in good] == PLAIN and good[0].read() == b"class/" + PLAIN[0].encode()
    for submission in found:
        if submission not in good:
            with pytest.raises(Unreadable, match="not allowed"):
                submission.read()


def test_bombs_links_locks_and_damage_in_a_zip(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    monkeypatch.setattr("hookedu.grading.found.MAX_BYTES", 2**20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/02.ipynb", bytes(2**20 + 1))
        link = zipfile.ZipInfo("b/02.ipynb")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("c/02.ipynb", b"damaged" * 100, zipfile.ZIP_STORED)
        archive.writestr("d/02.ipynb", b"locked")
        archive.writestr("e/02.ipynb", b"fine")
        archive.writestr("f/02.ipynb", b"{}", zipfile.ZIP_LZMA)
    data = path.read_bytes().replace(b"damageddamaged", b"damagedDAMAGED", 1)
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(b"d/02.ipynb"))
    data = data[: at + 8] + bytes([data[at + 8] | 1]) + data[at + 9 :]  # the flag "encrypted"
    path.write_bytes(data)
    assert path.stat().st_size < 100_000
    assert "larger than" in reason(path, 0)
    assert "link" in reason(path, 1)
    assert "CRC" in reason(path, 2)
    assert "protected by a password" in reason(path, 3)
    assert "compressed in a way" in reason(path, 5)
    assert collect(path)[0][4].read() == b"fine"


def test_a_zip_of_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(filing, "MAX_MEMBERS", 1)
    with pytest.raises(CourseError, match="at most 1"):
        collect(zip_of(tmp_path / "a.zip", PLAIN))


def test_chinese_names_from_windows_are_read(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("XXXX/02.ipynb", b"")
    path.write_bytes(path.read_bytes().replace(b"XXXX", "张三".encode("gbk")))
    assert seen(path) == [("张三", "张三/02.ipynb")]


def test_hostile_names_are_made_harmless(tmp_path):
    folder = folder_of(tmp_path, ["a\nb\x1b[31m/02.ipynb"])
    os.makedirs(os.fsencode(folder) + b"/\xff\xfe")
    with open(os.fsencode(folder) + b"/\xff\xfe/02.ipynb", "wb"):
        pass
    assert [student for student, _ in seen(folder)] == [r"\udcff\udcfe", r"a\nb\x1b[31m"]


@pytest.mark.parametrize("name", ["علی‌رضا", "श्री‍मान", "O'Neill", "小明 (1)", "é", "é"])
def test_names_stay_as_they_are(tmp_path, name):
    (found,) = collect(folder_of(tmp_path, [f"{name}/02.ipynb"])).submissions
    assert (found.student, found.source) == (name, f"{name}/02.ipynb")


@given(st.text(), st.text())
@example("a\x07", "a\x08")
@example("a\x07", r"a\x07")
@example("\udcff", "\ufffd")
def test_two_names_never_become_one(one, other):
    assert (clean_name(one) == clean_name(other)) == (one == other)
    assert all(c.isprintable() or c in "\u200c\u200d\u3000" for c in clean_name(one))


# --- the time of submission ------------------------------------------------------------------------------------

DAY = datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)


def stamped(folder, layout, stamp):
    path = folder / layout
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    path.with_name("timestamp.txt").write_text(stamp)
    os.utime(path, (DAY.timestamp(), DAY.timestamp()))
    return folder


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2015-02-02 14:58:23.948203 America/Los_Angeles\n", "2015-02-02T22:58:23"),
        ("2015-02-02 14:58:23 UTC", "2015-02-02T14:58:23"),
        ("2015-02-02 14:58:23", "2015-02-02T14:58:23"),
        ("0001-01-01 00:00:00 Asia/Shanghai", "2026-12-01T00:00:00"),  # out of range in UTC
        ("2015-02-02 14:58:23 ../../etc/passwd", "2026-12-01T00:00:00"),
        ("\xff" * 1000, "2026-12-01T00:00:00"),
    ],
)
def test_nbgraders_timestamp_counts_before_the_files_own_time(tmp_path, stamp, expected):
    folder = stamped(tmp_path / "course", "submitted/ann/ps1/02.ipynb", stamp)
    for place in (folder, folder / "submitted"):
        (submission,) = collect(place)[0]
        assert submission.submitted().isoformat()[:19] == expected


def test_a_timestamp_in_a_plain_layout_may_be_the_students_own(tmp_path):
    (submission,) = collect(stamped(tmp_path / "class", "ann/02.ipynb", "2015-02-02 14:58:23 UTC"))[0]
    assert submission.submitted() == DAY


@pytest.mark.parametrize(
    "path",
    [
        "class/ann/submitted/02.ipynb",
        "class/ann/submitted/ps1/02.ipynb",
        "class/ann/a+b+2020-01-01 00:00:00 UTC/02.ipynb",
        "class/submitted/ann/ps1/mine/02.ipynb",
    ],
)
def test_a_folder_that_a_student_named_makes_no_timestamp_nbgraders(tmp_path, path):
    around, inside = path.split("/", 1)
    folder = stamped(tmp_path / around, inside, "2015-02-02 14:58:23 UTC")
    (tmp_path / around / "bob").mkdir(exist_ok=True)
    (tmp_path / around / "bob" / "02.ipynb").write_text("{}")
    mine = next(s for s in collect(folder)[0] if s.student == "ann")
    assert mine.submitted() == DAY


def test_the_times_in_a_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("ann/02.ipynb", (2026, 12, 1, 8, 30, 0)), "{}")
        archive.writestr(zipfile.ZipInfo("bob/02.ipynb", (2026, 0, 0, 0, 0, 0)), "{}")
    with zipfile.ZipFile(tmp_path / "nbgrader.zip", "w") as archive:
        archive.writestr("submitted/ann/ps1/02.ipynb", "{}")
        archive.writestr("submitted/ann/ps1/timestamp.txt", "2015-02-02 14:58:23 UTC")
    ann, bob = collect(tmp_path / "class.zip")[0]
    assert ann.submitted() == datetime.datetime(2026, 12, 1, 8, 30).astimezone() and bob.submitted() is None
    assert collect(tmp_path / "nbgrader.zip")[0][0].submitted().isoformat() == "2015-02-02T14:58:23+00:00"


def test_the_gradebook_within_the_folder_is_nobodys(tmp_path):
    folder = tmp_path / "class"
    for name in ("hw2/ann/02.ipynb", "hw2/bob/02.ipynb", "grades/feedback/ann.html", "grades/grades.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    (tmp_path / "link").symlink_to(folder / "grades")
    for out in (folder / "grades", folder / "hw2" / ".." / "grades", tmp_path / "link"):
        assert [(s.student, s.source) for s in collect(folder, out).submissions] == [
            ("ann", "ann/02.ipynb"),
            ("bob", "bob/02.ipynb"),
        ]


def test_a_students_link_to_the_gradebook_hides_nobody_and_the_instructors_is_nobodys(tmp_path):
    folder, away = tmp_path / "class", tmp_path / "away"
    away.mkdir()
    for name in ("ann/02.ipynb", "grades/grades.csv"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("{}")
    (folder / "mallory").symlink_to(folder / "grades")
    assert {s.student for s in collect(folder, folder / "grades").submissions} == {"ann", "mallory"}
    (folder / "mallory").unlink()
    (folder / "elsewhere").symlink_to(away)
    shutil.rmtree(folder / "grades")
    assert {s.student for s in collect(folder, folder / "elsewhere").submissions} == {"ann"}
