"""Rules that a lesson's source and the words of its exercises must pass before it is built, and rules for guides.

Each rule is one function that yields problems. The rules guarantee that both languages have the same content,
that an exercise can be answered, stripped of its answer and graded, and that a lesson can be read in the time
it announces.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hookedu import catalog, exercises
from hookedu.authoring import source
from hookedu.authoring.source import BEGIN_SOLUTION, END_SOLUTION, Cell, Problem
from hookedu.catalog import Lesson
from hookedu.exercises.words import SHARED
from hookedu.language import Text

MAX_CELLS = 40  # including the title, which is made from course.yml
MAX_WORDS = 80  # English words per prose cell
MAX_CHARACTERS = 130  # Chinese characters per prose cell
MAX_CODE_LINES = 24

_CJK = re.compile(r"[\u3400-\u9fff]")
_CODE = re.compile(r"`([^`]+)`|<code>(.*?)</code>")
_MATH = re.compile(r"\$([^$]+)\$")
_LINK = re.compile(r"\]\(([^)]+)\)|https?://[^\s)>]+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
_LIST_MARK = re.compile(r"^(?:<details><summary>)?\d+\. ", re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
_SECTION = re.compile(r"^## (\d+)\.(\d+) ", re.MULTILINE)
_DIFFICULTY = re.compile(r"^●{1,5} · \d+ min$", re.MULTILINE)
# What is allowed outside the language blocks: headings and comments.
_BESIDE = re.compile(r"^#+ .*$|<!--(?s:.*?)-->", re.MULTILINE)
_FIELD = re.compile(r"\{\w[^{}]*\}")  # of a text that is filled in: {n}, {saw.left}
_FACT = re.compile(r"F\d+")
_BOX = "**常见错误 · Common mistake**"

Found = Iterator[tuple[int, Text]]


def problems(lesson: Lesson, cells: list[Cell]) -> list[Problem]:
    """Return all problems in a lesson's source and then those in the words of its exercises, in order of lines."""
    found = [*_of_prose(cells), *(problem for rule in _RULES for problem in rule(lesson, cells))]
    words = [lesson.source.with_suffix(".yml"), lesson.source.with_name(SHARED)]
    return _in_order(f"course/{lesson.file}.py", found) + [
        problem for path in words if path.exists() for problem in words_problems(path)
    ]


def words_problems(path: Path) -> list[Problem]:
    """Return all problems in a file of words of exercises: its texts are held to the rules of prose."""
    cells = source.read_words(path)
    return _in_order(f"course/{path.name}", [*_of_prose(cells), *_same_fields(cells)])


def guide_problems(path: Path) -> list[Problem]:
    """Return all problems in a guide, in the order of its lines.

    A guide must have the same content in both languages, and no prose outside the language blocks.
    """
    cells = source.read_guide(path)
    return _in_order(path.name, [*_of_prose(cells), *_outside(cells)])


def _in_order(file: str, found: list[tuple[int, Text]]) -> list[Problem]:
    return [Problem(file, line, says) for line, says in sorted(found, key=lambda problem: problem[0])]


def _of_prose(cells: list[Cell]) -> Found:
    """Apply the rules for all prose, in lessons and guides."""
    for rule in (_both_languages, _same_in_both, _glossary_terms):
        yield from rule(_prose(cells))


def _prose(cells: list[Cell]) -> list[Cell]:
    return [c for c in cells if not c.is_code]


def _both_languages(cells: list[Cell]) -> Found:
    for cell in cells:
        blocks = re.findall(r'<div lang="(zh|en)">', cell.text)
        if not cell.prose("zh") or not cell.prose("en"):
            missing = "zh" if not cell.prose("zh") else "en"
            yield (
                cell.line,
                Text(
                    zh='这个单元缺少 `<div lang="{lang}">` 里的文字；两种语言都要写。',
                    en='This cell has no text in a `<div lang="{lang}">` block; write both languages.',
                ).format(lang=missing),
            )
        elif blocks != ["zh", "en"] * (len(blocks) // 2):
            yield (
                cell.line,
                Text(
                    zh="语言块要成对出现：先 `zh`，后 `en`。",
                    en="Language blocks come in pairs: first `zh`, then `en`.",
                ),
            )
        for _, heading in _HEADING.findall(cell.frame):
            if heading.isalpha() and heading.isascii():
                continue  # a name, such as `## JupyterHub`, is the same in both languages
            zh, dot, en = heading.partition(" · ")
            if not dot or not _CJK.search(zh) or _CJK.search(en):
                yield (
                    cell.line,
                    Text(
                        zh="标题 `{heading}` 要写成「中文 · English」。",
                        en="The heading `{heading}` must read `中文 · English`.",
                    ).format(heading=heading),
                )


def _parts(prose: str) -> dict[str, set[str]]:
    """Extract what must be the same in both languages: inline code, math, links, numbers."""
    code = {a or b for a, b in _CODE.findall(prose)}
    rest = _CODE.sub(" ", prose)
    math = set(_MATH.findall(rest))
    rest = _MATH.sub(" ", rest)
    links = {m.group(1) or m.group(0) for m in _LINK.finditer(rest)}
    rest = _LIST_MARK.sub("", _LINK.sub(" ", rest))
    return {"code": code, "math": math, "links": links, "numbers": set(_NUMBER.findall(rest))}


def _same_in_both(cells: list[Cell]) -> Found:
    for cell in cells:
        zh, en = _parts(cell.prose("zh")), _parts(cell.prose("en"))
        for kind in zh:
            for lang, only in (("zh", zh[kind] - en[kind]), ("en", en[kind] - zh[kind])):
                if only and cell.prose("zh") and cell.prose("en"):
                    yield (
                        cell.line,
                        Text(
                            zh="{what} 只在 `{lang}` 一边出现；两边要一致（或者都用文字说）。",
                            en="{what} stands only on the `{lang}` side; say it on both (or in words on both).",
                        ).format(what=", ".join(f"`{x}`" for x in sorted(only)), lang=lang),
                    )


def _same_fields(cells: list[Cell]) -> Found:
    for cell in cells:
        zh, en = (sorted(_FIELD.findall(cell.prose(lang))) for lang in ("zh", "en"))
        if zh != en:
            yield (
                cell.line,
                Text(
                    zh="两边的空要一样：`zh` 有 {zh}，`en` 有 {en}。",
                    en="The fields must be the same: `zh` has {zh}, `en` has {en}.",
                ).format(zh=zh, en=en),
            )


@cache
def _glossary() -> list[dict]:
    import yaml

    return yaml.safe_load((catalog.ROOT / "course" / "glossary.yml").read_text(encoding="utf-8"))


def _glossary_terms(cells: list[Cell]) -> Found:
    for cell in cells:
        zh, en = cell.prose("zh") + cell.frame, _CODE.sub(" ", cell.prose("en"))
        for term in _glossary():
            said = re.search(rf"\b(?:{term['en']})\b", en, re.IGNORECASE)
            if said and term["zh"] not in zh:
                yield (
                    cell.line,
                    Text(
                        zh="英文用了 `{en}`，中文却没有对应的术语「{zh}」（见 glossary.yml）。",
                        en="The English says `{en}`, but its term `{zh}` is not in the Chinese (see glossary.yml).",
                    ).format(en=said[0], zh=term["zh"]),
                )
            for wrong in filter(None, (re.search(pattern, zh) for pattern in term.get("not", ()))):
                yield (
                    cell.line,
                    Text(
                        zh="请用「{zh}」，不用「{wrong}」（见 glossary.yml）。",
                        en="Write `{zh}`, not `{wrong}` (see glossary.yml).",
                    ).format(zh=term["zh"], wrong=wrong[0]),
                )


def _outside(cells: list[Cell]) -> Found:
    for cell in cells:
        for line in _BESIDE.sub("", cell.frame).splitlines():
            if line.strip():
                yield (
                    cell.line,
                    Text(
                        zh="`{line}` 在语言块之外：放进 `<div lang>`，中文和英文各写一遍。",
                        en="`{line}` stands outside the language blocks: put it into a `<div lang>`, in both languages.",
                    ).format(line=line.strip()[:60]),
                )


def _length(lesson: Lesson, cells: list[Cell]) -> Found:
    if len(cells) + 1 > MAX_CELLS:
        yield (
            cells[-1].line,
            Text(
                zh="这一课有 {n} 个单元，最多 {of} 个；请合并或删去一些。",
                en="This lesson has {n} cells, {of} at most; merge or drop some.",
            ).format(n=len(cells) + 1, of=MAX_CELLS),
        )
    for cell in cells:
        counts = (
            (len(cell.text.splitlines()), MAX_CODE_LINES, "lines of code")
            if cell.is_code
            else (len(_CJK.findall(cell.prose("zh"))), MAX_CHARACTERS, "Chinese characters"),
            (0, 0, "") if cell.is_code else (_words(cell.prose("en")), MAX_WORDS, "English words"),
        )
        for count, limit, unit in counts:
            if count > limit:
                yield (
                    cell.line,
                    Text(
                        zh="太长：{n}（{unit}），最多 {of}；请缩短，或分成两个单元。",
                        en="Too long: {n} {unit}, {of} at most; shorten it or split the cell.",
                    ).format(n=count, of=limit, unit=unit),
                )


def _words(prose: str) -> int:
    """Count English words; inline code and formulas count as one word each, tags as none."""
    text = re.sub(r"<[^>]+>", " ", _MATH.sub(" x ", _CODE.sub(" x ", prose)))
    return sum(1 for word in text.split() if re.search(r"\w", word))


def _solution_markers(lesson: Lesson, cells: list[Cell]) -> Found:
    for cell in cells:
        marks = [
            (number, line.strip())
            for number, line in enumerate(cell.text.splitlines(), cell.line + 1)
            if line.strip() in (BEGIN_SOLUTION, END_SOLUTION)
        ]
        if not marks and cell.exercise:
            yield (
                cell.line,
                Text(
                    zh="练习 {id} 没有参考答案：把它放在 `{begin}` 和 `{end}` 之间。",
                    en="Exercise {id} has no reference answer: put it between `{begin}` and `{end}`.",
                ).format(id=cell.exercise, begin=BEGIN_SOLUTION, end=END_SOLUTION),
            )
        if marks and not cell.exercise:
            yield (
                marks[0][0],
                Text(
                    zh='只有练习单元（`# %% exercise="..."`）才能有答案标记；在这里学习者会直接看到答案。',
                    en='Only an exercise cell (`# %% exercise="..."`) may hold solution markers; '
                    "here learners would see the answer.",
                ),
            )
        elif [mark for _, mark in marks] != [BEGIN_SOLUTION, END_SOLUTION] * (len(marks) // 2):
            yield (
                marks[0][0],
                Text(
                    zh="答案标记不成对：每个 `{begin}` 后面都要有一个 `{end}`。",
                    en="Unpaired solution marker: each `{begin}` needs an `{end}` after it.",
                ).format(begin=BEGIN_SOLUTION, end=END_SOLUTION),
            )


def _exercises(lesson: Lesson, cells: list[Cell]) -> Found:
    known = {e.id: e for e in exercises.of_lesson(lesson.id)}
    seen: set[str] = set()
    for place, cell in enumerate(cells):
        for exercise_id in filter(None, (cell.exercise, cell.check)):
            if exercise_id not in known:
                yield (
                    cell.line,
                    exercises.UnknownExercise(exercise_id).says
                    if exercise_id[:2] == lesson.id
                    else Text(
                        zh="练习 `{id}` 不属于第 {lesson} 课。",
                        en="Exercise `{id}` does not belong to lesson {lesson}.",
                    ).format(id=exercise_id, lesson=lesson.id),
                )
        if cell.exercise and cell.exercise in seen:
            yield (
                cell.line,
                Text(
                    zh="练习 {id} 已经出现过；每个编号只能用一次。",
                    en="Exercise {id} stands here a second time; each id may be used once.",
                ).format(id=cell.exercise),
            )
        elif cell.exercise in known:
            seen.add(cell.exercise)
            exercise = known[cell.exercise]
            if not re.search(
                rf"^(def|class) {exercise.answer}\b|^{exercise.answer} = ", cell.text, re.MULTILINE
            ):
                yield (
                    cell.line,
                    Text(
                        zh="练习 {id} 的单元要定义 `{name}`。",
                        en="The cell of exercise {id} must define `{name}`.",
                    ).format(id=exercise.id, name=exercise.answer),
                )
            # The heading must show the title that `progress()` and the reports use.
            heading = (
                f"### 练习 {exercise.id}：{exercise.title.zh} · Exercise {exercise.id}: {exercise.title.en}"
            )
            task = cells[place - 1] if place else None
            if (
                task is None
                or task.is_code
                or f"{heading}\n" not in task.frame
                or not _DIFFICULTY.search(task.frame)
            ):
                yield (
                    cell.line,
                    Text(
                        zh="练习 {id} 前面要有一个任务单元：标题是 `{heading}`，下面一行写难度和分钟，如 `●● · 6 min`。",
                        en="A cell with the task must stand before exercise {id}: the heading `{heading}`, then a "
                        "line with difficulty and minutes, such as `●● · 6 min`.",
                    ).format(id=exercise.id, heading=heading),
                )
            after = cells[place + 1] if place + 1 < len(cells) else None
            wanted = f'check("{exercise.id}", {exercise.answer})'
            if after is None or after.check != exercise.id or after.text.strip() != wanted:
                yield (
                    cell.line,
                    Text(
                        zh='练习 {id} 后面要有一个 `# %% check="{id}"` 单元，内容是 `{wanted}`。',
                        en='After exercise {id} there must be a `# %% check="{id}"` cell that reads `{wanted}`.',
                    ).format(id=exercise.id, wanted=wanted),
                )
    for exercise_id in sorted(known.keys() - seen):
        yield (
            cells[-1].line,
            Text(
                zh="练习 {id} 有检查器，却不在这一课里。",
                en="Exercise {id} has a checker but does not stand in this lesson.",
            ).format(id=exercise_id),
        )


def _shape(lesson: Lesson, cells: list[Cell]) -> Found:
    if len(lesson.goals) != 3:
        yield (
            1,
            Text(zh="course.yml 里这一课要有三个目标。", en="course.yml must give this lesson three goals."),
        )
    if not cells[0].is_code or "setup" not in cells[0].tags:
        yield (
            cells[0].line,
            Text(
                zh='第一个单元要是准备代码：`# %% tags=["setup"]`。',
                en='The first cell must be the setup: `# %% tags=["setup"]`.',
            ),
        )
    sections = [(c.line, *m.groups()) for c in cells if not c.is_code for m in _SECTION.finditer(c.frame)]
    for number, (line, lesson_number, section) in enumerate(sections, 1):
        if (int(lesson_number), int(section)) != (int(lesson.id), number):
            yield (
                line,
                Text(
                    zh="这一节应当编号 {lesson}.{n}。", en="This section should be numbered {lesson}.{n}."
                ).format(lesson=int(lesson.id), n=number),
            )
            break
    wanted = {"小结 · Recap": r"^\d\. ", "回想一下 · Recall": "<details>", "真实世界里 · In the wild": ""}
    counts = {"小结 · Recap": 5, "回想一下 · Recall": 3}
    for heading, item in wanted.items():
        cell = next((c for c in _prose(cells) if heading in c.frame), None)
        of = counts.get(heading)
        if cell is None or (
            of and any(len(re.findall(item, cell.prose(lang), re.MULTILINE)) != of for lang in ("zh", "en"))
        ):
            yield (
                cell.line if cell else cells[-1].line,
                Text(zh="要有一节「{heading}」{of}。", en="There must be a section `{heading}`{of}.").format(
                    heading=heading,
                    of=Text(zh=f"，每种语言 {of} 条", en=f" with {of} items in each language") if of else "",
                ),
            )


def _boxes(lesson: Lesson, cells: list[Cell]) -> Found:
    boxed = {
        f for c in _prose(cells) for line in c.frame.splitlines() if _BOX in line for f in _FACT.findall(line)
    }
    shown = {tag: c.line for c in reversed(cells) for tag in c.tags if _FACT.fullmatch(tag)}
    for fact in sorted(shown.keys() - boxed):
        yield (
            shown[fact],
            Text(
                zh="{fact} 在这里演示了，却没有 `{box} ({fact})` 这样的框。",
                en="{fact} is shown here, but no box reads `{box} ({fact})`.",
            ).format(fact=fact, box=_BOX),
        )
    for fact in sorted(boxed - shown.keys()):
        line = next(c.line for c in _prose(cells) if fact in _FACT.findall(c.frame))
        yield (
            line,
            Text(
                zh='{fact} 有提示框，却没有标着 `tags=["{fact}"]` 的代码来演示。',
                en='{fact} has a box, but no code cell with `tags=["{fact}"]` shows it.',
            ).format(fact=fact),
        )


_RULES = (
    _length,
    _solution_markers,
    _exercises,
    _shape,
    _boxes,
)
