"""The files of a release: wheel, sdist, the lessons in each language and the reading site, made from the tracked files.

The same commit makes the same bytes in any clone: what git does not track is left out, names are sorted, every date is
that of the commit, and file modes are fixed. The build backend is the one that requirements.lock pins.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hookedu import catalog
from hookedu.language import LANGUAGES
from hookedu.learner.merging import in_language


class Commit(NamedTuple):
    """The commit that a release is made of."""

    name: str
    day: str  # "2026-11-28", as the calendar was where it was made
    time: int  # in seconds since 1970


def last_commit(clone: Path) -> Commit:
    """Return the commit that is checked out."""
    name, day, seconds = _git(clone, "log", "-1", "--format=%H %cs %ct").split()
    return Commit(name, day, int(seconds))


def tracked(clone: Path) -> list[str]:
    """Return the names of the tracked files that exist."""
    names = _git(clone, "ls-files", "-z").rstrip("\0").split("\0")
    return sorted(name for name in names if os.path.lexists(clone / name))


def uncommitted(clone: Path) -> list[str]:
    """Return the names of the tracked files that differ from the last commit."""
    return _git(clone, "diff", "HEAD", "--name-only").splitlines()


def kept_runs(clone: Path) -> Path:
    """Return the folder for the site of the commit that is checked out.

    Outputs of lessons are kept there as long as neither lessons nor package change; those of other states are removed.
    """
    folder = clone / ".book" / "release"
    state = folder / "-".join(
        tree[:12] for tree in _git(clone, "rev-parse", "HEAD:course", "HEAD:hookedu").split()
    )
    for other in folder.glob("*"):
        if other != state:
            shutil.rmtree(other)
    return state


def snapshot(clone: Path, tree: Path) -> Path:
    """Copy the tracked files to a folder that does not exist yet, and return it."""
    for name in tracked(clone):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(clone / name, tree / name, follow_symlinks=False)
    return tree


def distributions(tree: Path, out: Path, seconds: int) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it, and return their paths."""
    _build(tree, out, seconds)
    (out / ".gitignore").unlink(missing_ok=True)  # uv's, for a folder that git ignores already
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def wheel(tree: Path, out: Path, seconds: int) -> Path:
    """Build the wheel from the files themselves, and return its path."""
    _build(tree, out, seconds, "--wheel")
    return next(out.glob("*.whl"))


def lessons(tree: Path, out: Path, seconds: int) -> dict[str, Path]:
    """Write the lessons in each language as a zip, for download without the package; return the paths by language."""
    return {
        language: pack(out / f"lessons-{language}.zip", _notebooks(tree, language), seconds)
        for language in LANGUAGES
    }


def _notebooks(tree: Path, language: str) -> Iterator[tuple[str, bytes]]:
    for lesson in catalog.lessons():
        built = json.loads((tree / "lessons" / lesson.notebook.name).read_text(encoding="utf-8"))
        said = json.dumps(in_language(built, language), ensure_ascii=False, indent=1, sort_keys=True)
        yield f"hookedu-lessons/{lesson.notebook.name}", f"{said}\n".encode()


def site(tree: Path, out: Path, seconds: int, book: Path, run: str) -> tuple[Path, Path]:
    """Build the reading site in the folder `book`; return the folder of its pages, and its zip.

    `run` is RUN of `make book`: with "yes" the lessons run in Chinese, unless `book` has their outputs already.
    """
    shared = [f"BIN={Path(sys.executable).parent}", f"BOOK={book}", f"RUN={run}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(
        ["make", "-s", "-o", ".venv/ready-book", "book", *shared],  # -o: use the packages already installed
        cwd=tree,
        env=environment | {"PYTHONPATH": str(tree), "SOURCE_DATE_EPOCH": str(seconds)},
        check=True,
    )
    html = book / "html"
    files = sorted((path.relative_to(html).as_posix(), path) for path in html.rglob("*") if path.is_file())
    members = ((f"hookedu-site/{name}", path.read_bytes()) for name, path in files)
    return html, pack(out / "site.zip", members, seconds)


def pack(path: Path, members: Iterable[tuple[str, bytes]], seconds: int) -> Path:
    """Write a zip of these names and contents whose bytes depend on nothing else than them and the date."""
    with zipfile.ZipFile(path, "w") as zipped:
        for name, content in members:
            entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
            entry.create_system, entry.external_attr = 3, 0o100644 << 16  # Unix, a file that all may read
            zipped.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def uv() -> str:
    """Return the path of uv, found as `make` finds it; RuntimeError where there is none."""
    found = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if not found:
        raise RuntimeError("this needs uv: pip install uv")
    return found


def _build(tree: Path, out: Path, seconds: int, *options: str) -> None:
    pins = ["--build-constraints", tree / "requirements.lock"]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(seconds)}
    subprocess.run([uv(), "build", "-q", *options, *pins, "-o", out, tree], env=environment, check=True)


def _git(clone: Path, *arguments: str) -> str:
    command = ["git", "-C", clone, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
