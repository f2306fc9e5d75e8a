"""Rules for prose in two languages: lessons, the words of exercises, and pages.

Both languages must have the same content and use the terms of the glossary.
"""

import re
from collections.abc import Iterator
from functools import cache

from hookedu import catalog, yaml_files
from hookedu.authoring.source import Cell
from hookedu.language import Text

_CJK = re.compile(r"[\u3400-\u9fff]")
_CODE = re.compile(r"`([^`]+)`|<code>(.*?)</code>")
_MATH = re.compile(r"\$([^$]+)\$")
_LINK = re.compile(r"\]\(([^)]+)\)|https?://[^\s)>]+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
_LIST_MARK = re.compile(r"^(?:<details><summary>)?\d+\. ", re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
_FIELD = re.compile(r"\{\w[^{}]*\}")  # of a text that is filled in: {n}, {saw.left}
# Codes of experiments and facts: they stand in tags only, because no reader knows them.
_FACT = re.compile(r"\b[EF]\d+\b")

Found = Iterator[tuple[int, Text]]


def of_prose(cells: list[Cell]) -> Found:
    """Apply the rules for all prose."""
    for rule in (_both_languages, _same_in_both, _glossary_terms, _no_codes):
        yield from rule(prose_in(cells))


def prose_in(cells: list[Cell]) -> list[Cell]:
    """Return the cells that hold prose."""
    return [c for c in cells if not c.is_code]


def _both_languages(cells: list[Cell]) -> Found:
    for cell in cells:
        blocks = re.findall(r'<div lang="(zh|en)">', cell.text)
        if not cell.prose("zh") or not cell.prose("en"):
            missing = "zh" if not cell.prose("zh") else "en"
            yield (
                cell.line,
                Text(
                    zh='这个单元格缺少 `<div lang="{lang}">` 里的文字；两种语言都要写。',
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
    # A page such as hubs.md has its Chinese in hubs.zh.md, to which Chinese prose links; so have some pictures.
    links = {re.sub(r"\.zh(?=\.\w+)", "", m.group(1) or m.group(0)) for m in _LINK.finditer(rest)}
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


def same_fields(cells: list[Cell]) -> Found:
    """Texts that are filled in need the same fields in both languages."""
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
    return yaml_files.load(catalog.ROOT / "course" / "glossary.yml", holds=list)


def _glossary_terms(cells: list[Cell]) -> Found:
    for cell in cells:
        zh, en = cell.prose("zh") + cell.frame, _LINK.sub(" ", _CODE.sub(" ", cell.prose("en")))
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


def _no_codes(cells: list[Cell]) -> Found:
    for cell in cells:
        for code in _FACT.findall(_CODE.sub(" ", cell.text)):
            yield (
                cell.line,
                Text(
                    zh="`{code}` 这样的编号读者看不懂，只写在 `tags` 里。",
                    en="Readers do not know codes such as `{code}`: they stand in `tags` only.",
                ).format(code=code),
            )


def count_characters(prose: str) -> int:
    """Count Chinese characters."""
    return len(_CJK.findall(prose))


def count_words(prose: str) -> int:
    """Count English words; inline code and formulas count as one word each, tags as none."""
    text = re.sub(r"<[^>]+>", " ", _MATH.sub(" x ", _CODE.sub(" x ", prose)))
    return sum(1 for word in text.split() if re.search(r"\w", word))
