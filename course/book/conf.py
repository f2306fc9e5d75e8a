"""Sphinx configuration of the reading site, for one language: MyST-NB turns executed lessons into pages.

`make book` writes the sources of each language (sources.py) and runs Sphinx on them, with `-t zh` for Chinese. Every
relative link in a lesson or a guide has the same target as in the repository: a page, or a file to download.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.locale import _ as translated
from sphinx.search.en import SearchEnglish

from hookedu import catalog
from hookedu.cells import said_in
from hookedu.language import one_side

COURSE = Path(__file__).parents[1]
LANGUAGE = "zh" if tags.has("zh") else "en"  # noqa: F821  Sphinx defines `tags`


def say(zh: str, en: str) -> str:
    """Return the words in the language of this site."""
    return zh if LANGUAGE == "zh" else en


project = say("PyTorch 钩子", "PyTorch hooks")
language = say("zh_CN", "en")
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",  # generates api.md from the docstrings
    "sphinx.ext.napoleon",
    "sphinx.ext.githubpages",  # GitHub Pages would otherwise omit _static/
]
include_patterns = [
    *("index.md", "api.md", "CONTRIBUTING.md"),
    *("lessons/*.ipynb", "course/guides/*.md", "hookedu/hooks/CASES.md"),
]
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # the docstrings state the types; signatures have no room
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_code_prompt_show = nb_code_prompt_hide = say("参考答案", "Reference answer")

html_theme = "sphinx_book_theme"
html_title = project
html_use_index = html_domain_indices = False  # api.md is index enough
html_copy_source = False  # the repository holds the source files
html_static_path = ["static"]
html_favicon = "static/hook.svg"
html_css_files = ["book.css"]
html_js_files = ["page.js"]
templates_path = ["templates"]
html_math_renderer = "mathml"
html_search_language = "zh"  # Bigrams, on both sites: code and names hold words of either
html_context = {
    "default_mode": "auto",  # dark where the reader's system is
    "other": say("en", "zh"),
    "other_name": say("English", "中文"),
    "other_lang": say("en", "zh-CN"),
}
html_theme_options = {
    "article_header_end": ["language-switch", "article-header-buttons"],
    "footer_content_items": [],
    "home_page_in_toc": True,
    "navbar_persistent": [],  # no top bar: search is in the sidebar and next to the language switch
    "search_bar_text": say("搜索", "Search"),
    "toc_title": say("本页", "On this page"),
    "use_download_button": False,
    "use_fullscreen_button": False,
}

# Labels of the theme that its own catalogue leaves in English.
WORDS = {
    "Back to top": "回到顶部",
    "Color mode": "明暗",
    "Dark": "深色",
    "Light": "浅色",
    "next": "下一页",
    "next page": "下一页",
    "previous": "上一页",
    "previous page": "上一页",
    "Search": "搜索",
    "Skip to main content": "跳到正文",
    "System Settings": "跟随系统",
}
# Links to Markdown files that are not pages, for example from a guide to the README: they become downloads.
TO_NO_PAGE = re.compile(r"\]\(((?:\.\./){2}[^)#]+\.md)\)")
# Shown under a lesson's title: on this site the exercises can be read but not run.
OPEN_IN_LAB = say(
    zh="动手做这一课：在课程文件夹里运行 `make lab`（装过软件包的话，运行 `hookedu lab`），在 JupyterLab 里打开 `{file}`。",
    en="To work on this lesson, run `make lab` in the course's folder (or `hookedu lab`, if you installed the package) "
    "and open `{file}` in JupyterLab.",
)
# An element of HTML outputs in the other language; those of hookedu do not nest.
OTHER = re.compile(rf'<(\w+)(?=[^>]* lang="{say("en", "zh")}")[^>]*>.*?</\1>', re.DOTALL)
# Where HTML has both in one text: titles and labels.
BOTH_SIDES = re.compile(r'(?<=[">])[^"<>]+ · [^"<>]+(?=["<])')


def prepare(app, docname: str, content: list[str]) -> None:
    """Prepare a page's source before Sphinx parses it.

    In a lesson: say how to open it, show each exercise and fold its reference answer. Elsewhere: turn links to Markdown
    files that are not pages into downloads.
    """
    if not docname.startswith("lessons/"):
        content[0] = TO_NO_PAGE.sub(r"](path:\g<1>)", content[0])
        return
    notebook = json.loads(content[0])
    lesson = Path(docname).name
    asked = json.loads(catalog.find(lesson).notebook.read_text(encoding="utf-8"))["cells"]
    asked = {cell["id"]: said_in(cell, LANGUAGE) for cell in asked}
    opening = (
        f"\n\n<div class='open-in-lab'>\n\n{OPEN_IN_LAB.format(file=f'{lesson}.ipynb')}\n\n</div>"
    )
    notebook["cells"][0]["source"] += opening.splitlines(True)
    cells = []
    for cell in notebook["cells"]:
        # MyST-NB does not support attachments; each is a file of this name.
        cell["source"] = [
            line.replace("](attachment:", "](../course/images/") for line in cell["source"]
        ]
        tags = cell["metadata"].setdefault("tags", [])
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cells.append(stub(cell, asked[cell["id"]]))
            tags.append("hide-input")
        cell["outputs"] = [
            in_one_language(output) for output in cell.get("outputs", []) if not is_switch(output)
        ]
        cells.append(cell)
    content[0] = json.dumps(notebook | {"cells": cells})


def stub(cell: dict, source: str) -> dict:
    """Return the cell as learners get it, to be shown before its folded answer."""
    metadata = {"tags": ["stub"]}
    return cell | {
        "id": f"{cell['id']}-stub",
        "metadata": metadata,
        "source": source,
        "outputs": [],
    }


def is_switch(output: dict) -> bool:
    """Check for the buttons that choose the language: each page has its own link."""
    return "".join(output.get("data", {}).get("text/plain", "")).startswith("LanguageToggle(")


def in_one_language(output: dict) -> dict:
    """Return an output in the language of the site, with its picture as large as in a notebook."""
    data = output.get("data", {})
    if size := output.get("metadata", {}).get("image/png"):
        # The theme's style sheet would override the plain attribute, and show twice as many pixels as large.
        output["metadata"]["image/png"] = {"width": f"{size['width']}px"}
    if "text/html" in data:
        html = OTHER.sub("", "".join(data["text/html"])).replace(
            '<span class="hookedu-dot"> · </span>', ""
        )
        data["text/html"] = BOTH_SIDES.sub(lambda found: one_side(found[0], LANGUAGE), html)
    return output


def translate_labels(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Translate the theme's labels that its catalogue leaves in English."""
    context["_"] = lambda label: WORDS.get(label) or translated(label)


class Bigrams(SearchEnglish):
    """Search index with stemmed English words, and Chinese as single characters and overlapping bigrams.

    Bigrams (as in Lucene's CJKAnalyzer) match any run of characters within a sentence, independently of a dictionary's
    word boundaries, and the browser can split a query in the same way without that dictionary.
    """

    lang = "zh"
    js_splitter_code = r"""
var splitQuery = (query) => query.match(/[\u4e00-\u9fff]+|((?![\u4e00-\u9fff])[\p{L}\p{N}_])+/gu)?.flatMap((run) =>
  /^[\u4e00-\u9fff]{2}/.test(run) ? [...run].slice(1).map((end, i) => run[i] + end) : [run]) ?? [];
"""

    def split(self, text: str) -> list[str]:
        """Return the index terms of a text: those of `splitQuery`, and every single Chinese character."""
        words = []
        for run in re.findall(r"[\u4e00-\u9fff]+|[^\W\u4e00-\u9fff]+", text):
            words.append(run)
            if "\u4e00" <= run[0] <= "\u9fff":
                words[-1:] = [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
        return words


def inline_math(translator, node: nodes.math) -> None:
    """Write inline math as MathML, which browsers render natively: no external script, and it works from disk."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block_math(translator, node: nodes.math_block) -> None:
    """Write display math as MathML."""
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def setup(app) -> dict[str, bool]:
    """Register what Sphinx has no setting for."""
    app.connect("source-read", prepare)
    if LANGUAGE == "zh":
        app.connect("html-page-context", translate_labels)
    app.add_search_language(Bigrams)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
