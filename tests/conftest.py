"""What the tests share: a home of their own, and a copy of the course that may be broken at will."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hookedu import catalog


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items) -> None:
    """A notebook's cells, which nbval collects, go to one worker: they share a kernel."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch) -> Path:
    """An empty data folder for each test: none reads or writes what the person at this machine has saved."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder


class Clone:
    """A copy of the course in a folder of its own, with its commands; `whole` with tests and the root's files too."""

    def __init__(self, root: Path, whole: bool = False):
        self.root = root
        for name in ("hookedu", "course", "lessons", "solutions", *(["tests"] if whole else [])):
            shutil.copytree(catalog.ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in catalog.ROOT.iterdir() if whole else ():
            if path.is_file():
                shutil.copy(path, root)

    def lesson(self, number: str) -> catalog.Lesson:
        """A lesson of this copy, for functions called in this process."""
        return dataclasses.replace(catalog.find(number), root=self.root)

    @property
    def env(self) -> dict[str, str]:
        """An environment in which `import hookedu` finds this copy."""
        return os.environ | {"PYTHONPATH": str(self.root), "PYTHONIOENCODING": "utf-8"}

    def hookedu(self, *arguments: object) -> subprocess.CompletedProcess:
        """Run the command `hookedu` of this copy."""
        command = [sys.executable, "-m", "hookedu", *map(str, arguments)]
        return subprocess.run(
            command, cwd=self.root, env=self.env, capture_output=True, encoding="utf-8", timeout=300
        )

    def replace(self, file: str, old: str, new: str, count: int = 1) -> None:
        """Change a file of this copy; the text must be there."""
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new, count), encoding="utf-8")

    def built(self) -> dict[str, bytes]:
        """Every built notebook's bytes."""
        return {
            str(p.relative_to(self.root)): p.read_bytes()
            for folder in ("lessons", "solutions")
            for p in sorted((self.root / folder).glob("*"))
        }


@pytest.fixture
def clone(tmp_path) -> Clone:
    """A copy of the course that a test may break."""
    return Clone(tmp_path / "clone")
