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
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from hookedu import course
from tests.browser.notebook import Notebook

# A kernel with torch takes 600 MB: none outlives its test.
_SHUT_DOWN = """async () => {
  const token = document.cookie.match(/_xsrf=([^;]+)/)?.[1] ?? '';
  for (const session of await (await fetch('/api/sessions')).json())
    await fetch(`/api/sessions/${session.id}`, {method: 'DELETE', headers: {'X-XSRFToken': token}});
}"""
_START = 90  # seconds that JupyterLab may take to answer


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items) -> None:
    """One worker takes all browser tests: they share one server."""
    for item in items:
        if "browser" in Path(item.fspath).parts:
            item.add_marker(pytest.mark.xdist_group("browser"))


# Of this package, not of the session: Playwright keeps an event loop running in the thread, and a widget that is
# tested afterwards in the same process would take it for a kernel's.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, or Chrome where that is what people have."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        missing = "Chromium is not installed (Debian: apt install chromium fonts-noto-cjk)"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
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


@pytest.fixture(scope="package")
def lab(tmp_path_factory, browser) -> Iterator[Lab]:
    """`hookedu lab` as a newcomer runs it, but for the port, the token and the browser that it would open."""
    home = tmp_path_factory.mktemp("newcomer")
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
            time.sleep(0.2)
    pytest.fail("JupyterLab did not start:\n" + log.read_text(encoding="utf-8", errors="replace")[-3000:])


@pytest.fixture
def open_notebook(lab, browser, tmp_path):
    """Open a copy of a lesson, one for each test, in a fresh browser profile."""
    pages = []

    def open_(path: Path, theme: str = "light") -> Notebook:
        name = f"{path.stem}-{len(list(lab.folder.glob('*.ipynb')))}.ipynb"
        shutil.copy(path, lab.folder / name)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        pages.append(page)
        return Notebook(page, lab.url(name), lab.folder / name, theme)

    yield open_
    for number, page in enumerate(pages):
        page.screenshot(
            path=tmp_path / f"page-{number}.png"
        )  # to look at; pytest keeps those of its last three runs
        page.evaluate(_SHUT_DOWN)
        page.close()
