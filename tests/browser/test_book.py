"""Tests of the reading site built by `make book`: links, languages, screen widths, colour schemes, search.

It is built with the outputs of solutions/, because running every lesson in Chinese takes ten minutes.
"""

import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup  # comes with nbconvert
from playwright.sync_api import BrowserContext, Page, expect

import hookedu
from hookedu import catalog, exercises
from hookedu.language import LANGUAGES
from tests.browser.notebook import barriers, contrasts
from tests.browser.speech import CHINESE, SENTENCE
from tests.release.links import Links, broken_in_site

# Elements of an article that extend past the screen and have no scrollable ancestor.
CUT_OFF = """() => [...document.querySelectorAll('article *')].filter(e => {
  if (!e.offsetParent || e.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let up = e.parentElement; up.tagName !== 'ARTICLE'; up = up.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(up).overflowX)) return false;
  return true;
}).map(e => e.outerHTML.slice(0, 200))"""
# What a page says, but for the link to the other language, formulas, code and what code puts out.
SAID = """() => {
  const copy = document.documentElement.cloneNode(true);
  for (const e of copy.querySelectorAll('.language-switch, pre, code, script, style, math')) e.remove();
  const named = ['alt', 'title', 'aria-label', 'placeholder'];
  const names = [...copy.querySelectorAll(named.map(name => `[${name}]`))].flatMap(e => named.map(name => e.getAttribute(name)));
  return [copy.textContent, ...names].filter(Boolean).join('\\n');
}"""
# English in Chinese prose: a term, the title of a paper, a sentence of the language of lesson 14.
NAMES = {
    "gradient-weighted class activation mapping",
    "Sanity Checks for Saliency Maps",
    "Ben gave the ball to",
}
# Pages in English on both sites: docstrings, and the table that the comments of the code quote.
ENGLISH_ONLY = ("api.html", "hookedu/hooks/CASES.html")
# One of each kind of page, for axe-core, which takes seconds per page: home, lesson, guide, docstrings.
KINDS = ("index.html", "lessons/11_grad_cam.html", "course/guides/widgets.html", "api.html")
BROKEN = "() => [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site and return the folder to serve."""
    folder = tmp_path_factory.mktemp("book")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    arguments = [f"BIN={Path(sys.executable).parent}", f"BOOK={folder}", "RUN=no"]
    done = subprocess.run(
        ["make", "-o", ".venv/ready-book", "book", *arguments],  # -o: use the packages already installed
        cwd=catalog.ROOT,
        env=environment | {"PYTHONPATH": str(catalog.ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def url(site) -> Iterator[str]:
    """Serve the site with Python's web server and yield its URL."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=site)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def opened(browser: BrowserContext, **settings) -> Iterator[tuple[Page, list[str]]]:
    """Yield a page of a new visitor, and a list of its problems: console warnings, script errors, external requests."""
    context = browser.browser.new_context(**settings)
    page, troubles = context.new_page(), []
    page.on("console", lambda m: m.type in ("error", "warning") and troubles.append(f"{m.text} {m.location}"))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on(
        "request", lambda r: "127.0.0.1" in r.url or r.url[:5] in ("file:", "data:") or troubles.append(r.url)
    )
    yield page, troubles
    context.close()


def test_every_link_and_picture_is_there(site):
    assert broken_in_site(site) == []
    assert {path.name for path in site.iterdir()} == {"index.html", *LANGUAGES}
    guides = {path.stem for path in (catalog.ROOT / "course/guides").glob("*.md") if ".zh" not in path.stem}
    wanted = {f"lessons/{lesson.file}.html" for lesson in catalog.lessons()}
    wanted |= {f"course/guides/{name}.html" for name in guides} | {"CONTRIBUTING.html"}
    for language in LANGUAGES:
        assert wanted <= Links(site / language / "index.html").to, "all in the one table of contents"


def test_the_api_page_shows_every_public_name_with_an_example(site):
    page = site / "en" / "api.html"
    assert {f"hookedu.{name}" for name in hookedu.__all__} <= Links(page).places
    assert page.read_text(encoding="utf-8").count("&gt;&gt;&gt; ") >= len(hookedu.__all__)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_reads_well_in_its_language(browser, site, url, tmp_path, language, width, scheme):
    settings = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "locale": "en-GB"}
    pages = sorted(p for p in (site / language).rglob("*.html") if "_static" not in p.parts)
    assert len(pages) > 20
    with opened(browser, **settings) as (page, troubles):
        for path in pages:
            name = str(path.relative_to(site))
            page.goto(f"{url}/{name}")
            assert page.locator("html").get_attribute("data-theme") == scheme
            assert page.locator("html").get_attribute("lang")[:2] == language
            said = page.evaluate(SAID)
            if language == "en":
                assert CHINESE.findall(said) == [], name
            elif not name.endswith(ENGLISH_ONLY):
                assert CHINESE.search(page.title()), name
                assert set(SENTENCE.findall(said)) <= NAMES, name
            assert page.evaluate(BROKEN) == [], name
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name}: sideways"
            assert page.evaluate(CUT_OFF) == [], name
            faint = [(r, text) for r, text in contrasts(page.locator(".cell_output div *")) if r < 4.5]
            assert faint == [], name
            if name.partition("/")[2] in KINDS:
                assert barriers(page) == [], name
            page.screenshot(path=tmp_path / f"{path.stem}.png")
    assert troubles == []


def test_exercises_are_asked_and_answers_are_folded_and_open_by_keyboard(browser, url):
    answered = exercises.of_lesson("02")
    with opened(browser) as (page, _):
        page.goto(f"{url}/en/lessons/02_tensor_hooks.html")
        answers = page.locator("details.hide")
        expect(answers).to_have_count(len(answered))
        expect(page.locator(".tag_stub")).to_have_count(len(answered))
        stub = page.locator(".tag_stub").last
        expect(stub).to_contain_text(f"def {answered[-1].answer}(")
        expect(stub.locator(".sd, .s2").first).to_be_visible()  # the docstring, which says what is asked
        code = answers.last.locator("pre")
        expect(code).to_be_hidden()
        summary = answers.last.locator("summary")
        expect(summary).to_contain_text("Reference answer")
        summary.press("Enter")
        expect(code).to_be_visible()
        expect(code).to_contain_text(f"def {answered[-1].answer}(")


def test_outputs_are_complete(browser, url):
    """Lesson 08 shows a timeline and an inspector: the other outputs of their cells were once lost."""
    with opened(browser) as (page, _):
        page.goto(f"{url}/en/lessons/08_order_and_lifetime.html")
        notebook = nbformat.read(catalog.find("08").solution, as_version=4)
        printed = [o.text for c in notebook.cells if c.cell_type == "code" for o in c.outputs if "text" in o]
        expect(page.locator(".cell_output .output.stream")).to_have_count(len(printed))
        assert len(printed) > 10


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_picture_shows_is_its_alternative_text(site, language):
    for lesson in catalog.lessons():
        drawn = [
            cell.metadata["hookedu"]["picture"][language].replace("`", "")
            for cell in nbformat.read(lesson.solution, as_version=4).cells
            for output in cell.get("outputs", [])
            if "image/png" in output.get("data", {})
        ]
        page = (site / language / "lessons" / f"{lesson.file}.html").read_text(encoding="utf-8")
        shown = BeautifulSoup(page, "html.parser").select(".cell_output img")
        assert [picture["alt"] for picture in shown] == drawn, lesson.file


def test_the_first_page_chooses_the_language_and_a_press_stays_on_the_page(browser, site, url):
    for locale, language in (("zh-CN", "zh"), ("de-DE", "en")):
        for home in (url, site.as_uri()):
            with opened(browser, locale=locale) as (page, troubles):
                page.goto(f"{home}/index.html")
                page.wait_for_url(f"**/{language}/index.html")
                page.goto(f"{home}/{language}/lessons/02_tensor_hooks.html#register")
                page.keyboard.press("Tab")  # the link is reached and followed by keyboard
                page.locator("a.language-switch").press("Enter")
                other = "en" if language == "zh" else "zh"
                page.wait_for_url(f"**/{other}/lessons/02_tensor_hooks.html#register")
                page.goto(f"{home}/index.html")
                page.wait_for_url(f"**/{other}/index.html")  # the language that was read last
            assert troubles == []


FOUND = {"zh": "个页面", "en": "Search finished"}
NONE = {"zh": "没有匹配", "en": "did not match"}
SEARCHES = [
    ("zh", "延迟绑定", "02_tensor_hooks", True),  # within a sentence
    ("zh", "就地修改", "03_changing_gradients", True),
    ("zh", "早已走完", "02_tensor_hooks", True),  # in no dictionary
    ("zh", "层", "05_forward_hooks", True),
    ("zh", "绑定延迟", "02_tensor_hooks", False),  # the same characters in another order
    ("zh", "register_hook", "02_tensor_hooks", True),
    ("en", "late bindings", "02_tensor_hooks", True),  # stemmed
    ("en", "register_hook", "02_tensor_hooks", True),
    ("en", "zebra", "02_tensor_hooks", False),
]


def test_words_are_found_and_quoted_from_the_text(browser, site, url):
    with opened(browser, locale="en-GB") as (page, troubles):
        page.goto(f"{url}/zh/lessons/00_start_here.html")
        page.keyboard.press("Control+K")
        page.keyboard.type("前向钩子")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=*")
        results = page.locator("#search-results")
        expect(results).not_to_contain_text("<span")
        expect(results.locator(".context").first).to_be_visible()
        for menu in ("打印", "本页", "English"):
            expect(results.locator(".context").filter(has_text=menu)).to_have_count(0)
        page.locator("#search-results a", has_text="05 前向钩子").first.click()
        page.wait_for_url("**/05_forward_hooks.html*")
        for home in (url, site.as_uri()):
            for language, words, lesson, found in SEARCHES:
                page.goto(f"{home}/{language}/search.html?q={words}")
                expect(page.locator(".search-summary")).to_contain_text(
                    FOUND[language] if found else NONE[language]
                )
                links = page.locator(f'#search-results a[href^="lessons/{lesson}.html"]')
                expect(links).to_have_count(1 if found else 0)
    assert troubles == []
