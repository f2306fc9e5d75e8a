"""What decides about 13.3, `half_hook(group, bucket)`."""

from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks.common import must_be
from hookedu.exercises.criteria import Check, Gives, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show, show_kind
from hookedu.exercises.probes.lesson_13.half_hook import PROBE, RANKS, larger, without_nan
from hookedu.exercises.tools import close as finite_close


def close(got: Any, expected: torch.Tensor, tolerance: float) -> bool:
    """Check whether two tensors are close, with nan in the same places."""
    if not isinstance(got, torch.Tensor) or got.shape != expected.shape:
        return False
    nan = expected.isnan()
    return torch.equal(got.isnan(), nan) and finite_close(got[~nan], expected[~nan], tolerance)


class Key:
    """The gradient of rank 0 (bias, then weights), the multiples that the others have, and the average over all."""

    def __init__(self, case: tuple[torch.Tensor, list[int]]) -> None:
        x, shares = case
        self.x = torch.cat([torch.ones(1), x])
        self.ranks, self.others, self.total = len(shares), shares[1:], sum(shares)
        self.average = self.x * self.total / self.ranks
        self.opposite = -self.average  # of the other bucket
        self.larger = larger(x, shares)


def _times(*factors: Callable[[Key], float]) -> Of:
    """Return the condition that the small gradients (the large one may overflow) are rank 0's times one of these."""
    return lambda saw, key: any(close(saw.grads[0][:-1], key.x[:-1] * f(key), 2e-3) for f in factors)


def _wrong(saw: Saw, key: Key) -> int | None:
    """Return the place of the first step whose gradient is not the average; 0 if there was none."""
    right = [close(grad, key.average, 2e-3) for grad in saw.grads]
    return right.index(False) if False in right else None if right else 0


def _is_mixed_up(saw: Saw, key: Key) -> bool:
    """Check whether a single call gives the average, but of two that are open at once one does not."""
    if _wrong(saw, key) == 0:
        return False
    return len(saw.grads) < 2 or _wrong(saw, key) == 1 or not close(saw.earlier, key.opposite, 2e-3)


def _waits_for_some(saw: Saw, key: Key) -> bool:
    """Check whether a part is the average, and the rest is still what rank 0 sent."""
    grad, sent = saw.grads[0], key.x / key.ranks
    added = [close(grad[n : n + 1], key.average[n : n + 1], 2e-3) for n in range(len(grad))]
    alone = [close(grad[n : n + 1], sent[n : n + 1], 2e-3) for n in range(len(grad))]
    return all(map(max, added, alone)) and not all(added) and not all(alone)


def _loses_inf(saw: Saw, key: Key) -> bool:
    """Check whether all finite averages are right, and those that are infinite or nan are finite, or some of them."""
    grad, finite = saw.grads[0], key.average.isfinite()
    return bool(close(grad[finite], key.average[finite], 2e-3) and grad[~finite].isfinite().any())


def _in_proportion(saw: Saw, key: Key) -> bool:
    """Check whether a rank whose gradients are larger sends more in proportion; True if there was no such call."""
    return saw.larger_part is None or close(saw.larger_part, without_nan(key.larger * saw.part), 2e-3)


def _overflows(saw: Saw, key: Key) -> bool:
    return bool(saw.larger_part.isinf().sum() > saw.part.isinf().sum())


def _scales_otherwise(saw: Saw, key: Key) -> bool:
    """Check whether all that is sent of larger gradients has another factor than they have, and the same for all.

    The small one may have become 0.
    """
    whole = key.x.isfinite() & (key.x.abs() >= 1)
    ratios = saw.larger_part[whole] / saw.part[whole]
    return bool(ratios.isfinite().all()) and close(ratios, ratios.mean().expand_as(ratios), 1e-2)


_CALL = "half_hook(group, bucket)"
_not_added = _times(lambda key: 1, lambda key: 1 / key.ranks)

EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=[Say("ranks_infinite", when=lambda saw, key: key.x.isinf().any()), Say("ranks")],
    checks=[
        Check(
            "future",
            ok=lambda saw, key: isinstance(saw.value, torch.Tensor),
            essential=True,
            given=_CALL,
            expected=Say("future"),
            got=lambda saw, key: show_kind(saw.value if saw.done is True else saw.returned),
            mistakes={
                "returns_nothing": lambda saw, key: saw.returned is None,
                "returns_work": lambda saw, key: saw.returned == Opaque("_Work"),
                "returns_tensor": lambda saw, key: saw.done is None,
                "never_done": lambda saw, key: not saw.done,
                "then_returns_nothing": lambda saw, key: saw.value is None,
                "value_is_list": lambda saw, key: isinstance(saw.value, list),
            },
        ),
        Check(
            "average",
            want=lambda key: key.average,
            ok=lambda saw, key: (
                _wrong(saw, key) is None
                and not _is_mixed_up(saw, key)
                and set(saw.sent) != {"torch.bfloat16"}
            ),
            points=3,
            essential=True,
            expected=[Say("both_averages", when=_is_mixed_up), "grad == {want}"],
            got=[
                Say("both_results", when=_is_mixed_up),
                lambda saw, key: (
                    f"grad == {show(saw.grads[0])}" if saw.grads else f"future.wait() == {show(saw.value)}"
                ),
            ],
            mistakes={
                "other_shape": lambda saw, key: not saw.grads,
                "bfloat16": lambda saw, key: set(saw.sent) == {"torch.bfloat16"},
                "mixed_up": _is_mixed_up,
                "loses_inf": _loses_inf,
                "sends_inf": lambda saw, key: saw.infinite > int(key.x.isinf().sum()),
                "overflow": lambda saw, key: (
                    _times(lambda key: key.total / key.ranks)(saw, key) and not saw.grads[0][-1].isfinite()
                ),
                "no_average": _times(lambda key: key.total),
                "divided_twice": _times(lambda key: key.total / key.ranks**2),
                "fixed_size": _times(
                    *(lambda key, n=n: key.total / (n if n != key.ranks else 2) for n in (2, *RANKS))
                ),
                "reads_too_early": lambda saw, key: saw.sent and _not_added(saw, key),
                "never_sends": _not_added,
                "waits_for_some": _waits_for_some,
            },
        ),
        Check(
            "sends",
            ok=_in_proportion,
            essential=True,
            given=[Say("larger_no_nan", when=lambda saw, key: key.x.isnan().any()), Say("larger")],
            # In proportion to what a right rank 0 sends, which is rounded to float16 already: so only about.
            expected=lambda saw, key: f"sent ≈ {show(without_nan(key.larger * saw.part))}",
            got="sent == {saw.larger_part}",
            mistakes={"half_first": _overflows, "own_scale": _scales_otherwise},
        ),
        Check(
            "huge",
            ok=lambda saw, key: saw.huge in (None, sorted(set(saw.sent))),
            essential=True,
            given=Say("too_large"),
            expected="torch.float16",
            got=lambda saw, key: ", ".join(saw.huge),
            mistakes={"widens": True},
        ),
        Check(
            "zeros",
            ok=lambda saw, key: saw.zeros is not False,
            essential=True,
            given=Say("only_zeros"),
            expected=Say("zeros_sent"),
            got=Say("nothing_sent"),
            mistakes={"skips_zeros": True},
        ),
        Check(
            "bytes",
            "bytes_sent",
            want=lambda key: 2 * len(key.x),
            points=2,
            mistakes={
                "sends_more": lambda saw, key: (
                    set(saw.sent) == {"torch.float16"} and saw.bytes_sent > 2 * len(key.x)
                ),
                "sends_float32": Gives(lambda key: 4 * len(key.x)),
            },
        ),
        must_be(
            "float32",
            "float32",
            _CALL + ".wait().dtype",
            "float32",
            "{saw.float32}",
            "stays_half",
            lambda saw, key: saw.float32 == "float16",
        ),
    ],
    raises={
        "returns_work": r"'_?Work' object has no attribute",
        "future_is_no_list": r"'(_Result|Future)' object (is not subscriptable|has no attribute '(float|half|to|div_?|mul_?|copy_)')",
        "value_is_list": r"'list' object has no attribute|list.*must be (Tensor|real number)|float\(\) argument must be.*list",
        # Raised by Future.value() before there is a value.
        "reads_too_early": r"completed\(\) INTERNAL ASSERT FAILED",
        "not_async": r"'NoneType' object has no attribute '(get_future|then|wait)'",
        "no_group": r"Default process group has not been initialized",
        "bucket_is_no_tensor": r"'torch\._C\._distributed_c10d\.GradBucket'|GradBucket",
    },
)
