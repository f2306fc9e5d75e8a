"""What language a notebook on the screen, what its cells printed, and its file are in."""

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from playwright.sync_api import Page, expect

from hookedu import catalog
from hookedu.cells import source_of
from tests.authoring.test_localize import CHINESE, SENTENCE, STAYS
from tests.browser.notebook import Notebook

MENUS = {"zh": ["文件", "编辑", "运行"], "en": ["File", "Edit", "Run"]}
OTHER = {"zh": "en", "en": "zh"}
CELLS = ".jp-Cell, .jp-TableOfContents-tree"
PRINTED = ".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stdout']"
# What is on the screen and is no code: rendered text, contents panel, tabs, menus, outputs, and the labels of controls.
_PROSE = """() => {
  const shown = e => e.checkVisibility({visibilityProperty: true});
  const texts = '.jp-RenderedMarkdown, .jp-TableOfContents, .lm-MenuBar, .lm-TabBar-tabLabel, .hookedu-panel, .hookedu-live';
  return [...document.querySelectorAll(texts)].filter(shown).map(e => {
    const copy = e.cloneNode(true);
    const gone = new Set([...e.querySelectorAll('*')].map((x, i) => shown(x) ? null : i).filter(i => i !== null));
    [...copy.querySelectorAll('*')].forEach((x, i) => { if (gone.has(i) || /^(CODE|PRE|OPTION|STYLE|SVG)$/i.test(x.tagName)) x.textContent = ''; });
    return copy.textContent;
  });
}"""


def title(name: str, language: str) -> str:
    """Return the title of the lesson in that file: "02 Tensor hooks"."""
    lesson = catalog.find(Path(name).stem)
    return f"{lesson.id} {getattr(lesson.title, language)}"


def speaks_only(
    notebook: Notebook,
    language: str,
    within: str = CELLS,
    *,
    own: str = "",
    printed: str | None = None,
    others: Sequence[str] = (),
) -> None:
    """Check that everything on the screen is in one language; the buttons name each language in itself.

    `own` is the learner's answer. `printed` is the language in which cells have run: no press changes what they printed
    until they run again. `others` are English sentences of Python and PyTorch, which stay English.
    """
    contents = notebook.page.locator(".jp-TableOfContents-tree")
    expect(contents).to_contain_text(title(notebook.path.name, language), timeout=15_000)
    expect(contents).not_to_contain_text(title(notebook.path.name, OTHER[language]))
    left_out = PRINTED if printed not in (None, language) else ".nothing"

    def foreign() -> list[str]:
        if language == "en":
            return chinese(notebook, within, left_out, own)
        return [sentence for sentence in english(notebook) if sentence not in others]

    with contextlib.suppress(TimeoutError):  # cells of prose are drawn one after the other
        until(notebook.page, lambda: not foreign())
    assert not (found := foreign()), found


def chinese(notebook: Notebook, within: str, left_out: str = ".nothing", own: str = "") -> list[str]:
    """Return the lines on the screen that have a Chinese character, but for the learner's own."""
    lines = "\n".join(notebook.page.locator(within).all_inner_texts()).replace("中文", "").splitlines()
    printed = "\n".join(notebook.page.locator(left_out).all_inner_texts())
    known = [line.strip() for line in (own + "\n" + printed).splitlines()]
    return [line for line in lines if CHINESE.search(line) and line.strip() not in known]


def english(notebook: Notebook) -> list[str]:
    """Return the English sentences on the screen that are not in code."""
    prose = [text for text in notebook.page.evaluate(_PROSE) if text.strip()]
    assert len(prose) > 5
    return sentences(prose)


def sentences(texts: list[str]) -> list[str]:
    """Return the English sentences in these texts, but for names of papers and the like."""
    return [found for text in texts for found in SENTENCE.findall(text) if found not in STAYS]


def saved_in(notebook: Notebook, language: str) -> None:
    """Wait until a notebook's file is in a language: a press saves it."""
    until(notebook.page, lambda: starts_in(notebook.path, language))
    expect(notebook.page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)


def starts_in(path: Path, language: str) -> bool:
    """Return whether the title in a lesson's file is in that language; False while the file is being written."""
    try:
        first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
    except ValueError:
        return False
    return source_of(first).startswith(f"# {title(path.name, language)}\n")


def until(page: Page, holds: Callable[[], object]) -> None:
    """Wait until something holds; TimeoutError if it never does."""
    end = time.monotonic() + 30
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        page.wait_for_timeout(50)
