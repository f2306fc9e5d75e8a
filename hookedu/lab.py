"""`hookedu lab`: the lessons in a folder of the learner's own, opened in JupyterLab.

The lessons of the repository stay as they are, so that an update never collides with a learner's work. What was
handed out is remembered beside it, in `.hookedu.json`: a notebook that the learner never changed is replaced by a
new version, a changed one is kept and the new version is put beside it.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path

from hookedu import course
from hookedu.course import CourseError
from hookedu.language import Text

FOLDER = course.ROOT / "my-lessons"
_RECORD = ".hookedu.json"


def hand_out(folder: Path) -> list[Text]:
    """Bring the folder up to date with the lessons; returns what the learner should know, one text a lesson.

    CourseError where the folder cannot be made or written, or where no lesson has been built.
    """
    built = [lesson for lesson in course.lessons() if lesson.notebook.exists()]
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
        given = _given(folder)
        for lesson in built:
            name, is_new = _place(folder, lesson.notebook, given)
            if is_new:
                shutil.copyfile(lesson.notebook, folder / name)
                given[name] = _digest(lesson.notebook)
                if name != lesson.notebook.name:
                    said.append(
                        Text(
                            zh="{old} 有新版本；你改过的那份原样保留，新版本是 {new}。",
                            en="There is a new version of {old}. Yours is kept as it is; the new one is {new}.",
                        ).format(old=lesson.notebook.name, new=name)
                    )
        (folder / _RECORD).write_text(json.dumps(given, indent=1), encoding="utf-8")
    except OSError as error:
        raise CourseError(
            Text(
                zh="无法写入文件夹 `{folder}`（{error}）。用 `--folder` 换一个。",
                en="The folder `{folder}` cannot be written to ({error}). Choose another with `--folder`.",
            ).format(folder=folder, error=error.strerror)
        ) from error
    return said


def _given(folder: Path) -> dict[str, str]:
    try:
        given = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return given if isinstance(given, dict) else {}


def _place(folder: Path, notebook: Path, given: dict[str, str]) -> tuple[str, bool]:
    """Under which name this version belongs in the folder, and whether it has yet to be put there."""
    version, number = _digest(notebook), 1
    while True:
        name = notebook.name if number == 1 else f"{notebook.stem}-{number}.ipynb"
        here = folder / name
        if not here.exists():
            return name, True
        if _digest(here) == version or given.get(name) == version:
            given[name] = version
            return name, False
        if given.get(name) == _digest(here) and not (folder / f"{notebook.stem}-{number + 1}.ipynb").exists():
            return name, True  # an older version that nobody touched
        number += 1


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def open_lab(folder: Path, extra: list[str]) -> None:
    """Serve JupyterLab on the folder until it is stopped. `extra` goes to JupyterLab as it stands (`--no-browser`)."""
    from jupyterlab.labapp import main

    first = sorted(folder.glob("*.ipynb"))[0].name
    # Our page_config.json switches JupyterLab's announcements off: no question on the first start, no request to
    # the network. The learner's own configuration stays as it is.
    config = [str(Path(__file__).parent / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, config))
    arguments = [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url=/lab/tree/{first}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")  # in a container one is root, and Jupyter would refuse to start
    main([*arguments, *extra])
