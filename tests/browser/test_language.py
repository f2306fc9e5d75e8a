"""Tests of one language on the screen, in a JupyterLab that was started for it: lessons 00 and 02 as learners have them.

All tests of a language share a server and, in order, its pages: what is seen before any cell runs, after all have run,
after switching there and back, after a reload.
"""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from hookedu import LanguageToggle, catalog
from hookedu.cells import source_of, variants_of
from hookedu.widgets import modules
from tests.browser.lab import of_this_clone
from tests.browser.speech import MENUS, OTHER, saved_in, speaks_only, starts_in, until

NAMES = ("00_start_here.ipynb", "02_tensor_hooks.ipynb")
ANSWERS = {
    NAMES[0]: ("exercise-00-1", "def double(grad):\n    return 2 * grad  # 我写的 · mine"),
    NAMES[1]: ("exercise-02-1", "def watch(y, seen):\n    return y.register_hook(seen.append)  # 我写的"),
}


@pytest.fixture(scope="module")
def started(language, tmp_path_factory):
    """Start `hookedu lab` in a language, as the first command of a newcomer."""
    with of_this_clone(tmp_path_factory.mktemp("newcomer"), "--language", language) as lab:
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
        speaks_only(notebook, choice, own=answer, printed=language)
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
    for choice in (OTHER[language], language):
        first.choose(choice)
        second.speaks(choice)
        speaks_only(second, choice, own=ANSWERS[NAMES[1]][1], printed=language)
        until(first.page, lambda choice=choice: starts_in(closed, choice))


def test_of_two_presses_the_second_wins_everywhere_and_the_first_writes_no_closed_lesson(
    pages, started, language
):
    page = pages(NAMES[0]).page
    names = [lesson.notebook.name for lesson in catalog.lessons()]
    # An earlier press has come to its end.
    until(page, lambda: all(starts_in(started.folder / name, language) for name in names))
    written = []
    page.on("request", lambda request: request.method == "PUT" and written.append(file_of(request)))
    page.locator(".hookedu-language button").evaluate_all(
        "(buttons, order) => order.forEach(place => buttons[place].click())",
        [["zh", "en"].index(choice) for choice in (OTHER[language], language, OTHER[language], language)],
    )
    page.wait_for_timeout(500)
    until(page, lambda: all(starts_in(started.folder / name, language) for name in names))
    # Else, a press of long ago would undo a later one in another page, in a lesson that is about to be loaded.
    assert set(written) <= {NAMES[0]}


def test_a_press_that_was_overtaken_while_it_wrote_stops_writing(pages, started, language):
    page = pages(NAMES[0]).page
    written = []

    def write(route):
        if route.request.method == "PUT" and (name := file_of(route.request)) not in NAMES:
            if not written:  # the first file is not yet written as the second press comes
                press(page, language)
            written.append(name)
        route.continue_()

    page.route("**/api/contents/*.ipynb*", write)
    press(page, OTHER[language])
    until(page, lambda: written)
    # Lessons are written one after the other: as this one follows, the first press has come to its end.
    until(page, lambda: len(written) > 1 and starts_in(started.folder / written[0], language))
    page.unroute("**/api/contents/*.ipynb*")
    assert len(written) == 2 and len(set(written)) == 1, written


def file_of(request) -> str:
    """Return the name of the file that a request reads or writes."""
    return Path(urlsplit(request.url).path).name


def press(page, language: str) -> None:
    """Press a button of language, wherever in the notebook it is."""
    page.locator(".hookedu-language button").nth(["zh", "en"].index(language)).evaluate("b => b.click()")


def test_after_a_reload(pages, started, language, browser):
    name = NAMES[1]
    notebook = pages(name)
    notebook.choose(OTHER[language])
    saved_in(notebook, OTHER[language])
    notebook.page.reload()
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(len(notebook.ids), timeout=60_000)
    speaks_only(notebook, OTHER[language], own=ANSWERS[name][1], printed=language)
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


def test_the_first_start_shows_the_contents_of_the_lesson_and_later_starts_what_was_left_open(
    language, browser, tmp_path
):
    with of_this_clone(tmp_path, "--language", language) as lab:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{lab.port}/")  # what `hookedu lab` opens
        contents, files = page.locator("#table-of-contents"), page.locator("#filebrowser")
        expect(contents.locator(".jp-tocItem").first).to_be_visible(timeout=60_000)
        expect(files).to_be_hidden()
        with page.expect_response(lambda r: r.request.method == "PUT" and "/api/workspaces/" in r.url):
            page.locator('.jp-SideBar .lm-TabBar-tab[data-id="filebrowser"]').click()
        page.goto(f"http://127.0.0.1:{lab.port}/")
        expect(files).to_be_visible(timeout=60_000)
        expect(contents).to_be_hidden()
        lab.shut_down(browser)
