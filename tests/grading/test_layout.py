"""Whose each file is, in every layout that a class comes in: one row for every student, and none lost."""

import io
import os
import time
import unicodedata
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookedu.grading import files as filing
from hookedu.grading import layout
from hookedu.grading.cleaning import clean_name
from hookedu.grading.collect import MAX_NOTEBOOKS, collect
from hookedu.grading.found import MAX_BYTES, NOISE, NOISE_FILES
from hookedu.grading.naming import is_nobody
from hookedu.grading.rows import Status, Unreadable
from tests.timing import cpu_seconds

NOTEBOOK = b'{"cells": [], "nbformat": 4}'
METADATA = """
submission_1:
  :submitters:
  - :name: Ada Lovelace
    :sid: '7'
    :email: ada@example.edu
  :created_at: 2026-11-01 10:00:00.000000000 Z
submission_2:
  :submitters:
  - {':name': 李雷, ':sid': '8'}
  - {':name': Bob}
submission_3: nonsense
"""


def zipped(names, **members):
    """Return the bytes of a zip; `names` hold notebooks, `members` their own bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, NOTEBOOK)
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def place(root, tree):
    """Make a folder of the files in `tree`: a list of names, or names with their bytes."""
    for name, data in (tree if isinstance(tree, dict) else dict.fromkeys(tree, NOTEBOOK)).items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return root


def packed(path, folder):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return path


LAYOUTS = {
    "plain": (["ann/02.ipynb", "bob/02.ipynb"], {"ann", "bob"}),
    "one student": (["ann/02.ipynb"], {"ann"}),
    "one student with folders": (["ann/hw1/02.ipynb", "ann/hw2/03.ipynb"], {"ann"}),
    "one student, one folder": (["ann/ps1/02.ipynb"], {"ann"}),
    "a task around": (["hw2/ann/02.ipynb", "hw2/bob/02.ipynb"], {"ann", "bob"}),
    "a task around one student": (["hw2/ann/02.ipynb"], {"ann"}),
    "submissions around": (["submissions/ann/02.ipynb", "submissions/bob/02.ipynb"], {"ann", "bob"}),
    "a lesson around": (["02_tensor_hooks/ann/a.ipynb", "02_tensor_hooks/bob/b.ipynb"], {"ann", "bob"}),
    "two around": (["hooks2026/week 3/ann/02.ipynb", "hooks2026/week 3/bob/02.ipynb"], {"ann", "bob"}),
    "a course's name around": (["DL-Autumn/ann/02.ipynb", "DL-Autumn/bob/02.ipynb"], {"ann", "bob"}),
    "Chinese names around": (["第3周作业/李雷/02.ipynb", "第3周作业/韩梅梅/02.ipynb"], {"李雷", "韩梅梅"}),
    "tasks, each with all": (["hw1/ann/02.ipynb", "hw1/bob/02.ipynb", "hw2/ann/03.ipynb"], {"ann", "bob"}),
    "list numbers": (["01_ann/hw/02.ipynb", "02_bob/hw/02.ipynb"], {"01_ann", "02_bob"}),
    "nbgrader": (["submitted/ann/ps1/02.ipynb", "source/ps1/02.ipynb", "release/ps1/02.ipynb"], {"ann"}),
    "nbgrader, with lectures beside": (
        ["submitted/ann/ps1/02.ipynb", "source/ps1/02.ipynb", "lectures/01.ipynb"],
        {"ann"},
    ),
    "somebody's folder is called so": (
        ["ann/02.ipynb", "bob/02.ipynb", "submitted/mine/02.ipynb"],
        {"ann", "bob", "submitted"},
    ),
    "somebody is called so in nbgrader": (
        ["submitted/ann/ps1/02.ipynb", "submitted/submitted/ps1/02.ipynb"],
        {"ann", "submitted"},
    ),
    "nbgrader, without tasks": (
        ["submitted/ann/02.ipynb", "submitted/bob/02.ipynb", "release/02.ipynb", "notes.ipynb"],
        {"ann", "bob"},
    ),
    "Canvas": (
        ["lovelaceada_12_345_02.ipynb", "leilei_LATE_13_346_hw-2.ipynb", "leilei_14_347_02.ipynb"],
        {"lovelaceada (Canvas 12)", "leilei (Canvas 13)", "leilei (Canvas 14)"},
    ),
    "Canvas, names with underscores": (
        [
            "lee_ann_123_4567_02.ipynb",
            "lee_bob_LATE_124_4568_ps_2_03.ipynb",
            "group_3_lei_125_4569_2026_11_02.ipynb",
        ],
        {"lee_ann (Canvas 123)", "lee_bob (Canvas 124)", "group_3_lei (Canvas 125)"},
    ),
    "Canvas, without names": (
        ["anon_xK3bz_4567_02.ipynb", "LATE_anon_9aBcD_4568_hw_1_2_.ipynb", "anon_9aBcD_4569_03.ipynb"],
        {"anon_xK3bz", "anon_9aBcD"},
    ),
    "dates are no numbers of Canvas": (
        ["li_lei_2026_11_02.ipynb", "han_mei_2026_11_02.ipynb"],
        {"li_lei_2026_11_02", "han_mei_2026_11_02"},
    ),
    "nbgrader, downloaded": (
        [f"downloaded/ps1/archive/{who}_456_02.ipynb" for who in ("ann_123", "bob_124")],
        {"ann (Canvas 123)", "bob (Canvas 124)"},
    ),
    "Canvas, in a folder": (["submissions/ada_12_345_02.ipynb"], {"ada (Canvas 12)"}),
    "Moodle, folders": (
        ["Ada Lovelace_123_assignsubmission_file_/02.ipynb", "Bob_124_assignsubmission_file/02.ipynb"],
        {"Ada Lovelace (Moodle 123)", "Bob (Moodle 124)"},
    ),
    "Moodle, files": (["Ada Lovelace_123_assignsubmission_file_02.ipynb"], {"Ada Lovelace (Moodle 123)"}),
    "Gradescope": (
        {f"assignment_9_export/submission_{n}/02.ipynb": NOTEBOOK for n in (1, 2, 3, 4)}
        | {"assignment_9_export/submission_metadata.yml": METADATA.encode()},
        {"Ada Lovelace (ada@example.edu)", "李雷 (8) & Bob", "submission_3", "submission_4"},
    ),
    "nbgrader's exchange": (
        [
            "inbound/ann+ps1+2026-11-01 10:00:00.5 UTC+Zm9v/02.ipynb",
            "inbound/ann+ps1+2026-11-02 10:00:00.5 UTC+YmFy/02.ipynb",
            "inbound/李雷+ps1+2026-11-02 10:00:00.5 UTC/02.ipynb",
        ],
        {"ann", "李雷"},
    ),
    "a zip for each": (
        {"ann.zip": zipped(["02.ipynb"]), "bob.ZIP": zipped(["hw/02.ipynb"])},
        {"ann", "bob"},
    ),
    "zips in students' folders": (
        {"hw/ann/all.zip": zipped(["02.ipynb"]), "hw/bob/02.ipynb": NOTEBOOK},
        {"ann", "bob"},
    ),
    "Canvas, zips": ({"ada_1_2_hw.zip": zipped(["02.ipynb", "03.ipynb"])}, {"ada (Canvas 1)"}),
    "a zip around": ({"submissions.zip": zipped(["ann/02.ipynb", "bob/02.ipynb"])}, {"ann", "bob"}),
    "Blackboard": (
        [
            f"Hooks_2_{who}_attempt_2026-11-0{n}-10-11-12_02.ipynb"
            for who, n in (("ann", 1), ("bob", 2), ("bob", 3))
        ],
        {"ann", "bob"},
    ),
    "Blackboard, logins with underscores": (
        [f"Hooks_{who}_lee_attempt_2026-11-01-10-11-12_02.ipynb" for who in ("ann", "bob")],
        {"ann_lee", "bob_lee"},
    ),
    "Blackboard, a file with another's name": (
        [
            f"Hooks_{who}_attempt_2026-11-01-10-11-12_Hooks_bob_attempt_2026-11-09-10-11-12_02.ipynb"
            for who in ("ann", "bob")
        ],
        {"ann", "bob"},
    ),
    "Blackboard, a zip of one": (
        {"Hooks_ann_attempt_2026-11-01-10-11-12_all.zip": zipped(["02.ipynb"])},
        {"ann"},
    ),
    "Brightspace": (
        [
            "Hooks/12-345 - Ada Lovelace - Nov 1, 2026 1011 AM/02.ipynb",
            "Hooks/12-345 - Ada Lovelace - Nov 2, 2026 911 AM/02.ipynb",
            "Hooks/13-346 - 李雷 - 1 November, 2026 2311/02.ipynb",
        ],
        {"Ada Lovelace (Brightspace 12)", "李雷 (Brightspace 13)"},
    ),
    "Teams": (
        [
            "Student Work/Submitted files/Ada/Hooks/Version 2/02.ipynb",
            "Student Work/Submitted files/Bob/Hooks/02.ipynb",
        ],
        {"Ada", "Bob"},
    ),
    "Teams in Chinese": (
        ["已提交的文件/李雷/作业2/02.ipynb", "已提交的文件/Bob/作业2/02.ipynb"],
        {"李雷", "Bob"},
    ),
    "Sakai": (
        [f"Hooks/{who}/Submission attachment(s)/02.ipynb" for who in ("Lee, Ann(annlee)", "K, Bob(bobk)")],
        {"Lee, Ann(annlee)", "K, Bob(bobk)"},
    ),
    "sections": (
        ["Section A/ann/02.ipynb", "Section A/bob/02.ipynb", "Section B/eve/02.ipynb"],
        {"ann", "bob", "eve"},
    ),
    "one name in two sections": (
        ["计算机1班/李雷/02.ipynb", "计算机2班/李雷/02.ipynb", "计算机2班/Bob/02.ipynb"],
        {"李雷 (计算机1班)", "李雷 (计算机2班)", "Bob"},
    ),
    "initials": (["A-K/Ada/02.ipynb", "A-K/Bob/02.ipynb", "L-Z/Lea/02.ipynb"], {"Ada", "Bob", "Lea"}),
    "files in a task": (["hw2/ann.ipynb", "hw2/Bob Lee (1).ipynb", "hw3/ann.ipynb"], {"ann", "Bob Lee"}),
    "files in lessons": (
        [
            "02_tensor_hooks/李雷.ipynb",
            "02_tensor_hooks/ann_02_tensor_hooks.ipynb",
            "03_changing_gradients/03-ann.ipynb",
        ],
        {"李雷", "ann"},
    ),
    "files alone": (["ann_02_tensor_hooks.ipynb", "02_tensor_hooks - Bob Lee.ipynb"], {"ann", "Bob Lee"}),
    "files with the task in their names": (
        [
            "hw2/ann hw2.ipynb",
            "hw3/ann_hw3_final.ipynb",
            "hw2/第2次作业-李雷.ipynb",
            "hw3/李雷第三课-Copy1.ipynb",
        ],
        {"ann", "李雷"},
    ),
    "files with the numbers of students": (
        ["hw2/20230001.ipynb", "hw2/20230002_02_tensor_hooks.ipynb", "hw3/1003.ipynb", "hw3/2 ann.ipynb"],
        {"20230001", "20230002", "1003", "2 ann"},
    ),
    "files of groups": (
        ["Group 1/ann.ipynb", "Group 1/bob.ipynb", "Group 2/02.ipynb"],
        {"Group 1", "Group 2"},
    ),
    "a group that hands in for others": (
        [
            "Group 1/ann/02.ipynb",
            "Group 1/bob/02.ipynb",
            "Group 1/02.ipynb",
            "Group 2/02.ipynb",
            "Group 2/old/02.ipynb",
        ],
        {"Group 1", "Group 2"},
    ),
    "a student that hands in for others": (
        ["Day/Ann Lee.ipynb", "Day/bob.ipynb", "Ann Lee/02.ipynb", "bob/02.ipynb"],
        {"Day", "Ann Lee", "bob"},
    ),
    "Google Classroom": (
        [
            f"Classroom/CS101/Homework 2/{who} - 02_tensor_hooks.ipynb"
            for who in ("Jane Doe", "Bob Lee", "李雷")
        ],
        {"Jane Doe", "Bob Lee", "李雷"},
    ),
    "one name in two forms of Unicode": (["Zoe\u0308/02.ipynb", "Zo\u00eb/03.ipynb"], {"Zo\u00eb"}),
    "zips in zips": (
        {
            "class.zip": zipped(
                [], **{"ann.zip": zipped([], **{"hw.zip": zipped(["02.ipynb"])}), "b/2.ipynb": b""}
            )
        },
        {"ann", "b"},
    ),
}


# The students' files, what lies beside them, and of that the notebooks: they are told, and hide no student.
BESIDE = {
    "a solution": (["hw2/ann/02.ipynb", "hw2/bob/02.ipynb"], ["hw2/solution.ipynb"], ["solution.ipynb"]),
    "drafts": (
        ["Submitted files/ann/hw/02.ipynb", "Submitted files/bob/hw/02.ipynb"],
        ["Working files/ann/hw/02.ipynb"],
        [],
    ),
    "an index": (
        [
            "Hooks/12-3 - ann - Nov 1, 2026 1011 AM/02.ipynb",
            "Hooks/13-4 - bob - Nov 1, 2026 1011 AM/02.ipynb",
        ],
        ["Hooks/index.html"],
        [],
    ),
    "a copy": (["hw2/ann.ipynb", "hw2/bob.ipynb"], ["hw2/Copy of 02.ipynb"], ["hw2/Copy of 02.ipynb"]),
    "a template": (["ann_02.ipynb", "bob_02.ipynb"], ["template.ipynb"], ["template.ipynb"]),
    "what Word leaves": (["ann/02.ipynb", "bob/02.ipynb"], ["ann/~$02.ipynb"], []),
}


@pytest.mark.parametrize("what", BESIDE)
def test_what_lies_beside_the_students_hides_none(tmp_path, what):
    students, others, told = BESIDE[what]
    tree = dict.fromkeys(students + others, NOTEBOOK) | {n: b"<html>" for n in others if n.endswith(".html")}
    found = collect(place(tmp_path / "class", tree))
    assert [s.student.split(" ")[0] for s in found.submissions] == ["ann", "bob"]
    assert found.outside == told


def test_a_student_with_folders_beside_a_notebook_stays_one(tmp_path):
    folder = place(tmp_path / "class", ["ann/02.ipynb", "ann/old/02.ipynb", "ann/older/02.ipynb"])
    assert {s.student for s in collect(folder).submissions} == {"ann"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_path_in_a_zip_are_two_rows(tmp_path):
    path = tmp_path / "class.zip"
    path.write_bytes(zipped(["ann/02.ipynb"] * 3 + ["ann/02.ipynb (2)/02.ipynb", "bob/02.ipynb"]))
    assert {s.source for s in collect(path).submissions} == {
        "ann/02.ipynb",
        "ann/02.ipynb (2)",
        "ann/02.ipynb (3)",
        "ann/02.ipynb (2)/02.ipynb",
        "bob/02.ipynb",
    }


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_path_of_a_second_file_is_no_other_files(tmp_path):
    path = tmp_path / "class.zip"
    tree = {"ann/a": NOTEBOOK, "ann/a (2)": NOTEBOOK, "bob/02.ipynb": NOTEBOOK}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in [("ann/a", NOTEBOOK), *tree.items()]:
            archive.writestr(name, content)
    sources = [s.source for s in collect(path).submissions]
    assert sorted(sources) == ["ann/a", "ann/a (2)", "ann/a (3)", "bob/02.ipynb"]


def test_backslashes_of_windows_are_folders_and_lead_nowhere_else(tmp_path):
    path = tmp_path / "class.zip"
    path.write_bytes(zipped(["ann\\02.ipynb", "bob\\hw\\02.ipynb", "c\\..\\..\\02.ipynb"]))
    found = {s.student: s for s in collect(path).submissions}
    assert found.keys() == {"ann", "bob", "c/../../02.ipynb"}
    with pytest.raises(Unreadable, match="not allowed"):
        found["c/../../02.ipynb"].read()


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_layout_as_folder_and_as_zip(tmp_path, name):
    tree, students = LAYOUTS[name]
    folder = place(tmp_path / "given", tree)
    count = sum(not n.endswith(".yml") for n in tree)
    for given_ in (folder, packed(tmp_path / "x.zip", folder)):
        found = collect(given_).submissions
        assert {s.student for s in found} == students
        assert (
            len({s.source for s in found})
            == len(found)
            >= count - 2 * (name == "nbgrader" or name.startswith("nbgrader, with"))
        )
        for submission in found:
            submission.read()


OTHERS = {
    "upper/02.IPYNB": NOTEBOOK,
    "mailed/02.ipynb.txt": NOTEBOOK,
    "renamed/02.json": NOTEBOOK,
    "downloaded/hw.zip (1)": zipped(["02.ipynb"]),
    "unnamed/hw": zipped(["02.ipynb"]),
    "otherwise/hw.zipx": zipped(["02.ipynb"]),
    "张\u3000三/02.ipynb": NOTEBOOK,
    "bare/02": b'\xef\xbb\xbf{\n "metadata": {}, "cells": []}',
    "eight/a/b/c/d/e/f/g/h/02.ipynb": NOTEBOOK,
    "rar/02.rar": b"Rar!\x1a\x07",
    "loose.7z": b"7z",
    "corrupt/hw.zip": b"PK\x03\x04nothing",
    "loose.zip": b"",
    "twice/hw.zip": zipped(
        [], **{"a.zip": zipped([], **{"b.zip": zipped([], **{"c.zip": zipped(["02.ipynb"])})})}
    ),
    "pdf/02.pdf": b"%PDF",
    "python/02.py": b"def f(): pass",
    "notes/data.json": b'{"a": 1}',
    "empty/": b"",
    "nothing/within/": b"",
    "hollow/hw.zip": zipped([]),
}
ENDS = dict.fromkeys(("rar", "loose", "corrupt", "twice"), Status.UNREADABLE) | dict.fromkeys(
    ("pdf", "python", "notes", "empty", "nothing", "hollow"), Status.NO_NOTEBOOK
)


@pytest.mark.parametrize("as_zip", [False, True])
def test_whatever_was_handed_in_is_a_row(tmp_path, as_zip):
    folder = place(tmp_path / "class", OTHERS)
    found = collect(packed(tmp_path / "class.zip", folder) if as_zip else folder).submissions
    assert {s.student for s in found} == {name.split("/")[0].split(".")[0] for name in OTHERS}
    for submission in found:
        if end := ENDS.get(submission.student):
            with pytest.raises(Unreadable) as caught:
                submission.read()
            assert caught.value.status is end and len(str(caught.value.says)) > 20
        else:
            assert b'"cells"' in submission.read() and submission.stem.endswith("02")


names = st.text(
    st.characters(categories=("L", "N", "Mn", "Zs"), include_characters="-_.'\u200c"), min_size=1, max_size=12
)
# Hypothesis also draws strings that stand in the code, such as "__pycache__" or "submissions": nobody is called that.
WORDS = NOISE | NOISE_FILES | layout._BESIDE
people = names.map(str.strip).filter(
    lambda n: (
        n and n[0] not in ".~" and not n.isdigit() and n[-1] != "." and not is_nobody(n) and n not in WORDS
    )
)


def composed(name):
    return unicodedata.normalize("NFC", name)


@settings(max_examples=60, deadline=None)
@given(
    who=st.lists(people, min_size=2, max_size=6, unique_by=lambda name: composed(name).casefold()),
    around=st.sampled_from([(), ("hw2",), ("submissions",), ("Week 3", "hand-in"), ("02_tensor_hooks",)]),
    how=st.lists(st.sampled_from(["file", "folder", "zip", "empty", "pdf"]), min_size=6, max_size=6),
)
def test_every_student_has_a_row(tmp_path_factory, who, around, how):
    tree = {}
    for student, kind in zip(who, ["file", *how], strict=False):
        tree |= {
            "file": {f"{student}/02.ipynb": NOTEBOOK},
            "folder": {f"{student}/my work/02.ipynb": NOTEBOOK},
            "zip": {f"{student}/02.zip": zipped(["02.ipynb"])},
            "empty": {f"{student}/": b""},
            "pdf": {f"{student}/x.pdf": b""},
        }[kind]
    folder = tmp_path_factory.mktemp("any") / "given"
    found = collect(
        place(folder, {"/".join((*around, name)): data for name, data in tree.items()})
    ).submissions
    assert sorted(s.student for s in found) == sorted(composed(clean_name(name)) for name in who)
    assert len({s.source for s in found}) == len(who)


@pytest.mark.parametrize(
    "part", ["1", "1a", "hw", "x班", "第课课", " - ", "(", "(1)", "a_", "+", "2026 1011 "]
)
def test_no_name_takes_long(tmp_path, part):
    path = tmp_path / "class.zip"

    def collect_all():
        for name in (
            f"{task}{part * n}{end}"
            for task in ("hw", "1-2 - ")
            for n in (24, 20_000 // len(part.encode()))  # a zip takes names of 65,535 bytes
            for end in ("!", "")
        ):
            path.write_bytes(zipped([f"{name}/ann/02.ipynb", f"{name}/bob/{name}/02.ipynb", f"{name}.ipynb"]))
            collect(path)

    assert cpu_seconds(collect_all, enough=2) < 2


def test_a_zip_of_a_students_has_the_time_of_the_zip_not_the_times_inside(tmp_path):
    inner = zipped(["02.ipynb"])  # its members were packed just now
    folder = place(tmp_path / "class", {"ann/hw.zip": inner, "bob.zip": inner})
    for path in ("ann/hw.zip", "bob.zip"):
        os.utime(folder / path, (10**9, 10**9))
    assert [s.submitted().timestamp() for s in collect(folder).submissions] == [10**9] * 2
    info = zipfile.ZipInfo("submissions/ann/02.ipynb", (2001, 9, 9, 1, 46, 40))
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr(info, NOTEBOOK)
    (wrapped,) = collect(place(tmp_path / "other", {"submissions.zip": whole.getvalue()})).submissions
    assert wrapped.submitted().astimezone().replace(tzinfo=None).isoformat() == "2001-09-09T01:46:40"


RENAMED = [
    *("02.ipynb ", "02.ipynb.download", "02.ipynb.bak", "02.ipynb.crdownload", "02.jupyter", "02.ipynb~"),
    *("notebook.data", "02.ipynb.html"),
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
def test_a_notebook_is_one_whatever_its_name(tmp_path, encoding):
    data = NOTEBOOK.decode().encode(encoding)
    tree = {f"student {n}/{name}": data for n, name in enumerate(RENAMED)}
    found = collect(place(tmp_path / "class", tree)).submissions
    assert [s.read() for s in found] == [data] * len(RENAMED)


def test_whoever_typed_text_or_a_link_into_canvas_has_a_row(tmp_path):
    tree = {"ada_12_345_02.ipynb": NOTEBOOK, "bob_13_text.html": b"<p>", "eve_LATE_14_link.html": b"<a>"}
    found = collect(place(tmp_path / "class", tree)).submissions
    assert [s.student for s in found] == ["ada (Canvas 12)", "bob (Canvas 13)", "eve (Canvas 14)"]
    for submission in found[1:]:
        with pytest.raises(Unreadable, match="no notebook, only"):
            submission.read()


@pytest.mark.parametrize("name", ["/etc/02.ipynb", "../../bob/02.ipynb", "C:/02.ipynb", "x/../../02.ipynb"])
def test_a_path_out_of_a_students_zip_stays_the_students(tmp_path, name):
    tree = {"ann/hw.zip": zipped([name]), "bob/02.ipynb": NOTEBOOK, "eve.zip": zipped([name])}
    found = collect(place(tmp_path / "class", tree)).submissions
    assert [s.student for s in found] == ["ann", "bob", "eve"]
    for submission in (found[0], found[2]):
        with pytest.raises(Unreadable, match="not allowed"):
            submission.read()


@pytest.mark.parametrize("name", ["02.ipynb", "inner.zip"])
def test_a_password_is_named(tmp_path, name):
    data = bytearray(zipped([name]))
    for header in (data.index(b"PK\3\4") + 6, data.index(b"PK\1\2") + 8):
        data[header] |= 1
    (found,) = collect(
        place(tmp_path / "class", {"ann/hw.zip": bytes(data), "bob/02.ipynb": NOTEBOOK})
    ).submissions[:1]
    with pytest.raises(Unreadable, match="protected by a password") as caught:
        found.read()
    assert "ZipInfo" not in str(caught.value.says)


def test_a_bomb_of_zips_costs_its_student_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(filing, "_MAX_UNPACKED", 2**20)
    bomb = zipped([], **{f"{n}.zip": zipped([], **{"02.ipynb": os.urandom(2**18)}) for n in range(9)})
    folder = place(tmp_path / "class", {"ann/hw.zip": bomb, "bob/hw.zip": zipped(["02.ipynb"])})
    found = collect(folder).submissions
    bob = [s for s in found if s.student == "bob"]
    assert len(bob) == 1 and bob[0].read() == NOTEBOOK
    ends = []
    for submission in found:
        try:
            ends.append(len(submission.read()))
        except Unreadable as reason:
            ends.append(reason.says.en)
    assert any("too much in them" in str(end) for end in ends)


def test_what_is_too_large_by_its_header_is_not_unpacked(tmp_path):
    data = bytearray(zipped(["ann/02.ipynb"]))
    size = data.index(b"PK\1\2") + 24  # in the zip's list of its files; what is packed is short
    data[size : size + 4] = (MAX_BYTES + 1).to_bytes(4, "little")
    (tmp_path / "class.zip").write_bytes(data)
    with pytest.raises(Unreadable, match="larger than"):
        collect(tmp_path / "class.zip").submissions[0].read()


def test_notebooks_beyond_the_limit_are_one_row(tmp_path):
    folder = place(
        tmp_path / "class", [f"ann/{n:04}.ipynb" for n in range(MAX_NOTEBOOKS + 5)] + ["bob/02.ipynb"]
    )
    found = collect(folder).submissions
    assert len(found) == MAX_NOTEBOOKS + 2
    with pytest.raises(Unreadable, match="205"):
        found[MAX_NOTEBOOKS].read()


def test_a_path_of_a_zip_with_thousands_of_folders_costs_little(tmp_path):
    (tmp_path / "class" / "ann").mkdir(parents=True)
    (tmp_path / "class" / "ann" / "02.ipynb").write_text("{}")
    (tmp_path / "class" / "bob").mkdir()
    with zipfile.ZipFile(tmp_path / "class" / "bob" / "hw.zip", "w") as archive:
        archive.writestr("hw1/" * 16_000 + "02.ipynb", "{}")
        archive.writestr("a/" * 32_000, "")
    begun = time.process_time()
    found = collect(tmp_path / "class").submissions
    assert time.process_time() - begun < 5
    assert {s.student for s in found} == {"ann", "bob"}
    assert all(len(s.source) < 300 for s in found)
