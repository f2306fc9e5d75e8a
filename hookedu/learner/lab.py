"""`hookedu lab`: the lessons in a folder of the learner's own, opened in JupyterLab.

The lessons of the course stay as they are, so that an update never collides with a learner's work. What was
handed out is remembered beside it, in `.hookedu.json`: a notebook that the learner never changed is replaced by a
new version, a changed one is kept and the new version is put beside it.
"""

import os
import shutil
import sys
from pathlib import Path

from hookedu import catalog, manifest, storage
from hookedu.catalog import CourseError
from hookedu.language import Text

# In a clone beside the course. A wheel lies where nobody looks, and where nobody may write: there it is the home.
FOLDER = catalog.ROOT / "my-lessons" if catalog.IN_CLONE else Path.home() / "hookedu-lessons"


def hand_out(folder: Path) -> list[Text]:
    """Bring the folder up to date with the lessons; returns what the learner should know, one text a lesson.

    CourseError where the folder cannot be made or written, or where no lesson has been built.
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
    """Under which name this version belongs in the folder, and whether it has yet to be put there."""
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
            return name, True  # an older version that nobody touched
        number += 1


def open_lab(folder: Path, extra: list[str]) -> None:
    """Serve JupyterLab on the folder until it is stopped. `extra` goes to JupyterLab as it stands (`--no-browser`)."""
    # jsonschema, which JupyterLab brings, takes half of its start to load a grammar of internationalised addresses,
    # and no schema of Jupyter's has any (jupyter-server/jupyter_server#1559). None stands for "not installed".
    sys.modules.setdefault("rfc3987_syntax", None)
    from jupyterlab.labapp import main

    first = sorted(folder.glob("*.ipynb"))[0].name
    config = [*map(str, config_folders()), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, config))
    arguments = [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url=/lab/tree/{first}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")  # in a container one is root, and Jupyter would refuse to start
    main([*arguments, *extra])


def config_folders() -> list[Path]:
    """What JupyterLab reads beside the learner's own configuration, which stays as it is.

    page_config.json switches its announcements off: no question on the first start, no request to the network.
    Who chose one language in a notebook gets JupyterLab's menus in it: a default only, so that a language chosen in
    JupyterLab's own settings wins. For who reads both languages, JupyterLab goes on as it would without us.
    """
    ours = Path(__file__).parent / "jupyter"
    language = storage.load_settings().get("language")
    return [ours, *(ours / known for known in ("zh", "en") if known == language)]
