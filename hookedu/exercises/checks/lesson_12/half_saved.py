"""What decides about 12.1, `half_saved(counts)`."""

from collections.abc import Callable

import torch
from torch.autograd.graph import saved_tensors_hooks

from hookedu.exercises.checks.common import detached, must_be
from hookedu.exercises.checks.lesson_12.shared import ends
from hookedu.exercises.criteria import Check, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_12.half_saved import PROBE, ROW, Case
from hookedu.exercises.tools import same

# 0.1 in float16 and in float32.
_TENTH, _WHOLE = "0.0999755859375", "0.10000000149011612"
_REUSED = [[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0], [5.0, 6.0, 7.0, 8.0], [5.0, 7.0, 6.0, 8.0]]
_TRANSPOSED = "[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]"

Size = Callable[[torch.Tensor], int]


class Key:
    """The tensors that autograd passes to `pack`, and the gradients by the dtypes in which they are kept."""

    def __init__(self, case: Case) -> None:
        self.case, self.rows = case, [ROW]
        self.handed: list[torch.Tensor] = []
        with saved_tensors_hooks(self.handed.append, lambda packed: packed):
            case.loss()
        self.floats = [t for t in self.handed if t.dtype == torch.float32]
        # The case keeps all of them, so that no two are at one address.
        self.places = [*{t.data_ptr(): t for t in self.handed}.values()]

    def gradients(
        self, x=torch.float16, w=torch.float16, half=torch.float16, square=torch.float64
    ) -> list[torch.Tensor]:
        """Compute the gradients of x and w; `half` is for the half of x, `square` for the factor of its square.

        Now w is that of the second step. In the first it was half of this, which whoever keeps w itself does not know.
        """
        kept_x, kept_w = self.case.x.to(x).float(), self.case.w.detach().to(w).float()
        ones = torch.full((2, 2), float(self.case.columns))
        squares = (2 * self.case.x.to(square).double()).float() + (self.case.x / 2).to(half).float()
        steps = 2 if w == torch.float32 else 1.5
        return [steps * ones @ kept_w.T + 2 * squares, 2 * kept_x.T @ ones]


def _kept(**dtypes: torch.dtype) -> Of:
    """Return the condition that the gradients are those of tensors kept in these dtypes."""
    return lambda saw, key: same([saw.x, saw.w], key.gradients(**dtypes))


def _old_weights(key: Key) -> torch.Tensor:
    """Return the gradient of x if the second step takes the weights of the first."""
    kept_w = key.case.w.detach().half().float()
    return key.gradients()[0] - torch.full((2, 2), float(key.case.columns)) @ kept_w.T / 2


def _size(tensor: torch.Tensor) -> int:
    return tensor.nbytes


def _halved(tensor: torch.Tensor) -> int:
    """Return the size of a tensor in bytes, with float32 kept as float16."""
    return tensor.nbytes // 2 if tensor.dtype == torch.float32 else tensor.nbytes


def _sums(tensors: list[torch.Tensor], saved: Size = _size, kept: Size = _halved) -> dict[str, int]:
    """Return the counts when these sizes of each tensor are added up."""
    return {"saved": sum(map(saved, tensors)), "kept": sum(map(kept, tensors))}


_INNER = {"saved": 4, "kept": 2}  # of the one number that is saved in a second context inside the first


def _into_one(saw: Saw, key: Key) -> bool:
    """Check whether all was counted as it should be, but not into the dictionary where it belongs."""
    want = _sums(key.handed)
    return bool(saw.inner != _INNER) and all(
        saw.counts[k] + saw.inner[k] == want[k] + _INNER[k] for k in want
    )


def _one_missed(saw: Saw, key: Key) -> bool:
    """Check whether a single number is not rounded, and larger tensors are."""
    return saw.packed in (200, None) and bool(saw.single == _WHOLE)


def _larger_missed(saw: Saw, key: Key) -> bool:
    return not _one_missed(saw, key)


def _adds(saved: Size, kept: Size | None = None) -> Of:
    """Return the condition that these sizes of each tensor were added up; without `kept`, `saved` twice."""
    return lambda saw, key: saw.counts == _sums(key.handed, saved, kept or saved)


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=Say("saved_dtypes", row=ROW),
    checks=[
        Check(
            "gradients",
            want=lambda key: key.gradients(),
            ok=lambda saw, key: _kept()(saw, key) and saw.rows == key.rows and not saw.changed,
            points=2,
            essential=True,
            expected="x.grad == {want[0]}, w.grad == {want[1]}, row {key.rows}",
            got=[
                Say("changed_x", when=lambda saw, key: saw.changed),
                "x.grad == {saw.x}, w.grad == {saw.w}, row {saw.rows}",
            ],
            mistakes={
                "changes_tensor": lambda saw, key: saw.changed,
                "unchanged": _kept(x=torch.float32, w=torch.float32, half=torch.float32),
                "leaves_left_out": _kept(x=torch.float32, w=torch.float32),
                "weights_left_out": _kept(w=torch.float32),
                "bfloat16": _kept(x=torch.bfloat16, w=torch.bfloat16, half=torch.bfloat16),
                "old_weights": lambda saw, key: same(saw.x, _old_weights(key)),
                "all_halved": lambda saw, key: saw.rows != key.rows or _kept(square=torch.half)(saw, key),
            },
        ),
        Check(
            "packed",
            ok=lambda saw, key: saw.packed in (200, None) and not _one_missed(saw, key),
            points=1,
            given=lambda saw, key: (
                "unpack(pack(torch.tensor(0.1)))" if _one_missed(saw, key) else "pack(torch.rand(100))"
            ),
            expected=[Say("half", when=_larger_missed), _TENTH],
            got=[Say("bytes", when=_larger_missed), "{saw.single}"],
            mistakes={
                "not_all": lambda saw, key: saw.rounded is False or saw.single == _WHOLE,
                "keeps_both": lambda saw, key: saw.packed not in (200, None),
            },
        ),
        Check(
            "counts",
            "counts",
            want=lambda key: _sums(key.handed),
            ok=_adds(_size, _halved),
            points=2,
            given=[Say("nested", when=_into_one), Say("saved_dtypes", row=ROW)],
            mistakes={
                "one_for_all": _into_one,
                "other_keys": lambda saw, key: saw.counts.keys() != {"saved", "kept"},
                "never_counts": _adds(lambda tensor: 0),
                "swapped": _adds(_halved, _size),
                "elements": _adds(torch.Tensor.numel),
                "element_size": _adds(lambda t: t.element_size(), lambda t: _halved(t) // t.numel()),
                "last_only": lambda saw, key: saw.counts == _sums(key.handed[-1:]),
                "tensors": _adds(lambda tensor: 1),
                "same_twice": _adds(_halved),
                "before_twice": _adds(_size),
                "others_left_out": lambda saw, key: saw.counts == _sums(key.floats),
                "once_each": lambda saw, key: saw.counts == _sums(key.places),
                "wrong_kept": lambda saw, key: saw.counts["saved"] == _sums(key.handed)["saved"],
                "wrong_saved": lambda saw, key: saw.counts["kept"] == _sums(key.handed)["kept"],
                "wrong_counts": True,
            },
        ),
        Check(
            "within",
            "within",
            want=lambda key: _sums(key.handed),
            ok=lambda saw, key: saw.within == saw.counts,
            points=0,
            given=Say("inside"),
            label="counts",
            mistakes={"counts_late": True},
        ),
        Check(
            "transposed",
            ok=lambda saw, key: saw.transposed in (_TRANSPOSED, None),
            essential=True,
            given="unpack(pack(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).t()))",
            expected=_TRANSPOSED,
            got="{saw.transposed}",
        ),
        ends("with half_saved(counts): ..."),
        Check(
            "entered",
            "early",
            want=lambda key: False,
            points=0,
            given="manager = half_saved(counts)",
            expected=Say("not_yet"),
            got=Say("there_before"),
            mistakes={"on_at_once": True},
        ),
        must_be(
            "float16", "float16", "unpack(pack(torch.ones(2).half()))", "float16", "{saw.float16}", "grows"
        ),
        Check(
            "bfloat16",
            ok=lambda saw, key: saw.bfloat16 in ("bfloat16 1.04858e+06", None),
            given="unpack(pack(torch.tensor(2.0**20).bfloat16()))",
            expected="bfloat16 1.04858e+06",
            got="{saw.bfloat16}",
            mistakes={"all_halved": True},
        ),
        must_be(
            "limits",
            "[inf, 0.0, nan]",
            "unpack(pack(tensor([7e4, 1e-8, nan])))",
            "[inf, 0.0, nan]",
            "{saw.limits}",
            "limits",
        ),
        Check(
            "reused",
            ok=lambda saw, key: saw.reused in (_REUSED, None),
            essential=True,
            given=Say("reused"),
            expected=f"{_REUSED}",
            got="{saw.reused}",
            mistakes={"by_place": True},
        ),
        must_be(
            "whole",
            False,
            "kept = pack(torch.rand(100)); unpack(kept)",
            Say("half_alone"),
            Say("whole_held"),
            "keeps_whole",
            points=0,
        ),
        detached("pack(y)  # y = x.exp(), float64"),
        must_be(
            "let_go",
            True,
            "kept = pack(torch.rand(100)); del kept",
            Say("let_go"),
            Say("held"),
            "leaks",
            points=0,
        ),
    ],
    raises={
        "arguments": r"missing \d+ required positional argument|takes \d+ positional arguments? but 1 was given",
        "not_back": r"same dtype|tensors used as indices|[Ee]xpected (object of scalar type|dtype|index)|index.*(dtype|Int)|condition",
        "no_return": r"unpack_hook expected to be a Tensor but got result of type NoneType|'NoneType' object (is not subscriptable|has no attribute 'to')|cannot unpack non-iterable NoneType",
        "returns_nothing": r"does not support the context manager protocol|^AttributeError: __(enter|exit)__",
    },
)
