"""What decides about 13.4, `whole_norm(shards, group)`."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from hookedu.exercises.criteria import Check, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_13.whole_norm import PROBE


class Key:
    """Norms of the pieces of each rank and of what wrong answers return; `norm` is the right one."""

    def __init__(self, case: list[list[torch.Tensor]]) -> None:
        self.pieces, self.ranks = case, len(case)
        self.lengths = [len(pieces) for pieces in case]
        values = [torch.cat([torch.zeros(0), *(p.flatten() for p in pieces)]).double() for pieces in case]
        self.without_values = [not v.numel() for v in values]
        norms = [[float(p.double().norm()) for p in pieces] for pieces in case]
        self.own = [float(v.norm()) for v in values]
        self.squares = sum(float(v.square().sum()) for v in values)
        self.norm = math.sqrt(self.squares)
        self.sum_of_norms = sum(self.own)
        self.sums_of_pieces = [sum(map(sum, norms)), math.sqrt(sum(sum(n) ** 2 for n in norms))]
        self.means = [
            self.norm / self.ranks,
            self.norm / math.sqrt(self.ranks),
            self.sum_of_norms / self.ranks,
        ]
        self.with_own = [math.sqrt(self.squares + own**2) for own in self.own]
        self.other_norms = [
            sum(float(v.abs().sum()) for v in values),
            max((float(v.abs().max()) for v in values if v.numel()), default=0.0),
        ]


def _near(got: Any, wanted: float) -> bool:
    """Check whether two numbers are close; nan is close to nan."""
    if type(got) is not float:
        return False
    return math.isnan(got) if math.isnan(wanted) else math.isclose(got, wanted, rel_tol=1e-4, abs_tol=1e-7)


def _all_near(results: Any, wanted: Sequence[float]) -> bool:
    return len(results) == len(wanted) and all(map(_near, results, wanted))


def _everywhere(value: Callable[[Key], float | list[float]]) -> Of:
    """Return the condition that all ranks return this value, or one of these."""

    def holds(saw: Saw, key: Key) -> bool:
        found = value(key)
        return any(
            _all_near(saw.results, [v] * key.ranks) for v in (found if isinstance(found, list) else [found])
        )

    return holds


def _skips(saw: Saw, key: Key) -> bool:
    """Check whether those communicate that have a piece, or a value, and they only; all of them once."""
    having = [[n > 0 for n in key.lengths], [not without for without in key.without_values]]
    return [n == 1 for n in saw.counts] in having and max(saw.counts) <= 1


def _fails_only_somewhere(saw: Saw, key: Key) -> bool:
    """Check whether some ranks return the norm and others nothing."""
    right = [_near(result, key.norm) for result in saw.results]
    return any(right) and all(r or result is None for r, result in zip(right, saw.results, strict=True))


def _alike(saw: Saw, key: Key) -> bool:
    kinds = list(zip(saw.dtypes, saw.shapes, strict=True))
    return all(kind == kinds[0] for kind in kinds)


def _integers(saw: Saw, key: Key) -> bool:
    """Check whether ranks without pieces, or without values, send integers, and others do not."""
    return ["int" in dtype for dtype in saw.dtypes] in ([n == 0 for n in key.lengths], key.without_values)


def _given(saw: Saw, key: Key) -> str:
    return "; ".join(f"rank {n}: shards = {show(pieces)}" for n, pieces in enumerate(key.pieces))


def _results(saw: Saw, key: Key) -> str:
    return ", ".join(f"{r:g}" if type(r) is float else show(r) for r in saw.results)


_each_returns = Say("each_returns", wanted=lambda saw, key: f"{key.norm:g}")

EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=_given,
    checks=[
        Check(
            "meets",
            ok=lambda saw, key: (
                not saw.default and not saw.others and saw.counts[0] > 0 and len(set(saw.counts)) == 1
            ),
            essential=True,
            expected=Say("each_once"),
            got=[
                Say("default_group", when=lambda saw, key: saw.default),
                Say(
                    "another_way",
                    when=lambda saw, key: saw.others,
                    way=lambda saw, key: saw.others[0].strip("_"),
                ),
                Say("so_often"),
            ],
            mistakes={
                "keeps_state": lambda saw, key: not saw.steady,
                "no_group": lambda saw, key: saw.default,
                "another_way": lambda saw, key: saw.others,
                "skips": _skips,
                "per_piece": lambda saw, key: (
                    saw.counts in (key.lengths, [sum(p.numel() > 0 for p in pieces) for pieces in key.pieces])
                ),
                "never_sends": lambda saw, key: not any(saw.counts),
                "some_wait": True,
            },
        ),
        Check(
            "alike",
            ok=_alike,
            essential=True,
            expected=Say("alike"),
            got=lambda saw, key: ", ".join(f"{d} {s}" for d, s in zip(saw.dtypes, saw.shapes, strict=True)),
            mistakes={
                "integers": _integers,
                "sends_pieces": lambda saw, key: len({str(shape) for shape in saw.shapes}) > 1,
            },
        ),
        Check(
            "norm",
            ok=lambda saw, key: _all_near(saw.results, [key.norm] * key.ranks),
            points=3,
            essential=True,
            expected=_each_returns,
            got=Say("they_return", results=_results),
            mistakes={
                "returns_nothing": lambda saw, key: (
                    all(saw.returned) and all(result is None for result in saw.results)
                ),
                "returns_somewhere": _fails_only_somewhere,
                "keeps_state": lambda saw, key: not saw.steady,
                "own_only": lambda saw, key: _all_near(saw.results, key.own),
                "takes_largest": lambda saw, key: "MAX" in saw.ops,
                "averages": lambda saw, key: "AVG" in saw.ops or _everywhere(lambda key: key.means)(saw, key),
                "no_root": _everywhere(lambda key: key.squares),
                "adds_norms": _everywhere(lambda key: key.sum_of_norms),
                "adds_norms_of_pieces": _everywhere(lambda key: key.sums_of_pieces),
                "own_twice": lambda saw, key: _all_near(saw.results, key.with_own),
                "another_norm": _everywhere(lambda key: key.other_norms),
            },
        ),
        Check(
            "once",
            ok=lambda saw, key: max(saw.counts) == 1,
            points=2,
            expected=Say("each_once"),
            got=Say("so_often"),
            mistakes={"more_than_once": True},
        ),
    ],
    raises={
        "sends_number": r"type torch\.Tensor\s+but got <class '(int|float)'>",
        "sends_list": r"type torch\.Tensor\s+but got <class '(list|tuple|generator|map)'>",
        "needs_contiguous": r"view size is not compatible",
        "needs_pieces": r"non-empty|at least one|empty (list|sequence)|list index out of range|of empty|input\.numel\(\) == 0",
        "gives_none": r"NoneType",
        "another_way": r"No backend type associated",
    },
)
