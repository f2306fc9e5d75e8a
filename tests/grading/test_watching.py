"""`hookedu grade --watch`: what arrives is graded and reported, and a kill loses nothing."""

import csv
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from hookedu import catalog
from hookedu.grading.limits import Limits
from tests.grading import notebooks as nb

pytestmark = [pytest.mark.xdist_group("grading-watch"), pytest.mark.isolated]
FILE = "02_tensor_hooks.ipynb"
LIMITS = Limits()


def rows(out):
    """Return the points by student as grades.csv has them, once the report is there as well."""
    if not (out / "report.html").exists():
        return {}
    with open(out / "grades.csv", encoding="utf-8-sig", newline="") as file:
        found = {row["student"]: row["points"] for row in csv.DictReader(file)}
    report = (out / "report.html").read_text(encoding="utf-8")
    return {student: points for student, points in found.items() if student in report}


def wait_for(wanted, out, process):
    """Wait until the rows hold what is wanted; as long as the grader itself grants a submission, on a busy machine too."""
    limit = time.monotonic() + LIMITS.startup + 2 * LIMITS.seconds
    while not wanted.items() <= (found := rows(out)).items():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < limit, f"{wanted} did not happen, but {found}"
        time.sleep(0.1)


@pytest.fixture
def watching(tmp_path, request):
    def start():
        code = (
            "from hookedu.grading import watching; watching.EVERY = 0.3; from hookedu.cli import main; main()"
        )
        folder, out = tmp_path / "class", tmp_path / "out"
        process = subprocess.Popen(
            [sys.executable, "-c", code, "grade", folder, "--out", out, "--watch"],
            env=os.environ | {"PYTHONPATH": str(catalog.ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        request.addfinalizer(process.kill)
        return process

    (tmp_path / "class").mkdir()
    return start


def test_what_arrives_is_graded_and_a_killed_watch_goes_on(tmp_path, watching):
    folder, out = tmp_path / "class", tmp_path / "out"
    process = watching()  # the folder is still empty
    nb.hand_in(folder / "ann" / FILE, nb.answered(nb.reference()))
    wait_for({"ann": "15"}, out, process)
    for student in ("bob", "李雷"):
        nb.hand_in(
            folder / student / FILE, nb.answered(nb.reference() | {"02.1": "def watch(y, seen): pass"})
        )
    process.send_signal(signal.SIGKILL)
    process.wait()
    process = watching()
    wait_for({"ann": "15", "bob": "12", "李雷": "12"}, out, process)
    assert len(rows(out)) == 3
    nb.hand_in(folder / "bob" / FILE, nb.answered(nb.reference()))
    wait_for({"bob": "15"}, out, process)  # the last of its attempts in the file
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 0 and "Traceback" not in said


def test_a_folder_that_is_gone_for_a_while_is_waited_for(tmp_path, watching):
    folder, away, out = tmp_path / "class", tmp_path / "away", tmp_path / "out"
    nb.hand_in(folder / "ann" / FILE, nb.answered(nb.right()))
    process = watching()
    wait_for({"ann": "15"}, out, process)
    folder.rename(away)
    while "There is no" not in (line := process.stdout.readline()):
        assert line
    nb.hand_in(away / "bob" / FILE, nb.handed_out())
    away.rename(folder)
    wait_for({"ann": "15", "bob": "0"}, out, process)


def test_a_file_that_never_rests_does_not_keep_the_class_waiting(tmp_path, watching):
    folder, out = tmp_path / "class", tmp_path / "out"
    process, ended = watching(), threading.Event()
    nb.hand_in(folder / "ann" / FILE, nb.answered(nb.reference()))
    wait_for({"ann": "15"}, out, process)

    def write():
        (folder / "mallory").mkdir()
        while not ended.wait(0.05):
            (folder / "mallory" / "notes.txt").write_text(str(time.monotonic()))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        nb.hand_in(folder / "dave" / FILE, nb.answered(nb.reference()))
        wait_for({"dave": "15"}, out, process)
    finally:
        ended.set()
        writer.join()
