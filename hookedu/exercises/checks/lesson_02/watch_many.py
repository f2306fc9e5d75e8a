"""What decides about 02.2, `watch_many(tensors, seen)`."""

from typing import Any

import torch

from hookedu.exercises.checks.common import CALLS_NOW, HANDLE, TWO_ARGUMENTS
from hookedu.exercises.checks.lesson_02.shared import (
    HOOKS_EVERYTHING,
    LOCAL_SEEN,
    left_alone,
    lines,
    two_at_a_time,
    unchanged,
)
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show, show_kind
from hookedu.exercises.probes.lesson_02.watch_many import OLD, PROBE, Case, loss


class Key:
    """Names, and the gradients of one backward pass."""

    def __init__(self, case: Case) -> None:
        self.names, self.once, self.n = [*case.tensors], case.gradients, len(case.gradients)
        self.frozen = next((name for name in self.names if name not in self.once), None)
        self.leaves = {name for name, tensor in case.tensors.items() if tensor.is_leaf}
        self.before_frozen = self.names[: self.names.index(self.frozen)] if self.frozen else self.names
        self.x_grad = 3 * torch.autograd.grad(loss(case), case.x)[0]
        self.tensors = ", ".join(self._described(case, name) for name in self.names)
        self.old = OLD
        self.before, self.seen = case.before, case.before | self.once
        self.given = f"tensors: {self.tensors}" + (f"; seen = {show(case.before)}" if case.before else "")

    @staticmethod
    def _described(case: Case, name: str) -> str:
        tensor = case.tensors[name]
        first = next(other for other, same in case.tensors.items() if same is tensor)
        if first != name:
            return f"{name} (is {first})"
        return (
            name
            + (" (leaf)" if tensor.is_leaf else "") * (name in case.gradients)
            + (" (requires_grad=False)" * (name not in case.gradients))
        )

    def gradients(self, times: int) -> dict[str, torch.Tensor]:
        """Return what `seen` holds after a pass in which the loss counts `times`."""
        return self.before | {name: times * gradient for name, gradient in self.once.items()}


def _added(saw: Any, key: Key) -> dict[Any, Any]:
    """Return what `seen` holds besides what it held before."""
    return {name: grad for name, grad in saw.seen.items() if name not in key.before}


def _literal_key(saw: Any, key: Key) -> bool:
    """Whether all gradients were stored under one word that is no name."""
    (stored,) = _added(saw, key)
    return isinstance(stored, str) and stored not in key.names and len(saw.hooked) == key.n


def _handles(saw: Any, key: Key) -> str:
    return show_kind(saw.handles)


_GIVEN = "{key.given}"
_TWICE = _GIVEN + "; loss.backward(); (2 * loss).backward()"
_LAZY = [Opaque("generator"), Opaque("map"), Opaque("filter")]

EXERCISE = Exercise(
    PROBE,
    given=_GIVEN,
    key=Key,
    checks=[
        unchanged(want=lambda key: key.x_grad, mistakes={"changes_gradient": True}, given=_TWICE),
        Check(
            "sees",
            "seen",
            want=lambda key: key.seen,
            points=2,
            essential=True,
            **lines("seen", "seen", lambda key: key.seen),
            mistakes={
                "clears_seen": lambda saw, key: (
                    saw.hooked and key.before and not saw.seen.keys() & key.before.keys()
                ),
                "lazy_generator": lambda saw, key: not saw.hooked and saw.handles in _LAZY,
                "not_registered": lambda saw, key: not saw.hooked,
                "keeps_nothing": lambda saw, key: not _added(saw, key),
                "returns_in_loop": lambda saw, key: saw.hooked == key.names[:1],
                "stops_at_frozen": lambda saw, key: saw.hooked == key.before_frozen,
                "registers_after_loop": lambda saw, key: saw.hooked == key.names[-1:],
                "skips_zero": lambda saw, key: (
                    len(saw.hooked) == key.n
                    and saw.seen.keys() == {n for n, g in key.once.items() if g.any()}
                ),
                "skips_leaves": lambda saw, key: set(saw.hooked) == key.once.keys() - key.leaves,
                "literal_key": _literal_key,
                "late_binding": lambda saw, key: (
                    [*_added(saw, key)] == key.names[-1:] and len(saw.hooked) == key.n
                ),
                "wrong_keys": lambda saw, key: not _added(saw, key).keys() <= set(key.names),
            },
        ),
        Check(
            "newest",
            "second",
            want=lambda key: key.gradients(2),
            essential=True,
            given=_TWICE,
            label="seen",
            mistakes={
                "keeps_the_first": Gives(lambda key: key.seen),
                "adds_up": Gives(lambda key: key.gradients(3)),
            },
        ),
        Check(
            "kept_elsewhere",
            "written_over",
            want=lambda key: None,
            essential=True,
            given="tensors['{key.names[0]}'].register_hook(kept.append); watch_many(tensors, seen); loss.backward(); first = seen['{key.names[0]}']; (2 * loss).backward()",
            expected=lambda saw, key: f"kept[0], first == {show([key.once[key.names[0]]] * 2)}",
            got=lambda saw, key: f"kept[0], first == {show(saw.written_over)}",
            mistakes={
                # Only a leaf has a .grad that the returned tensor becomes.
                "returns_alias": lambda saw, key: saw.gave and key.names[0] in key.leaves,
                "writes_over": True,
            },
        ),
        two_at_a_time(
            "tensors: {key.tensors}; one, two = {{}}, {{}}; watch_many(tensors, one); watch_many(tensors, two); loss.backward()",
            lambda key: key.once,
        ),
        Check(
            "known_names",
            "known",
            want=lambda key: key.once,
            essential=True,
            given="tensors: {key.tensors}; seen = dict.fromkeys(tensors, torch.tensor({key.old})); loss.backward()",
            label="seen",
            mistakes={"skips_known": lambda saw, key: any((old == OLD).all() for old in saw.known.values())},
        ),
        left_alone("watch_many(tensors, seen); tensors['{key.frozen}']"),
        Check(
            "handle",
            ok=lambda saw, key: (
                saw.is_list and saw.handles and set(saw.handles) == {HANDLE} and saw.after_removal == 0
            ),
            points=1,
            given="handles = watch_many(tensors, seen)",
            expected=Say("handles"),
            got=[
                Say(
                    "a_tuple",
                    when=lambda saw, key: isinstance(saw.handles, list) and not saw.is_list,
                    shown=_handles,
                ),
                Say(
                    "stuck",
                    when=lambda saw, key: saw.is_list and set(saw.handles) == {HANDLE},
                    shown=_handles,
                ),
                _handles,
            ],
            mistakes={
                "one_handle": lambda saw, key: saw.handles in (HANDLE, [HANDLE]),
                "none_in_list": lambda saw, key: None in saw.handles and HANDLE in saw.handles,
                "returns_tuple": lambda saw, key: not saw.is_list and set(saw.handles) == {HANDLE},
                "no_handle": lambda saw, key: (
                    saw.after_removal and saw.handles != HANDLE and HANDLE not in (saw.handles or [])
                ),
            },
        ),
    ],
    raises=CALLS_NOW | TWO_ARGUMENTS | HOOKS_EVERYTHING | LOCAL_SEEN,
)
