"""What decides about 03.3, `build_chain(y, factors, seen)`."""

from collections.abc import Callable
from itertools import accumulate, pairwise
from operator import mul
from typing import Any

from hookedu.exercises.checks.common import HANDLE
from hookedu.exercises.checks.lesson_03 import shared
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_03.build_chain import PROBE, Case
from hookedu.exercises.tools import same


class Key(shared.Plain):
    """The gradients without hooks, and what `seen` must hold after the first pass and after the second."""

    def __init__(self, case: Case) -> None:
        paths, self.factors, self.before = case
        super().__init__(paths)
        self.looks = [factor * self.w for factor in self.factors]
        self.both_looks = self.looks + [factor * self.other for factor in self.factors]
        n = len(self.factors)
        self.but_last = self.looks[:-1] + self.both_looks[n:-1]
        self.final, self.final_again = (
            self.factors[-1] * self.x_grad,
            self.factors[-1] * (self.k * self.other),
        )
        last = self.factors[-1]
        self.asked = [last * self.w, 0 * self.w, last * last * self.w]
        self.on_leaf = [factor * w for w in (self.w, 0 * self.w, self.w) for factor in self.factors]


def _products(factors: list[float]) -> list[float]:
    return list(accumulate(factors, mul))


def _sees(*multiples: Callable[[list[float]], list[float]]) -> Gives:
    """Condition: what was seen are these multiples of the gradient, by the factors."""
    return Gives(*(lambda key, of=of: [n * key.w for n in of(key.factors)] for of in multiples))


def _ratios(factors: list[float]) -> list[float]:
    return [after / before for before, after in pairwise([1, *factors])]


def _differences(factors: list[float], first: float) -> list[float]:
    return [after - before for before, after in pairwise([first, *factors])]


def _removable(saw: Any, key: Key) -> bool:
    """Check whether a list of handles was returned, and all hooks can be removed with them."""
    handles = saw.returned if isinstance(saw.returned, list) else [None]
    return handles == [HANDLE] * len(handles) and same(saw.after_removal, key.x_grad) and not saw.left


def _stays(saw: Any, key: Key) -> bool:
    """Check whether nothing but handles was returned, and hooks are still on y when all of these are removed."""
    return bool(saw.returned == [HANDLE] * len(saw.returned) and saw.left)


def _out_of_step(saw: Any, key: Key) -> bool:
    """Check whether `seen` has as many items as it should without the hooks of the last factor, but not all of them right."""
    first = saw.without_last[0]
    n = len(key.factors) - 1  # the first pass is right
    return (
        _removable(saw, key)
        and len(first) == len(key.but_last)
        and same(first[:n], key.but_last[:n])
        and n > 0
    )


def _given(saw: Any, key: Key) -> str:
    if not _removable(saw, key):
        return "handles = build_chain(y, factors, seen)"
    return f"factors = {key.factors}; " + key.both.replace("loss.b", "handles[-1].remove(); loss.b", 1)


def _only_notes(saw: Any, key: Key) -> bool:
    """Check whether x.grad is what it is without hooks, and there is no hook beside those of the factors."""
    return shared.no_effect(saw, key) and saw.hooks <= len(key.factors)


_ON_A_LEAF = shared.on_a_leaf("build_chain(y, factors, seen)", "build_chain(y, factors, seen2)")


def _first_difference(seen: list[Any], looks: list[Any]) -> tuple[str, str]:
    """Return what was expected and observed where `seen` first differs, or its length."""
    n = next((n for n, pair in enumerate(zip(seen, looks, strict=False)) if not same(*pair)), None)
    if n is not None:
        return f"seen[{n}] == {show(looks[n])}", f"seen[{n}] == {shared.told(seen[n], looks[n])}"
    return f"len(seen) == {len(looks)}", f"len(seen) == {len(seen)}"


def _places(saw: Any, key: Key) -> tuple[str, str]:
    """Return the expected and the observed value where `seen` first differs after both passes, or x.grad."""
    lines = _first_difference(saw.seen_again, key.both_looks)
    if lines[0] != lines[1]:
        return lines
    return f"x.grad == {show(key.final_again)}", f"x.grad == {show(saw.x_again)}"


def _held(key: Key) -> str:
    """Return as code what `seen` holds before the call, if it is anything."""
    return f"seen = {key.before}; " if key.before else ""


def _new(key: Key) -> str:
    """Return the part of `seen` that is new, as code."""
    return f"seen[{len(key.before)}:]" if key.before else "seen"


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given="factors = {key.factors}; {key.graph}",
    checks=[
        Check(
            "adds",
            "before",
            want=lambda key: key.before,
            essential=True,
            given="seen = {key.before}; {key.graph}",
            label="seen[:1]",
            mistakes={"replaces": True},
        ),
        Check(
            "looks",
            "seen",
            want=lambda key: key.looks,
            ok=lambda saw, key: same(saw.seen, key.looks) and not saw.early,
            points=2,
            essential=True,
            given=lambda saw, key: f"{_held(key)}factors = {key.factors}; {key.graph}",
            expected=lambda saw, key: f"{_new(key)} == {show(key.looks)}",
            got=lambda saw, key: f"{_new(key)} == {shared.told(saw.seen, key.looks)}",
            mistakes={
                "asks_too_early": lambda saw, key: saw.early,
                "removed_at_once": lambda saw, key: not saw.hooks and saw.of_y,
                "wrong_tensor": lambda saw, key: not saw.hooks and HANDLE in saw.returned,
                "not_registered": lambda saw, key: not saw.hooks,
                "keeps_lists": lambda saw, key: any(isinstance(look, (list, float)) for look in saw.seen),
                "keeps_nothing": lambda saw, key: not saw.seen,
                # The first difference is taken to 0 or to 1.
                "difference": _sees(
                    lambda fs: _products(_differences(fs, 0)), lambda fs: _products(_differences(fs, 1))
                ),
                "forgot_return": _sees(lambda fs: [1] * len(fs)),
                "ratio_not_returned": _sees(_ratios),
                "forgets_carry": _sees(_products),
                "looks_first": _sees(lambda fs: [1, *fs[:-1]]),
                "in_place": lambda saw, key: not same(saw.s_grad, key.s_grad),
                "same_tensor": lambda saw, key: saw.one_tensor,
                # Every hook uses the last ratio computed in the loop, or the last factor.
                "late_binding": _sees(
                    lambda fs: _products([_ratios(fs)[-1]] * len(fs)),
                    lambda fs: _products([fs[-1]] * len(fs)),
                    lambda fs: [fs[-1]] * len(fs),
                ),
            },
        ),
        shared.gradient("final", lambda key: key.final, {"only_notes": _only_notes}, points=1),
        Check(
            "again",
            "seen_again",
            want=lambda key: key.both_looks,
            ok=lambda saw, key: same(saw.seen_again, key.both_looks) and same(saw.x_again, key.final_again),
            essential=True,
            given="factors = {key.factors}; {key.both}",
            expected=lambda saw, key: _places(saw, key)[0],
            got=lambda saw, key: _places(saw, key)[1],
            mistakes={
                **shared.REMOVES_ITSELF,
                "first_gradient": Gives(lambda key: key.looks * 2),
                "used_up": Gives(lambda key: key.looks),
                "replaces": Gives(lambda key: key.both_looks[len(key.factors) :]),
            },
        ),
        shared.neighbour(),
        shared.beside(
            "build_chain(y, factors, seen); build_chain(y2, [3 * f for f in factors], seen2)",
            lambda key: key.looks,
            label="seen",
        ),
        shared.asked(
            lambda key: key.asked,
            _ON_A_LEAF,
            ws=lambda key: (key.w, 0 * key.w),
        ),
        Check(
            "notes_all",
            "on_leaf",
            want=lambda key: key.on_leaf,
            ok=lambda saw, key: same(saw.on_leaf, key.on_leaf) or shared.removes_others(saw),
            essential=True,
            given=lambda saw, key: _ON_A_LEAF(key).format(show(key.w), show(0 * key.w)),
            expected=lambda saw, key: _first_difference(saw.on_leaf, key.on_leaf)[0],
            got=lambda saw, key: _first_difference(saw.on_leaf, key.on_leaf)[1],
        ),
        Check(
            "handle",
            want=lambda key: key.but_last,
            ok=lambda saw, key: _removable(saw, key) and any(same(v, key.but_last) for v in saw.without_last),
            points=1,
            given=_given,
            expected=[
                Say("none_stays", when=_stays),
                Say("one_for_each", when=lambda saw, key: not _removable(saw, key)),
                "seen == {want}",
            ],
            got=[
                Say("some_stay", when=_stays, given_back=lambda saw, key: shared.shown(saw)),
                lambda saw, key: (
                    f"seen == {show(saw.without_last[0])}" if _removable(saw, key) else shared.shown(saw)
                ),
            ],
            mistakes={
                "reversed_handles": lambda saw, key: _removable(saw, key) and not saw.in_order,
                "out_of_step": _out_of_step,
                "one_for_all": lambda saw, key: (
                    _removable(saw, key) or (saw.returned == HANDLE and not saw.left)
                ),
                # With one factor only, the last handle is all of them.
                "some_handles": lambda saw, key: (
                    (saw.left or len(key.factors) == 1)
                    and (saw.returned == HANDLE or isinstance(saw.returned, list))
                ),
                "no_handle": lambda saw, key: saw.returned is None,
            },
        ),
    ],
    raises={"used_up": "StopIteration"} | shared.READS_DOT_GRAD | shared.WRONG_HOOK,
)
