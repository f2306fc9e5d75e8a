"""What decides about 03.2, `clip_by_norm(y, max_norm)`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from hookedu.exercises.checks.lesson_03 import shared
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_03.clip_by_norm import PROBE, Case
from hookedu.exercises.tools import close

# For gradients that are clipped: a norm in float32 is enough in float64 too.
_TOLERANCE = {torch.float16: 1e-2, torch.float32: 1e-4, torch.float64: 1e-6}
_Change = Callable[[torch.Tensor, float], torch.Tensor]  # of a gradient and max_norm


class Key(shared.Plain):
    """The gradients without hooks in the pass with the long gradient, and x.grad for changes to any gradient."""

    def __init__(self, case: Case) -> None:
        paths, self.gradients, self.max_norm = case
        super().__init__(paths._replace(w=self.gradients["long"]))
        long, longer = self.gradients["long"], self.gradients["longer"]
        self.asked = [(long, 2 * self.max_norm), (longer, 2 * self.max_norm), (long, self.max_norm)]
        self.short = self.k * self.gradients["short"]
        self.norm_of_y = (self.k * paths.x).norm()

    def changed(self, name: str, change: _Change) -> torch.Tensor:
        """Return x.grad in the pass with the gradient of this name, if the hook makes this change to it."""
        return self.k * change(self.gradients[name], self.max_norm)


def _near(got: Any, wanted: torch.Tensor, tolerance: float) -> bool:
    """Check whether two gradients are equal, compared with the largest number that is wanted, however small it is."""
    size = wanted.abs().max()
    return close(got / size, wanted / size, tolerance) if size else close(got, wanted)


def _close(got: Any, wanted: torch.Tensor) -> bool:
    """Check whether two gradients are equal up to rounding, of several steps in float16."""
    return _near(got, wanted, _TOLERANCE[wanted.dtype])


def _as_it_was(got: Any, wanted: torch.Tensor) -> bool:
    """Check whether a gradient that is not clipped is the same; in float64, closer than float32 can be."""
    return _near(got, wanted, 1e-12 if wanted.dtype == torch.float64 else _TOLERANCE[wanted.dtype])


def _gives(name: str, *changes: _Change) -> Gives:
    """Condition: the hook made one of these changes to the gradient of this name."""
    return Gives(*(lambda key, change=change: key.changed(name, change) for change in changes))


def _clip(g: torch.Tensor, m: float, dim: int | None = None) -> torch.Tensor:
    """Return g clipped to the norm m; with `dim`, along this dimension by itself."""
    return g * (m / g.norm(dim=dim, keepdim=True)).clamp(max=1)


def _by_matrix_norm(g: torch.Tensor, m: float, ord: Any) -> torch.Tensor:
    """Return g scaled by a norm of matrices, which only those have; nan for other tensors."""
    return g * m / torch.linalg.matrix_norm(g.float(), ord) if g.dim() == 2 else g * torch.nan


def _shrinks(saw: Any, key: Any) -> bool:
    """Check whether no number of the tiny gradient grew."""
    return bool((saw.tiny.abs() <= key.changed("tiny", lambda g, m: g).abs()).all())


_GIVEN = "max_norm = {key.max_norm:g}; y = {key.k:g} * x; loss = ({key.gradients[long]} * (skip + y)).sum()"


def _clips(id: str, name: str, mistakes: shared.Mistakes, **others: Any) -> Check:
    """Require that the gradient of this name is clipped."""
    others = {"given": _GIVEN.replace("long", name), "equal": _close} | others
    return shared.gradient(id, lambda key: key.changed(name, _clip), mistakes, name, **others)


def _right_alone(saw: Any, key: Key) -> bool:
    """Check whether the second long gradient is clipped if there was no backward pass before."""
    return _close(saw.fresh, key.changed("longer", _clip))


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=_GIVEN,
    checks=[
        _clips(
            "clips",
            "long",
            points=2,
            mistakes={
                "reversed": lambda saw, key: (
                    _close(saw.long, key.x_grad) and not _close(saw.short, key.short)
                ),
                **shared.UNCHANGED,
                "unit_norm": _gives("long", lambda g, m: g / g.norm()),
                "clips_elements": _gives("long", lambda g, m: g.clamp(-m, m)),
                "other_norm": _gives("long", *(lambda g, m, p=p: g * m / g.norm(p) for p in (1, torch.inf))),
                "matrix_norm": _gives(
                    "long", *(partial(_by_matrix_norm, ord=p) for p in (2, 1, torch.inf, "nuc"))
                ),
                "upside_down": _gives("long", lambda g, m: g * g.norm() / m),
                "norm_of_y": Gives(lambda key: key.x_grad * key.max_norm / key.norm_of_y),
                "per_row": _gives("long", *(partial(_clip, dim=dim) for dim in (0, -1))),
            },
        ),
        _clips(
            "decides",
            "longer",
            given=[
                Say("after_others", when=_right_alone, w=lambda saw, key: key.gradients["longer"]),
                _GIVEN.replace("long", "longer"),
            ],
            mistakes={
                **shared.REMOVES_ITSELF,
                "remembers": _right_alone,
                "other_condition": _gives("longer", lambda g, m: g),
            },
        ),
        _clips(
            "leaves",
            "short",
            {"always_scales": _gives("short", lambda g, m: g * m / g.norm())},
            equal=_as_it_was,
        ),
        shared.neighbour(),
        _clips("keeps_small", "tiny", {"drops_small": _shrinks}, equal=_as_it_was),
        _clips(
            "zero",
            "zero",
            {"zero_becomes_nan": lambda saw, key: saw.zero.isnan().any()},
            points=1,
            essential=False,
            equal=_as_it_was,
        ),
        shared.beside(
            "clip_by_norm(y, max_norm); clip_by_norm(y2, 2 * max_norm)",
            lambda key: key.changed("long", _clip),
            equal=_close,
        ),
        shared.asked(
            lambda key: [_clip(g, m) for g, m in key.asked],
            lambda key: shared.on_a_leaf(
                f"clip_by_norm(y, {2 * key.max_norm:g})", f"clip_by_norm(y, {key.max_norm:g})"
            )(key),
            ws=lambda key: (key.gradients["long"], key.gradients["longer"]),
            equal=_close,
        ),
        shared.handle_undoes("clip_by_norm(y, max_norm)"),
    ],
    raises={
        "matrix_norm": r"must be 1D or 2D|matrix_norm",
    }
    | shared.NEEDS_CONTIGUOUS
    | shared.WRONG_HOOK
    | shared.OTHER_SHAPE,
)
