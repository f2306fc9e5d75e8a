"""Find pairs of submissions whose code agrees in what few others wrote, for a person to judge.

The unit is a run of LENGTH tokens, as in Schleimer, Wilkerson and Aiken, "Winnowing: Local Algorithms for Document
Fingerprinting" (SIGMOD 2003). All runs are compared: a class is small enough that none needs to be left out. A chosen
name is written as the distance to its last occurrence within the run (Baker, "A Theory of Parameterized Pattern
Matching", STOC 1993), so a run survives consistent renaming, reordered functions, new comments and new line breaks.

What counts is what is rare. A run that the lesson or its reference solution contains, or that more than half of the
class has, counts for nothing; one that two students have counts 1, and the more have it, the less it counts. A token
takes the highest count of the runs that cover it: in doubt, an agreement is ordinary.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from hookedu import catalog
from hookedu.exercises.exercise import Outcome
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.book.grades import Grade
from hookedu.grading.cleaning import clean
from hookedu.grading.lexing import Token, tokens
from hookedu.grading.reading import read_cells
from hookedu.grading.rows import Status, Written

LENGTH = 12  # tokens of a run: about a line and a half
LEAST = 24.0  # weighted tokens in which a pair agrees at least: about three lines, if nobody else has them
LEAST_SCORE = 60.0  # see _Class._score: twice as many lines if they are in one cell
_CANDIDATES = 1000  # pairs of a lesson that are compared token by token
_BLOCK = 2**24  # elements of a matrix
_SHOWN = 300  # lines of one cell, and characters of one line, on the page
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_WRONG = {Outcome.PARTLY.value, Outcome.INCORRECT.value, Outcome.RAISED.value}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of code; `others` is how many more students wrote it so, None if the pair does not agree in it."""

    number: int
    text: str
    others: int | None = None


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """One cell of one student, with the ids of the exercises that it answers."""

    exercises: tuple[str, ...]
    lines: tuple[Line, ...]
    left_out: int = 0  # further lines, which are not shown


@dataclass(frozen=True, slots=True)
class SharedMistake:
    """A mistake that both made; `others` is how many more students made it."""

    exercise: str
    id: str
    others: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Two students whose code for a lesson agrees.

    Attributes
    ----------
    lesson : str
        Id of the lesson.
    grades : tuple of two Grade
        The attempts that were compared: those that count.
    students : int
        Number of students whose code for the lesson was compared.
    score : float
        Weighted number of tokens in which they agree.
    lines, alone : int
        Number of lines in which they agree, and of those that nobody else has.
    cells : tuple of (ComparedCell or None, ComparedCell or None)
        The cells in which they agree, side by side.
    mistakes : tuple of SharedMistake
        Mistakes that both made and at most half of the class, the rarest first.
    """

    lesson: str
    grades: tuple[Grade, Grade]
    students: int
    score: float
    lines: int
    alone: int
    cells: tuple[tuple[ComparedCell | None, ComparedCell | None], ...]
    mistakes: tuple[SharedMistake, ...]


@dataclass(frozen=True)
class Similar:
    """The result: pairs, the strongest agreement first, and how complete the comparison is.

    Attributes
    ----------
    pairs : tuple of Pair
        The pairs, at most as many as asked for.
    more : int
        Number of further pairs, among those compared line by line.
    compared : int
        Number of submissions whose code was compared.
    unknown : int
        Number of submissions of which the gradebook holds no code: an earlier version of hookedu graded them.
    too_long : tuple of str
        Sources of submissions of which some cells were too long to be kept.
    """

    pairs: tuple[Pair, ...]
    more: int
    compared: int
    unknown: int
    too_long: tuple[str, ...]


def similar(book: Gradebook, most: int) -> Similar:
    """Compare all submissions in a gradebook that count, lesson by lesson, and return the `most` similar pairs."""
    classes: dict[str, list[tuple[Grade, Written]]] = defaultdict(list)
    unknown, too_long = 0, []
    for grade in book.grades():
        if not grade.counts or not grade.row.lesson:
            continue
        written = book.written(grade.row)
        if written is None:
            unknown += grade.row.status not in (Status.UNREADABLE, Status.NO_NOTEBOOK)
            continue
        classes[grade.row.lesson].append((grade, written))
        if written.left_out:
            too_long.append(grade.row.source)
    lessons = [_Class(lesson, group) for lesson, group in sorted(classes.items()) if len(group) > 1]
    found = [(of, pair) for of in lessons for pair in of.pairs()]
    found.sort(key=lambda item: -item[1][0])  # stable, so equal scores stay in the order of lessons and names
    pairs = tuple(of.pair(*pair) for of, pair in found[:most])
    compared = sum(map(len, classes.values()))
    return Similar(pairs, len(found) - len(pairs), compared, unknown, tuple(too_long))


class _Code:
    """The cells of one submission as tokens: `cell` and `line` of each, and the hash of the run that begins at it."""

    def __init__(self, sources: Sequence[str]):
        cells = tokens(sources)
        flat = [token for cell in cells for token in cell]
        self.cell = np.repeat(np.arange(len(cells)), [len(cell) for cell in cells])
        self.line = np.array([token.line for token in flat], dtype=np.int64)
        self.runs = _runs(flat)
        ends = self.cell[LENGTH - 1 :]
        self.whole = self.cell[: len(ends)] == ends  # whether a run lies in one cell
        self.distinct = np.unique(self.runs[self.whole])

    def weigh(
        self, rare: NDArray[np.uint64], counts: NDArray[np.int64], ordinary: NDArray[np.uint64]
    ) -> None:
        """Look up how many students have each run, and which tokens lie in an ordinary one; both arrays are sorted."""
        known = self.whole & np.isin(self.runs, rare)
        self.counts = np.zeros(len(self.runs), np.int64)  # 0 for a run that does not count
        self.counts[known] = counts[np.searchsorted(rare, self.runs[known])]
        self.ordinary = _widest(self.whole & np.isin(self.runs, ordinary)) > 0

    def agreement(self, other: "_Code") -> NDArray[np.int64]:
        """Return for each token how many students have it so, 0 where it does not agree with the other's code."""
        found = _widest(np.where(np.isin(self.runs, other.distinct), self.counts, 0))
        return np.where(self.ordinary, 0, found)


def _runs(flat: list[Token]) -> NDArray[np.uint64]:
    """Return the hash of the run that begins at each token."""
    codes = np.zeros(len(flat), np.uint64)  # of a chosen name, 0
    back = np.zeros(len(flat), np.uint64)  # to the last occurrence of a chosen name; 0 if there is none
    last: dict[str, int] = {}
    for place, token in enumerate(flat):
        if token.chosen:
            back[place] = place - last.get(token.text, place)
            last[token.text] = place
        else:
            codes[place] = _code(token.text)
    n = max(0, len(flat) - LENGTH + 1)
    runs = np.zeros(n, np.uint64)
    for j in range(LENGTH):
        distance = back[j : j + n]
        value = codes[j : j + n] + np.where(distance <= j, distance, np.uint64(0))
        runs = (runs ^ (runs >> np.uint64(29))) * _MULTIPLIER + value
    return runs


@cache
def _code(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _widest(runs: NDArray[Any]) -> NDArray[Any]:
    """Return for each token the largest value of the runs that cover it."""
    if not len(runs):
        return np.zeros(0, runs.dtype)
    return sliding_window_view(np.pad(runs, LENGTH - 1), LENGTH).max(axis=1)


class _Class:
    """The students of one lesson."""

    def __init__(self, lesson: str, group: list[tuple[Grade, Written]]):
        self.lesson, self._group, self._n = lesson, group, len(group)
        self._codes = [_Code([source for source, _ in written.cells]) for _, written in group]
        runs, counts = np.unique(np.concatenate([code.distinct for code in self._codes]), return_counts=True)
        ordinary = np.isin(runs, _Code(_given(lesson)).distinct) | (counts > max(2, self._n / 2))
        rare = ~ordinary & (counts > 1)
        self._rare, self._counts = runs[rare], counts[rare]
        for code in self._codes:
            code.weigh(self._rare, self._counts, runs[ordinary])

    def pairs(self) -> Iterator[tuple[float, int, int]]:
        """Yield (score, left, right) for the pairs that agree in enough."""
        shared = self._shared()
        left, right = np.triu_indices(self._n, 1)
        # Close to the number of tokens, and quick; its best candidates are weighed token by token.
        estimates = shared[left, right]
        for place in np.argsort(-estimates, kind="stable")[:_CANDIDATES]:
            if estimates[place] < LEAST / 2:
                break
            pair = self._codes[left[place]], self._codes[right[place]]
            marks = pair[0].agreement(pair[1]), pair[1].agreement(pair[0])
            if min(self._weights(found).sum() for found in marks) >= LEAST:
                score = min(self._score(code, found) for code, found in zip(pair, marks, strict=True))
                if score >= LEAST_SCORE:
                    yield score, int(left[place]), int(right[place])

    def _shared(self) -> NDArray[np.float32]:
        """Return the weighted number of runs that each two students share, computed in blocks of runs."""
        total = np.zeros((self._n, self._n), np.float32)
        weights = np.sqrt(self._weights(self._counts)).astype(np.float32)
        block = max(1, _BLOCK // self._n)
        for begin in range(0, len(self._rare), block):
            runs = self._rare[begin : begin + block]
            has = (
                np.stack([np.isin(runs, code.distinct) for code in self._codes])
                * weights[begin : begin + block]
            )
            total += has @ has.T
        return total

    def _weights(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return 1 for what two students have, falling to almost 0 for what half of the class has; 0 for 0."""
        rarity = np.log(self._n / np.maximum(counts, 1)) / math.log(self._n / 2) if self._n > 4 else 1.0
        return np.where(counts > 0, rarity, 0.0) ** 2

    def _score(self, code: _Code, found: NDArray[np.int64]) -> float:
        """Return (the sum over the cells of the root of their weighted tokens) squared.

        Who agrees in the beginning of a function is likely to agree in all of it; to agree in several is rarer. So one
        cell counts as many tokens as it has, and four of them 16 times as many as one, not 4 times.
        """
        return float(np.sqrt(np.bincount(code.cell, self._weights(found))).sum() ** 2)

    def pair(self, score: float, left: int, right: int) -> Pair:
        """Return everything that the page shows about a pair."""
        sides = self._codes[left], self._codes[right]
        lines = [
            _lines(sides[0], sides[0].agreement(sides[1])),
            _lines(sides[1], sides[1].agreement(sides[0])),
        ]
        (one, wrote), (two, also_wrote) = self._group[left], self._group[right]
        return Pair(
            lesson=self.lesson,
            grades=(one, two),
            students=self._n,
            score=score,
            lines=min(map(len, lines)),
            alone=min(sum(count == 2 for count in agreed.values()) for agreed in lines),
            cells=tuple(_side_by_side((wrote, also_wrote), sides, lines)),
            mistakes=self._mistakes(one, two),
        )

    def _mistakes(self, one: Grade, two: Grade) -> tuple[SharedMistake, ...]:
        both = set(_mistakes_of(one)) & set(_mistakes_of(two))
        found = [SharedMistake(*m, self._made[m] - 2) for m in both if self._made[m] <= max(2, self._n / 2)]
        return tuple(sorted(found, key=lambda mistake: (mistake.others, mistake.exercise, mistake.id)))

    @cached_property
    def _made(self) -> Counter[tuple[str, str]]:
        return Counter(mistake for grade, _ in self._group for mistake in _mistakes_of(grade))


def _lines(code: _Code, found: NDArray[np.int64]) -> dict[tuple[int, int], int]:
    """Return the lines, as (cell, line), of which at least half the tokens agree, and how many have them so."""
    agreed: dict[tuple[int, int], list[int]] = defaultdict(list)
    for cell, line, count in zip(code.cell.tolist(), code.line.tolist(), found.tolist(), strict=True):
        agreed[cell, line].append(count)
    return {place: max(c) for place, c in agreed.items() if 2 * sum(count > 0 for count in c) >= len(c)}


def _mistakes_of(grade: Grade) -> Iterable[tuple[str, str]]:
    return ((r.exercise, r.message_id) for r in grade.row.results if r.outcome in _WRONG and r.message_id)


def _given(lesson: str) -> list[str]:
    """Return the code that every student has seen: the lesson as handed out, and its reference solution."""
    found = catalog.find(lesson)
    notebooks = [path for path in (found.notebook, found.solution) if path.exists()]
    return [
        cell.source for path in notebooks for cell in read_cells(path.read_bytes()) if cell.kind == "code"
    ]


def _side_by_side(
    written: tuple[Written, Written], sides: tuple[_Code, _Code], lines: list[dict[tuple[int, int], int]]
) -> Iterator[tuple[ComparedCell | None, ComparedCell | None]]:
    """Yield the cells with lines that agree, in the left student's order, each beside the one that shares most with it."""
    left, right = map(_runs_by_cell, sides, lines)
    for cell, runs in left.items():
        beside = max(right, key=lambda other: len(runs & right[other]), default=None)
        if beside is not None and runs & right[beside]:
            del right[beside]
            yield _cell(written[0], cell, lines[0]), _cell(written[1], beside, lines[1])
        else:
            yield _cell(written[0], cell, lines[0]), None
    for cell in right:
        yield None, _cell(written[1], cell, lines[1])


def _runs_by_cell(code: _Code, lines: dict[tuple[int, int], int]) -> dict[int, set[int]]:
    """Return the runs that count of each cell with lines that agree."""
    cells = code.cell[: len(code.runs)]
    found = sorted({cell for cell, _ in lines})
    return {cell: set(code.runs[(code.counts > 0) & (cells == cell)].tolist()) for cell in found}


def _cell(written: Written, cell: int, agreed: dict[tuple[int, int], int]) -> ComparedCell:
    source, exercises = written.cells[cell]
    lines = source.split("\n")
    shown = tuple(
        Line(number + 1, _shown(text), agreed[cell, number] - 2 if (cell, number) in agreed else None)
        for number, text in enumerate(lines[:_SHOWN])
    )
    return ComparedCell(exercises, shown, max(0, len(lines) - _SHOWN))


def _shown(text: str) -> str:
    text = clean(text.expandtabs(4))
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
