"""Shared JupyterLab and Chromium for all browser tests; each test file opens the notebooks that it needs."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.lab import Lab, NoChromium, chromium, of_this_clone
from tests.browser.notebook import Notebook, write_cells

_FAILED = pytest.StashKey[bool]()
# What is expected of a page is often the kernel's answer, and other tests keep the processors busy: not Playwright's 5 s.
expect.set_options(timeout=30_000)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items) -> None:
    """Run all browser tests in one worker: they share one server."""
    for item in items:
        if "browser" in Path(item.fspath).parts:
            item.add_marker(pytest.mark.xdist_group("browser"))


# Package scope instead of session scope: Playwright keeps an event loop running in the thread, and a widget tested
# later in the same process would mistake it for a kernel's.
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
    """Open a copy of a notebook. Its page and kernel, which take seconds to start, last for one test file."""
    yield lambda path: lab.open(path, browser)
    lab.shut_down(browser)


@pytest.fixture(scope="module")
def open_cells(open_notebook, tmp_path_factory) -> Callable[[dict[str, str]], Notebook]:
    """Return a function that opens a notebook of these cells of code, by id, and runs it."""

    def opened(cells: dict[str, str]) -> Notebook:
        notebook = open_notebook(write_cells(tmp_path_factory.mktemp("cells") / "cells.ipynb", cells))
        notebook.run_all()
        return notebook

    return opened


@pytest.fixture(scope="module")
def notebook(request, open_cells) -> Notebook:
    """Return the notebook of the test file's `CELLS`."""
    return open_cells(request.module.CELLS)


@pytest.fixture
def no_errors(notebook) -> Iterator[None]:
    """Begin a test in English, and fail it if a cell or the console has reported an error."""
    notebook.choose("en")
    yield
    notebook.page.emulate_media(reduced_motion="null", forced_colors="null")  # None would change nothing
    assert notebook.cell_errors() == []
    assert notebook.console_errors == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Note on a test that it has failed, for the fixture `screenshots`."""
    report = yield
    item.stash[_FAILED] = report.failed or item.stash.get(_FAILED, False)
    return report


@pytest.fixture(autouse=True)
def screenshots(request, browser, tmp_path) -> Iterator[None]:
    """Save a screenshot of every page at the end of a test that fails; pytest keeps those of its last three runs."""
    yield
    for number, page in enumerate(browser.pages if request.node.stash.get(_FAILED, False) else ()):
        page.screenshot(path=tmp_path / f"page-{number}.png")


@pytest.fixture(scope="module", params=["light", "dark"])
def theme(request) -> str:
    """Return the theme. Module scope: pytest runs all tests with one theme, then all with the other."""
    return request.param


@pytest.fixture(scope="module", params=["en", "zh"])
def language(request) -> str:
    """Return the language in which a file of tests starts its JupyterLab. Module scope, as of `theme`."""
    return request.param


@pytest.fixture(scope="module")
def page(started, browser) -> Iterator[Page]:
    """Open an empty JupyterLab of the server `started`, in which a file of tests opens one lesson after the other."""
    page = browser.new_page()
    page.goto(started.url() + "?reset")
    yield page
    started.shut_down(browser)
