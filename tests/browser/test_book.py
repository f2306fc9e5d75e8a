"""Tests of the reading site built by `make book`: links, languages, screen widths, colour schemes, search."""

import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

import hookedu
from hookedu import catalog, exercises
from tests.browser.notebook import contrasts

# Elements of an article that extend past the screen and have no scrollable ancestor.
CUT_OFF = """() => [...document.querySelectorAll('article *')].filter(e => {
  if (!e.offsetParent || e.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let up = e.parentElement; up.tagName !== 'ARTICLE'; up = up.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(up).overflowX)) return false;
  return true;
}).map(e => e.outerHTML.slice(0, 200))"""
SPOKEN = "lang => [...document.querySelectorAll(`body [lang=${lang}]`)].filter(e => e.offsetParent).length"
BROKEN = "() => [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site and return the folder to serve."""
    folder = tmp_path_factory.mktemp("book")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    arguments = [f"BIN={Path(sys.executable).parent}", f"BOOK={folder}"]
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


class Links(HTMLParser):
    """The link targets and the anchors of a page."""

    def __init__(self, page: Path):
        super().__init__()
        self.to: set[str] = set()
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.places.add(value)
            elif name in ("href", "src"):
                self.to.add(value)


def test_every_link_and_picture_is_there(site):
    pages = {path: Links(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    missing = []
    for page, links in pages.items():
        for link in links.to:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "data"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            if not target.is_file() or (place and target in pages and place not in pages[target].places):
                missing.append(f"{page.relative_to(site)}: {link}")
    assert missing == []
    guides = {f"course/guides/{path.stem}.html" for path in (catalog.ROOT / "course/guides").glob("*.md")}
    wanted = {f"lessons/{lesson.file}.html" for lesson in catalog.lessons()} | guides | {"CONTRIBUTING.html"}
    assert wanted <= pages[site / "index.html"].to, "all in the one table of contents"


def test_the_api_page_shows_every_public_name_with_an_example(site):
    page = site / "api.html"
    assert {f"hookedu.{name}" for name in hookedu.__all__} <= Links(page).places
    assert page.read_text(encoding="utf-8").count("&gt;&gt;&gt; ") >= len(hookedu.__all__)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_reads_well_in_either_language(browser, site, url, tmp_path, width, scheme):
    settings = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "locale": "en-GB"}
    with opened(browser, **settings) as (page, troubles):
        for path in sorted(p for p in site.rglob("*.html") if "_static" not in p.parts):
            name = str(path.relative_to(site))
            page.goto(f"{url}/{name}")
            assert page.locator("html").get_attribute("data-theme") == scheme
            for language, other in (("zh", "en"), ("en", "zh")):
                page.click(f"[data-choose={language}]")
                assert page.evaluate(SPOKEN, other) == 0, f"{name} in {language}"
                said = page.evaluate(SPOKEN, language)
                assert said > 1 or path.parent == site, f"{name} in {language}"  # except the search page
            page.click("[data-choose=both]")
            assert page.evaluate(BROKEN) == [], name
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name}: sideways"
            assert page.evaluate(CUT_OFF) == [], name
            faint = [(r, text) for r, text in contrasts(page.locator(".cell_output div *")) if r < 4.5]
            assert faint == [], name
            page.screenshot(path=tmp_path / f"{path.stem}.png")
    assert troubles == []


def test_answers_are_folded_and_open_by_keyboard(browser, url):
    answered = exercises.of_lesson("02")
    with opened(browser) as (page, _):
        page.goto(f"{url}/lessons/02_tensor_hooks.html")
        answers = page.locator("details.hide")
        expect(answers).to_have_count(len(answered))
        code = answers.last.locator("pre")
        expect(code).to_be_hidden()
        summary = answers.last.locator("summary")
        expect(summary).to_contain_text("参考答案 · Reference answer")
        summary.press("Enter")
        expect(code).to_be_visible()
        expect(code).to_contain_text(f"def {answered[-1].answer}(")


def test_from_a_disk_the_language_is_chosen_by_keyboard_and_remembered(browser, site):
    with opened(browser, locale="zh-CN") as (page, troubles):
        page.goto((site / "index.html").as_uri())
        assert page.evaluate(SPOKEN, "en") == 0 and page.evaluate(SPOKEN, "zh") > 0
        page.focus("[data-choose=zh]")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("[data-choose=en]")).to_have_attribute("aria-pressed", "true")
        page.locator("article a", has_text="02 张量钩子").click()
        page.wait_for_url("**/02_tensor_hooks.html")
        assert page.evaluate(SPOKEN, "zh") == 0 and page.evaluate(SPOKEN, "en") > 0
    assert troubles == []


SEARCHES = [
    ("延迟绑定", "02_tensor_hooks", True),  # within a sentence
    ("就地修改", "03_changing_gradients", True),
    ("早已走完", "02_tensor_hooks", True),  # in no dictionary
    ("层", "05_forward_hooks", True),
    ("late bindings", "02_tensor_hooks", True),  # stemmed
    ("register_hook", "02_tensor_hooks", True),
    ("zebra", "02_tensor_hooks", False),
    ("绑定延迟", "02_tensor_hooks", False),  # the same characters in another order
]


def test_words_of_both_languages_are_found(browser, site, url):
    with opened(browser, locale="en-GB") as (page, troubles):
        page.goto(f"{url}/lessons/00_start_here.html")
        page.keyboard.press("Control+K")
        page.keyboard.type("前向钩子")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search.html?q=*")
        expect(page.locator("#search-results")).not_to_contain_text("<span")
        page.locator("#search-results a", has_text="05 前向钩子").first.click()
        page.wait_for_url("**/05_forward_hooks.html*")
        for home in (url, site.as_uri()):
            for words, lesson, found in SEARCHES:
                page.goto(f"{home}/search.html?q={words}")
                expect(page.locator(".search-summary")).to_contain_text("Pages found" if found else "Nothing")
                links = page.locator(f'#search-results a[href^="lessons/{lesson}.html"]')
                expect(links).to_have_count(1 if found else 0)
    assert troubles == []
