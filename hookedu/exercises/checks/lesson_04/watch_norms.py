"""What decides about 04.4, `watch_norms(model, seen)`."""

import math
from collections.abc import Callable
from typing import Any

import torch

from hookedu.exercises.checks.common import TWO_ARGUMENTS
from hookedu.exercises.checks.lesson_04.shared import (
    REGISTERING,
    handles_given,
    misses_parameters,
    never_ran,
    one_memory,
    removes_itself,
)
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_04.watch_norms import ALONE, PROBE, SCALES, Case, forward
from hookedu.exercises.structures import mapped
from hookedu.exercises.tools import all_close, gradients, same

_Norms = dict[tuple[int, str], Any]  # by pass and name


def _by_pass(pairs: list[Any], each: int) -> _Norms:
    return {(n // each, name): value for n, (name, value) in enumerate(pairs)}


class _Key:
    """What tensor hooks see in all passes (`norms`), and other norms that people note instead."""

    def __init__(self, case: Case) -> None:
        seen: list[tuple[str, float]] = []  # in a pass of scale 1
        self.before, self.training = case.before, case.model.training
        self.tolerance = 1e-4 if case.x.dtype == torch.float32 else 1e-9
        trained = {name: p for name, p in case.model.named_parameters() if p.requires_grad}
        for name, parameter in trained.items():
            parameter.register_hook(lambda grad, name=name: seen.append((name, grad.norm().item())))
        forward(case).backward()
        self.grads = {
            name: None if grad is None else SCALES[-1] * grad for name, grad in gradients(case.model).items()
        }
        self.summed_grads = {
            name: None if grad is None else sum(SCALES[:-1]) / SCALES[-1] * grad
            for name, grad in self.grads.items()
        }
        self.second = {
            name: None if grad is None else SCALES[1] / SCALES[-1] * grad for name, grad in self.grads.items()
        }
        self.norms = {(n, name): abs(scale) * norm for n, scale in enumerate(SCALES) for name, norm in seen}
        self.trained, self.order = list(trained), [name for name, _ in seen]
        self.names = self.order * len(SCALES)
        self.own = {(n, name): trained[name].norm().item() for n, name in self.norms}
        # What .grad holds after each pass (the sums of SCALES are 1, -1, and 4 after zero_grad), and what differs from it
        # when what it held after the pass before is subtracted: the gradients, or their norms, also where 0 is held.
        self.summed, self.differences = self._scaled(1, 1, 4), self._scaled(1, 2, 5)
        self.norm_differences = [self._scaled(1, 0, 3), self._scaled(1, 0, 4)]
        self.first, self.totals = self._scaled(1, 1, 1), self._scaled(1, 3, 7)
        first = next(iter(trained))
        self.alone = [(first, scale * trained[first].numel() ** 0.5) for scale in ALONE]

    def _scaled(self, *scales: float) -> _Norms:
        return {(n, name): norm * scales[n] / abs(SCALES[n]) for (n, name), norm in self.norms.items()}


def _pairs(saw: Any) -> list[Any]:
    """Return what was noted if these are (name, value) pairs, or []."""
    fits = all(isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) for one in saw.seen)
    return saw.seen if fits else []


def _names(saw: Any) -> list[str]:
    return [name for name, _ in _pairs(saw)]


def _noted(saw: Any, key: _Key) -> _Norms:
    """Return the values noted by pass and name, also if all pairs are in the reverse order."""
    reverse = _names(saw) == key.names[::-1]
    return _by_pass(_pairs(saw)[:: -1 if reverse else 1], len(key.order))


def _first(saw: Any, key: _Key) -> tuple[str, str]:
    """Return the expected and the observed entry where the names in `seen` first differ, or its length."""
    names = _names(saw) or [""] * len(saw.seen)
    n = next((n for n, pair in enumerate(zip(names, key.names, strict=False)) if len(set(pair)) > 1), None)
    if n is None and not same(saw.before, key.before):
        return f"seen[:1] == {show(key.before)}", f"seen[:1] == {show(mapped(_rounded, saw.before))}"
    if n is None:
        return f"len(seen) == {len(key.names)}", f"len(seen) == {len(saw.seen)}"
    return f"seen[{n}] == ({key.names[n]!r}, …)", f"seen[{n}] == {show(mapped(_rounded, saw.seen[n]))}"


def _close(value: Any, norm: float, tolerance: float = 1e-4) -> bool:
    return type(value) in (int, float) and math.isclose(value, norm, rel_tol=tolerance)


def _wrong(
    saw: Any, key: _Key, norms: _Norms, tolerance: float | None = None
) -> list[tuple[str, float, Any]]:
    """Return name, norm and noted value of those that differ, each pass sorted by name."""
    rows = [(of[1], norm, _noted(saw, key).get(of)) for of, norm in sorted(norms.items())]
    return [row for row in rows if not _close(row[2], row[1], tolerance or key.tolerance)]


def _rounds(saw: Any, key: _Key) -> bool:
    """Check whether the norm of a very small gradient is wrong, where one was noted."""
    small = saw.alone[1:2] if isinstance(saw.alone, list) and len(saw.alone) == len(ALONE) else []
    return any(type(value) is float and not _close(value, key.alone[1][1]) for _, value in small)


def _rounds_to_four(saw: Any, key: _Key) -> bool:
    """Check whether rounding to four decimals or more explains every value, that of a very small gradient included."""
    small, noted = saw.alone[1][1], _noted(saw, key)
    return small == round(small, 7) and all(
        abs(noted[of] - norm) < 5.1e-5 + 1e-4 * norm for of, norm in key.norms.items()
    )


def _rounded_off(saw: Any, key: _Key) -> bool:
    """Check whether all values have two decimals at most, or six digits, and differ from the norms by that alone."""
    pairs = [(_noted(saw, key)[of], norm) for of, norm in key.norms.items()]
    return all(abs(value - norm) < 1 and value == round(value, 2) for value, norm in pairs) or all(
        math.isclose(value, norm, rel_tol=0.1) and value == float(f"{value:.6g}") for value, norm in pairs
    )


def _shown(saw: Any, key: _Key) -> tuple[str, float, Any]:
    small = (*key.alone[1], saw.alone[1][1] if _rounds(saw, key) else None)
    return next(iter(_wrong(saw, key, key.norms)), small)


def _got_norm(saw: Any, key: _Key) -> str:
    name, norm, value = _shown(saw, key)
    off = f" ± {abs(value - norm):.1g}" if _close(value, norm, 1e-5) else ""
    return f"{name}: {show(mapped(_rounded, value))}{off}"


def _rounded(value: Any) -> Any:
    """Return a number rounded as a message shows it, also that in a tensor."""
    if isinstance(value, torch.Tensor) and value.dim() == 0:
        return Opaque(f"tensor({value.item():g})")
    return float(f"{value:g}") if isinstance(value, float) else value


def _alone(pairs: Callable[[Any, _Key], Any]) -> Callable[[Any, _Key], str]:
    """Return a function that writes what the passes through one parameter added, from the `pairs` of (saw, key)."""

    def line(saw: Any, key: _Key) -> str:
        value = pairs(saw, key)
        if isinstance(value, str):
            return value
        return f"seen[{len(saw.before) + len(key.names)}:] == {show(mapped(_rounded, value))}"

    return line


def _none_is_zero(case: Case) -> bool:
    """Check whether no gradient of the passes through the whole model is zero: only those of `ALONE` may be."""
    return all(_Key(case).norms.values())


def _same_beside(saw: Any, key: _Key) -> bool:
    """Check whether the first of two calls noted as much as one call does."""
    return sorted(name for name, _ in saw.beside) == sorted(key.order)


def _through(saw: Any, key: _Key) -> bool:
    """Check whether each gradient of the passes through one parameter came through; nan is one of them."""
    wanted = [torch.full_like(grad, scale) for grad, scale in zip(saw.through, ALONE, strict=False)]
    return all(
        torch.equal(grad.nan_to_num(-1), want.nan_to_num(-1))
        for grad, want in zip(saw.through, wanted, strict=True)
    )


def _one_alone(saw: Any, key: _Key) -> str:
    names = [name for name, _ in key.alone]
    return "; ".join(
        f"({scale} * model.{name}).sum().backward()" for name, scale in zip(names, ALONE, strict=True)
    )


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_none_is_zero,
    given=lambda saw, key: (
        ("" if key.training else "model.eval(); ") + "watch_norms(model, seen); "
        "loss.backward(); (-2 * loss).backward(); model.zero_grad(); (4 * loss).backward()"
    ),
    checks=[
        Check(
            "unchanged",
            ok=lambda saw, key: all_close(saw.grads, key.grads) and all_close(saw.summed, key.summed_grads),
            essential=True,
            expected=Say("grads_as_without"),
            got=Say("some_differ"),
            mistakes={
                "frozen_learns": lambda saw, key: any(
                    saw.grads[name] is not None for name, grad in key.grads.items() if grad is None
                ),
                "clears_grad": lambda saw, key: (
                    any(saw.grads[name] is None for name in key.trained) or all_close(saw.summed, key.second)
                ),
                "changes_gradient": True,
            },
        ),
        Check(
            "sees",  # every name exactly once per pass
            ok=lambda saw, key: _noted(saw, key).keys() == key.norms.keys(),
            points=1,
            essential=True,
            expected=lambda saw, key: _first(saw, key)[0],
            got=lambda saw, key: _first(saw, key)[1],
            mistakes={
                "asks_too_early": lambda saw, key: saw.early,
                "never_ran": never_ran,
                "not_registered": lambda saw, key: not saw.seen and not any(saw.hooks.values()),
                "misses_parameters": misses_parameters,
                "one_mode": lambda saw, key: not saw.seen and saw.notes_in_other_mode,
                "rebinds_list": lambda saw, key: not saw.seen,
                "no_pairs": lambda saw, key: not _pairs(saw),
                "removes_itself": removes_itself,
                "late_binding": lambda saw, key: (
                    len(saw.seen) == len(key.names)
                    and len(set(_names(saw))) == 1
                    and _names(saw)[0] in (key.trained[-1], [*key.grads][-1])
                ),
                "replaces": lambda saw, key: (
                    _names(saw) == key.names[-len(saw.seen) :]
                    and _close(saw.seen[-1][1], [*key.norms.values()][-1])
                ),
            },
        ),
        Check(
            "order",
            ok=lambda saw, key: _names(saw) == key.names and same(saw.before, key.before),
            points=1,
            expected=lambda saw, key: _first(saw, key)[0],
            got=lambda saw, key: _first(saw, key)[1],
            mistakes={
                "replaces": lambda saw, key: _names(saw) == key.names,
                "upside_down": lambda saw, key: _names(saw) == key.names[::-1],
                "model_order": lambda saw, key: _names(saw) == key.trained * len(SCALES),
            },
        ),
        Check(
            "norms",
            ok=lambda saw, key: not _wrong(saw, key, key.norms) and not _rounds(saw, key),
            points=1,
            expected=lambda saw, key: "{}: {:g}".format(*_shown(saw, key)),
            got=_got_norm,
            mistakes={
                "rounds": _rounds_to_four,
                "float32": lambda saw, key: not _wrong(saw, key, key.norms, 1e-6),
                "keeps_gradients": lambda saw, key: any(torch.numel(v) > 1 for _, v in saw.seen),
                "keeps_tensors": lambda saw, key: any(type(v) in (torch.Tensor, Opaque) for _, v in saw.seen),
                "norm_of_the_parameter": lambda saw, key: not _wrong(saw, key, key.own),
                "norm_of_the_sum": lambda saw, key: not _wrong(saw, key, key.summed),
                "first_pass": lambda saw, key: not _wrong(saw, key, key.first),
                "difference_of_sums": lambda saw, key: not _wrong(saw, key, key.differences),
                "difference_of_norms": lambda saw, key: any(
                    not _wrong(saw, key, norms) for norms in key.norm_differences
                ),
                "adds_up": lambda saw, key: not _wrong(saw, key, key.totals),
                "rounds_off": _rounded_off,
                "not_the_norm": lambda saw, key: all(type(v) in (int, float) for _, v in saw.seen),
            },
        ),
        Check(
            "alone",
            ok=lambda saw, key: [name for name, _ in saw.alone] == [name for name, _ in key.alone],
            points=1,
            given=_one_alone,
            expected=_alone(lambda saw, key: key.alone),
            got=_alone(lambda saw, key: saw.alone),
            mistakes={
                "removes_itself": removes_itself,
                # A hook that waits for all gradients may also find a None among them.
                "waits_for_all": lambda saw, key: not saw.alone or "NoneType" in str(saw.alone),
                "skips_zero": lambda saw, key: (
                    len(saw.alone) < len(ALONE) and _close(saw.alone[0][1], key.alone[1][1])
                ),
            },
        ),
        Check(
            "through",
            ok=_through,
            essential=True,
            given=_one_alone,
            expected=Say("grads_as_without"),
            got=Say("some_differ"),
            mistakes={"changes_gradient": True},
        ),
        one_memory("watch_norms(model, seen); watch_norms(model2, seen2)", ok=_same_beside),
        handles_given("watch_norms(model, seen)"),
    ],
    raises={
        "not_the_norm": r"must be 1D or 2D",
        "returns_norm": r"has changed the size of value|expected Variable, but hook returned",
        **REGISTERING,
        **TWO_ARGUMENTS,
    },
)
