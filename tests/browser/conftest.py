"""One JupyterLab and one Chromium for all browser tests; each file of tests opens the notebooks that it looks at."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.lab import Lab, NoChromium, chromium, of_this_clone
from tests.browser.notebook import Notebook


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items) -> None:
    """One worker takes all browser tests: they share one server."""
    for item in items:
        if "browser" in Path(item.fspath).parts:
            item.add_marker(pytest.mark.xdist_group("browser"))


# Of this package, not of the session: Playwright keeps an event loop running in the thread, and a widget that is
# tested afterwards in the same process would take it for a kernel's.
@pytest.fixture(scope="package")
def browser() -> Iterator[BrowserContext]:
    try:
        with chromium() as browser:
            yield browser
    except NoChromium as missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(missing))


@pytest.fixture(scope="package")
def lab(tmp_path_factory, browser) -> Iterator[Lab]:
    with of_this_clone(tmp_path_factory.mktemp("newcomer")) as lab:
        yield lab


@pytest.fixture(scope="module")
def open_notebook(lab, browser) -> Iterator[Callable[[Path], Notebook]]:
    """Open a copy of a notebook. Its page and kernel last for the tests of one file: both take seconds to start."""
    yield lambda path: lab.open(path, browser)
    lab.shut_down(browser)


@pytest.fixture(autouse=True)
def screenshots(browser, tmp_path) -> Iterator[None]:
    """What the pages show at the end of each test, to look at: pytest keeps those of its last three runs."""
    yield
    for number, page in enumerate(browser.pages):
        page.screenshot(path=tmp_path / f"page-{number}.png")


@pytest.fixture(scope="module", params=["light", "dark"])
def theme(request) -> str:
    """Of a module: pytest runs all tests of one theme, then all of the other."""
    return request.param
