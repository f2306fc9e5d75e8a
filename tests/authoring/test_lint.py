"""Tests of the rules for sources: the lessons pass all of them, and each rule reports a violation."""

import dataclasses
import re

import pytest

from hookedu import catalog
from hookedu.authoring import code_rules, lint, source

SOURCE = "course/02_tensor_hooks.py"


@pytest.mark.parametrize("lesson", catalog.lessons(), ids=lambda lesson: lesson.id)
def test_the_lessons_keep_every_rule(lesson):
    assert [str(p.text) for p in lint.problems(lesson, source.read(lesson))] == []


BROKEN = {
    "blocks_in_order": (
        '<div lang="zh">\n#\n# 下面分两步',
        '<div lang="en">\n#\n# 下面分两步',
        "no text in a",
    ),
    "blank_line": (
        '# <div lang="zh">\n#\n# 下面分两步',
        '# <div lang="zh">\n# 下面分两步',
        "A blank line must follow",
    ),
    "markdown_in_html": (
        "<summary>1. After backward <code>y.grad</code>",
        "<summary>1. After backward $y$",
        "is HTML, in which Markdown and math",
    ),
    "heading": ("## 2.1 一个消失的数 · A number that vanished", "## 2.1 A number that vanished", "must read"),
    "heading_sides": (
        "一个消失的数 · A number that vanished",
        "A number that vanished · 一个消失的数",
        "must read",
    ),
    "code": ("what is in `x.grad`,", "what is in x.grad,", "`x.grad` stands only on the `zh` side"),
    "number": (
        "gradient of **this** pass only",
        "gradient of 2 passes only",
        "`2` stands only on the `en` side",
    ),
    "math": (r"$\frac{1}{4}$, and the", r"$\frac{1}{2}$, and the", r"stands only on the `en` side"),
    "link": (
        "Below is your",
        "[Below](https://pytorch.org) is your",
        "`https://pytorch.org` stands only on the `en`",
    ),
    "forbidden_term": (
        "**钩子**是你写的一个函数",
        "**勾子**（钩子）是你写的一个函数",
        "Write `钩子`, not `勾子`",
    ),
    "words": ("Guess first**:", "Guess first**:" + " very" * 180, "English words, 180 at most"),
    "characters": ("先猜一猜**：", "先猜一猜**：" + "很" * 240, "Chinese characters, 240 at most"),
    "code_lines": (
        "seen = []\n\n\ndef keep",
        "seen = []\n" + "x = x\n" * 24 + "\ndef keep",
        "lines of code, 24 at most",
    ),
    "columns": ("seen = []\n\n\ndef keep", f"seen = []  # {'很' * 45}\n\n\ndef keep", "columns, 100 at most"),
    "cells": ('# %% tags=["F5"]', "# %%\n1\n\n" * 29 + '# %% tags=["F5"]', "cells, 60 at most"),
    "no_solution": ("    ### BEGIN SOLUTION\n    handles", "    handles", "Unpaired solution marker"),
    "solution_elsewhere": (
        'registering")',
        'registering")\n### BEGIN SOLUTION\n### END SOLUTION',
        "Only an exercise cell",
    ),
    "other_lesson": ('# %% exercise="02.1"', '# %% exercise="03.1"', "does not belong to lesson 02"),
    "no_check": ('# %% check="02.1"', "# %%", "After exercise 02.1 there must be"),
    "wrong_check": ('check("02.1", watch)', 'check("02.1", watch_many)', "After exercise 02.1 there must be"),
    "wrong_name": ("def watch(y, seen):", "def look(y, seen):", "must define `watch`"),
    "no_difficulty": ("# ●● · 6 min\n#\n", "", "a line with difficulty and minutes"),
    "missing_exercise": ('# %% exercise="02.4"', "# %%", "02.4 has a checker but does not stand"),
    "setup": ('# %% tags=["setup"]', "# %%", "The first cell must be the setup"),
    "section_number": ("## 2.3 ", "## 2.4 ", "should be numbered 2.3"),
    "recap": ("# 5. Keep the handle, and", "# Keep the handle, and", "`小结 · Recap` with 5 items"),
    "recall": ("回想一下 · Recall", "回想 · Think back", "`回想一下 · Recall`"),
    "wild": ("真实世界里 · In the wild", "别处 · Elsewhere", "`真实世界里 · In the wild`"),
    "fact_without_box": (
        '[markdown] tags=["F6"]',
        '[markdown] tags=["F9"]',
        "F6 is shown here, but there is no box",
    ),
    "box_without_tag": ('[markdown] tags=["F6"]', "[markdown]", "names its facts"),
    "code_of_a_fact": ("Common mistake**", "Common mistake** (F6)", "`F6`"),
    "guess_not_alone": ('guess("02.b")', 'guess("02.b")\n1', "in a cell of its own"),
    "guess_without_words": (
        'guess("02.k")',
        'guess("02.l")',
        "they must be the same, from `02.a` on, in order",
    ),
    "words_without_guess": ('# %%\nguess("02.k")\n\n', "", "they must be the same"),
    "guesses_out_of_order": ('guess("02.b")', 'guess("02.c")', "in order"),
    "guess_before_prose": (
        'guess("02.k")\n',
        'guess("02.k")\n\n# %% [markdown]\n# ## 2.11 甲 · A\n',
        "Right after guess 02.k there must be",
    ),
    "guess_before_exercise": (
        '# %% exercise="02.1"',
        '# %%\nguess("02.l")\n\n# %% exercise="02.1"',
        "Right after guess 02.l there must be",
    ),
    "box_without_fact": ('# %% tags=["F6"]', "# %%", "F6 has a box, but no code cell"),
}


def test_too_many_cells_name_those_that_could_be_merged(clone):
    clone.replace(SOURCE, '# %% tags=["F5"]', "# %%\n1\n\n" * 29 + '# %% tags=["F5"]')
    lesson = clone.lesson("02")
    cells = source.read(lesson)
    lines = [cell.line for cell in cells if cell.text.startswith(("## 2.4 ", "## 2.13 "))]
    assert len(lines) == 2
    (problem,) = lint.problems(lesson, cells)
    named = [int(n) for n in re.findall(r"\d+", problem.says.en.partition("begin at these lines:")[2])]
    assert set(lines) <= set(named) and not {cell.line for cell in cells if cell.is_code} & {*named}
    kept = [
        cell for cell in cells if cell.line not in named
    ]  # those that are left have no neighbour to merge with
    assert any("any two neighbours would be too long" in str(p.text) for p in lint.problems(lesson, kept))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_reported(clone, name):
    old, new, says = BROKEN[name]
    clone.replace(SOURCE, old, new)
    lesson = clone.lesson("02")
    problems = lint.problems(lesson, source.read(lesson))
    found = [str(p.text) for p in problems]
    assert any(says in problem for problem in found), found
    assert all(problem.startswith(f"{SOURCE}:") for problem in found)
    chinese = [re.sub("`.*?`|「.*?」", "", p.says.zh) for p in problems]
    assert not [text for text in chinese if re.search("[a-z] [a-z]", text)], "English in the Chinese message"


def test_guesses_do_not_count_as_cells(clone):
    """Lesson 02 has more than 60 cells with its guesses, and as many as are allowed without."""
    lesson = clone.lesson("02")
    cells = source.read(lesson)
    plain = [cell for cell in cells if not cell.guess]
    room = lint.MAX_CELLS - 1 - len(plain)
    clone.replace(SOURCE, '# %% tags=["F5"]', "# %%\n1\n\n" * room + '# %% tags=["F5"]')
    assert len(source.read(lesson)) > lint.MAX_CELLS and lint.problems(lesson, source.read(lesson)) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("en: 'What is in `y.grad`", "en: 'What is in y.grad", "`y.grad` stands only on the `zh` side"),
        ("kind: choice", "kind: chioce", "It needs `question`, `kind`"),
        ("en: 'Nearly all of it'", "'': ''", "`en` is missing"),
    ],
    ids=["prose", "entry", "language"],
)
def test_the_words_of_guesses_keep_the_rules(clone, old, new, says):
    clone.replace("course/02_tensor_hooks.guesses.yml", old, new)
    lesson = clone.lesson("02")
    found = [str(p.text) for p in lint.problems(lesson, source.read(lesson))]
    assert any(says in problem for problem in found), found


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (
            "pictures.yml",
            "zh: '计算图：`w = 1`",
            "zh: '计算图：w = 1",
            "`w = 1` stands only on the `en` side",
        ),
        ("py", ' picture="norms"', "", "The pictures named by the cells of this lesson are"),
        ("py", 'picture="norms"', 'picture="norm"', "The pictures named by the cells of this lesson are"),
        ("py", 'picture="norms"', 'picture="timeline"', "The pictures named by the cells of this lesson are"),
    ],
    ids=["prose", "unused", "misspelt", "twice"],
)
def test_the_words_of_pictures_keep_the_rules_and_are_used_once(clone, file, old, new, says):
    clone.replace(f"course/02_tensor_hooks.{file}", old, new)
    lesson = clone.lesson("02")
    found = [str(p.text) for p in lint.problems(lesson, source.read(lesson))]
    assert any(says in problem for problem in found), found


def test_an_english_term_needs_its_chinese_one(clone):
    path = clone.root / SOURCE
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("延迟绑定", "晚绑定"), encoding="utf-8")
    lesson = clone.lesson("02")
    found = [p.says.en.lower() for p in lint.problems(lesson, source.read(lesson))]
    says = (
        "the english says `late binding`, but its term `延迟绑定` is not in the chinese (see glossary.yml)."
    )
    assert found == [says, says]


def test_three_goals(clone):
    lesson = clone.lesson("02")
    lesson = dataclasses.replace(lesson, goals=lesson.goals[:2])
    assert [p.says.en for p in lint.problems(lesson, source.read(lesson))] == [
        "course.yml must give this lesson three goals."
    ]


def test_a_problem_points_at_its_line(clone):
    text = (clone.root / SOURCE).read_text(encoding="utf-8")
    line = text[: text.index('# %% exercise="02.3"')].count("\n") + 1
    clone.replace(SOURCE, 'check("02.3", observe_once)', 'check("02.3", watch)')
    lesson = clone.lesson("02")
    (problem,) = lint.problems(lesson, source.read(lesson))
    assert problem.line == line


@pytest.mark.parametrize("name", ["authors.md", "authors.zh.md"])
def test_the_guide_names_the_limits(name):
    guide = (catalog.ROOT / "course" / "guides" / name).read_text(encoding="utf-8")
    line = next(line for line in guide.splitlines() if f" {lint.MAX_CHARACTERS} " in line)
    limits = [
        lint.MAX_CELLS,
        lint.MAX_CHARACTERS,
        lint.MAX_WORDS,
        lint.MAX_CODE_LINES,
        lint.MAX_EXERCISE_LINES,
    ]
    assert [int(n) for n in re.findall(r"\d+", line)] == [*limits, code_rules.MAX_COLUMNS, 2]
