"""Diagram of the course, made from course.yml: which lesson builds on which."""

from collections.abc import Mapping
from functools import cached_property
from statistics import fmean

from hookedu import catalog
from hookedu.catalog import Lesson
from hookedu.exercises import of_lesson
from hookedu.exercises.exercise import Outcome
from hookedu.exercises.feedback import LOOKS
from hookedu.language import Text, shown
from hookedu.learner.links import Links
from hookedu.learner.notices import usage
from hookedu.learner.progress import Progress

_WIDTH, _HEIGHT, _BESIDE, _BELOW = 240, 52, 14, 24  # px: size of a box, gaps between boxes


class CourseMap:
    """Diagram with one box per lesson and an arrow from each lesson to those that build on it.

    Displayed as SVG in a notebook, elsewhere as text: one line per lesson, with the lessons that it builds
    on.

    Attributes
    ----------
    lessons : tuple of Lesson
        The lessons in the order of course.yml.
    """

    def __init__(self) -> None:
        self.lessons = catalog.lessons()

    def __repr__(self) -> str:
        return "\n".join(
            f"{le.id} {le.title.inline()}" + (f" ← {', '.join(le.after)}" if le.after else "")
            for le in self.lessons
        )

    @cached_property
    def positions(self) -> dict[str, tuple[float, int]]:
        """Column and row of each lesson, by its number.

        The row is the length of the longest path that leads to the lesson. Columns are centred on 0; within a
        row, lessons are sorted by the mean column of the lessons that they need (the barycenter heuristic,
        which keeps the number of crossing arrows low).
        """
        row: dict[str, int] = {}
        for lesson in self.lessons:  # course.yml lists a lesson after those that it needs
            row[lesson.id] = 1 + max((row[before] for before in lesson.after), default=-1)
        positions: dict[str, tuple[float, int]] = {}

        def column_above(lesson: Lesson) -> float:
            return fmean(positions[before][0] for before in lesson.after) if lesson.after else 0.0

        for y in range(1 + max(row.values())):
            level = sorted((lesson for lesson in self.lessons if row[lesson.id] == y), key=column_above)
            for place, lesson in enumerate(level):
                positions[lesson.id] = (place - (len(level) - 1) / 2, y)
        return positions

    def _repr_html_(self) -> str:
        left = min(x for x, _ in self.positions.values())
        width = (max(x for x, _ in self.positions.values()) - left + 1) * (_WIDTH + _BESIDE)
        height = (max(y for _, y in self.positions.values()) + 1) * (_HEIGHT + _BELOW) - _BELOW + 2
        corners = {
            name: ((x - left) * (_WIDTH + _BESIDE) + _BESIDE / 2, y * (_HEIGHT + _BELOW) + 1)
            for name, (x, y) in self.positions.items()
        }
        arrows = "".join(
            _arrow(corners[before], corners[lesson.id]) for lesson in self.lessons for before in lesson.after
        )
        links = Links()
        # As the links, progress belongs to somebody who sits before JupyterLab; a built notebook shows the course alone.
        best = Progress().best if links.can_be_followed else {}
        boxes = "".join(_box(lesson, *corners[lesson.id], links, best) for lesson in self.lessons)
        name = Text(zh="课程地图", en="Map of the course")
        return shown(
            f'<svg role="group" aria-label="{name.inline()}" viewBox="0 0 {width:g} {height}" width="{width:g}" '
            f'height="{height}" style="max-width:100%;height:auto" fill="none" stroke="currentColor">'
            f'<g stroke-opacity="0.6">{arrows}</g>{boxes}</svg>'
        )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Draw an arrow from the bottom of one box to the top of another, given their upper left corners."""
    (x, y), (to_x, to_y) = start, end
    x, to_x, y = x + _WIDTH / 2, to_x + _WIDTH / 2, y + _HEIGHT
    middle = (y + to_y) / 2
    return (
        f'<path d="M{x:g} {y:g}C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y - 6:g}"/>'
        f'<path d="M{to_x - 4:g} {to_y - 7:g}h8l-4 7z" fill="currentColor" stroke="none"/>'
    )


def _box(lesson: Lesson, x: float, y: float, links: Links, best: Mapping[str, Outcome]) -> str:
    """Draw the box of a lesson, filled from the left as far as its exercises are solved, and linked to its notebook."""
    needs = Text(zh="先学：{before}", en="First: {before}").format(before=", ".join(lesson.after) or "—")
    ids = [exercise.id for exercise in of_lesson(lesson.id)]
    solved = sum(best.get(id) is Outcome.CORRECT for id in ids)
    frame = f'x="{x:g}" y="{y:g}" height="{_HEIGHT}" rx="6"'
    done = count = ""
    if solved:
        done = (
            f'<rect {frame} width="{_WIDTH * solved / len(ids):g}" stroke="none" '
            f'style="fill:color-mix(in srgb, var({LOOKS[Outcome.CORRECT][1]}) 25%, transparent)"/>'
        )
        says = Text(zh="做对 {n}/{of} 题", en="{n} of {of} solved").format(n=solved, of=len(ids))
        count = f'<div style="margin-left:auto;white-space:nowrap">{says.inline_html()}</div>'
    name = links.around(lesson.title.html(), lesson, style="color:inherit")
    return (
        f'<g><title>{needs.inline()}</title>{done}<rect {frame} width="{_WIDTH}" '
        f'stroke-opacity="0.6"/><foreignObject x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<div style="display:flex;align-items:center;gap:.7em;height:100%;padding:0 .8em;box-sizing:border-box;'
        f'font-size:12px;line-height:1.3"><b>{lesson.id}</b><div>{name}</div>{count}</div></foreignObject></g>'
    )


@usage("course_map()")
def course_map() -> CourseMap:
    """Return a diagram of the lessons and of which lesson builds on which.

    Returns
    -------
    CourseMap
        Displayed as a diagram in a notebook, with one box per lesson and an arrow to each lesson that builds
        on it; in JupyterLab a box links to the lesson if its notebook is in the same folder, and is filled as
        far as the exercises are solved. As one line of text per lesson elsewhere. Its attribute ``lessons``
        holds the lessons in order.

    Raises
    ------
    CourseError
        If course.yml is missing, as in an incomplete installation.

    Examples
    --------
    >>> from hookedu import course_map
    >>> course_map()
    00 ...
    ...
    09 特征图 · Feature maps ← 03, 05
    ...
    """
    return CourseMap()
