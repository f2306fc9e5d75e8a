"""Shared fixtures: an empty data folder per test, and a copy of the course that a test may modify."""

import dataclasses
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from hookedu import catalog
from hookedu.language import BOTH, preference
from tests import isolation


def pytest_configure(config: pytest.Config) -> None:
    """Use an empty data folder from the beginning: for the kernels of nbval and for fixtures of wider scope than a test.

    Otherwise the language that the user of this machine once chose would decide what those print.
    """
    folder = tempfile.TemporaryDirectory(prefix="hookedu-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    os.environ["XDG_DATA_HOME"] = folder.name


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items) -> None:
    """Run all cells of a notebook in one worker, and skip isolated tests where there is no sandbox.

    nbval collects each cell as a test; the cells of one notebook share a kernel.
    """
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    isolated = [item for item in items if item.get_closest_marker("isolated")]
    if isolated and (why := isolation.why_not()):
        for item in isolated:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let the garbage collector leave out what exists before the first test: 800,000 objects, 0.4 s for each collection.

    Many tests collect garbage, and so does `diagnose`, to find out what refers to a tensor.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the collector see everything again, or extensions report leaks when the process ends."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch) -> Path:
    """Set up an empty data folder for each test, so that no test reads or writes the user's saved data."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder


@pytest.fixture(autouse=True)
def both_languages() -> None:
    """Let each test begin in both languages, whatever the test before it chose in this process."""
    preference.language = BOTH


@pytest.fixture(autouse=True)
def grad_mode():
    """Fail a test that leaves grad mode off, instead of those after it in its process."""
    yield
    left_off = not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    assert not left_off, "the test leaves grad mode off"


class Clone:
    """A copy of the course and its commands in a separate folder.

    With `whole`, the tests and the files in the repository root are copied as well.
    """

    def __init__(self, root: Path, whole: bool = False):
        self.root = root
        for name in ("hookedu", "course", "lessons", "solutions", *(["tests"] if whole else [])):
            shutil.copytree(
                catalog.ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
            )
        for path in catalog.ROOT.iterdir() if whole else ():
            if path.is_file():
                shutil.copy(path, root)

    def lesson(self, number: str) -> catalog.Lesson:
        """Return a lesson of this copy, for functions called in this process."""
        return dataclasses.replace(catalog.find(number), root=self.root)

    @property
    def env(self) -> dict[str, str]:
        """Environment variables with which `import hookedu` finds this copy."""
        return os.environ | {"PYTHONPATH": str(self.root), "PYTHONIOENCODING": "utf-8"}

    def hookedu(self, *arguments: object) -> subprocess.CompletedProcess:
        """Run the `hookedu` command of this copy."""
        command = [sys.executable, "-m", "hookedu", *map(str, arguments)]
        return subprocess.run(
            command, cwd=self.root, env=self.env, capture_output=True, encoding="utf-8", timeout=300
        )

    def replace(self, file: str, old: str, new: str, count: int = 1) -> None:
        """Replace text in a file of this copy. The old text must be present."""
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new, count), encoding="utf-8")

    def built(self) -> dict[str, bytes]:
        """Return the bytes of every built notebook, by relative path."""
        return {
            str(p.relative_to(self.root)): p.read_bytes()
            for folder in ("lessons", "solutions")
            for p in sorted((self.root / folder).glob("*"))
        }


@pytest.fixture
def clone(tmp_path) -> Clone:
    """Create a copy of the course that a test may modify."""
    return Clone(tmp_path / "clone")
