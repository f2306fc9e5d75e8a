"""Which lesson builds on which, made from course.yml, as a picture."""

from functools import cached_property
from statistics import fmean

from hookedu import catalog
from hookedu.catalog import Lesson
from hookedu.language import Text

_WIDTH, _HEIGHT, _BESIDE, _BELOW = 240, 52, 14, 24  # px: a lesson's box, and the gaps between boxes


class CourseMap:
    """Which lesson needs which: a box a lesson, an arrow from each to those that build on it."""

    def __init__(self) -> None:
        self.lessons = catalog.lessons()

    def __repr__(self) -> str:
        return "\n".join(
            f"{le.id} {le.title.zh} · {le.title.en}" + (f" ← {', '.join(le.after)}" if le.after else "")
            for le in self.lessons
        )

    @cached_property
    def positions(self) -> dict[str, tuple[float, int]]:
        """Column and row of each lesson, by number.

        Its row is the longest way that leads to it. Within a row, centred on 0, lessons stand in the order of the
        lessons above them that they need (the barycenter heuristic for few crossing arrows).
        """
        row: dict[str, int] = {}
        for lesson in self.lessons:  # a lesson comes after those that it needs
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
        boxes = "".join(_box(lesson, *corners[lesson.id]) for lesson in self.lessons)
        name = Text(zh="课程地图", en="Map of the course")
        return (
            f'<svg role="group" aria-label="{name.zh} · {name.en}" viewBox="0 0 {width:g} {height}" width="{width:g}" '
            f'height="{height}" style="max-width:100%;height:auto" fill="none" stroke="currentColor">'
            f'<g stroke-opacity="0.6">{arrows}</g>{boxes}</svg>'
        )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """From the lower edge of one box to the upper edge of another."""
    (x, y), (to_x, to_y) = start, end
    x, to_x, y = x + _WIDTH / 2, to_x + _WIDTH / 2, y + _HEIGHT
    middle = (y + to_y) / 2
    return (
        f'<path d="M{x:g} {y:g}C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y - 6:g}"/>'
        f'<path d="M{to_x - 4:g} {to_y - 7:g}h8l-4 7z" fill="currentColor" stroke="none"/>'
    )


def _box(lesson: Lesson, x: float, y: float) -> str:
    needs = Text(zh="先学：{before}", en="First: {before}").format(before=", ".join(lesson.after) or "—")
    return (
        f'<g><title>{needs}</title><rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
        f'stroke-opacity="0.6"/><foreignObject x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<div style="display:flex;align-items:center;gap:.7em;height:100%;padding:0 .8em;box-sizing:border-box;'
        f'font-size:12px;line-height:1.3"><b>{lesson.id}</b><div>{lesson.title.html()}</div></div></foreignObject></g>'
    )


def course_map() -> CourseMap:
    """The lessons of the course and which needs which, as a picture."""
    return CourseMap()
