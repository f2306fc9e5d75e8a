"""`hookedu lab`: open the learner's lessons in JupyterLab, in the learner's language."""

import asyncio
import contextlib
import hashlib
import json
import os
import sys
import tempfile
import urllib.request
import webbrowser
from http.client import HTTPException
from pathlib import Path
from types import ModuleType
from typing import cast

from hookedu import catalog, storage
from hookedu.language import BOTH, LANGUAGES, Text, preference
from hookedu.learner import preload

# Beside the course in a clone. A wheel is installed where few users look and some cannot write: then in the
# home folder.
FOLDER = catalog.ROOT / "my-lessons" if catalog.IN_CLONE else Path.home() / "hookedu-lessons"
_ANSWER = 5  # seconds that a running server may take to answer
_CONTENTS = "@jupyterlab/toc:plugin"  # JupyterLab's name for the panel with the contents of a notebook
_FINISH = 10  # seconds for the requests that a stopped server still answers
_RUNS = Text(
    zh="课程已经开着：{address}\n想重新启动，先到它的终端里按两次 Ctrl+C。",
    en="The course is open already: {address}\nTo start it anew, first press Ctrl+C twice in its terminal.",
)
_OPENS = Text(
    zh="浏览器马上会打开课程；没有自己打开，就把下面以 http://127.0.0.1 开头的地址复制进去。按两次 Ctrl+C 结束。",
    en="Your browser opens the course now; if it does not, copy the address below that begins with http://127.0.0.1. To "
    "end, press Ctrl+C twice.",
)
_ASK = Text(
    zh="用哪种语言学？中文输入 zh，英文输入 en，两种都要输入 both。",
    en="Which language do you want to learn in? Type zh for Chinese, en for English, both for both.",
)


def language_at_start(asked: str | None = None) -> str:
    """Return the language to start in: the one asked for, else the saved choice, else that of the machine.

    Where the machine names none, the user of a terminal is asked, and the answer is saved.
    """
    known = asked or preference.saved() or language_of_machine()
    if known:
        preference.language = known
    elif sys.stdin.isatty() and sys.stdout.isatty():
        preference.choose(_answer())
    return preference.language


def language_of_machine() -> str | None:
    """Return the language of the locale, where any but Chinese means English; None if it names no language."""
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    name = next(filter(None, names), None) or _language_of_windows()
    code = (name or "C").partition(".")[0]
    if code in ("C", "POSIX"):
        return None
    return "zh" if code.startswith("zh") else "en"


def _language_of_windows() -> str | None:
    if sys.platform != "win32":
        return None
    import ctypes
    import locale

    return locale.windows_locale.get(ctypes.windll.kernel32.GetUserDefaultUILanguage())


def _answer() -> str:
    print(_ASK.plain(LANGUAGES))
    while True:
        try:
            said = input("zh / en / both: ").strip().lower()
        except EOFError:
            return BOTH
        if said in (*LANGUAGES, BOTH):
            return said


def running(folder: Path) -> str | None:
    """Return the address of a server of this user's that serves the folder already; None if there is none."""
    from jupyter_server.serverapp import list_running_servers

    for server in list_running_servers():
        if Path(server["root_dir"]).resolve() == folder:
            # Another process may have the number or the port of a server that is gone.
            with contextlib.suppress(OSError, HTTPException):
                urllib.request.urlopen(f"{server['url']}api", timeout=_ANSWER).close()
                return f"{server['url']}lab?token={server['token']}"
    return None


def show_running(address: str, browser: bool) -> None:
    """Say where the course is open already, and open it in the browser."""
    print(_RUNS.format(address=address), flush=True)
    if browser:
        webbrowser.open(address)


def open_lab(folder: Path, language: str, extra: list[str]) -> None:
    """Serve a folder with JupyterLab until it is stopped; `extra` are options for JupyterLab."""
    # jsonschema, a dependency of JupyterLab, takes half of JupyterLab's start-up time to load a grammar of
    # internationalised addresses, which no schema of Jupyter contains (jupyter-server/jupyter_server#1559).
    # To the import system None means "not installed", which typeshed does not know.
    cast("dict[str, ModuleType | None]", sys.modules).setdefault("rfc3987_syntax", None)
    from jupyterlab.labapp import main

    # Not a copy that the learner has made of it, whose name may come before.
    first = next(
        lesson.notebook.name for lesson in catalog.lessons() if (folder / lesson.notebook.name).exists()
    )
    config = [*map(str, config_folders(language)), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, config))
    arguments = [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url=/lab/tree/{first}"]
    arguments += [f"--LabApp.workspaces_dir={where}" for where in filter(None, [workspaces(folder)])]
    # Of a hundred lines only the address, which is "critical", and errors are for learners; --debug shows them all.
    arguments.append("--Application.log_level=ERROR")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")  # root is usual in containers; Jupyter would refuse to run
    with tempfile.TemporaryDirectory(prefix="hookedu-") as data:
        add_kernel(Path(data))
        print(_OPENS, flush=True)
        main([*arguments, *extra])
        _end_requests()


def workspaces(folder: Path) -> Path | None:
    """Return where JupyterLab keeps the layout of this folder's course; None if that cannot be written.

    The first start shows the contents of the open lesson at the left, where JupyterLab shows the names of files. What a
    learner opens instead is kept; so is what the learner has open for other work, which JupyterLab would reopen here.
    """
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    where = storage.folder() / "workspaces" / hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    layout = {"left": {"collapsed": False, "visible": True, "current": _CONTENTS, "widgets": [_CONTENTS]}}
    first = {"data": {"layout-restorer:data": layout}, "metadata": {"id": "default"}}
    try:
        if not any(where.glob("*")):
            WorkspacesManager(str(where)).save("default", json.dumps(first))
    except OSError:
        return None
    return where


def add_kernel(data: Path) -> None:
    """Let Jupyter start our kernel for Python in place of any other: this interpreter, which imports torch at once.

    `data` is the folder in which Jupyter is to find it.
    """
    from ipykernel.kernelspec import KERNEL_NAME, write_kernel_spec

    # In the terminal each kernel would warn that it uses TCP, though of this machine alone.
    arguments = [
        f"--InteractiveShellApp.extra_extensions={preload.__name__}",
        "--Application.log_level=ERROR",
    ]
    write_kernel_spec(data / "kernels" / KERNEL_NAME, extra_arguments=arguments)
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [str(data), os.environ.get("JUPYTER_PATH")]))


def _end_requests() -> None:
    """End the requests that a stopped server leaves unfinished, after their writing to files.

    Jupyter Server stops its loop in the middle of them. A save waits for a thread of anyio, which ends with the
    request only; Python waits for the thread, and the command would never return (jupyter_server 2.21).
    """
    from jupyter_server.serverapp import ServerApp
    from tornado.platform.asyncio import BaseAsyncIOLoop

    loop = cast(BaseAsyncIOLoop, ServerApp.instance().io_loop).asyncio_loop
    if requests := asyncio.all_tasks(loop):
        for request in requests:
            request.cancel()
        loop.run_until_complete(asyncio.wait(requests, timeout=_FINISH))


def config_folders(language: str) -> list[Path]:
    """Return the folders that JupyterLab reads in addition to the learner's own configuration.

    page_config.json disables JupyterLab's announcements: no question at the first start, no network request.
    For a reader of one language JupyterLab's menus are in that language; this is only a default, which a
    language chosen in JupyterLab's own settings overrides. For readers of both languages JupyterLab's default
    stays.
    """
    ours = Path(__file__).parent / "jupyter"
    return [ours, *(ours / known for known in LANGUAGES if known == language)]
