"""A notebook in a browser, as a learner handles it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, TimeoutError, expect

from hookedu import catalog

_RUN = 180_000  # ms that a notebook may take to run beside other tests; lesson 12 starts processes of its own
_PICTURES = catalog.ROOT / "course" / "images"

# Whether this page is connected to a notebook's idle kernel, and knows it: JupyterLab drops what is run before, or asks
# for a kernel. Notebook 7 shows an idle kernel before it has one, hence the server's word as well.
_CONNECTED = """async name => {
  if (!document.querySelector('.jp-Notebook-ExecutionIndicator[data-status=idle]')) return false;
  const sessions = await (await fetch('/api/sessions')).json();
  return sessions.some(s => s.path === name && s.kernel.connections > 0 && s.kernel.execution_state === 'idle');
}"""
# Whether any cell runs or has run.
_BEGUN = "() => [...document.querySelectorAll('.jp-Notebook .jp-InputPrompt')].some(p => /[*\\d]/.test(p.innerText))"
_CHANGED = "([prompt, before]) => prompt.innerText !== before"  # "[*]:" while it runs, then its number
# Contrast by WCAG 2 of every text in the elements that match, against what is really painted behind it.
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


def contrasts(elements: Locator) -> list[tuple[float, str]]:
    """Contrast ratio and text of each of these elements that can be seen and holds text; 4.5 is WCAG's bound."""
    return [(ratio, text) for ratio, text in elements.evaluate_all(_CONTRAST)]


class Notebook:
    """One open notebook. Collects what a learner should never see: dialogs and errors in the console."""

    def __init__(self, page: Page, path: Path, show: Callable[[], object]):
        """Have it shown in a page that shows no other, and wait until its kernel is there."""
        self.page, self.path = page, path
        self.ids = [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
        self.console_errors: list[str] = []
        page.on(
            "console", lambda m: m.type == "error" and self.console_errors.append(f"{m.text} {m.location}")
        )
        page.on("pageerror", lambda error: self.console_errors.append(str(error)))
        show()
        expect(page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(self.ids), timeout=60_000)
        page.wait_for_function(_CONNECTED, arg=path.name, timeout=60_000, polling=100)

    def close(self) -> None:
        """Close it through the menu, with its kernel, and leave the page to the next."""
        self.menu("File", "Close and Shut Down Notebook…")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        expect(self.page.locator(".jp-Notebook")).to_have_count(0)

    def use(self, theme: str) -> None:
        """Change to JupyterLab's "light" or "dark" theme, which it remembers on the server."""
        is_light = str(theme == "light").lower()
        if self.page.locator("body").get_attribute("data-jp-theme-light") != is_light:
            self.menu("Settings", "Theme", f"JupyterLab {theme.capitalize()}")
            self.page.locator(f"body[data-jp-theme-light={is_light}]").wait_for(state="attached")

    def menu(self, *labels: str) -> None:
        """Click through the menu bar."""
        self.page.locator(".lm-MenuBar-itemLabel", has_text=labels[0]).first.click()
        for label in labels[1:]:
            item = self.page.locator(".lm-Menu-itemLabel").get_by_text(label, exact=True)
            item.last.hover()
            item.last.click()

    def cell(self, cell_id: str) -> Locator:
        """The cell of that id."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(self.ids.index(cell_id))

    def run_all(self) -> None:
        """Run every cell, and wait until the last one has its number."""
        self._insist(lambda: self.menu("Run", "Run All Cells"), _BEGUN)
        self._wait_for(self.page.locator(".jp-CodeCell").last)

    def run(self, cell_id: str) -> Locator:
        """Run one cell with Shift+Enter, wait for it, and return its output area."""
        cell = self.cell(cell_id)
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()

        def press() -> None:
            cell.locator(".cm-content").click()
            self.page.keyboard.press("Shift+Enter")

        self._insist(press, _CHANGED, [prompt.element_handle(), before])
        self._wait_for(cell, before)
        return cell.locator(".jp-Cell-outputArea")

    def _insist(self, act: Callable[[], None], begun: str, arg: Any = None) -> None:
        """JupyterLab drops a run while its connection settles: a learner sees that nothing happens, and tries again."""
        for _ in range(3):
            act()
            try:
                self.page.wait_for_function(begun, arg=arg, timeout=5_000)
                return
            except TimeoutError:
                continue

    def type_into(self, cell_id: str, code: str) -> None:
        """Replace a cell's code, through the keyboard."""
        self.cell(cell_id).locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(code)

    def _wait_for(self, cell: Locator, before: str = "") -> None:
        self.page.wait_for_function(
            "([e, before]) => /\\[\\d+\\]/.test(e.innerText) && e.innerText !== before",
            arg=[cell.locator(".jp-InputPrompt").element_handle(), before],
            timeout=_RUN,
        )

    def cell_errors(self) -> list[str]:
        """What cells wrote to stderr or raised."""
        shown = '[data-mime-type="application/vnd.jupyter.stderr"], [data-mime-type="application/vnd.jupyter.error"]'
        return self.page.locator(".jp-Notebook").locator(shown).all_inner_texts()

    def dialogs(self) -> list[str]:
        """What asks for an answer or pops up."""
        return self.page.locator(".jp-Dialog, .Toastify__toast").all_inner_texts()

    def speaks(self, *languages: str) -> None:
        """Wait until the page shows these languages and no other: the kernel answers a click on the toggle."""
        script = """languages => ['zh', 'en'].every(language => {
          const shown = getComputedStyle(document.querySelector(`.jp-Notebook [lang=${language}]`)).display !== 'none';
          return shown === languages.includes(language);
        })"""
        self.page.wait_for_function(script, arg=languages)

    def visible(self, language: str, within: str = ".jp-RenderedMarkdown") -> int:
        """How many texts of a language can be seen within elements of this notebook."""
        script = "elements => elements.filter(e => e.offsetParent !== null && e.innerText.trim()).length"
        return self.page.locator(f'.jp-Notebook {within} [lang="{language}"]').evaluate_all(script)

    def contrasts(self, within: str) -> list[tuple[float, str]]:
        """Contrast ratio and text of everything readable within; 4.5 is WCAG's bound for body text."""
        return contrasts(self.page.locator(f".jp-Notebook {within} *"))

    def scroll_to(self, cell_id: str) -> None:
        """Bring a cell to the top of the page."""
        self.cell(cell_id).evaluate("cell => cell.scrollIntoView({block: 'start'})")

    def picture(self, name: str, of: Locator | None = None) -> None:
        """Keep a screenshot of the notebook, or of a part, as course/images/NAME.png where HOOKEDU_PICTURES is set."""
        if os.environ.get("HOOKEDU_PICTURES"):
            usual = self.page.viewport_size
            if of is not None:  # all of it in view
                self.page.set_viewport_size(usual | {"height": 1200})
            (of or self.page.locator(".jp-NotebookPanel")).screenshot(path=_PICTURES / f"{name}.png")
            self.page.set_viewport_size(usual)
