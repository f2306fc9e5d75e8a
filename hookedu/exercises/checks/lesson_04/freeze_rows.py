"""What decides about 04.3, `freeze_rows(embedding, rows)`."""

from collections.abc import Callable, Iterable
from typing import Any

import torch

from hookedu.exercises.checks.common import HANDLE, MISREGISTERED
from hookedu.exercises.checks.lesson_04.shared import one_memory, undoes_first
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show, show_kind
from hookedu.exercises.probes.lesson_04.freeze_rows import PROBE, Case, free, infinite
from hookedu.exercises.tools import same

_CALL = "embedding.train({case.embedding.training}); rows = {case.rows}; freeze_rows(embedding, rows)"


def _zeroed(case: Case, rows: Iterable[int], dim: int = 0) -> torch.Tensor:
    """Return the gradient without hooks, with zeros in these rows, or columns if dim is 1."""
    return case.c.index_fill(dim, torch.tensor(list(rows), dtype=torch.long), 0)


def _frozen(case: Case) -> torch.Tensor:
    return _zeroed(case, case.rows)


def _frozen_infinite(case: Case) -> torch.Tensor:
    return _zeroed(case._replace(c=infinite(case)), case.rows)


def _asked_right(saw: Any, case: Case) -> bool:
    return same(saw.asked, -2 * _frozen(case) + 0)


def _older(case: Case) -> Any:
    """Return what lay in .grad before the pass."""
    return 0 if case.embedding.weight.grad is None else case.embedding.weight.grad


def _wiped(saw: Any, case: Case) -> bool:
    """Check whether the rows lost what lay in .grad before the pass, too."""
    wiped = _zeroed(case._replace(c=case.c + _older(case)), case.rows)
    return same(saw.direct, wiped) and not same(wiped, _frozen(case) + _older(case))


def _is_slice(saw: Any, case: Case) -> bool:
    """Check whether a slice became zero: first to last or lowest to highest row, exclusive or inclusive."""
    ends = ((case.rows[0], case.rows[-1]), (min(case.rows), max(case.rows)))
    slices = [range(start, stop + more) for start, stop in ends for more in (0, 1)]
    return any(same(saw.grad, _zeroed(case, rows)) for rows in slices)


def _gradient(id: str, observed: str, want: Callable[[Case], torch.Tensor], label: str, **more: Any) -> Check:
    """Require an expected gradient; the message shows its first wrong row."""

    def told(got: Any, wanted: torch.Tensor) -> str:
        shown = show(got)
        if shown != show(wanted) or not isinstance(got, torch.Tensor) or got.shape != wanted.shape:
            return shown
        return f"{shown} ± {(got - wanted).abs().max():.1g}"

    def lines(saw: Any, case: Case) -> tuple[str, str]:
        got, wanted, row = getattr(saw, observed), want(case), 0
        if isinstance(got, torch.Tensor) and got.shape == wanted.shape:
            row = next((r for r in range(len(wanted)) if not same(got[r], wanted[r])), 0)
            got = got[row]
        return f"{label}[{row}] == {show(wanted[row])}", f"{label}[{row}] == {told(got, wanted[row])}"

    return Check(
        id, observed, want, expected=lambda *of: lines(*of)[0], got=lambda *of: lines(*of)[1], **more
    )


def _both_frozen(case: Case) -> torch.Tensor:
    """Return the gradient after a second call for the same embedding, with another row."""
    return _zeroed(case, [*case.rows, free(case)])


_TWICE = (
    _CALL + "; first, = torch.autograd.grad(-2 * loss, embedding.weight); "
    "second, = torch.autograd.grad(other_loss, embedding.weight)"
)

EXERCISE = Exercise(
    PROBE,
    given=_CALL,
    checks=[
        Check(
            "unchanged",
            ok=lambda saw, case: not saw.replaced and same(saw.weight, case.embedding.weight.detach()),
            essential=True,
            expected=Say("weight_as_before"),
            got=[Say("weight_replaced", when=lambda saw, case: saw.replaced), Say("weight_changed")],
            mistakes={"replaces_the_weight": lambda saw, case: saw.replaced, "zeroes_the_weight": True},
        ),
        Check(
            "requires_grad",
            "requires_grad",
            want=lambda case: True,
            essential=True,
            label="embedding.weight.requires_grad",
            mistakes={"freezes_everything": True},
        ),
        _gradient(
            "freezes",
            "grad",
            want=_frozen,
            label="embedding.weight.grad",
            points=1,
            essential=True,
            given=_CALL + "; loss.backward()",
            mistakes={
                "hooks_another_tensor": lambda saw, case: same(saw.grad, case.c) and not saw.hooks,
                "forgot_return": lambda saw, case: (
                    same([saw.grad, saw.other_mode], [case.c, case.c]) and saw.gave and not any(saw.gave)
                ),
                "freezes_the_others": Gives(lambda case: case.c - _frozen(case)),
                "zeroes_columns": Gives(lambda case: _zeroed(case, case.rows, dim=1)),
                "late_binding": lambda saw, case: (
                    saw.hooks == len(case.rows) and same(saw.grad, _zeroed(case, case.rows[-1:]))
                ),
                "freezes_a_slice": _is_slice,
                "zeroes_everything": Gives(lambda case: torch.zeros_like(case.c)),
            },
        ),
        _gradient(
            "under_autograd_grad",
            "asked",
            want=lambda case: -2 * _frozen(case) + 0,
            ok=_asked_right,
            label="grad",
            points=1,
            given=_CALL + "; loss.backward(); grad, = torch.autograd.grad(-2 * loss, embedding.weight)",
            mistakes={
                "removes_itself": lambda saw, case: saw.kept < saw.hooks,
                "post_accumulate": lambda saw, case: not saw.tensor_hooks and saw.hooks,
                "first_gradient": Gives(_frozen),
            },
        ),
        _gradient(
            "held",
            "held",
            want=lambda case: -2 * _frozen(case) + 0,
            ok=lambda saw, case: same(saw.held, saw.asked),
            label="first",
            essential=True,
            given=_TWICE,
            mistakes={"one_buffer": lambda saw, case: saw.one_buffer},
        ),
        _gradient(
            "passes",
            "passes",
            want=_frozen_infinite,
            # A hook that autograd.grad does not get to has been refused for that.
            ok=lambda saw, case: same(saw.passes, _frozen_infinite(case)) or not _asked_right(saw, case),
            label="second",
            essential=True,
            given=_TWICE,
        ),
        _gradient(
            "direct",
            "direct",
            want=lambda case: _frozen(case) + _older(case),
            ok=lambda saw, case: same(saw.direct, _frozen(case) + _older(case)) or _wiped(saw, case),
            label="embedding.weight.grad",
            essential=True,
            given=_CALL + "; (c * (embedding.weight + adapter)).sum().backward()",
            mistakes={"only_through_the_module": lambda saw, case: not saw.hooks},
        ),
        _gradient(
            "others",
            "adapter_grad",
            want=lambda case: case.c,
            label="adapter.grad",
            points=1,
            given=_CALL + "; (c * (embedding.weight + adapter)).sum().backward()",
            mistakes={"changes_in_place": Gives(_frozen)},
        ),
        _gradient(
            "older",
            "direct",
            want=lambda case: _frozen(case) + _older(case),
            label="embedding.weight.grad",
            points=1,
            given=_CALL + "; (c * (embedding.weight + adapter)).sum().backward()",
            mistakes={"wipes_older": _wiped},
        ),
        one_memory(
            "freeze_rows(embedding, rows); freeze_rows(embedding2, rows2)",
            ok=lambda saw, case: same(saw.beside, _frozen(case)),
        ),
        _gradient(
            "both",
            "both",
            want=_both_frozen,
            ok=lambda saw, case: same(saw.both, _both_frozen(case)) or undoes_first(saw),
            label="embedding.weight.grad",
            essential=True,
            given=lambda saw, case: (
                f"freeze_rows(embedding, {case.rows}); freeze_rows(embedding, [{free(case)}]); loss.backward()"
            ),
        ),
        Check(
            "handle",
            ok=lambda saw, case: saw.handle == HANDLE and same(saw.grad_after, case.c),
            points=1,
            given="handle = freeze_rows(embedding, rows)",
            expected=Say("handle_undoes"),
            got=[
                Say("still_frozen", when=lambda saw, case: saw.handle == HANDLE),
                lambda saw, case: show_kind(saw.handle),
            ],
            mistakes={
                "no_handle": lambda saw, case: (
                    not isinstance(saw.handle, (list, dict)) and saw.handle != HANDLE
                ),
                "hooks_stay": lambda saw, case: saw.handle == HANDLE and saw.left,
            },
        ),
    ],
    raises={
        "other_dtype": r"has changed the type of value",
        "requires_grad_on_rows": r"you can only change requires_grad flags of leaf variables",
        "hooks_the_module": r"has no attribute 'register_hook'",
        "asks_too_early": r"'NoneType' object (does not support item assignment|is not subscriptable)",
        **MISREGISTERED,
    },
)
