"""A real JupyterLab, started by `hookedu lab` in an empty home, and a real Chromium that looks at it."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, sync_playwright

from hookedu import course
from tests.browser.notebook import Notebook

# A kernel with torch takes 600 MB: none outlives the tests of its file.
_SHUT_DOWN = """async () => {
  const token = document.cookie.match(/_xsrf=([^;]+)/)?.[1] ?? '';
  const sessions = await (await fetch('/api/sessions')).json();
  await Promise.all(sessions.map(session =>
    fetch(`/api/sessions/${session.id}`, {method: 'DELETE', headers: {'X-XSRFToken': token}})));
}"""
_START = 90  # seconds that JupyterLab may take to answer


class NoChromium(Exception):
    """There is no browser to test with."""


@contextmanager
def chromium() -> Iterator[BrowserContext]:
    """Debian's Chromium, or Chrome where that is what people have: one profile, so that pages load from its cache."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        raise NoChromium("Chromium is not installed (Debian: apt install chromium fonts-noto-cjk)")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser.new_context(viewport={"width": 1280, "height": 900})
        browser.close()


class Lab:
    """A running JupyterLab: where it is, and the learner's folder behind it."""

    def __init__(self, folder: Path, port: int):
        self.folder, self.port = folder, port

    def url(self, name: str = "") -> str:
        """The page that opens a notebook alone, in a workspace of its own; the start page without a name."""
        return f"http://127.0.0.1:{self.port}/lab" + (
            f"/workspaces/{Path(name).stem}/tree/{name}" if name else ""
        )

    def open(self, path: Path, browser: BrowserContext) -> Notebook:
        """A copy of that notebook in a page of its own."""
        name = f"{path.stem}-{len(list(self.folder.glob('*.ipynb')))}.ipynb"
        shutil.copy(path, self.folder / name)
        return Notebook(browser.new_page(), self.url(name), self.folder / name)

    def shut_down(self, browser: BrowserContext) -> None:
        """End all kernels and close all pages."""
        for number, page in enumerate(browser.pages):
            if number == 0:
                page.evaluate(_SHUT_DOWN)
            page.close()


@contextmanager
def running(home: Path) -> Iterator[Lab]:
    """`hookedu lab` as a newcomer runs it, but for the port, the token and the browser that it would open.

    RuntimeError with the end of its log where it does not answer.
    """
    settings = home / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    # Keeps cells that are out of view in the page, so that a test can look at all of them.
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["--folder", home / "lessons", "--no-browser", f"--port={port}", "--IdentityProvider.token="]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "JUPYTER"))}
    env = kept | {
        "HOME": str(home),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "PYTHONPATH": str(course.ROOT),
    }
    with open(home / "log", "w") as log:
        command = [sys.executable, "-m", "hookedu", "lab", *map(str, arguments)]
        server = subprocess.Popen(command, cwd=home, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        lab = Lab(home / "lessons", port)
        _wait_until_it_answers(lab, server, home / "log")
        yield lab
    finally:
        server.terminate()
        server.wait(20)


def _wait_until_it_answers(lab: Lab, server: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + _START
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(lab.url(), timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            if server.poll() is not None:
                break
            time.sleep(0.1)
    raise RuntimeError(
        "JupyterLab did not start:\n" + log.read_text(encoding="utf-8", errors="replace")[-3000:]
    )
