"""Tests of lessons in one language: prose, code with its Chinese words, and the rules for these."""

import ast
import json
import re
import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hookedu import catalog
from hookedu.authoring import code_rules, code_words, lint, localize, source
from hookedu.cells import said_in
from hookedu.language import has_chinese

SOURCE, WORDS = "course/02_tensor_hooks.py", "course/02_tensor_hooks.code.yml"
FILES = sorted((catalog.ROOT / "hookedu").rglob("*.py"))

PROSE = """## 2.1 一个数 · A number

●● · 6 min

<div lang="zh">

看 `x`。

</div>
<div lang="en">

See `x`.

</div>

<div class="mistake">

**常见错误 · Common mistake**

<div lang="zh">
<details><summary>为什么？</summary>因为。</details>
</div>
<div lang="en">
<details><summary>Why?</summary>Because.</details>
</div>

</div>

```python
x = 1  # one


y = 2 · 3
```"""


def test_prose_in_one_language_is_plain_markdown():
    made = localize.variants(PROSE, False, {"one": "一"})
    assert made["en"] == (
        "## 2.1 A number\n\n●● · 6 min\n\nSee `x`.\n\n"
        '<div class="mistake">\n\n**Common mistake**\n\n<details><summary>Why?</summary>Because.</details>\n\n</div>\n\n'
        "```python\nx = 1  # one\n\n\ny = 2 · 3\n```"
    )
    assert made["zh"] == (
        "## 2.1 一个数\n\n●● · 6 分钟\n\n看 `x`。\n\n"
        '<div class="mistake">\n\n**常见错误**\n\n<details><summary>为什么？</summary>因为。</details>\n\n</div>\n\n'
        "```python\nx = 1  # 一\n\n\ny = 2 · 3\n```"
    )


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_a_title_cell_states_the_minutes_and_links_in_its_language(lesson):
    cell = json.loads(lesson.notebook.read_text(encoding="utf-8"))["cells"][0]
    places = [known.file for known in catalog.lessons()]
    at = places.index(lesson.file)
    for language, unit in (("zh", "分钟"), ("en", "min")):
        _, _, facts, *_ = said_in(cell, language).splitlines()
        assert facts.startswith(f"{'●' * lesson.difficulty} · {lesson.minutes} {unit} · ")
        beside = [*places[max(at - 1, 0) : at], *places[at + 1 : at + 2]]
        assert re.findall(r"\((.*?)\.ipynb\)", facts) == beside


def test_the_words_of_a_picture_are_plain_text_in_every_language():
    made = localize.variants("![一个十字 · A cross](attachment:a.png)", is_code=False, words={})
    assert made == {
        "both": "![一个十字 · A cross](attachment:a.png)",
        "zh": "![一个十字](attachment:a.png)",
        "en": "![A cross](attachment:a.png)",
    }


def test_prose_in_both_has_lines_that_a_style_sheet_can_halve():
    both = localize.variants(PROSE, False, {})["both"]
    spans = '<span lang="zh">{}</span><span class="hookedu-dot"> · </span><span lang="en">{}</span>'
    assert f"## 2.1 {spans.format('一个数', 'A number')}\n" in both
    assert f"**{spans.format('常见错误', 'Common mistake')}**" in both
    assert both.count("<span") == 6 and '<div lang="zh">\n\n看 `x`。' in both


CODE = {
    # name: (code, Chinese words, in Chinese, in English; None for the code itself)
    "comment": ("x = 1  # a leaf", {"a leaf": "叶子"}, "x = 1  # 叶子", None),
    "comment_without_chinese": ("x = 1  # a leaf", {}, None, None),
    "block": ("# one\n# two\nx = 1\n# three", {"one two": "一和二"}, "# 一和二\nx = 1\n# three", None),
    "block_in_a_function": (
        "def f():\n    # one\n    return 1\n",
        {"one": "一"},
        "def f():\n    # 一\n    return 1\n",
        None,
    ),
    "comment_at_the_end_then_block": ("x = 1  # a\n# b\ny = 2", {"a": "甲", "b": "乙"}, "x = 1  # 甲\n# 乙\ny = 2", None),
    "two_indentations": ("if x:\n    y = 1\n    # a\n# b\nz = 2", {"a b": "错", "a": "甲"}, "if x:\n    y = 1\n    # 甲\n# b\nz = 2", None),
    "in_brackets": ("f(\n    1,  # one\n    # two\n    2,\n)", {"one": "一", "two": "二"}, "f(\n    1,  # 一\n    # 二\n    2,\n)", None),
    "marker": ("### BEGIN SOLUTION\nx = 1  # one", {"BEGIN SOLUTION": "错", "one": "一"}, "### BEGIN SOLUTION\nx = 1  # 一", None),
    "hash_in_a_string": ('x = "# one"', {"one": "错"}, None, None),
    "string": ('print("the hook saw:", x)', {"the hook saw:": "钩子看到："}, 'print("钩子看到：", x)', None),
    "edges": ('print("  first:\\n", x)', {"first:": "先："}, 'print("  先：\\n", x)', None),
    "aligned": (
        'print("no hook:   ", x)\nprint("with hooks:", x)\nprint("other", x)',
        {"no hook:": "没有：", "with hooks:": "有：", "other": "别的"},
        'print("没有：     ", x)\nprint("有：       ", x)\nprint("别的", x)',
        None,
    ),
    "fields": ('print(f"{a!r:>5} of {b[0]:.2f}")', {"{} of {}": "{1} 里的 {0}"}, 'print(f"{b[0]:.2f} 里的 {a!r:>5}")', None),
    "fields_in_order": ('f"{a} of {b}"', {"{} of {}": "{}，共 {}"}, 'f"{a}，共 {b}"', None),
    "braces": ('f"{{{a}}} is"', {"{{{}}} is": "{{{}}} 是"}, 'f"{{{a}}} 是"', None),
    "string_in_a_field": ("print(f\"{'hit' if x else 'miss'}!\")", {"hit": "中"}, "print(f\"{'中' if x else 'miss'}!\")", None),
    "concatenated": ('print("one "\n      "two")', {"one two": "一二"}, 'print("一二")', None),
    "concatenated_with_fields": ('print(f"{x} and "\n      "two")', {"{} and two": "{} 和二"}, 'print(f"{x} 和二")', None),
    "both_sides": ('raise E("在这里写 · write here")', {}, 'raise E("在这里写")', 'raise E("write here")'),
    "docstring": (
        'def f():\n    """返回。\n\n    Return.\n    """\n',
        {},
        'def f():\n    """返回。"""\n',
        'def f():\n    """Return."""\n',
    ),
    "docstring_of_lines": (
        'def f():\n    """返回。\n\n    Return what\n    it is.\n    """\n',
        {},
        'def f():\n    """返回。"""\n',
        'def f():\n    """Return what\n    it is.\n    """\n',
    ),
    "english_docstring": (
        'class A:\n    """Return what\n    it is."""\n',
        {"Return what it is.": "返回它。"},
        'class A:\n    """返回它。"""\n',
        None,
    ),
    "toggle": ("LanguageToggle()", {}, 'LanguageToggle("zh")', 'LanguageToggle("en")'),
    "bytes_and_raw": ("print(b'one', r'one\\d')", {"one": "错"}, None, None),
    "magic": ("%time x = 1  # one\n!ls", {"one": "一"}, "%time x = 1  # 一\n!ls", None),
}  # fmt: skip


@pytest.mark.parametrize("name", CODE)
def test_code_speaks_one_language(name):
    code, words, zh, en = CODE[name]
    assert localize.variants(code, True, words) == {"both": code, "zh": zh or code, "en": en or code}


def test_a_long_comment_is_broken_before_100_columns():
    words = {"long": "很长的注释，" * 30 + "以 torch.autograd 结尾"}
    made = code_words.in_language("if x:\n    # long\n    y = 1", "zh", words).split("\n")
    assert len(made) > 4 and made[0] == "if x:" and made[-1] == "    y = 1"
    assert all(line.startswith("    # ") and code_words.columns(line) <= 98 for line in made[1:-1])
    assert "".join(line.removeprefix("    # ") for line in made[1:-1]).replace(" ", "") == words[
        "long"
    ].replace(" ", "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(catalog.ROOT)))
def test_what_needs_no_translation_is_not_changed(path):
    code = path.read_text(encoding="utf-8")
    if not has_chinese(code):
        for language in ("zh", "en"):
            assert code_words.in_language(code, language, {}) == code


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\x0c\0"), max_size=60),
    st.sampled_from(["zh", "en"]),
)
def test_any_text_at_all_is_read(text, language):
    assert isinstance(code_words.in_language(text, language, {"a": "甲"}), str)


@given(
    st.lists(st.sampled_from(["{}", "{0}", "{1}", "{2}", "{{", "}}", "字"]), max_size=5), st.integers(0, 3)
)
def test_fields_are_placed_as_str_format_places_them(parts, of):
    text = "".join(parts)
    try:
        filled = text.format(*(f"<{i}>" for i in range(of)))
        fits = all(f"<{i}>" in filled for i in range(of))
    except (IndexError, ValueError):
        fits = False
    if fits:
        assert code_words.fields_of(text, of) is not None
    elif "{{" not in text and "}}" not in text:
        assert code_words.fields_of(text, of) is None


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("x.grad:", False),
        ("RuntimeError:", False),
        ("weight", False),
        ("12 MB", False),
        ("is True", False),
        ("the hook saw:", True),
        ("{} samples", True),
        ("loss", True),
        ("somebody else's hook", True),
    ],
)
def test_names_of_code_are_no_prose(text, prose):
    assert code_words.is_prose(text, code_words.names("weight = x.grad")) == prose


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_the_code_of_a_lesson_is_the_same_program_in_every_language(lesson):
    words = code_words.words_of(lesson)
    for cell in source.read(lesson):
        if cell.is_code:
            made = localize.variants(cell.text, True, words)
            shapes = {code_rules._shape(text.replace('LanguageToggle("zh")', "LanguageToggle()")
                                            .replace('LanguageToggle("en")', "LanguageToggle()")) for text in made.values()}  # fmt: skip
            assert len(shapes) == 1
            ast.parse(made["zh"])


BROKEN = {
    "missing": ('"the hook saw:": 钩子看到：\n', "", SOURCE, "`the hook saw:` has no Chinese: add it to"),
    "unused": ('"registering"', '"registred"', WORDS, "The code has no `registred`"),
    "too_wide": ("还没有钩子：", "现在还没有任何钩子：", WORDS, "has 20 columns, and only 15 fit"),
    "empty": ('"registering": 注册', '"registering":', WORDS, "The Chinese of `registering` must be a text"),
    "quote": ('"registering": 注册', "\"registering\": '注\"册'", SOURCE, "no longer the same code"),
    "term": ('"the hook saw:": 钩子看到：', '"the hook saw:": 看到：', WORDS, "its term `钩子` is not in the Chinese"),
    "quoted": ('"hook:": "hook:"', '"hook:": "钩子："', WORDS, "quotes `hook`, but `钩子：` will be printed"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_reported(clone, name):
    old, new, file, says = BROKEN[name]
    clone.replace(WORDS, old, new)
    lesson = clone.lesson("02")
    found = [str(p.text) for p in lint.problems(lesson, source.read(lesson))]
    assert any(problem.startswith(f"{file}:") and says in problem for problem in found), found


@pytest.mark.parametrize(
    ("zh", "fits"), [("第 {} 步，层 {}", True), ("层 {1}，第 {0} 步", True), ("第 {} 步", False)]
)
def test_every_field_of_a_printed_text_has_its_place(clone, zh, fits):
    clone.replace(SOURCE, 'print("registering")', 'print(f"step {x} of {y}")')
    clone.replace(WORDS, '"registering": 注册', f'"step {{}} of {{}}": "{zh}"')
    lesson = clone.lesson("02")
    found = [p.says.en for p in lint.problems(lesson, source.read(lesson))]
    assert (found == []) is fits
    assert any("has 2 fields, and the Chinese needs each" in problem for problem in found) != fits


def test_a_lesson_without_the_file_may_leave_its_code_english_and_the_command_lists_it(clone):
    (clone.root / WORDS).unlink()
    lesson = clone.lesson("02")
    assert lint.problems(lesson, source.read(lesson)) == []
    found = list(code_rules.untranslated(source.read(lesson), {}))
    assert found[:2] == [
        "We look at .grad where PyTorch would rather not have us look; it warns about that, and rightly so.",
        "the hook saw:",
    ]
    command = [sys.executable, "-m", "hookedu.authoring.code_rules", "02"]
    said = subprocess.run(
        command, cwd=clone.root, env=clone.env, capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert said.startswith(f"# 02_tensor_hooks.code.yml: {len(found)}\n")
    assert yaml.safe_load(said) == dict.fromkeys(found, "")


CHINESE = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
SENTENCE = re.compile(r"(?<!\w)(?:[A-Za-z][A-Za-z'’-]*,? ){3,}[A-Za-z]+")
# English that a Chinese reader sees: titles of papers, a prompt of the model, code, and comments in scripts that other
# processes run as they are.
STAYS = {
    "gradient-weighted class activation mapping",
    "Sanity Checks for Saliency Maps",
    "Ben gave the ball to",
    "lambda m, a, o",
    "a step of gradient descent, in the hook",
    "the number of processes",
    "every layer for itself, then the rest",
}


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_every_cell_of_a_lesson_can_be_seen_in_one_language_alone(lesson):
    cells = json.loads(lesson.notebook.read_text(encoding="utf-8"))["cells"]
    assert [cell["id"] for cell in cells if CHINESE.search(said_in(cell, "en"))] == []
    prose = [
        re.sub(r"```.*?```|`[^`]*`|\$[^$]*\$", "", said_in(cell, "zh"), flags=re.DOTALL)
        for cell in cells
        if cell["cell_type"] == "markdown"
    ]
    code = "\n".join(said_in(cell, "zh") for cell in cells if cell["cell_type"] == "code")
    said = [*prose, *re.findall(r"(?:#\s+|\"\"\")(.*)", code)]
    assert {sentence for text in said for sentence in SENTENCE.findall(text)} <= STAYS


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_the_code_of_a_lesson_speaks_chinese(lesson):
    assert code_rules.untranslated(source.read(lesson), code_words.words_of(lesson)) == {}


def test_the_grammar_does_not_depend_on_the_python_that_builds():
    grammar = code_words._grammar()
    assert grammar.version_info[:2] == (3, 11)
    assert grammar.parse('f"{x!r:{w}}"').children[0].type == "fstring"
