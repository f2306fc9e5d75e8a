"""Rules that a lesson's source and the words of its exercises must pass before it is built.

Each rule is one function that yields problems. The rules guarantee that both languages have the same content,
that an exercise can be answered, stripped of its answer and graded, and that a lesson can be read in the time
it announces.
"""

import itertools
import re
from pathlib import Path

from hookedu import exercises, guesses
from hookedu.authoring import bilingual, code_rules, code_words, pictures, source
from hookedu.authoring.source import BEGIN_SOLUTION, END_SOLUTION, Cell, Problem
from hookedu.catalog import Lesson
from hookedu.exercises.words import SHARED
from hookedu.language import Text

MAX_CELLS = 60  # including the title, which is made from course.yml
MAX_WORDS = 180  # English words per prose cell
MAX_CHARACTERS = 240  # Chinese characters per prose cell
MAX_CODE_LINES = 24
MAX_EXERCISE_LINES = 90  # with the solution, which learners do not see before they have their own

_SECTION = re.compile(r"^## (\d+)\.(\d+) ", re.MULTILINE)
_DIFFICULTY = re.compile(r"^●{1,5} · \d+ min$", re.MULTILINE)
_BOX = "**常见错误 · Common mistake**"
_CODE_LINES = Text(zh="行代码", en="lines of code")
_CHARACTERS = Text(zh="个汉字", en="Chinese characters")
_WORDS = Text(zh="个英文词", en="English words")


def problems(lesson: Lesson, cells: list[Cell]) -> list[Problem]:
    """Return all problems in a lesson's source, in the words of its exercises, and in the Chinese words of its code."""
    found = [*bilingual.of_prose(cells), *(problem for rule in _RULES for problem in rule(lesson, cells))]
    words = [
        lesson.source.with_suffix(".yml"),
        lesson.source.with_name(SHARED),
        guesses.file_of(lesson),
        pictures.file_of(lesson),
    ]
    return [
        *_in_order(f"course/{lesson.file}.py", found),
        *(problem for path in words if path.exists() for problem in words_problems(path)),
        *code_rules.problems(lesson, cells),
    ]


def words_problems(path: Path) -> list[Problem]:
    """Return all problems in a file of words, of exercises, guesses or pictures: its texts are held to the rules of prose."""
    cells = source.read_words(path)
    return _in_order(f"course/{path.name}", [*bilingual.of_prose(cells), *bilingual.same_fields(cells)])


def _in_order(file: str, found: list[tuple[int, Text]]) -> list[Problem]:
    return [Problem(file, line, says) for line, says in sorted(found, key=lambda problem: problem[0])]


def _length(lesson: Lesson, cells: list[Cell]) -> bilingual.Found:
    count = len(cells) + 1 - sum(cell.guess is not None for cell in cells)  # guesses are no reading
    if count > MAX_CELLS:
        lines = ", ".join(str(line) for line in _merging_into_the_one_before(cells))
        yield (
            cells[-1].line,
            Text(
                zh="这一课有 {n} 个单元格，最多 {of} 个；请合并或删去一些。和前一个单元格合并以后仍不太长的，从这些行开始：{lines}。",
                en="This lesson has {n} cells, {of} at most; merge or drop some. Those that could be merged with the cell "
                "before and would still not be too long begin at these lines: {lines}.",
            ).format(n=count, of=MAX_CELLS, lines=lines)
            if lines
            else Text(
                zh="这一课有 {n} 个单元格，最多 {of} 个；任何两个相邻的单元格合并起来都会太长：请先缩短，删去一些，或换一课来加。",
                en="This lesson has {n} cells, {of} at most, and any two neighbours would be too long as one: shorten some "
                "first, drop some, or add to another lesson.",
            ).format(n=count, of=MAX_CELLS),
        )
    for cell in cells:
        if cell.is_code:
            most = MAX_EXERCISE_LINES if cell.exercise else MAX_CODE_LINES
            counts = [(len(cell.text.splitlines()), most, _CODE_LINES)]
        else:
            zh, en = bilingual.count_characters(cell.prose("zh")), bilingual.count_words(cell.prose("en"))
            counts = [(zh, MAX_CHARACTERS, _CHARACTERS), (en, MAX_WORDS, _WORDS)]
        for count, limit, unit in counts:
            if count > limit:
                yield (
                    cell.line,
                    Text(
                        zh="太长：{n} {unit}，最多 {of}；请缩短，或分成两个单元格。",
                        en="Too long: {n} {unit}, {of} at most; shorten it or split the cell.",
                    ).format(n=count, of=limit, unit=unit),
                )


def _merging_into_the_one_before(cells: list[Cell]) -> list[int]:
    """Return the lines of the cells of prose that follow one of prose, and with it are no longer than a cell may be."""
    return [
        cell.line
        for before, cell in itertools.pairwise(cells)
        if not before.is_code
        and not cell.is_code
        and sum(bilingual.count_characters(one.prose("zh")) for one in (before, cell)) <= MAX_CHARACTERS
        and sum(bilingual.count_words(one.prose("en")) for one in (before, cell)) <= MAX_WORDS
    ]


def _columns(lesson: Lesson, cells: list[Cell]) -> bilingual.Found:
    for cell in cells:
        for number, line in enumerate(cell.text.splitlines() if cell.is_code else [], cell.line + 1):
            if (columns := code_words.columns(line)) > code_rules.MAX_COLUMNS:
                yield (
                    number,
                    Text(
                        zh="这行代码有 {n} 列，最多 {of} 列（一个汉字占两列）：在浏览器里会看不全。",
                        en="This line of code has {n} columns, {of} at most (a Chinese character takes two): a browser cuts it off.",
                    ).format(n=columns, of=code_rules.MAX_COLUMNS),
                )


def _solution_markers(lesson: Lesson, cells: list[Cell]) -> bilingual.Found:
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
                    zh='只有练习单元格（`# %% exercise="..."`）才能有答案标记；在这里学习者会直接看到答案。',
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


def _exercises(lesson: Lesson, cells: list[Cell]) -> bilingual.Found:
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
            yield from _around_exercise(known[cell.exercise], cells, place)
    for exercise_id in sorted(known.keys() - seen):
        yield (
            cells[-1].line,
            Text(
                zh="练习 {id} 有检查器，却不在这一课里。",
                en="Exercise {id} has a checker but does not stand in this lesson.",
            ).format(id=exercise_id),
        )


def _around_exercise(exercise: exercises.Exercise, cells: list[Cell], place: int) -> bilingual.Found:
    """Check the cell of an exercise, the task before it and the check after it."""
    cell = cells[place]
    if not re.search(rf"^(def|class) {exercise.answer}\b|^{exercise.answer} = ", cell.text, re.MULTILINE):
        yield (
            cell.line,
            Text(
                zh="练习 {id} 的单元格要定义 `{name}`。",
                en="The cell of exercise {id} must define `{name}`.",
            ).format(id=exercise.id, name=exercise.answer),
        )
    # The heading must show the title that `progress()` and the reports use.
    heading = f"### 练习 {exercise.id}：{exercise.title.zh} · Exercise {exercise.id}: {exercise.title.en}"
    task = cells[place - 1] if place else None
    if task is None or task.is_code or f"{heading}\n" not in task.frame or not _DIFFICULTY.search(task.frame):
        yield (
            cell.line,
            Text(
                zh="练习 {id} 前面要有一个任务单元格：标题是 `{heading}`，下面一行写难度和分钟，如 `●● · 6 min`。",
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
                zh='练习 {id} 后面要有一个 `# %% check="{id}"` 单元格，内容是 `{wanted}`。',
                en='After exercise {id} there must be a `# %% check="{id}"` cell that reads `{wanted}`.',
            ).format(id=exercise.id, wanted=wanted),
        )


def _shape(lesson: Lesson, cells: list[Cell]) -> bilingual.Found:
    if len(lesson.goals) != 3:
        yield (
            1,
            Text(zh="course.yml 里这一课要有三个目标。", en="course.yml must give this lesson three goals."),
        )
    if not cells[0].is_code or "setup" not in cells[0].tags:
        yield (
            cells[0].line,
            Text(
                zh='第一个单元格要是准备代码：`# %% tags=["setup"]`。',
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
        cell = next((c for c in bilingual.prose_in(cells) if heading in c.frame), None)
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


def _markdown_in_html(lesson: Lesson, cells: list[Cell]) -> bilingual.Found:
    for cell in bilingual.prose_in(cells):
        if re.search(r'^<div lang="(?:zh|en)">\n[^<\n]', cell.text, re.MULTILINE):
            yield (
                cell.line,
                Text(
                    zh="`<div lang>` 后面要空一行，不然这一段会原样显示，不当作 Markdown。",
                    en="A blank line must follow a `<div lang>`: without it, the text is shown as it is, not as Markdown.",
                ),
            )
        # JupyterLab renders math there all the same, the reading site and GitHub do not.
        for number, line in enumerate(cell.text.splitlines(), cell.line + 1):
            if line.startswith("<details><summary>") and re.search(r"[$`]|\*\*", line):
                yield (
                    number,
                    Text(
                        zh="`<details>` 这一行是 HTML，其中的 Markdown 和公式会原样显示：请写 `<code>`、`<b>`、`<i>`。",
                        en="A line with `<details>` is HTML, in which Markdown and math are shown as they are: write `<code>`, `<b>`, `<i>`.",
                    ),
                )


def _boxes(lesson: Lesson, cells: list[Cell]) -> bilingual.Found:
    boxed = {tag: c.line for c in bilingual.prose_in(cells) for tag in c.tags}
    shown = {tag: c.line for c in reversed(cells) if c.is_code for tag in c.tags if tag.startswith("F")}
    for cell in bilingual.prose_in(cells):
        if (_BOX in cell.frame) != any(tag.startswith("F") for tag in cell.tags):
            yield (
                cell.line,
                Text(
                    zh='`{box}` 框所在的单元格要标出它讲的事实，例如 `tags=["F9"]`；别的说明单元格不标。',
                    en='A cell with a box `{box}` names its facts, such as `tags=["F9"]`; other cells of prose do not.',
                ).format(box=_BOX),
            )
    for fact in sorted(shown.keys() - boxed.keys()):
        yield (
            shown[fact],
            Text(
                zh='{fact} 在这里演示了，却没有标着 `tags=["{fact}"]` 的框。',
                en='{fact} is shown here, but there is no box with `tags=["{fact}"]`.',
            ).format(fact=fact),
        )
    for fact in sorted(boxed.keys() - shown.keys()):
        yield (
            boxed[fact],
            Text(
                zh='{fact} 有提示框，却没有标着 `tags=["{fact}"]` 的代码来演示。',
                en='{fact} has a box, but no code cell with `tags=["{fact}"]` shows it.',
            ).format(fact=fact),
        )


def _guesses(lesson: Lesson, cells: list[Cell]) -> bilingual.Found:
    try:
        known = list(guesses.load(guesses.file_of(lesson)))
    except guesses.GuessError as error:
        yield 1, error.says[0]
        return
    asked = [cell.guess for cell in cells if cell.guess]
    if asked != known or known != [f"{lesson.id}.{chr(ord('a') + n)}" for n in range(len(known))]:
        yield (
            next((cell.line for cell in cells if cell.guess), 1),
            Text(
                zh="这一课的猜题是 {asked}，`{file}` 里有 {known}：两边要一样，从 `{lesson}.a` 起，按次序。",
                en="The guesses of this lesson are {asked}, those of `{file}` are {known}: they must be the same, from "
                "`{lesson}.a` on, in order.",
            ).format(asked=asked, known=known, file=guesses.file_of(lesson).name, lesson=lesson.id),
        )
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if cell.is_code and not cell.guess and re.search(r"^guess\(", cell.text, re.MULTILINE):
            yield (
                cell.line,
                Text(
                    zh='猜题要单独放一个单元格，只写一行，例如 `guess("02.a")`。',
                    en='A guess stands in a cell of its own, as one line such as `guess("02.a")`.',
                ),
            )
        if cell.guess and (
            following is None
            or not following.is_code
            or following.guess
            or following.exercise
            or following.check
        ):
            yield (
                cell.line,
                Text(
                    zh="猜题 {id} 后面紧接着的，要是演示结果的代码单元格。",
                    en="Right after guess {id} there must be the cell of code that shows the truth.",
                ).format(id=cell.guess),
            )


def _pictures(lesson: Lesson, cells: list[Cell]) -> bilingual.Found:
    known = [*pictures.load(lesson)]
    named = [cell.picture for cell in cells if cell.picture]
    if sorted(named) != sorted(known):
        yield (
            next((cell.line for cell in cells if cell.picture), 1),
            Text(
                zh="这一课的单元格给图起的名字是 {named}，`{file}` 里有 {known}：两边要一样，每个名字只用一次。",
                en="The pictures named by the cells of this lesson are {named}, those of `{file}` are {known}: they must "
                "be the same, each of them once.",
            ).format(named=named, known=known, file=pictures.file_of(lesson).name),
        )


_RULES = (
    _length,
    _columns,
    _solution_markers,
    _exercises,
    _shape,
    _markdown_in_html,
    _boxes,
    _guesses,
    _pictures,
)
