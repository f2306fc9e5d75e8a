"""What decides about 08.5, `outline(model, x)`."""

from types import SimpleNamespace
from typing import Any

from hookedu.exercises.checks.common import equals
from hookedu.exercises.checks.lesson_08.shared import HOW_CALLED, NOT_AS_CALLED
from hookedu.exercises.criteria import Check, Gives, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_08.outline import PROBE, Model
from hookedu.exercises.tools import same

_Rows = list[tuple[int, str]]  # of (depth, name of the class), in the order in which the calls begin

_BODY: _Rows = [(1, "Sequential"), (2, "Linear"), (2, "Sequential"), (3, "ReLU"), (2, "Sequential")]
_ROUND = [*_BODY, (1, "MaxPool1d")]
_SHOWN = 3  # rows that a message shows


def _key(case: tuple[Model, Model]) -> SimpleNamespace:
    """Return the rows that are wanted, and those of each module's first call."""
    _, model = case
    before, hidden = [(0, "Model"), *_ROUND * model.rounds], [(1, "Tanh")] * len(model.hidden)
    calls = [(1 + n, "Tanh") for n in range(1 + model.again)] * len(model.hidden)
    rows = [*before, (1, "ReLU"), *calls]
    return SimpleNamespace(
        rows=rows,
        moved=len(before),
        hidden=len(calls),
        again=model.again,
        rounds=model.rounds,
        once=[(0, "Model"), *_ROUND, *hidden],
        reentered=[(1, name) if name == "Tanh" else (depth, name) for depth, name in rows],
    )


def _n_hidden(saw: Any, key: Any) -> int:
    return key.hidden // (1 + key.again)


def _names(rows: Any) -> list[Any]:
    return [name for _, name in rows]


def _depths(rows: Any) -> list[Any]:
    return [depth for depth, _ in rows]


def _as_ended(rows: _Rows) -> _Rows:
    """Return the rows in the order in which the calls end."""
    ended: _Rows = []
    running: _Rows = []
    for row in rows:
        while running and running[-1][0] >= row[0]:
            ended.append(running.pop())
        running.append(row)
    return ended + running[::-1]


def _depths_are(of: Of) -> Of:
    """Condition: the names are right, and the depths are those that `of(right depths, key)` gives."""
    return lambda saw, key: (
        _names(saw.found) == _names(key.rows) and _depths(saw.found) == of(_depths(key.rows), key)
    )


def _not_pairs(saw: Any, key: Any) -> bool:
    return not isinstance(saw.found, list) or not all(isinstance(p, list) and len(p) == 2 for p in saw.found)


def _around(name: str) -> Of:
    """Return a line with the rows up to the first that is wrong, as observed ("saw") or as wanted ("key")."""

    def line(saw: Any, key: Any) -> str:
        if _not_pairs(saw, key):
            return f"result == {show(saw.found if name == 'saw' else key.rows)}"
        equal = [same(*pair) for pair in zip(saw.found, key.rows, strict=False)]
        end = 1 + next((n for n, is_equal in enumerate(equal) if not is_equal), len(equal))
        begin = max(0, end - _SHOWN)
        rows = (saw.found if name == "saw" else key.rows)[begin:end]
        return f"result[{begin}:{end}] == {show(rows)}"

    return line


EXERCISE = Exercise(
    PROBE,
    key=_key,
    given="outline(model, x)",
    checks=[
        Check(
            "rows",
            "found",
            want=lambda key: key.rows,
            points=2,
            essential=True,
            given=[
                Say("model_runs", when=lambda saw, key: not key.again, n=_n_hidden),
                Say("model_reenters", n=_n_hidden),
            ],
            expected=_around("key"),
            got=_around("saw"),
            mistakes={
                "returns_nothing": lambda saw, key: saw.found is None,
                "not_pairs": _not_pairs,
                "never_fires": Gives(lambda key: []),
                "name_first": lambda saw, key: all(
                    isinstance(name, str) and type(depth) is int for name, depth in saw.found
                ),
                "one_module_only": Gives(lambda key: key.rows[:1]),
                "qualified_names": lambda saw, key: (
                    any("." in name for name in _names(saw.found))
                    and all(part.isidentifier() for name in _names(saw.found) for part in name.split("."))
                ),
                "not_class_names": lambda saw, key: (
                    not all(isinstance(name, str) and name.isidentifier() for name in _names(saw.found))
                ),
                "runs_twice": lambda saw, key: _names(saw.found) == 2 * _names(key.rows),
                "keeps_rows": lambda saw, key: (
                    len(saw.found) > len(key.rows) and _names(saw.found)[-len(key.rows) :] == _names(key.rows)
                ),
                "inner_first": lambda saw, key: _names(saw.found) == _names(_as_ended(key.rows)),
                "forward_directly": lambda saw, key: _names(saw.found) == _names(key.rows)[1:],
                "depth_of_names": lambda saw, key: (
                    _depths(saw.found)[: key.moved + 1] == [*_depths(key.rows)[: key.moved], 3]
                ),
                "own_hooks_only": lambda saw, key: _names(saw.found) == _names(key.rows)[: -key.hidden],
                # The empty Sequential has no children either.
                "leaves_only": lambda saw, key: (
                    "Model" not in _names(saw.found)
                    and _names(saw.found).count("Sequential") in (0, key.rounds)
                ),
                "without_grad": Gives(lambda key: [*key.rows[: key.moved], *key.rows[key.moved + 1 :]]),
                "once_each": lambda saw, key: _names(saw.found) == _names(key.once),
                "never_closes": _depths_are(lambda depths, key: [*range(len(depths))]),
                "flat": lambda saw, key: len({*_depths(saw.found)}) == 1,
                "closes_itself": Gives(lambda key: key.reentered),
                "too_deep": lambda saw, key: (
                    {one - other for one, other in zip(_depths(saw.found), _depths(key.rows), strict=True)}
                    in ({1}, {2}, {3})
                ),
            },
        ),
        equals("clean", lambda key: 0, {"leaves_hook": True}, "left", words="left"),
        Check(
            "others",
            ok=lambda saw, key: saw.lost == 0 and saw.called and all(saw.called) and saw.handed_on,
            points=1,
            expected=[Say("lost", when=lambda saw, key: saw.lost, value=0), Say("as_called")],
            got=[Say("lost", when=lambda saw, key: saw.lost, value=lambda saw, _: saw.lost), *HOW_CALLED],
            mistakes={"removes_others": lambda saw, key: saw.lost, **NOT_AS_CALLED},
        ),
        Check(
            "clean_after_error",
            ok=lambda saw, key: saw.left_by_error == 0 and saw.passed_on,
            points=1,
            given="outline(broken, x)",
            expected=Say("passed_on", n=0),
            got=[
                Say("passed_on", when=lambda saw, key: saw.passed_on, n=lambda saw, _: saw.left_by_error),
                Say("another_error", when=lambda saw, key: saw.instead, n=lambda saw, _: saw.left_by_error),
                Say("swallowed", n=lambda saw, key: saw.left_by_error),
            ],
            mistakes={
                "no_finally": lambda saw, key: saw.left_by_error,
                "raises_another": lambda saw, key: saw.instead,
                "swallows": lambda saw, key: not saw.passed_on and not saw.instead,
            },
        ),
    ],
    raises={"hook_returns": r"must be Tensor, not \w+", "no_nonlocal": r"^UnboundLocalError"},
)
