"""Rules for pages that have a file for each language: X.md in English, X.zh.md in Chinese.

Such pages are the README, CONTRIBUTING and the guides. Each file must read as if there were no other, and both must
have the same headings, code and links, and say the same in between.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hookedu.authoring import bilingual
from hookedu.authoring.source import Cell, Problem
from hookedu.language import Text, has_chinese

_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)
_PART = re.compile(
    r"^(?P<fence>`{3,})(?P<kind>\w*)\n(?P<code>.*?)^(?P=fence)$|^(?P<level>#+) (?P<title>[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)
# Remarks in code: a line that is a comment (`# %%` begins a cell), or what two spaces part from the code.
_REMARK = re.compile(r"^\s*# (?!%%).*|(?<=\S) {2,}(?=\S).*")
_INLINE = re.compile(r"`[^`]+`")
# What inline code has in the page's language: words that stand for a name, and the name of the language.
_STAND_IN = re.compile(r"[\u3400-\u9fff]+|\b[A-Z]{3,}\b|(?<=--language )(?:en|zh)\b")
_TARGET = re.compile(r"\]\(([^)]+)\)")
_SENTENCE = re.compile(r"[A-Za-z][\w'’]*,?(?: [A-Za-z][\w'’]*,?){3,}")  # names have at most three words

Found = Iterator[tuple[Path, int, Text]]


@dataclass(frozen=True)
class _Part:
    """A heading or a block of code, with the prose up to the next one."""

    line: int
    title: str  # "" for code
    frame: str  # what is the same in both languages: `##`, or the block without its remarks
    remarks: list[str]
    prose: str


def chinese_of(english: Path) -> Path:
    """Return the path of a page's Chinese file."""
    return english.with_suffix(".zh.md")


def problems(english: Path) -> list[Problem]:
    """Return all problems of the two files of a page, given its English file."""
    found: list[tuple[Path, int, Text]] = []
    sides = {}
    for path in (english, chinese_of(english)):
        text = path.read_text(encoding="utf-8")
        found += _switch(path, text, english)
        sides[path] = _parts(text.replace(_switch_of(path, english), "", 1))
        found += _one_language(path, sides[path])
        found += _own_links(path, sides[path])
    found += _same_frame(sides) or _same_content(sides)
    return [Problem(path.name, line, says) for path, line, says in found]


def _switch_of(path: Path, english: Path) -> str:
    """Return the line that leads to the other language."""
    if path == english:
        return f"**English** · [中文]({chinese_of(english).name})"
    return f"[English]({english.name}) · **中文**"


def _switch(path: Path, text: str, english: Path) -> Found:
    switch = _switch_of(path, english)
    if text.splitlines()[1:4] != ["", switch, ""]:
        yield (
            path,
            3,
            Text(
                zh="标题下面空一行，再写 `{switch}`，再空一行。",
                en="Below the title there must be a blank line, `{switch}`, and a blank line.",
            ).format(switch=switch),
        )


def _parts(text: str) -> list[_Part]:
    text = _HIDDEN.sub(lambda match: "\n" * match[0].count("\n"), text)
    found = list(_PART.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    parts = []
    for match, end in zip(found, ends, strict=True):
        lines = (match["code"] or "").splitlines()
        code = [_REMARK.sub("", line) for line in lines]
        parts.append(
            _Part(
                line=text.count("\n", 0, match.start()) + 1,
                title=match["title"] or "",
                frame=match["level"] or "\n".join([f"```{match['kind']}", *code]),
                remarks=[found[0] for line in lines if (found := _REMARK.search(line))],
                prose=text[match.end() : end].strip(),
            )
        )
    return parts


def _one_language(path: Path, parts: list[_Part]) -> Found:
    chinese = path.name.endswith(".zh.md")
    for part in parts:
        for words in (part.title, *part.remarks, *part.prose.splitlines()):
            words = _TARGET.sub("]", _INLINE.sub("`", words))
            foreign = _SENTENCE.search(words) if chinese else re.search(r"[\u3400-\u9fff]+", words)
            if foreign:
                yield (
                    path,
                    part.line,
                    Text(
                        zh="`{words}` 不是这个文件的语言。",
                        en="`{words}` is not in the language of this file.",
                    ).format(words=foreign[0]),
                )


def _own_links(path: Path, parts: list[_Part]) -> Found:
    """Links lead to the page in the same language."""
    for part in parts:
        for target in _TARGET.findall(part.prose):
            file = target.partition("#")[0]
            if path.name.endswith(".zh.md"):
                wrong = (
                    file.endswith(".md")
                    and not file.endswith(".zh.md")
                    and chinese_of(path.parent / file).exists()
                )
            else:
                wrong = file.endswith(".zh.md")
            if wrong:
                yield (
                    path,
                    part.line,
                    Text(
                        zh="`{target}` 是另一种语言的那一页。",
                        en="`{target}` is the page in the other language.",
                    ).format(target=target),
                )


def _same_frame(sides: dict[Path, list[_Part]]) -> list[tuple[Path, int, Text]]:
    """Report the first difference only: what follows it would be compared with the wrong part."""
    (english, en), (chinese, zh) = sides.items()
    for one, other in zip(en, zh, strict=False):
        if one.frame != other.frame:
            says = Text(
                zh="这里和 `{file}` 第 {line} 行不一样：标题的级别和代码要相同，只有代码里的注释不同。",
                en="This is not what line {line} of `{file}` has: levels of headings and code must be the same, except "
                "for comments in code.",
            )
            return [(chinese, other.line, says.format(file=english.name, line=one.line))]
    if len(en) != len(zh):
        longer, parts = max(sides.items(), key=lambda side: len(side[1]))
        line = parts[min(len(en), len(zh))].line
        says = Text(
            zh="从这里起的标题和代码，另一个文件没有。",
            en="The other file does not have the headings and code from here on.",
        )
        return [(longer, line, says)]
    return []


def _same_content(sides: dict[Path, list[_Part]]) -> Found:
    (_, en), (chinese, zh) = sides.items()
    for one, other in zip(en, zh, strict=True):
        if not has_chinese(other.title) and other.title != one.title:
            says = Text(zh="标题 `{title}` 要写成中文。", en="The heading `{title}` must be in Chinese.")
            yield chinese, other.line, says.format(title=other.title)
        for texts in ((other.title, one.title), (other.prose, one.prose)):
            if any(texts):
                said = [_INLINE.sub(lambda code: _STAND_IN.sub("…", code[0]), text) for text in texts]
                blocks = [
                    f'<div lang="{lang}">\n{text}\n</div>'
                    for lang, text in zip(("zh", "en"), said, strict=True)
                ]
                cell = Cell(line=other.line, is_code=False, text="\n".join(blocks))
                for line, says in bilingual.of_prose([cell]):
                    yield chinese, line, says
