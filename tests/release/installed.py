"""The wheel in an environment of its own, outside the clone and with an empty home, on each Python of this machine."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from packaging.specifiers import SpecifierSet

from hookedu import catalog
from hookedu.language import LANGUAGES
from tests import isolation
from tests.browser.lab import newcomer
from tests.browser.speech import starts_in
from tests.grading import notebooks as nb
from tests.release.artefacts import uv

NAME = "02_tensor_hooks.ipynb"


def pythons() -> dict[str, Path]:
    """Return the interpreters of this machine on which hookedu is to run, by version ("3.12"), this one first.

    Those of pyenv count also where it does not put them on the path. Nothing is downloaded.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    places = [*map(str, pyenv.glob("versions/*/bin")), os.environ["PATH"]]
    command = [uv(), "python", "list", "--only-installed", "--no-python-downloads", "--output-format", "json"]
    # uv complains of pyenv's stand-ins for versions that are not chosen.
    listed = subprocess.run(
        command,
        env=os.environ | {"PATH": os.pathsep.join(places)},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    project = tomllib.loads((catalog.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = SpecifierSet(project["requires-python"])
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": Path(sys.executable)}
    for known in sorted(json.loads(listed.stdout), key=lambda known: known["version_parts"]["minor"]):
        ordinary = known["implementation"] == "cpython" and known["variant"] == "default"
        if ordinary and wanted.contains(known["version"]):
            parts = known["version_parts"]
            found.setdefault(f"{parts['major']}.{parts['minor']}", Path(known["path"]))
    return found


def environment(place: Path, python: Path, wheel: Path, *more: str) -> Path:
    """Make an environment with the wheel, and return its folder of commands.

    uv links from its cache, so that gigabytes of torch install in two seconds.
    """
    env = os.environ | {"VIRTUAL_ENV": str(place)}
    if torch.version.cuda is None and sys.platform == "linux":
        env["UV_TORCH_BACKEND"] = "cpu"  # like the environment of these tests
    pins = catalog.ROOT / "requirements.lock"
    for command in (["venv", "--python", python, place], ["pip", "install", "-c", pins, wheel, *more]):
        subprocess.run([uv(), *command, "-q"], env=env, check=True, stderr=subprocess.PIPE, encoding="utf-8")
    return place / "bin"


def run(commands: Path, home: Path, *arguments: object) -> subprocess.CompletedProcess:
    """Run a command of an environment in an empty home, as a learner with no settings does."""
    name, *rest = map(str, arguments)
    return subprocess.run(
        [commands / name, *rest],
        cwd=home,
        env=newcomer(home),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def problems(commands: Path, home: Path) -> Iterator[str]:
    """Yield what does not work in an environment: doctor, handing out in each language, grading one submission."""
    where = run(commands, home, "python", "-c", "import hookedu; print(hookedu.__file__)")
    if not where.stdout.startswith(str(commands.parent)):
        yield f"`import hookedu` is not the wheel: {where.stdout}{where.stderr}"
    steps: list[Sequence[object]] = [["doctor"]]
    steps += [["hand-out", home / language, "--language", language] for language in LANGUAGES]
    for step in steps:
        if (done := run(commands, home, "hookedu", *step)).returncode:
            yield f"`hookedu {step[0]}` fails: {done.stdout}{done.stderr}"
    for language in LANGUAGES:
        for lesson in catalog.lessons():
            path = home / language / lesson.notebook.name
            if not path.exists() or not starts_in(path, language):
                yield f"{path.name} is not handed out in `{language}`"
    if not isolation.why_not():
        yield from _grade(commands, home)


def _grade(commands: Path, home: Path) -> Iterator[str]:
    """Yield what is wrong with the grades of a submission with one right answer and one with a known mistake."""
    wrong, kept = nb.wrong("02.1", "no_handle")
    for student, answers in (("ann", nb.right()), ("bob", nb.right() | {"02.1": wrong})):
        nb.hand_in(home / "class" / student / NAME, nb.answered(answers))
    done = run(commands, home, "hookedu", "grade", "class", "--out", "grades")
    table = home / "grades" / "grades.csv"
    if done.returncode or not table.exists():
        yield f"`hookedu grade` fails: {done.stdout}{done.stderr}"
        return
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    if rows["ann"]["points"] != rows["ann"]["max_points"] or float(rows["bob"]["02.1"]) != kept:
        yield f"`hookedu grade` gives other points: {rows}"


def works_on(version: str, python: Path, wheel: Path) -> tuple[bool, list[str]]:
    """Return whether the wheel could be installed on a Python, and the problems that were found."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        try:
            commands = environment(Path(folder) / "venv", python, wheel)
        except subprocess.CalledProcessError as error:
            return False, [f"Python {version}: {error.stderr.strip().splitlines()[-1]}"]
        return True, [f"Python {version}: {problem}" for problem in problems(commands, home)]
