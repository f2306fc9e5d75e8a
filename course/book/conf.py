"""The reading site: Sphinx reads the solutions as they are, MyST-NB turns them into pages, nothing is executed.

`make book` copies solutions/ (as lessons/), course/ and hookedu/ into one folder and hands it to Sphinx, so that every
relative link in a lesson or a guide leads where it leads in the repository: to a page, or to a file to download.
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
extensions = ["myst_nb", "sphinx.ext.githubpages"]  # the latter: GitHub would leave out _static/
include_patterns = ["index.md", "lessons/*.ipynb", "course/guides/*.md", "CONTRIBUTING.md"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_code_prompt_show = nb_code_prompt_hide = "参考答案 · Reference answer"
nb_render_image_options = {"alt": "上面代码的输出 · Output of the code above"}

html_theme = "sphinx_book_theme"
html_title = project
html_copy_source = False  # the course's own files are the source
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
    "navbar_persistent": [],  # no bar across the top: the search is in the sidebar and beside the language switch
    "search_bar_text": "搜索 · Search",
    "toc_title": "本页 · On this page",
    "use_download_button": False,
    "use_fullscreen_button": False,
}

# What the theme says by itself in English; the search page's own words stand in static/words.js.
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
TO_NO_PAGE = re.compile(
    r"\]\(((?:\.\./){2}[^)#]+\.md)\)"
)  # from a guide to the README, say: a file to download
# Under a lesson's title. On this site the exercises can be read but not done.
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
    """Of a lesson: say how to open it, fold the answers, show a picture where a live widget would be."""
    if docname == "index" and not any((COURSE / "guides").glob("*.md")):
        content[0] = content[0].partition("<!-- guides -->")[0]  # Sphinx warns of an empty list
    if not docname.startswith("lessons/"):
        content[0] = TO_NO_PAGE.sub(r"](path:\g<1>)", join_chinese_lines(content[0]))
        return
    notebook = json.loads(content[0])
    notebook["cells"][0]["source"] += OPEN_IN_LAB.format(file=f"{Path(docname).name}.ipynb").splitlines(True)
    for cell in notebook["cells"]:
        tags = cell["metadata"].setdefault("tags", [])
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            tags.append("hide-input")
        for output in cell.get("outputs", []):
            shown = "".join(output.get("data", {}).get("text/plain", ""))
            if shown.startswith("LanguageToggle("):
                tags.append("remove-output")  # each page has a switch of its own
            elif widget := re.fullmatch(r"(\w+)\(\)", shown):
                cell["outputs"] = picture_of(widget[1])
    content[0] = json.dumps(notebook)


def picture_of(widget: str) -> list[dict]:
    """Outputs in place of a live widget, "LayerPicker" say: the README's picture, and a sentence about it."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", widget).lower()
    picture = base64.b64encode((COURSE / "images" / f"{name}.png").read_bytes()).decode()
    shown = {"image/png": picture}, {"text/html": f'<div class="hookedu-note">{WIDGET.html()}</div>'}
    return [{"output_type": "display_data", "metadata": {}, "data": data} for data in shown]


def speak_both(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """The theme's labels in both languages."""
    context["_"] = lambda label: WORDS.get(label, label)


class SearchBothLanguages(SearchEnglish):
    """English words by their stems, Chinese as single characters and overlapping pairs.

    Pairs (as Lucene's CJKAnalyzer has them) find any run of characters within a sentence, whatever a dictionary
    takes for a word, and the browser can cut a query the same way without having that dictionary.
    """

    lang = "zh"
    js_splitter_code = r"""
var splitQuery = (query) => query.match(/[\u4e00-\u9fff]+|((?![\u4e00-\u9fff])[\p{L}\p{N}_])+/gu)?.flatMap((run) =>
  /^[\u4e00-\u9fff]{2}/.test(run) ? [...run].slice(1).map((end, i) => run[i] + end) : [run]) ?? [];
"""

    def split(self, text: str) -> list[str]:
        """The words of a text: what `splitQuery` makes of it, and every Chinese character by itself."""
        words = []
        for run in re.findall(r"[\u4e00-\u9fff]+|[^\W\u4e00-\u9fff]+", text):
            words.append(run)
            if "\u4e00" <= run[0] <= "\u9fff":
                words[-1:] = [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
        return words


def inline_math(translator, node: nodes.math) -> None:
    """MathML, which every browser draws by itself: no script from elsewhere, and it works from a disk."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block_math(translator, node: nodes.math_block) -> None:
    """The same on a line of its own."""
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def setup(app) -> dict[str, bool]:
    """What Sphinx has no setting for."""
    app.connect("source-read", prepare)
    app.connect("html-page-context", speak_both)
    app.add_search_language(SearchBothLanguages)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
