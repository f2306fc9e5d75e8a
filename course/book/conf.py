"""Sphinx configuration of the reading site: MyST-NB turns the executed solutions into pages; nothing is executed.

`make book` copies solutions/ (as lessons/), course/ and hookedu/ into one folder and runs Sphinx on it, so that every
relative link in a lesson or a guide has the same target as in the repository: a page, or a file to download.
"""

import base64
import json
import re
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.search.en import SearchEnglish

from hookedu.language import Text, join_chinese_lines

COURSE = Path(__file__).parents[1]

project = "PyTorch 钩子 · PyTorch hooks"
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
nb_code_prompt_show = nb_code_prompt_hide = "参考答案 · Reference answer"
nb_render_image_options = {"alt": "上面代码的输出 · Output of the code above"}

html_theme = "sphinx_book_theme"
html_title = project
html_use_index = html_domain_indices = False  # api.md is index enough
html_copy_source = False  # the repository holds the source files
html_static_path = ["static", "../../hookedu/grading/out/templates/page.js"]
html_favicon = "static/hook.svg"
html_css_files = ["book.css"]
html_js_files = ["words.js"]
templates_path = ["templates"]
html_math_renderer = "mathml"
html_search_language = "zh"
html_context = {"default_mode": "auto"}  # dark where the reader's system is
html_theme_options = {
    "article_header_end": ["language-switch", "article-header-buttons"],
    "footer_content_items": [],
    "home_page_in_toc": True,
    "navbar_persistent": [],  # no top bar: search is in the sidebar and next to the language switch
    "search_bar_text": "搜索 · Search",
    "toc_title": "本页 · On this page",
    "use_download_button": False,
    "use_fullscreen_button": False,
}

# Translations of the theme's English labels; static/words.js translates the search page.
WORDS = {
    "Back to top": "回到顶部 · Back to top",
    "Color mode": "明暗 · Colour mode",
    "Dark": "深色 · Dark",
    "Light": "浅色 · Light",
    "next": "下一页 · Next",
    "next page": "下一页 · Next page",
    "previous": "上一页 · Previous",
    "previous page": "上一页 · Previous page",
    "Search": "搜索 · Search",
    "Skip to main content": "跳到正文 · Skip to main content",
    "System Settings": "跟随系统 · As the system",
}
WIDGET = Text(
    zh="这是这种控件的一张图；在 JupyterLab 里可以操作，看到的是这里的模型。",
    en="A picture of this kind of widget. In JupyterLab it can be used, and shows the model of this cell.",
)
# Links to Markdown files that are not pages, for example from a guide to the README: they become downloads.
TO_NO_PAGE = re.compile(r"\]\(((?:\.\./){2}[^)#]+\.md)\)")
# Shown under a lesson's title: on this site the exercises can be read but not run.
OPEN_IN_LAB = """

<div class="open-in-lab">
<div lang="zh">

动手做这一课：在课程文件夹里运行 `make lab`（装过软件包的话，运行 `hookedu lab`），在 JupyterLab 里打开 `{file}`。

</div>
<div lang="en">

To work on this lesson, run `make lab` in the course's folder (or `hookedu lab`, if you installed the package) and open
`{file}` in JupyterLab.

</div>
</div>"""


def prepare(app, docname: str, content: list[str]) -> None:
    """Prepare a page's source before Sphinx parses it.

    In a lesson: say how to open it, fold the reference answers, replace live widgets with pictures. Elsewhere: join
    Chinese lines, and turn links to Markdown files that are not pages into downloads.
    """
    if docname == "index" and not any((COURSE / "guides").glob("*.md")):
        content[0] = content[0].partition("<!-- guides -->")[
            0
        ]  # Sphinx warns about an empty toctree
    if not docname.startswith("lessons/"):
        content[0] = TO_NO_PAGE.sub(r"](path:\g<1>)", join_chinese_lines(content[0]))
        return
    notebook = json.loads(content[0])
    notebook["cells"][0]["source"] += OPEN_IN_LAB.format(
        file=f"{Path(docname).name}.ipynb"
    ).splitlines(True)
    for cell in notebook["cells"]:
        # MyST-NB does not know attachments; each is a file of this name.
        cell["source"] = [
            line.replace("](attachment:", "](../course/images/") for line in cell["source"]
        ]
        tags = cell["metadata"].setdefault("tags", [])
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            tags.append("hide-input")
        for output in cell.get("outputs", []):
            if size := output.get("metadata", {}).get("image/png"):
                # The theme's style sheet would override the plain attribute, and show twice as many pixels as large.
                output["metadata"]["image/png"] = {"width": f"{size['width']}px"}
            shown = "".join(output.get("data", {}).get("text/plain", ""))
            if shown.startswith("LanguageToggle("):
                tags.append("remove-output")  # each page has its own language switch
            elif "image/png" in output.get("data", {}):
                continue  # a plot, or a widget that brings a still picture of its own
            elif widget := re.fullmatch(r"(\w+)\(\)", shown):
                cell["outputs"] = picture_of(widget[1])
    content[0] = json.dumps(notebook)


def picture_of(widget: str) -> list[dict]:
    """Return the outputs that replace a live widget such as "LayerPicker": the README's picture and a note."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", widget).lower()
    picture = base64.b64encode((COURSE / "images" / f"{name}.png").read_bytes()).decode()
    shown = (
        {"image/png": picture},
        {"text/html": f'<div class="hookedu-note">{WIDGET.html()}</div>'},
    )
    return [{"output_type": "display_data", "metadata": {}, "data": data} for data in shown]


def speak_both(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Translate the theme's labels into both languages."""
    context["_"] = lambda label: WORDS.get(label, label)


class SearchBothLanguages(SearchEnglish):
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


def name_languages(app, doctree: nodes.document) -> None:
    """Make the spans of headings nodes: search, tabs and links read a title as text, in which raw HTML would show."""
    for title in doctree.findall(nodes.title):
        parts, inside = [], None
        for child in title.children:
            tag = child.astext() if isinstance(child, nodes.raw) else ""
            if opens := re.fullmatch(r'<span (?:lang="(\w+)"|class="(\S+)")>', tag):
                # docutils writes the class language-zh as lang="zh".
                inside = nodes.inline(classes=[f"language-{opens[1]}" if opens[1] else opens[2]])
                parts.append(inside)
            elif tag == "</span>":
                inside = None
            else:
                (parts if inside is None else inside).append(child)
        title.children = []
        title.extend(parts)


def setup(app) -> dict[str, bool]:
    """Register what Sphinx has no setting for."""
    app.connect("source-read", prepare)
    app.connect("doctree-read", name_languages, priority=100)  # before Sphinx notes the titles
    app.connect("html-page-context", speak_both)
    app.add_search_language(SearchBothLanguages)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
