"""What decides about 03.4, `tame(branch)`."""

from collections.abc import Callable
from typing import Any

from hookedu.exercises.checks.common import HANDLE
from hookedu.exercises.checks.lesson_03 import shared
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_03.shared import Paths
from hookedu.exercises.probes.lesson_03.tame import PROBE
from hookedu.exercises.tools import same


class Key(shared.Plain):
    """The gradients without hooks, and those of x that each hook must leave if it is alone."""

    def __init__(self, paths: Paths) -> None:
        super().__init__(paths, "branch")
        self.positive = self.x_grad.clamp(min=0)
        self.x_alone = [self.positive, self.x_grad / 2]


def _two_handles(saw: Any, key: Key) -> bool:
    return saw.returned == [HANDLE] * 2


def _removable(saw: Any, key: Key) -> bool:
    """Check whether two handles were returned with which both hooks can be removed."""
    return _two_handles(saw, key) and same(saw.none, [key.x_grad, key.s_grad])


def _safe(saw: Any, key: Key) -> bool:
    """Check whether each hook by itself leaves the neighbour's gradient alone."""
    return same(saw.s_alone, [key.s_grad] * 2)


def _row(name: str, gradients: list[Any]) -> str:
    return " · ".join(f"{name}.grad == {show(gradient)}" for gradient in gradients)


def _both(gradients: list[Any]) -> str:
    x_grad, s_grad = gradients
    return f"x.grad == {show(x_grad)} · s.grad == {show(s_grad)}"


def _only(n: int, change: Any) -> Check:
    """Return the check that the hook with this number does the same in each pass if it is alone; `change` is what it does."""
    return shared.asked(
        lambda key: [change(key.w), change(key.other), change(change(key.w))],
        shared.on_a_leaf(f"handles = tame(branch); handles[{1 - n}].remove()", y="branch"),
        of=lambda saw: (saw.one_asked[n], saw.one_keeps[n]),
    )


_ONLY = _only(0, lambda grad: grad.clamp(min=0)), _only(1, lambda grad: grad / 2)


def _fits(check: Check, saw: Any, key: Key) -> bool:
    return bool(check.ok and check.ok(saw, key))


def _of_only(line: str) -> Callable[[Any, Any], Any]:
    """Return this line of the first of these checks that fails."""

    def write(saw: Any, key: Key) -> Any:
        return getattr(next((one for one in _ONLY if not _fits(one, saw, key)), _ONLY[0]), line)(saw, key)

    return write


def _once_right(saw: Any, key: Key) -> bool:
    """Check whether each hook by itself is right in one pass."""
    return _safe(saw, key) and same(saw.x_alone, key.x_alone)


_UNDO = "; handles[0].remove(); handles[1].remove(); loss.backward()"

EXERCISE = Exercise(
    PROBE,
    key=Key,
    given="{key.graph}",
    checks=[
        shared.gradient(
            "branch",
            lambda key: key.positive / 2,
            {
                "removed_at_once": shared.UNCHANGED["removed_at_once"],
                "not_registered": lambda saw, key: shared.no_effect(saw, key) and not saw.hooks,
                "forgot_return": shared.UNCHANGED["forgot_return"],
                "halve_missing": Gives(lambda key: key.positive),
                "positive_missing": Gives(lambda key: key.x_grad / 2),
                "wrong_half": Gives(lambda key: key.x_grad.clamp(max=0) / 2),
                "doubled": Gives(lambda key: key.positive * 2),
                "absolute": Gives(lambda key: key.x_grad.abs() / 2),
            },
        ),
        shared.gradient(
            "skip",
            lambda key: key.s_grad,
            {
                "mask_in_place": Gives(lambda key: key.s_grad.clamp(min=0)),
                "halve_in_place": Gives(lambda key: key.s_grad / 2),
                "both_in_place": Gives(lambda key: key.s_grad.clamp(min=0) / 2),
            },
            observed="s_grad",
            label="s.grad",
            points=2,
        ),
        shared.again(lambda key: key.k * key.other.clamp(min=0) / 2),
        shared.beside("tame(branch); tame(branch2)", lambda key: key.positive / 2),
        shared.asked(
            lambda key: [key.w.clamp(min=0) / 2, key.other.clamp(min=0) / 2, key.w.clamp(min=0) / 4],
            shared.on_a_leaf("tame(branch)", y="branch"),
        ),
        Check(
            "handle",
            ok=_removable,
            points=1,
            given=lambda saw, key: "handles = tame(branch)" + _UNDO * _two_handles(saw, key),
            expected=[
                Say("two_handles", when=lambda saw, key: not _two_handles(saw, key)),
                lambda saw, key: _both([key.x_grad, key.s_grad]),
            ],
            got=lambda saw, key: _both(saw.none) if _two_handles(saw, key) else shared.shown(saw),
            mistakes={
                "merged": lambda saw, key: saw.returned == HANDLE or saw.returned == [HANDLE],
                "no_handle": lambda saw, key: (
                    not isinstance(saw.returned, dict) and HANDLE not in (saw.returned or [])
                ),
            },
        ),
        Check(
            "alone",
            ok=lambda saw, key: (
                _removable(saw, key) and _once_right(saw, key) and all(_fits(one, saw, key) for one in _ONLY)
            ),
            points=1,
            given=[Say("two_more_runs", when=lambda saw, key: not _once_right(saw, key)), _of_only("given")],
            expected=lambda saw, key: (
                _of_only("expected")(saw, key)
                if _once_right(saw, key)
                else _row("x", key.x_alone)
                if _safe(saw, key)
                else _row("s", [key.s_grad])
            ),
            got=lambda saw, key: (
                _of_only("got")(saw, key)
                if _once_right(saw, key)
                else _row("x", saw.x_alone)
                if _safe(saw, key)
                else _row("s", saw.s_alone)
            ),
            mistakes={
                "one_buffer": lambda saw, key: _once_right(saw, key) and any(saw.one_keeps),
                "other_order": lambda saw, key: same(saw.x_alone, key.x_alone[::-1]),
                "other_job": lambda saw, key: _safe(saw, key) and not _once_right(saw, key),
                "saved_by_luck": lambda saw, key: not _safe(saw, key),
            },
        ),
    ],
    raises=shared.READS_DOT_GRAD | shared.WRONG_HOOK | shared.OTHER_SHAPE,
)
