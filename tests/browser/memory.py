"""What widgets leave in the memory of the page and of the kernel once their cells have run again."""

import time
from collections.abc import Callable

from playwright.sync_api import Page

from tests.browser.notebook import Notebook

_SECONDS = (
    30  # that a busy browser may take: JupyterLab disposes of an output a moment after its cell has run again
)


def leaves_nothing(notebook: Notebook, shown: Callable[[int], str], cells: int = 1) -> str:
    """Fail if twenty runs leave more than two do.

    Parameters
    ----------
    shown
        Runs the cells that many times and returns what is then in the kernel.
    cells
        The number of these cells. The browser may hold one or two earlier views of each (two were seen once, for a reason
        that is not known); a leak would be all twenty.

    Returns
    -------
    str
        What is in the kernel in the end.
    """
    in_kernel, (views, listeners) = shown(2), _in_page(notebook.page)
    after, end = shown(20), time.monotonic() + _SECONDS
    assert after == in_kernel
    found = _in_page(notebook.page)
    while found[0] > views + 2 * cells or found[1] > listeners:
        assert time.monotonic() < end, (
            f"views, listeners: {found} after twenty runs, {views, listeners} after two"
        )
        notebook.page.wait_for_timeout(500)
        found = _in_page(notebook.page)
    return after


def _in_page(page: Page) -> tuple[int, int]:
    """Return how many views of widgets are in the memory of the page, shown or not, and how many listeners on its window."""
    devtools = page.context.new_cdp_session(page)

    def of(method: str, **given: object) -> dict:
        return devtools.send(method, given)

    divs = of("Runtime.evaluate", expression="HTMLDivElement.prototype")["result"]["objectId"]
    found = of("Runtime.queryObjects", prototypeObjectId=divs)["objects"]  # collects garbage first
    count = "function() { return this.filter(e => e.classList.contains('hookedu-live')).length }"
    views = of("Runtime.callFunctionOn", objectId=found["objectId"], functionDeclaration=count)
    window = of("Runtime.evaluate", expression="window")["result"]["objectId"]
    listeners = of("DOMDebugger.getEventListeners", objectId=window)["listeners"]
    devtools.detach()
    return views["result"]["value"], len(listeners)
