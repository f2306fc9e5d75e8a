"""A notebook in a browser, operated as a learner does."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Locator, Page, TimeoutError, expect

from hookedu import catalog

_RUN = 180_000  # ms that a notebook may take while other tests run; lesson 12 starts processes of its own
_PICTURES = catalog.ROOT / "course" / "images"

# Whether this page is connected to the notebook's idle kernel and shows it: before that, JupyterLab drops what is run,
# or asks for a kernel. Notebook 7 shows an idle kernel before it has one, so the server is asked as well.
_CONNECTED = """async name => {
  if (!document.querySelector('.jp-Notebook-ExecutionIndicator[data-status=idle]')) return false;
  const sessions = await (await fetch('/api/sessions')).json();
  return sessions.some(s => s.path === name && s.kernel.connections > 0 && s.kernel.execution_state === 'idle');
}"""
# WCAG 2 contrast ratio of every text in the matching elements against the background actually painted behind it.
_CONTRAST = """elements => {
  const parse = c => { const n = c.match(/[\\d.]+/g).map(Number), full = c.startsWith('color(') ? 255 : 1;
                       return [n[0] * full, n[1] * full, n[2] * full, n[3] ?? 1]; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat([1]);
  const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                       return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { const layers = []; for (; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
                        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]); };
  return elements.filter(e => e.offsetParent !== null
                           && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .map(e => { const back = behind(e), text = over(parse(getComputedStyle(e).color), back);
                const [a, b] = [light(text), light(back)];
                return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.textContent.trim().slice(0, 60)]; });
}"""


def barriers(page: Page, within: str | None = None) -> list[str]:
    """Return the serious violations of accessibility that axe-core finds in a page, or within an element of it."""
    # Without the preload, in which axe-core loads style sheets once more, from where they may not be.
    found = Axe().run(page, context=within, options={"preload": False}).response["violations"]
    return [
        f"{v['id']}: {v['help']}: {[node['html'][:120] for node in v['nodes']]}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]


def contrasts(elements: Locator) -> list[tuple[float, str]]:
    """Return the contrast ratio and the text of each visible element that has text; WCAG requires 4.5."""
    return [(ratio, text) for ratio, text in elements.evaluate_all(_CONTRAST)]


def write_cells(path: Path, cells: dict[str, str]) -> Path:
    """Write a notebook of these cells of code, by id, and return its path."""
    code = [nbformat.v4.new_code_cell(text, id=name) for name, text in cells.items()]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=code, metadata=kernel), path)
    return path


class Notebook:
    """One open notebook. Collects console errors, which a learner should never see."""

    def __init__(self, page: Page, path: Path, show: Callable[[], object]):
        """Show the notebook in a page that shows no other, and wait for its kernel."""
        self.page, self.path = page, path
        self.ids = [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
        self.console_errors: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.console_errors.append(str(error)))
        show()
        expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(self.ids), timeout=60_000)
        self._wait_until_connected()

    def close(self) -> None:
        """Close the notebook and its kernel through the menu; the page can then be reused."""
        self._command(0, "filemenu:close-and-cleanup")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        expect(self.page.locator(".jp-Notebook")).to_have_count(0)

    def use(self, theme: str) -> None:
        """Switch to JupyterLab's "light" or "dark" theme, which the server remembers."""
        is_light = str(theme == "light").lower()
        if self.page.locator("body").get_attribute("data-jp-theme-light") != is_light:
            self.menu("Settings", "Theme", f"JupyterLab {theme.capitalize()}")
            self.page.locator(f"body[data-jp-theme-light={is_light}]").wait_for(state="attached")

    def menu(self, *labels: str) -> None:
        """Click through the menu bar. AssertionError with the text of any dialog that blocks it."""
        try:
            self.page.locator(".lm-MenuBar-itemLabel", has_text=labels[0]).first.click(timeout=10_000)
            for label in labels[1:]:
                item = self.page.locator(".lm-Menu-itemLabel").get_by_text(label, exact=True)
                item.last.hover(timeout=10_000)
                item.last.click(timeout=10_000)
        except TimeoutError as error:
            raise AssertionError(f"menu {labels}: dialogs {self.dialogs()}, {self.console_errors}") from error

    def _command(self, menu: int, command: str) -> None:
        """Click on a command in one of the menus, whatever their language."""
        self.page.locator(".lm-MenuBar-item").nth(menu).click()
        self.page.locator(f'.lm-Menu-item[data-command="{command}"]').click()

    def cell(self, cell_id: str) -> Locator:
        """Return the cell with that id."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(self.ids.index(cell_id))

    def run_all(self) -> None:
        """Run every cell, and wait until the last one has its execution number."""
        self._command(3, "runmenu:run-all")
        self._wait_for(self.page.locator(".jp-CodeCell").last)

    def restart(self) -> None:
        """Restart the kernel through the menu; outputs stay."""
        self._command(4, "kernelmenu:restart")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()

    def run(self, cell_id: str) -> Locator:
        """Run one cell with Shift+Enter, wait for it, and return its output area."""
        cell = self.cell(cell_id)
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")
        self._wait_for(cell, before)
        return cell.locator(".jp-Cell-outputArea")

    def said(self, cell_id: str, wanted: str) -> str:
        """Run a cell until its output matches, and return it.

        What a widget tells Python arrives in a thread of its own, and may come after a cell that was run later.
        """
        end = time.monotonic() + 30
        while not re.search(wanted, output := self.run(cell_id).inner_text()):
            assert time.monotonic() < end, f"{wanted!r} is not in {output!r}"
        return output

    def _note(self, message: ConsoleMessage) -> None:
        # JupyterLab asks the browser for an attached picture before it puts the picture's own data in place.
        attached = message.location["url"].startswith("attachment:")
        if message.type == "error" and not attached:
            self.console_errors.append(f"{message.text} {message.location}")

    def _wait_until_connected(self) -> None:
        """Wait for the kernel. Not with `wait_for_function`, to which the promise of an async function is true."""
        end = time.monotonic() + 60
        while not self.page.evaluate(_CONNECTED, self.path.name):
            assert time.monotonic() < end, f"no kernel: {self.dialogs()}, {self.console_errors}"
            self.page.wait_for_timeout(50)

    def type_into(self, cell_id: str, code: str) -> None:
        """Replace a cell's code with the keyboard."""
        self.cell(cell_id).locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(code)

    def _wait_for(self, cell: Locator, before: str = "") -> None:
        try:
            self.page.wait_for_function(
                "([e, before]) => /\\[\\d+\\]/.test(e.innerText) && e.innerText !== before",
                arg=[cell.locator(".jp-InputPrompt").element_handle(), before],
                timeout=_RUN,
            )
        except TimeoutError as error:
            prompts = self.page.locator(".jp-Notebook .jp-InputPrompt").all_inner_texts()
            said = (self.dialogs(), self.cell_errors(), self.console_errors)
            raise AssertionError(f"the cell never ended: {prompts}, {said}") from error

    def cell_errors(self) -> list[str]:
        """Return what cells wrote to stderr or raised."""
        shown = '[data-mime-type="application/vnd.jupyter.stderr"], [data-mime-type="application/vnd.jupyter.error"]'
        return self.page.locator(".jp-Notebook").locator(shown).all_inner_texts()

    def dialogs(self) -> list[str]:
        """Return the text of all dialogs and notifications."""
        return self.page.locator(".jp-Dialog, .Toastify__toast").all_inner_texts()

    def choose(self, language: str) -> None:
        """Press a button of LanguageToggle: "zh", "en" or "both"."""
        self.page.locator(".hookedu-language button").nth(("zh", "en", "both").index(language)).click()
        self.speaks(language)

    def speaks(self, language: str) -> None:
        """Wait until the notebook speaks this language, or "both"."""
        self.page.locator(f'.jp-NotebookPanel[data-hookedu-language="{language}"]').wait_for()

    def visible(self, language: str, within: str = ".jp-RenderedMarkdown") -> int:
        """Count the visible texts of a language within elements of this notebook."""
        script = "elements => elements.filter(e => e.offsetParent !== null && e.innerText.trim()).length"
        return self.page.locator(f'.jp-Notebook {within} [lang="{language}"]').evaluate_all(script)

    def contrasts(self, within: str) -> list[tuple[float, str]]:
        """Return the contrast ratio and text of everything readable within; WCAG requires 4.5 for body text."""
        return contrasts(self.page.locator(f".jp-Notebook {within} *"))

    def barriers(self, within: str) -> list[str]:
        """Return the serious violations of accessibility that axe-core finds within."""
        return barriers(self.page, within)

    def scroll_to(self, cell_id: str) -> None:
        """Scroll a cell to the top of the page."""
        self.cell(cell_id).evaluate("cell => cell.scrollIntoView({block: 'start'})")

    def picture(self, name: str, of: Locator | None = None) -> None:
        """Save a screenshot of the notebook or a part of it.

        It is written to course/images/NAME.png, and only where HOOKEDU_PICTURES is set.
        """
        if os.environ.get("HOOKEDU_PICTURES"):
            usual = self.page.viewport_size
            if of is not None:  # so that all of it is in view
                self.page.set_viewport_size(usual | {"height": 1200})
            (of or self.page.locator(".jp-NotebookPanel")).screenshot(path=_PICTURES / f"{name}.png")
            self.page.set_viewport_size(usual)
