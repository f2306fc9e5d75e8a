"""A class as a school hands it over: one right row for every student, whatever the student handed in.

An ordinary test run grades thirty students; `make scale` grades 300 and says how long it took.
"""

import io
import json
import random
import resource
import zipfile

import pytest
from rich.console import Console

from hookedu.grading.batch import grade
from hookedu.grading.rows import Status
from tests.grading import notebooks as nb

pytestmark = [pytest.mark.xdist_group("grading-school"), pytest.mark.isolated]
FULL = 15
FAMILIES = ["Lovelace", "李", "علی‌رضا", "O'Neill", "Müller-Lüdenscheidt", "श्री‍मान", "van der Berg", "Nguyễn"]
NAME = "02_tensor_hooks"


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def with_plots(notebook, size):
    """Return a notebook whose outputs take so many bytes."""
    plot = {"output_type": "display_data", "data": {"image/png": "A" * 2**20}, "metadata": {}}
    notebook["cells"].append(nb.code("plot()", outputs=[plot] * (size // 2**20)))
    return notebook


def handed_in(number, dice):
    """Return the files of one student, and the expected statuses and points of the rows."""
    right = json.dumps(nb.answered(nb.right(number)), ensure_ascii=False).encode()
    wrong = json.dumps(nb.answered(nb.right(number) | {"02.1": "def watch(y, seen): pass"})).encode()
    done = [(Status.GRADED, FULL)]
    kinds = [
        ({f"{NAME}.ipynb": right}, done),
        ({f"{NAME}.ipynb": wrong}, [(Status.GRADED, FULL - 3)]),
        ({f"my work/week 2/{NAME} (1).IPYNB": right}, done),
        ({"12 Nov homework.ipynb": right}, done),
        ({f"{NAME}.ipynb.txt": right, "photo.jpg": b"\xff\xd8"}, done),
        ({f"{NAME}.json": right, "notes.pdf": b"%PDF"}, done),
        ({"hand-in.zip": zipped(**{f"{NAME}.ipynb": right, "__MACOSX/._x.ipynb": b""})}, done),
        ({"a.zip": zipped(**{"b.zip": zipped(**{f"x/{NAME}.ipynb": right})})}, done),
        ({f"{NAME}.ipynb": right, f"{NAME} - Copy.ipynb": right}, done * 2),
        ({f"{NAME}.ipynb": b""}, [(Status.UNREADABLE, 0)]),
        ({f"{NAME}.ipynb": right[: len(right) // 2]}, [(Status.UNREADABLE, 0)]),
        ({"hand-in.rar": b"Rar!"}, [(Status.UNREADABLE, 0)]),
        ({"hand-in.zip": b"PK\x03\x04"}, [(Status.UNREADABLE, 0)]),
        ({"answers.pdf": b"%PDF"}, [(Status.NO_NOTEBOOK, 0)]),
        ({}, [(Status.NO_NOTEBOOK, 0)]),
    ]
    return kinds[number] if number < len(kinds) else dice.choice(kinds[:9])


@pytest.mark.parametrize("students", [30, pytest.param(300, marks=pytest.mark.scale)])
def test_one_right_row_for_every_student(tmp_path, students, capsys):
    dice, expected = random.Random(2026), {}
    folder = tmp_path / "term" / "Week 2" / "hand-in"
    for number in range(students):
        student = f"{FAMILIES[number % len(FAMILIES)]} {number:03}"
        files, expected[student] = handed_in(number, dice)
        (folder / student).mkdir(parents=True)
        for name, data in files.items():
            path = folder / student / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    plots = f"Plots {students}"
    expected[plots] = [(Status.GRADED, FULL)]
    nb.hand_in(
        folder / plots / f"{NAME}.ipynb", with_plots(nb.answered(nb.reference()), students * 2**20 // 3)
    )
    done = grade(tmp_path / "term", tmp_path / "out", console=Console(file=io.StringIO()), time_limit=20)
    found = {}
    for row in done.rows:
        found.setdefault(row.student, []).append((row.status, row.points))
    assert found == expected
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    with capsys.disabled():
        print(f"\n{students + 1} students, {done.seconds:.1f} s, peak {peak / 1024:.0f} MiB", end=" ")
