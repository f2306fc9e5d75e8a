"""`hookedu lab`: copy the lessons into the learner's own folder and open it in JupyterLab.

The lessons of the course itself are never edited, so that an update never conflicts with a learner's work.
The file `.hookedu.json` in the learner's folder records what was handed out: an unchanged notebook is
replaced by its new version; a changed one is kept, and the new version is put beside it.
"""

import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

from hookedu import catalog, manifest, storage
from hookedu.catalog import CourseError
from hookedu.language import Text

# Beside the course in a clone. A wheel is installed where few users look and some cannot write: then in the
# home folder.
FOLDER = catalog.ROOT / "my-lessons" if catalog.IN_CLONE else Path.home() / "hookedu-lessons"


def hand_out(folder: Path) -> list[Text]:
    """Bring a folder up to date with the lessons; return a message per new version put beside changed work.

    Raises CourseError if the folder cannot be created or written to, or if no lesson has been built.
    """
    built = [lesson for lesson in catalog.lessons() if lesson.notebook.exists()]
    if not built:
        raise CourseError(
            Text(
                zh="还没有生成任何一课：先运行 `hookedu build`。",
                en="No lesson has been built yet: run `hookedu build` first.",
            )
        )
    said = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        given = manifest.given(folder)
        for lesson in built:
            name, is_new = _place(folder, lesson.notebook, given)
            if is_new:
                shutil.copyfile(lesson.notebook, folder / name)
                given[name] = manifest.digest(lesson.notebook.read_bytes())
                if name != lesson.notebook.name:
                    said.append(
                        Text(
                            zh="{old} 有新版本；你改过的那份原样保留，新版本是 {new}。",
                            en="There is a new version of {old}. Yours is kept as it is; the new one is {new}.",
                        ).format(old=lesson.notebook.name, new=name)
                    )
        manifest.remember(folder, given)
    except OSError as error:
        raise CourseError(
            Text(
                zh="无法写入文件夹 `{folder}`（{error}）。用 `--folder` 换一个。",
                en="The folder `{folder}` cannot be written to ({error}). Choose another with `--folder`.",
            ).format(folder=folder, error=error.strerror)
        ) from error
    return said


def _place(folder: Path, notebook: Path, given: dict[str, str]) -> tuple[str, bool]:
    """Return the file name for this version of a notebook, and whether it has yet to be copied there."""
    version, number = manifest.digest(notebook.read_bytes()), 1
    while True:
        name = notebook.name if number == 1 else f"{notebook.stem}-{number}.ipynb"
        here = folder / name
        if not here.exists():
            return name, True
        lies_here = manifest.digest(here.read_bytes())
        if version in (lies_here, given.get(name)):
            given[name] = version
            return name, False
        if given.get(name) == lies_here and not (folder / f"{notebook.stem}-{number + 1}.ipynb").exists():
            return name, True  # an older version that the learner has not changed
        number += 1


def open_lab(folder: Path, extra: list[str]) -> None:
    """Serve a folder with JupyterLab until it is stopped; `extra` are options for JupyterLab."""
    # jsonschema, a dependency of JupyterLab, takes half of JupyterLab's start-up time to load a grammar of
    # internationalised addresses, which no schema of Jupyter contains (jupyter-server/jupyter_server#1559).
    # To the import system None means "not installed", which typeshed does not know.
    cast("dict[str, ModuleType | None]", sys.modules).setdefault("rfc3987_syntax", None)
    from jupyterlab.labapp import main

    first = sorted(folder.glob("*.ipynb"))[0].name
    config = [*map(str, config_folders()), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, config))
    arguments = [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url=/lab/tree/{first}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")  # root is usual in containers; Jupyter would refuse to run
    main([*arguments, *extra])


def config_folders() -> list[Path]:
    """Return the folders that JupyterLab reads in addition to the learner's own configuration.

    page_config.json disables JupyterLab's announcements: no question at the first start, no network request.
    If the learner chose one language in a notebook, JupyterLab's menus are in that language; this is only a
    default, which a language chosen in JupyterLab's own settings overrides. For readers of both languages
    JupyterLab's default stays.
    """
    ours = Path(__file__).parent / "jupyter"
    language = storage.load_settings().get("language")
    return [ours, *(ours / known for known in ("zh", "en") if known == language)]
