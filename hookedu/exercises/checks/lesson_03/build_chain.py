"""What decides about 03.3, `build_chain(y, factors, seen)`."""

from collections.abc import Callable
from typing import Any

from hookedu.exercises.checks.common import HANDLE
from hookedu.exercises.checks.lesson_03 import shared
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_03.build_chain import PROBE, Case
from hookedu.exercises.tools import same


class Key(shared.Plain):
    """The gradients without hooks, and what `seen` must hold."""

    def __init__(self, case: Case) -> None:
        paths, self.factors = case
        super().__init__(paths)
        self.looks = [factor * self.w for factor in self.factors]
        self.but_last, self.final = self.looks[:-1], self.factors[-1] * self.x_grad


def _sees(*multiples: Callable[[float, float, float], tuple[float, ...]]) -> Gives:
    """Condition: what was seen are these multiples of the gradient, by the three factors."""
    return Gives(*(lambda key, of=of: [n * key.w for n in of(*key.factors)] for of in multiples))


def _removable(saw: Any, key: Key) -> bool:
    """Check whether a list of handles was returned, and all hooks can be removed with them."""
    handles = saw.returned if isinstance(saw.returned, list) else [None]
    return handles == [HANDLE] * len(handles) and same(saw.after_removal, key.x_grad)


def _given(saw: Any, key: Key) -> str:
    if not _removable(saw, key):
        return "handles = build_chain(y, factors, seen)"
    return f"factors = {key.factors}; " + key.graph.replace("loss.b", "handles[-1].remove(); loss.b")


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given="factors = {key.factors}; {key.graph}",
    checks=[
        Check(
            "looks",
            "seen",
            want=lambda key: key.looks,
            ok=lambda saw, key: same(saw.seen, key.looks) and not saw.early,
            points=2,
            essential=True,
            mistakes={
                "asks_too_early": lambda saw, key: saw.early,
                "wrong_tensor": lambda saw, key: not saw.hooks and HANDLE in saw.returned,
                "not_registered": lambda saw, key: not saw.hooks,
                "keeps_nothing": lambda saw, key: not saw.seen,
                # The first difference is taken to 0 or to 1.
                "difference": _sees(
                    lambda f, g, h: (f, f * (g - f), f * (g - f) * (h - g)),
                    lambda f, g, h: (f - 1, (f - 1) * (g - f), (f - 1) * (g - f) * (h - g)),
                ),
                "forgot_return": _sees(lambda f, g, h: (1, 1, 1)),
                "ratio_not_returned": _sees(lambda f, g, h: (f, g / f, h / g)),
                "forgets_carry": _sees(lambda f, g, h: (f, f * g, f * g * h)),
                "looks_first": _sees(lambda f, g, h: (1, f, g)),
                "in_place": _sees(lambda f, g, h: (h, h, h)),
                # Every hook uses the last ratio computed in the loop, or the last factor.
                "late_binding": _sees(
                    lambda f, g, h: (h / g, (h / g) ** 2, (h / g) ** 3), lambda f, g, h: (h, h**2, h**3)
                ),
            },
        ),
        shared.gradient("final", lambda key: key.final, {"only_notes": shared.NO_EFFECT}, points=1),
        shared.neighbour(),
        Check(
            "handle",
            want=lambda key: key.but_last,
            ok=lambda saw, key: _removable(saw, key) and any(same(v, key.but_last) for v in saw.without_last),
            points=1,
            given=_given,
            expected=[Say("one_for_each", when=lambda saw, key: not _removable(saw, key)), "seen == {want}"],
            got=lambda saw, key: (
                f"seen == {show(saw.without_last[0])}" if _removable(saw, key) else shared.shown(saw)
            ),
            mistakes={
                "one_for_all": _removable,
                "some_handles": lambda saw, key: saw.returned == HANDLE or HANDLE in saw.returned,
                "no_handle": True,
            },
        ),
    ],
    raises=shared.READS_DOT_GRAD | shared.WRONG_HOOK,
)
