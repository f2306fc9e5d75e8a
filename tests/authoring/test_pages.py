"""Tests of the rules for pages that have a file for each language: each rule reports a violation.

The pages themselves are tested in tests/course/test_guides.py.
"""

import pytest

from hookedu.authoring import pages

ENGLISH = """# Guide

**English** · [中文](guide.zh.md)

Run `hookedu grade`, with 60 seconds, see [notes](guide.md). A hook.

<!-- not run: a comment -->
```bash
hookedu grade class --time-limit 70  # for a large class, on a slow machine
# then wait
```

## The next

### Canvas

`STUDENT/02.ipynb`, once more.

| Column | what it says |
|---|---|
| `name` | who |
"""
CHINESE = """# 指南

[English](guide.md) · **中文**

运行 `hookedu grade`，限时 60 秒，见[说明](guide.zh.md)。钩子。

```bash
hookedu grade class --time-limit 70  # 班大而机器慢时
# 然后等着
```

## 下一节

### Canvas

再来一次 `学生/02.ipynb`。

| 列 | 说什么 |
|---|---|
| `name` | 是谁 |
"""
# The file that is spoilt, what in it, the new text, the start of a problem, and what it says.
SPOILT = {
    "code": (
        "en",
        "Run `hookedu grade`",
        "Run it",
        "guide.zh.md:1",
        "`hookedu grade` stands only on the `zh`",
    ),
    "number": ("zh", "限时 60", "限时 70", "guide.zh.md:1", "`60` stands only on the `en` side"),
    "link": ("en", "(guide.md)", "(other.md)", "guide.zh.md:1", "`guide.md` stands only on the `zh` side"),
    "own_link": ("zh", "(guide.zh.md)", "(guide.md)", "guide.zh.md:1", "`guide.md` is the page in the other"),
    "other_link": (
        "en",
        "(guide.md)",
        "(guide.zh.md)",
        "guide.md:1",
        "`guide.zh.md` is the page in the other",
    ),
    "term": ("zh", "。钩子。", "。", "guide.zh.md:1", "its term `钩子` is not in the Chinese"),
    "heading": ("zh", "## 下一节", "## The next one", "guide.zh.md:12", "`The next one` must be in Chinese"),
    "level": ("zh", "### Canvas", "## Canvas", "guide.zh.md:14", "not what line 15 of `guide.md` has"),
    "missing": ("zh", "### Canvas", "Canvas", "guide.md:15", "does not have the headings and code from here"),
    "command": ("zh", "limit 70", "limit 80", "guide.zh.md:7", "not what line 8 of `guide.md` has"),
    "kind": ("zh", "```bash", "```text", "guide.zh.md:7", "not what line 8 of `guide.md` has"),
    "no_english": (
        "en",
        "`STUDENT/02.ipynb`, once more.\n\n",
        "",
        "guide.zh.md:14",
        "stands only on the `zh`",
    ),
    "no_prose": ("zh", "### Canvas", "文字\n\n### Canvas", "guide.zh.md:12", "has no text in a"),
    "chinese": ("en", "A hook.", "A hook 钩子.", "guide.md:1", "`钩子` is not in the language"),
    "chinese_remark": ("en", "# then wait", "# 等着", "guide.md:8", "`等着` is not in the language"),
    "chinese_heading": ("en", "## The next", "## 下一节", "guide.md:13", "`下一节` is not in the language"),
    "english": (
        "zh",
        "是谁",
        "the name of the student",
        "guide.zh.md:14",
        "`the name of the student` is not",
    ),
    "english_remark": ("zh", "然后等着", "then wait for it", "guide.zh.md:7", "`then wait for it` is not in"),
    "switch": (
        "zh",
        "[English](guide.md) · **中文**\n",
        "",
        "guide.zh.md:3",
        "there must be a blank line, `[Eng",
    ),
}


@pytest.mark.parametrize("name", [None, *SPOILT])
def test_a_page_keeps_the_rules(tmp_path, name):
    texts = {"en": ENGLISH, "zh": CHINESE}
    if name:
        language, old, new, start, says = SPOILT[name]
        assert old in texts[language]
        texts[language] = texts[language].replace(old, new)
    (tmp_path / "guide.md").write_text(texts["en"], encoding="utf-8")
    (tmp_path / "guide.zh.md").write_text(texts["zh"], encoding="utf-8")
    found = [problem.text.en for problem in pages.problems(tmp_path / "guide.md")]
    if name is None:
        assert found == []
    else:
        assert any(problem.startswith(f"{start}: ") and says in problem for problem in found), found
