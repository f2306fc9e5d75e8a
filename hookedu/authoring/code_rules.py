"""Rules for course/NN_name.code.yml, the Chinese words of a lesson's code.

`python -m hookedu.authoring.code_rules 03` prints the texts of lesson 03 that have no Chinese yet, ready to be filled in. A
lesson without the file may leave its code English.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator

import yaml

from hookedu import catalog, yaml_files
from hookedu.authoring import bilingual, code_words, localize, source
from hookedu.authoring.code_words import CodeText
from hookedu.authoring.source import Cell, Problem
from hookedu.catalog import Lesson
from hookedu.language import Text, has_chinese

MAX_COLUMNS = 100  # of a line of code; a Chinese character takes two

_MISSING = Text(
    zh="`{text}` 没有中文：加到 `course/{file}` 里；要保持英文，就两边写成一样。",
    en="`{text}` has no Chinese: add it to `course/{file}`; if it is to stay English, write the same on both sides.",
)
_UNUSED = Text(
    zh="代码里没有 `{text}`。写错了，还是已经不用了？",
    en="The code has no `{text}`. Is it misspelt, or no longer used?",
)
_NO_TEXT = Text(zh="`{text}` 的中文要是一段文字。", en="The Chinese of `{text}` must be a text.")
_FIELDS = Text(
    zh="`{text}` 有 {n} 个空，中文里每个都要出现：`{{}}` 按顺序，`{{0}}`、`{{1}}` 可以换位置。",
    en="`{text}` has {n} fields, and the Chinese needs each: `{{}}` in order, or `{{0}}`, `{{1}}` in another order.",
)
_TOO_WIDE = Text(
    zh="`{text}` 的中文有 {n} 列，而对齐的位置只有 {of} 列：写短一些。",
    en="The Chinese of `{text}` has {n} columns, and only {of} fit where the output is aligned: make it shorter.",
)
_LONG = Text(
    zh="换成中文以后，这一行有 {n} 列，最多 {of} 列：`{line}`",
    en="In Chinese this line has {n} columns, {of} at most: `{line}`",
)
_BROKEN = Text(
    zh="换成中文以后，这个单元格不再是同样的代码（多半是引号）：{error}",
    en="In Chinese this cell is no longer the same code (mostly that is a quotation mark): {error}",
)
_QUOTED = Text(
    zh="第 {line} 行起的中文引用了 `{text}`，打印出来的却会是 `{zh}`：换一种说法，或者让它保持英文。",
    en="The Chinese prose from line {line} quotes `{text}`, but `{zh}` will be printed: reword it, or let it stay English.",
)


def problems(lesson: Lesson, cells: list[Cell]) -> list[Problem]:
    """Return all problems in the Chinese words of a lesson's code; [] if there is no file of them."""
    path = code_words.file_of(lesson)
    if not path.exists():
        return []
    words, used = code_words.words_of(lesson), _used(cells)
    in_code = [*_missing(path.name, cells, words), *_translated(cells, words)]
    entries = _entries(lesson)
    in_words = [
        *_misfits(entries, used, cells),
        *bilingual.of_prose([cell for cell, _, zh in entries if has_chinese(zh)]),
    ]
    places = ((f"course/{lesson.file}.py", in_code), (f"course/{path.name}", in_words))
    return [
        Problem(file, line, says)
        for file, found in places
        for line, says in sorted(found, key=lambda p: p[0])
    ]


def untranslated(cells: list[Cell], words: dict[str, str]) -> dict[str, int]:
    """Return the texts that readers see and that have no Chinese, and the line in which each occurs first."""
    names = set().union(*(code_words.names(cell.text) for cell in cells if cell.is_code))
    return {
        text: places[0][1]
        for text, places in _used(cells).items()
        if text not in words and any(found.shown for found, _ in places) and code_words.is_prose(text, names)
    }


def _used(cells: list[Cell]) -> dict[str, list[tuple[CodeText, int]]]:
    """Return every text of the code, with its occurrences and the lines in the lesson's source."""
    used = defaultdict(list)
    for cell in cells:
        for code, line in [(cell.text, cell.line)] if cell.is_code else localize.fenced(cell.text, cell.line):
            for found in code_words.texts(code):
                used[found.text].append((found, line + found.line))
    return used


def _missing(file: str, cells: list[Cell], words: dict[str, str]) -> bilingual.Found:
    for text, line in untranslated(cells, words).items():
        yield line, _MISSING.format(text=text, file=file)


def _translated(cells: list[Cell], words: dict[str, str]) -> bilingual.Found:
    """In Chinese, the code must be the same but for its words, and no wider than a browser shows."""
    for cell in cells:
        if not cell.is_code:
            continue
        code = code_words.in_language(cell.text, "zh", words)
        try:
            same = _shape(code) == _shape(cell.text)
        except SyntaxError as error:
            yield cell.line, _BROKEN.format(error=error)
            continue
        if not same:
            yield cell.line, _BROKEN.format(error="")
        for line in code.splitlines():
            if (n := code_words.columns(line)) > MAX_COLUMNS:
                yield cell.line, _LONG.format(n=n, of=MAX_COLUMNS, line=line.strip())


def _shape(code: str) -> str:
    """Return the syntax tree of code without the texts of its strings."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            # The Chinese text may reorder the fields.
            node.values = sorted((v for v in node.values if isinstance(v, ast.FormattedValue)), key=ast.dump)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def _entries(lesson: Lesson) -> list[tuple[Cell, str, str]]:
    """Return the entries of a lesson's file: as prose in two languages, the English text, the Chinese text."""
    node = yaml_files.compose(code_words.file_of(lesson))
    found = []
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        zh = value.value if isinstance(value, yaml.ScalarNode) else ""
        # Numbers of fields, such as {1}, are no numbers of the text: both languages have plain fields here.
        prose = re.sub(r"\{\d+\}", "{}", zh)
        blocks = f'<div lang="zh">\n{prose}\n</div>\n<div lang="en">\n{key.value}\n</div>'
        found.append((Cell(line=key.start_mark.line + 1, is_code=False, text=blocks), key.value, zh))
    return found


def _misfits(
    entries: list[tuple[Cell, str, str]], used: dict[str, list[tuple[CodeText, int]]], cells: list[Cell]
) -> bilingual.Found:
    for entry, en, zh in entries:
        if en not in used:
            yield entry.line, _UNUSED.format(text=en)
            continue
        if not zh:
            yield entry.line, _NO_TEXT.format(text=en)
        for found, _ in used[en]:
            if found.fields and code_words.fields_of(zh, found.fields) is None:
                yield entry.line, _FIELDS.format(text=en, n=found.fields)
            if found.room and zh != en and code_words.columns(zh) > found.room:
                yield entry.line, _TOO_WIDE.format(text=en, n=code_words.columns(zh), of=found.room)
        for cell in _quoting(en, cells) if zh != en else ():
            yield entry.line, _QUOTED.format(line=cell.line, text=en.rstrip(":"), zh=zh)


def _quoting(text: str, cells: list[Cell]) -> Iterator[Cell]:
    """Yield the cells whose Chinese prose quotes a text of the code."""
    quoted = re.compile(rf"`{re.escape(text.rstrip(':'))}:?`")
    return (cell for cell in cells if not cell.is_code and quoted.search(cell.prose("zh")))


def main() -> None:
    """Print the texts of the lessons named on the command line that have no Chinese yet."""
    for name in sys.argv[1:]:
        lesson = catalog.find(name)
        found = untranslated(source.read(lesson), code_words.words_of(lesson))
        print(f"# {code_words.file_of(lesson).name}: {len(found)}")
        for text in found:
            print(yaml.safe_dump({text: ""}, allow_unicode=True, width=1000, default_style='"'), end="")


if __name__ == "__main__":
    main()
