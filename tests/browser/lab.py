"""A real JupyterLab or Jupyter Notebook in an empty home directory, and a real Chromium to view it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from playwright.sync_api import BrowserContext, Page, sync_playwright

from hookedu import catalog
from tests.browser.notebook import Notebook, write_cells

# Shuts down all kernels: one with torch takes 600 MB, so none may outlive the tests of its file.
_SHUT_DOWN = """async () => {
  const token = document.cookie.match(/_xsrf=([^;]+)/)?.[1] ?? '';
  const sessions = await (await fetch('/api/sessions')).json();
  await Promise.all(sessions.map(session =>
    fetch(`/api/sessions/${session.id}`, {method: 'DELETE', headers: {'X-XSRFToken': token}})));
}"""
T = TypeVar("T")
_START = 90  # seconds that a server may take to respond


class NoChromium(Exception):
    """No browser is installed to test with."""


@contextmanager
def chromium() -> Iterator[BrowserContext]:
    """Yield a context of Chromium or, where only that is installed, Chrome.

    All pages share one profile, so that they load from its cache. NoChromium where neither is installed.
    """
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        raise NoChromium("Chromium is not installed (Debian: apt install chromium fonts-noto-cjk)")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser.new_context(viewport={"width": 1280, "height": 900})
        browser.close()


class Lab:
    """A running JupyterLab, or Jupyter Notebook 7 if `classic`: its port, and the learner's folder that it serves."""

    def __init__(self, folder: Path, port: int, classic: bool = False):
        self.folder, self.port, self.classic = folder, port, classic

    def url(self, name: str = "") -> str:
        """Return the URL that opens only this notebook, in a separate workspace; without a name, the start page."""
        if self.classic:
            return f"http://127.0.0.1:{self.port}/" + (f"notebooks/{name}" if name else "tree")
        return f"http://127.0.0.1:{self.port}/lab" + (
            f"/workspaces/{Path(name).stem}/tree/{name}" if name else ""
        )

    def open(self, path: Path, browser: BrowserContext) -> Notebook:
        """Open a copy of a notebook in a new page."""
        name = f"{path.stem}-{len(list(self.folder.glob('*.ipynb')))}.ipynb"
        shutil.copy(path, self.folder / name)
        return self.visit(name, browser)

    def visit(self, name: str, browser: BrowserContext) -> Notebook:
        """Open the learner's own notebook of that name in a new page."""
        page = browser.new_page()
        return Notebook(page, self.folder / name, lambda: page.goto(self.url(name)))

    def click(self, name: str, page: Page) -> Notebook:
        """Open the learner's own notebook of that name from the file browser of a JupyterLab page."""
        if page.locator(".jp-Notebook").count():  # left open by a failed test
            page.goto(self.url() + "?reset")
        behind = page.locator('.jp-SideBar .lm-TabBar-tab[data-id="filebrowser"]:not(.lm-mod-current)')
        if behind.count():  # another panel, such as the contents
            behind.click()
        item = page.locator(".jp-DirListing-item", has_text=name)
        return Notebook(page, self.folder / name, item.dblclick)

    def shut_down(self, browser: BrowserContext) -> None:
        """Shut down all kernels and close all pages."""
        for number, page in enumerate(browser.pages):
            if number == 0:
                page.evaluate(_SHUT_DOWN)
            page.close()


def newcomer(home: Path) -> dict[str, str]:
    """Return the environment variables of a user with an empty home and no settings for Python or Jupyter."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "JUPYTER", "PYTHON", "XDG_"))}
    folders = {
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
    }
    # JupyterLab's menus follow LANG, and the tests click on English labels.
    return kept | {"HOME": str(home), "LANG": "C.UTF-8"} | folders


@contextmanager
def of_this_clone(home: Path, *options: str) -> Iterator[Lab]:
    """Run `hookedu lab` of this clone, with these options, as a new user does."""
    command = [sys.executable, "-m", "hookedu", "lab", "--folder", home / "lessons", *options]
    with running(command, home / "lessons", newcomer(home) | {"PYTHONPATH": str(catalog.ROOT)}) as lab:
        yield lab


@contextmanager
def notebook_7(home: Path) -> Iterator[Lab]:
    """Run Jupyter Notebook 7 with the hookedu of this clone, on an empty folder of a new user."""
    (folder := home / "lessons").mkdir(parents=True)
    command = [sys.executable, "-m", "notebook", f"--ServerApp.root_dir={folder}", "--allow-root"]
    env = newcomer(home) | {"PYTHONPATH": str(catalog.ROOT)}
    with running(command, folder, env, classic=True) as served:
        yield served


def everywhere(cells: dict[str, str]) -> Iterator[tuple[str, Notebook]]:
    """Open these cells in JupyterLab, then in Notebook 7, run them, and yield the name of the place and the notebook."""
    with chromium() as browser:
        for name, served in {"JupyterLab": of_this_clone, "Notebook 7": notebook_7}.items():
            with tempfile.TemporaryDirectory() as home, served(Path(home) / "home") as lab:
                notebook = lab.open(write_cells(Path(home) / "cells.ipynb", cells), browser)
                notebook.run_all()
                yield name, notebook
                lab.shut_down(browser)


@contextmanager
def running(
    command: Sequence[str | Path], folder: Path, env: dict[str, str], classic: bool = False
) -> Iterator[Lab]:
    """Run a command that serves `folder` until the block ends, with a free port, no token and no browser.

    RuntimeError with the tail of its log where the server does not respond.
    """
    home = Path(env["HOME"])
    settings = home / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True, exist_ok=True)
    # Keep off-screen cells in the DOM, so that a test can inspect all of them.
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    _without_what_learners_lack(home / ".jupyter")
    # The server chooses the port: one that we found free may be another test's before the server listens.
    arguments = [*map(str, command), "--no-browser", "--port=0", "--IdentityProvider.token="]
    with open(home / "log", "w") as log:
        server = subprocess.Popen(arguments, cwd=home, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        told = Path(env["JUPYTER_RUNTIME_DIR"]) / f"jpserver-{server.pid}.json"
        port = _wait_for(lambda: _port(told), server, home / "log")
        lab = Lab(folder, port, classic)
        _wait_for(lambda: _answers(lab), server, home / "log")
        yield lab
    finally:
        server.terminate()
        try:
            server.wait(60)
        finally:
            server.kill()


def _without_what_learners_lack(config: Path) -> None:
    """Disable the Jupyter extensions of the extra "author", which `make lab` does not install."""
    (config / "labconfig").mkdir(parents=True, exist_ok=True)
    pages = {"disabledExtensions": {"@jupyter/nbgrader": True, "jupyterlab-jupytext": True}}
    (config / "labconfig" / "page_config.json").write_text(json.dumps(pages))
    parts = ("formgrader", "validate_assignment", "assignment_list", "course_list")
    servers = ("jupyterlab_jupytext", *(f"nbgrader.server_extensions.{part}" for part in parts))
    server = {"ServerApp": {"jpserver_extensions": dict.fromkeys(servers, False)}}
    (config / "jupyter_server_config.json").write_text(json.dumps(server))


def _port(told: Path) -> int | None:
    """Return the port in the file in which a server describes itself; None until it is written whole."""
    try:
        return json.loads(told.read_text())["port"]
    except (OSError, ValueError):
        return None


def _answers(lab: Lab) -> bool:
    try:
        urllib.request.urlopen(lab.url(), timeout=5).close()
    except OSError:
        return False
    return True


def _wait_for(value: Callable[[], T], server: subprocess.Popen, log: Path) -> T:
    """Return the first true value while the server runs; RuntimeError where there is none."""
    end = time.monotonic() + _START
    while time.monotonic() < end and server.poll() is None:
        if found := value():
            return found
        time.sleep(0.1)
    raise RuntimeError(
        "The server did not start:\n" + log.read_text(encoding="utf-8", errors="replace")[-3000:]
    )
