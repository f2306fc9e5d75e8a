"""Tests of the command line: an error is one text in both languages and exit code 2, never a traceback."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from hookedu import catalog, doctor
from hookedu.cli import app


def hookedu(*arguments, **env):
    command = [sys.executable, "-m", "hookedu", *map(str, arguments)]
    return subprocess.run(
        command, cwd=catalog.ROOT, env=os.environ | env, capture_output=True, encoding="utf-8", timeout=120
    )


def test_without_arguments_it_shows_the_commands():
    run = hookedu()
    for command in ("lab", "build", "new-lesson", "grade", "report", "adjust", "forget", "doctor"):
        assert command in run.stdout + run.stderr


def test_it_starts_without_torch():
    """Loading torch takes two seconds, which `--help` and `lab` would spend on nothing."""
    program = "import sys, hookedu.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0


def test_doctor_checks_this_machine_in_both_languages():
    run = hookedu("doctor")
    assert run.returncode == 0, run.stdout
    for part in (
        "Python 版本 · Python version",
        "torch 2.",
        "jupyterlab-manager",
        "磁盘",
        "Sandbox",
        "All set",
    ):
        assert part in run.stdout


def test_doctor_says_what_to_do_about_a_missing_front_end(tmp_path):
    """The search path of JupyterLab leads to an empty folder, so that it cannot find the front end."""
    program = (
        "import jupyter_core.paths as p; p.jupyter_path = lambda *a: ['" + str(tmp_path) + "']\n"
        "from hookedu.cli import main; main()"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, "doctor"], capture_output=True, encoding="utf-8", timeout=120
    )
    assert run.returncode == 1
    assert "Install `jupyterlab_widgets`" in run.stdout and "Not ready yet" in run.stdout


def test_doctor_names_a_check_that_breaks_in_both_languages(clone):
    """Neither the title nor the remedy comes from a docstring: -OO removes those."""
    (clone.root / "course" / "course.yml").write_text("lessons: [")
    command = [sys.executable, "-OO", "-m", "hookedu", "doctor"]
    run = subprocess.run(
        command, cwd=clone.root, env=clone.env, capture_output=True, encoding="utf-8", timeout=120
    )
    assert run.returncode == 1 and "Traceback" not in run.stderr
    reported = r"^✗ 课程笔记本 · Lesson notebooks: YamlError: (?s:.*?)^    .*重新安装.*\n    Install "
    assert re.search(reported, run.stdout, re.MULTILINE), run.stdout
    assert "✓ 磁盘剩余空间 · Free disk space" in run.stdout, "the checks after it run as well"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("build", "77"), "There is no lesson `77`"),
        (("build", "--check", "tensor"), "There is no lesson `tensor`. The nearest: `02_tensor_hooks`"),
        (("lab", "--folder", "{file}/mine"), "cannot be written to"),
        (("grade", "{empty}", "--out", "{empty}/out"), "no notebooks"),
        (("grade", "{empty}/nowhere", "--out", "{empty}/out"), "nowhere"),
        (("grade", "{class_}", "--out", "{file}/out"), "cannot be written"),
        (("grade", "{class_}", "--out", "{spoilt}"), "grades.db"),
        (("grade", "{class_}", "--out", "{empty}", "--watch", "--only", "ann"), "does not go with"),
        (("grade", "", "--out", "{empty}/out"), "No folder is named"),
        (("grade", "{class_}", "--out", ""), "No folder is named"),
        (("grade", "{class_}", "--out", "{empty}", "--explain", ""), "`--explain` is followed by nothing"),
        (("grade", "{class_}", "--out", "{empty}", "--dask", " "), "`--dask` is followed by nothing"),
        (("grade", "{class_}", "--out", "{empty}", "--attempt", ""), "`last` or `best`"),
        (("report", "{empty}"), "no gradebook"),
        (("report", ""), "No folder is named"),
        (("report", "{empty}/" + "x" * 300), "File name too long"),
        (("new-lesson", "02", "other"), "Number 02 is taken"),
        (("hand-out", ""), "No folder is named"),
        (("lab", "--folder", " "), "No folder is named"),
        (("export-nbgrader", ""), "No folder is named"),
    ],
    ids=[
        "lesson",
        "lesson-check",
        "lab-folder",
        "no-notebooks",
        "no-folder",
        "unwritable-out",
        "corrupt-db",
        "watch-only",
        "grade-nowhere",
        "grade-to-nowhere",
        "explain-nothing",
        "dask-nowhere",
        "no-rule",
        "no-gradebook",
        "report-nowhere",
        "long-name",
        "taken-number",
        "hand-out-nowhere",
        "lab-nowhere",
        "export-nowhere",
    ],
)
def test_bad_input_is_one_text_and_exit_code_2(arguments, says, tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "empty").mkdir()
    (tmp_path / "class_" / "ann").mkdir(parents=True)
    shutil.copy(catalog.find("02").notebook, tmp_path / "class_" / "ann")
    (tmp_path / "spoilt").mkdir()
    (tmp_path / "spoilt" / "grades.db").write_bytes(b"not a database" * 100)
    places = {name: tmp_path / name for name in ("file", "empty", "class_", "spoilt")}
    run = hookedu(*(a.format(**places) for a in arguments))
    assert (tmp_path / "spoilt" / "grades.db").read_bytes() == b"not a database" * 100, "nothing is lost"
    assert run.returncode == 2
    assert says in run.stderr and "Traceback" not in run.stderr
    assert any("\u4e00" <= c <= "\u9fff" for c in run.stderr), "in Chinese as well"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--time-limit", "inf"), ("--time-limit", "1e30"), ("--memory-limit", 10**14), ("--jobs", 10**30)],
)
def test_a_number_that_no_machine_can_hold_is_refused(option, value, tmp_path):
    """Each submission would end in an error of the grader, and with `--again` that would take the place of its grade."""
    (tmp_path / "ann").mkdir()
    shutil.copy(catalog.find("02").notebook, tmp_path / "ann")
    run = hookedu("grade", tmp_path, "--out", tmp_path / "out", option, value)
    assert run.returncode == 2 and f"Invalid value for '{option}'" in run.stderr
    assert "Traceback" not in run.stderr and not (tmp_path / "out").exists()


def test_doctor_asks_for_no_sandbox_where_there_can_be_none(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    for name in [name for name in sys.modules if name.startswith("hookedu.grading.run")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "resource", None)  # there is none on Windows: importing it raises
    found = doctor._sandbox()
    assert found.state is doctor.State.NOTE and "takes Linux" in found.remedy.en


def test_help_is_complete_at_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        shown = "".join(CliRunner().invoke(app, [name, "--help"]).output.split())
        for parameter in command.params:
            said = "".join((getattr(parameter, "help", None) or "").split())
            assert said in shown, f"hookedu {name}: {parameter.name}"
        assert "…" not in shown


@pytest.mark.parametrize("arguments", [["--help"], ["doctor"]])
def test_a_terminal_without_chinese_gets_what_it_can_show(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "hookedu", *arguments],
        env=os.environ | {"PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        cwd=catalog.ROOT,
    )
    assert b"Traceback" not in done.stderr and done.stdout
