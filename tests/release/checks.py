"""What is checked of each file of a release. A check returns its problems, [] where all is well."""

import filecmp
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import nbformat

from hookedu import catalog
from hookedu.cells import source_of
from hookedu.language import has_chinese
from tests.release import artefacts
from tests.release.links import broken_in_page


def metadata(path: Path) -> list[str]:
    """Let twine say whether an index would take the metadata of a wheel or an sdist, and show its README."""
    command = [sys.executable, "-m", "twine", "check", "--strict", path]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    return [done.stdout + done.stderr] if done.returncode else []


def same(one: Path, other: Path) -> list[str]:
    """Compare two files to the byte."""
    return [] if filecmp.cmp(one, other, shallow=False) else [f"{one} is not {other}"]


def holds_the_package_alone(wheel: Path) -> list[str]:
    """Look for files of a wheel outside the package, and for what only a clone needs."""
    names = zipfile.ZipFile(wheel).namelist()
    others = [n for n in names if not n.startswith("hookedu/") and ".dist-info/" not in n]
    carried = {n.removeprefix("hookedu/_course/") for n in names if n.startswith("hookedu/_course/")}
    wanted = {"course/course.yml", "course/shared_words.yml"}
    for lesson in catalog.lessons():
        wanted |= {f"{folder}/{lesson.notebook.name}" for folder in ("lessons", "solutions")}
        wanted |= {f"course/{lesson.file}{words}" for words in (".yml", ".guesses.yml")}
    return [*others, *sorted(carried ^ wanted)]


def holds_every_tracked_file(sdist: Path, clone: Path) -> list[str]:
    """Compare the files of an sdist with those that git tracks."""
    with tarfile.open(sdist) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    return sorted(names ^ {"PKG-INFO", *artefacts.tracked(clone)})


def links(sdist: Path) -> list[str]:
    """Look for links that lead nowhere in the Markdown files of an sdist: README, CONTRIBUTING, guides."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(sdist) as tar:
        tar.extractall(folder, filter="data")
        # Pages of the site alone have links of the site, which are checked there.
        pages = [page for page in Path(folder).rglob("*.md") if not {"book", "templates"} & set(page.parts)]
        return [problem for page in sorted(pages) for problem in broken_in_page(page)]


def notebooks(path: Path, language: str) -> list[str]:
    """Look in a zip of lessons for what keeps a notebook from opening, and for the other language."""
    found = []
    with zipfile.ZipFile(path) as zipped:
        if bad := zipped.testzip():
            return [f"{bad} is damaged"]
        expected = [f"hookedu-lessons/{lesson.notebook.name}" for lesson in catalog.lessons()]
        if zipped.namelist() != expected:
            found.append(f"not the lessons: {zipped.namelist()}")
        for name in zipped.namelist():
            found += [f"{name}: {problem}" for problem in _problems(zipped.read(name), language)]
    return found


def _problems(content: bytes, language: str) -> list[str]:
    """Return what is wrong with a notebook for learners in one language."""
    try:
        notebook = nbformat.read(io.BytesIO(content), as_version=nbformat.NO_CONVERT)
        nbformat.validate(notebook)
    except (ValueError, nbformat.ValidationError) as error:
        return [f"not a notebook: {error}"]
    found = []
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        found.append("its kernel is not python3")
    if any(cell.get("outputs") for cell in notebook.cells):
        found.append("it has outputs")
    text = "\n".join(map(source_of, json.loads(content)["cells"]))
    if 'lang="' in text or f'LanguageToggle("{language}")' not in text:
        found.append(f"it is not in `{language}` alone")
    if has_chinese(text) != (language == "zh"):
        found.append(f"its prose is not in `{language}`")
    return found
