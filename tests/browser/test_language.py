"""Tests of one language on the screen, in a JupyterLab that was started for it: lessons 00 and 02 as learners have them.

All tests of a language share a server and, in order, its pages: what is seen before any cell runs, after all have run,
after switching there and back, after a reload.
"""

import contextlib
import json
import re
import sys
import time

import pytest
from playwright.sync_api import expect

from hookedu import LanguageToggle, catalog
from hookedu.cells import source_of, variants_of
from hookedu.language import preference
from hookedu.widgets import modules
from tests.browser.lab import newcomer, running

NAMES = ("00_start_here.ipynb", "02_tensor_hooks.ipynb")
ANSWERS = {
    NAMES[0]: ("exercise-00-1", "def double(grad):\n    return 2 * grad  # 我写的 · mine"),
    NAMES[1]: ("exercise-02-1", "def watch(y, seen):\n    return y.register_hook(seen.append)  # 我写的"),
}
TITLES = {
    NAMES[0]: {"zh": "00 从这里开始", "en": "00 Start here"},
    NAMES[1]: {"zh": "02 张量钩子", "en": "02 Tensor hooks"},
}
MENUS = {"zh": ["文件", "编辑", "运行"], "en": ["File", "Edit", "Run"]}
OTHER = {"zh": "en", "en": "zh"}
CHINESE = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
# What is on the screen and is no code: rendered text, contents panel, tabs, menus, outputs, and the labels of controls.
PROSE = """() => {
  const shown = e => e.checkVisibility({visibilityProperty: true});
  const texts = '.jp-RenderedMarkdown, .jp-TableOfContents, .lm-MenuBar, .lm-TabBar-tabLabel, .hookedu-panel, .hookedu-widget, .hookedu-live';
  const found = [...document.querySelectorAll(texts)].filter(shown).map(e => {
    const copy = e.cloneNode(true);
    const gone = new Set([...e.querySelectorAll('*')].map((x, i) => shown(x) ? null : i).filter(i => i !== null));
    [...copy.querySelectorAll('*')].forEach((x, i) => { if (gone.has(i) || /^(CODE|PRE|OPTION|STYLE|SVG)$/i.test(x.tagName)) x.textContent = ''; });
    return copy.textContent;
  });
  return found;
}"""
PRINTED = ".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stdout']"
SENTENCE = re.compile(r"(?<!\w)(?:[A-Za-z][A-Za-z'’-]*,? ){3,}[A-Za-z]+")


@pytest.fixture(scope="module", params=["en", "zh"])
def language(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def started(language, tmp_path_factory):
    """Start `hookedu lab` in a language, as the first command of a newcomer."""
    home = tmp_path_factory.mktemp("newcomer")
    command = [sys.executable, "-m", "hookedu", "lab", "--folder", home / "lessons", "--language", language]
    with running(command, home / "lessons", newcomer(home) | {"PYTHONPATH": str(catalog.ROOT)}) as lab:
        yield lab


@pytest.fixture(scope="module")
def pages(started, browser):
    """Open each notebook once, run nothing, and show the contents panel."""
    opened = {}

    def page(name: str):
        if name not in opened:
            opened[name] = started.visit(name, browser)
            opened[name].page.keyboard.press("Control+Shift+K")
        return opened[name]

    yield page
    started.shut_down(browser)


@pytest.fixture(params=NAMES)
def notebook(pages, request):
    return pages(request.param)


def speaks_only(
    notebook, language: str, within: str = ".jp-Cell, .jp-TableOfContents-tree", *, printed: str | None = None
) -> None:
    """Check that everything on the screen is in one language; the buttons name each language in itself.

    `printed` is the language in which cells have run: no press changes what they printed until they run again.
    """
    contents = notebook.page.locator(".jp-TableOfContents-tree")
    expect(contents).to_contain_text(TITLES[notebook.path.name][language])
    expect(contents).not_to_contain_text(TITLES[notebook.path.name][OTHER[language]])
    left_out = PRINTED if printed not in (None, language) else ".nothing"

    def foreign(*args) -> list[str]:
        return chinese(*args, left_out) if language == "en" else english(*args)

    with contextlib.suppress(TimeoutError):  # cells of prose are drawn one after the other
        until(notebook.page, lambda: not foreign(notebook, within))
    assert foreign(notebook, within) == []


def chinese(notebook, within: str, left_out: str) -> list[str]:
    """Return the lines on the screen that have a Chinese character, but for the learner's own."""
    lines = "\n".join(notebook.page.locator(within).all_inner_texts()).replace("中文", "").splitlines()
    printed = "\n".join(notebook.page.locator(left_out).all_inner_texts())
    own = [line.strip() for line in (ANSWERS[notebook.path.name][1] + "\n" + printed).splitlines()]
    return [line for line in lines if CHINESE.search(line) and line.strip() not in own]


def english(notebook, _: str) -> list[str]:
    """Return the English sentences on the screen that are not in code."""
    prose = [text for text in notebook.page.evaluate(PROSE) if text.strip()]
    assert len(prose) > 5
    return [found for text in prose for found in SENTENCE.findall(text)]


def test_before_any_cell_runs(notebook, language):
    for word in MENUS[language]:
        expect(notebook.page.locator(".lm-MenuBar-itemLabel").get_by_text(word, exact=True)).to_be_visible()
    speaks_only(notebook, language, "body")


def test_opening_a_lesson_changes_nothing_so_that_closing_asks_nothing(notebook, started):
    expect(notebook.page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)
    fresh = json.loads(catalog.find(notebook.path.stem).notebook.read_text(encoding="utf-8"))
    assert [c["id"] for c in json.loads(notebook.path.read_text(encoding="utf-8"))["cells"]] == [
        c["id"] for c in fresh["cells"]
    ]


def test_after_everything_has_run(notebook, language):
    notebook.run_all()
    assert notebook.cell_errors() == []
    speaks_only(notebook, language, "body")


def test_there_and_back_with_an_answer(notebook, language):
    cell, answer = ANSWERS[notebook.path.name]
    notebook.type_into(cell, answer)
    notebook.run(cell)
    check = notebook.run(f"{cell}-check").locator(".hookedu-panel")
    assert check.get_attribute("data-outcome") == "correct"
    for choice in (OTHER[language], language):
        notebook.choose(choice)
        speaks_only(notebook, choice, printed=language)
        saved_in(notebook, choice)
        saved = json.loads(notebook.path.read_text(encoding="utf-8"))
        for saved_cell in saved["cells"]:
            if saved_cell["id"] == cell:
                assert source_of(saved_cell) == answer
            elif variants_of(saved_cell):
                assert source_of(saved_cell) == variants_of(saved_cell)[choice]
        assert visible_side(check) == choice
    assert notebook.console_errors == []


def visible_side(panel) -> str:
    """Return the language of a panel of feedback that was made before the choice."""
    sides = {lang: panel.locator(f'[lang="{lang}"]').first.is_visible() for lang in ("zh", "en")}
    assert sum(sides.values()) == 1
    return next(lang for lang, visible in sides.items() if visible)


def test_a_choice_reaches_the_lessons_beside_it_open_or_closed(pages, started, language):
    first, second = map(pages, NAMES)
    closed = started.folder / "05_forward_hooks.ipynb"
    titles = variants_of(json.loads(closed.read_text(encoding="utf-8"))["cells"][0])
    for choice in (OTHER[language], language):
        first.choose(choice)
        second.speaks(choice)
        speaks_only(second, choice, printed=language)
        until(first.page, lambda choice=choice: title_of(closed) == titles[choice])


def test_of_two_presses_the_second_wins_everywhere(pages, started, language):
    page = pages(NAMES[0]).page
    page.locator(".hookedu-language button").evaluate_all(
        "(buttons, order) => order.forEach(place => buttons[place].click())",
        [["zh", "en"].index(choice) for choice in (OTHER[language], language, OTHER[language], language)],
    )
    titles = [TITLES[name][language] for name in NAMES]
    last = started.folder / f"{catalog.lessons()[-1].file}.ipynb"
    titles.append(
        variants_of(json.loads(last.read_text(encoding="utf-8"))["cells"][0])[language].splitlines()[0][2:]
    )
    page.wait_for_timeout(500)
    paths = [*(started.folder / name for name in NAMES), last]
    until(page, lambda: [str(title_of(path)).splitlines()[0][2:] for path in paths] == titles)


def saved_in(notebook, language: str) -> None:
    """Wait until a notebook's file is in a language: a press saves it."""
    title = TITLES[notebook.path.name][language]
    until(notebook.page, lambda: (title_of(notebook.path) or "").startswith(f"# {title}\n"))
    expect(notebook.page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)


def title_of(path) -> str | None:
    """Return the first cell's text; None while the file is being written."""
    try:
        return source_of(json.loads(path.read_text(encoding="utf-8"))["cells"][0])
    except ValueError:
        return None


def until(page, holds) -> None:
    """Wait until something holds; TimeoutError if it never does."""
    end = time.monotonic() + 30
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        page.wait_for_timeout(50)


def test_after_a_reload(pages, started, language, browser):
    name = NAMES[1]
    notebook = pages(name)
    notebook.choose(OTHER[language])
    saved_in(notebook, OTHER[language])
    notebook.page.reload()
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(notebook.ids), timeout=60_000)
    speaks_only(notebook, OTHER[language], printed=language)
    assert notebook.dialogs() == []


# A front end as anywidget's specification describes it, with none of JupyterLab's own parts.
HOST = """async traits => {
  const { default: widget } = await import('/language_toggle.js');
  const handlers = {};
  const model = {
    get: name => traits[name],
    set: (name, value) => {
      if (traits[name] === value) return;
      traits[name] = value;
      for (const call of handlers[`change:${name}`] ?? []) call();
    },
    on: (event, call) => (handlers[event] ??= []).push(call), off: () => {}, save_changes: () => {},
    send: content => { (window.sent ??= []).push(content); },
  };
  await widget.render({ model, el: document.body });
}"""


def test_elsewhere_a_press_changes_the_outputs_and_says_how_to_change_the_text(browser):
    toggle = LanguageToggle("zh")
    page = browser.new_page()
    output = "<p lang='zh'>中</p><div lang='en' hidden>shown after all</div>"
    page.route("http://front.end/", lambda route: route.fulfill(body=output, content_type="text/html"))
    module = modules.esm("language_toggle")
    page.route("**/language_toggle.js", lambda r: r.fulfill(body=module, content_type="text/javascript"))
    page.goto("http://front.end/")
    page.add_style_tag(content=modules.css("language_toggle"))
    page.evaluate(HOST, {"language": "zh", "own_id": "", "words": toggle.words, "failure": {}})
    expect(page.locator("html")).to_have_attribute("data-hookedu-language", "zh")
    hint = page.get_by_text("hookedu hand-out FOLDER_OF_THE_NOTEBOOKS --language en")
    expect(hint).to_have_count(0)
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("data-hookedu-language", "en")
    expect(page.get_by_role("button", name="English")).to_have_attribute("aria-pressed", "true")
    expect(hint).to_be_visible()
    expect(page.get_by_text("shown after all")).to_be_visible()
    expect(page.get_by_text("中", exact=True)).not_to_be_visible()
    assert page.evaluate("window.sent") == [{"kind": "ready"}, {"kind": "choose", "language": "en"}]
    page.close()
    preference.language = "both"
