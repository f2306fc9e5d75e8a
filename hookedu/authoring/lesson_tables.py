"""Tables of lessons in prose, made from course.yml when a lesson is built."""

import re

from hookedu import catalog

_BLOCK = re.compile(r'<div lang="(zh|en)">\n(.*?)\n</div>', re.DOTALL)
_TABLE = re.compile(r"<!-- lessons (\d\d)-(\d\d)? -->")
_HEADS = {"zh": "| 课 | 讲什么 |", "en": "| Lesson | What it is about |"}


def fill_in(prose: str) -> str:
    """Replace each `<!-- lessons 05-08 -->` in a language block by a table of these lessons, with links.

    `<!-- lessons 09- -->` extends to the last lesson, so that the table includes new lessons.
    """
    return _BLOCK.sub(
        lambda block: _TABLE.sub(lambda found: _table(block[1], *found.groups()), block[0]), prose
    )


def _table(language: str, first: str, last: str | None) -> str:
    rows = [_HEADS[language], "|---|---|"]
    for lesson in catalog.lessons():
        if first <= lesson.id <= (last or lesson.id):
            title, about = getattr(lesson.title, language), getattr(lesson.about, language)
            rows.append(f"| [{lesson.id} {title}]({lesson.notebook.name}) | {about} |")
    return "\n".join(rows)
