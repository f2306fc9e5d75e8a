"""What is observed of 12.1, `half_saved(counts)`: a step under its hooks, and its hooks called by hand."""

import gc
import inspect
import weakref
from types import FunctionType
from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import Interruption, Stopped
from hookedu.exercises.probes.lesson_12.shared import hooks_on, raised, taken_off
from hookedu.exercises.probing import Draw, Probe
from hookedu.hooks.tensors import parts

ROW = 2051  # a number that float16 would round to 2052


class Case(NamedTuple):
    """Leaves of a graph, and the number of columns of its second product; float16 changes every value of x and w.

    What is saved stays in `alive`. Else a later tensor might come to lie where an earlier one was, or might not: what an
    answer that goes by `data_ptr()` or `id()` counts would be a matter of luck.
    """

    x: torch.Tensor
    w: torch.Tensor
    table: torch.Tensor
    columns: int
    alive: list[torch.Tensor]

    def loss(self) -> torch.Tensor:
        """Compute the loss of two steps; between them, w is multiplied by 2 at the same address."""
        first = self._step()
        with torch.no_grad():
            self.w.mul_(2)
        return first + self._step()

    def _step(self) -> torch.Tensor:
        """Compute a loss, on the way to which autograd saves tensors of float32, int64, bool and float64.

        Of those of float32, x and w are leaves, the half of x is none and saved twice, and the ones are expanded.
        """
        half, double = self.x / 2, self.x.double()
        index = torch.tensor([ROW, 0])[:1]  # a view: there is more memory behind it than it has bytes
        row, positive = self.table.index_select(0, index), self.x > 0
        product = self.x @ self.w + torch.where(positive, row, 2 * row)
        ones = torch.ones(2, 1).expand(2, self.columns)
        self.alive.extend((half, double, index, positive, ones))
        return (product @ ones).sum() + (double**2).sum() + (half * half).sum()


def make_case(rng: Draw) -> Case:
    """Return a case with fresh values, negative in turn 1."""
    sign = -1 if rng.turn == 1 else 1
    x, w = torch.tensor(
        [[[sign * (rng.randint(1025, 2040) + 0.375) for _ in "12"] for _ in "12"] for _ in "xw"]
    )
    w = torch.nn.Parameter(w.clone())  # autograd passes weights in a type of their own
    table = torch.zeros(ROW + 2, 2, requires_grad=True)
    return Case(x.clone().requires_grad_(), w, table, rng.randint(3, 9), [])


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return all tensors inside of what `pack` returned; of a function, those that it closes over."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, FunctionType):
        held = inspect.getclosurevars(value).nonlocals.values()
        return [tensor for tensor in held if isinstance(tensor, torch.Tensor)]
    held = [item for _, item in parts(value)] or list(getattr(value, "__dict__", {}).values())
    return [tensor for item in held for tensor in _tensors(item)]


_BY_HAND = (
    "packed",
    "detached",
    "float16",
    "bfloat16",
    "rounded",
    "single",
    "transposed",
    "limits",
    "whole",
    "reused",
    "let_go",
)
_NUMBERS = 100  # in the tensor of which is watched what becomes of it


def _alive(*dtypes: torch.dtype) -> bool:
    """Check whether a tensor of so many numbers, made since `gc.freeze()`, of one of these dtypes if any, is still held."""
    tensors = (one for one in gc.get_objects() if isinstance(one, torch.Tensor))
    return any(one.numel() == _NUMBERS and one.dtype in (dtypes or (one.dtype,)) for one in tensors)


def _reused(pack: Any, unpack: Any) -> list[list[float]] | None:
    """Return what comes back of two tensors that lay at one place in memory, one after the other, and of a transposed view.

    None if `pack` keeps the memory of the first, so that no other could come there.

    So it goes when autograd saves a tensor that nobody else holds: the next of its size may get the same place. Here the
    second is made on the memory of the first, which does not count as a change of it.
    """
    first = torch.tensor([1.0, 2.0, 3.0, 4.0])
    second, kept = first.data, [pack(first)]
    del first
    if any(tensor.data_ptr() == second.data_ptr() for tensor in _tensors(kept)):
        return None
    second.data.mul_(2)
    kept.append(pack(second))
    square = torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    kept += [pack(square), pack(square.t())]
    return [unpack(one).flatten().tolist() for one in kept]


@torch.no_grad()  # as autograd calls them
def _by_hand(pack: Any, unpack: Any) -> dict[str, Any]:
    """Call these hooks on our own tensors; a value is None where it cannot be observed.

    packed: bytes that are really kept of a tensor of 400 bytes, itself included if it is still alive. detached:
    whether what `pack` keeps of a float64 output holds no graph. float16: the dtype in which such a tensor comes back.
    bfloat16: what comes back of a number in bfloat16 that float16 cannot hold.
    rounded: whether the tensor of 400 bytes comes back as of float16. single: what comes back of a single number.
    transposed: what comes back of a matrix that lies in memory column by column. limits: what comes back of numbers beyond
    float16. whole: whether the float32 numbers that `unpack` gave are held on. reused: see `_reused`.
    let_go: whether nothing of the tensor of 400 bytes is held any more once autograd would have let go of it.
    """
    gc.freeze()  # what was there before is not looked through
    # All made at once, so that none comes to lie where another was.
    small, special, handed = torch.ones(2).half(), torch.tensor([7e4, 1e-8, torch.nan]), torch.rand(_NUMBERS)
    single, matrix = torch.tensor(0.1), torch.arange(1.0, 7.0).reshape(3, 2)
    brain = torch.tensor(2.0**20).bfloat16()
    leaf = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        output = leaf.exp()
    leaf_lives, kept_of_output = weakref.ref(leaf), pack(output)
    del leaf, output
    alive, size = weakref.ref(handed), {handed.untyped_storage().data_ptr(): handed.nbytes}
    rounded, kept = handed.half().float(), pack(handed)
    del handed
    storages = {t.untyped_storage().data_ptr(): t.nbytes for t in _tensors(kept)}
    if alive() is not None:
        gc.collect()
        storages |= size if alive() is not None else {}
    detached = leaf_lives() is None  # a graph holds its leaves
    del kept_of_output
    back, limits, one = unpack(pack(small)), unpack(pack(special)), unpack(pack(single))
    turned, wide = unpack(pack(matrix.t())), unpack(pack(brain))
    as_rounded, packed = torch.equal(unpack(kept), rounded), sum(storages.values()) or None
    del rounded
    if whole := _alive(torch.float32):
        gc.collect()
        whole = _alive(torch.float32)
    del kept
    if held := _alive():
        gc.collect()
        held = _alive()
    gc.unfreeze()
    return {
        "packed": packed,
        "detached": detached,
        "rounded": as_rounded,
        "whole": whole,
        "reused": _reused(pack, unpack),
        "let_go": not held,
        "single": str(one.tolist()),
        "transposed": str(turned.tolist()),
        "limits": str(limits.tolist()),
        "bfloat16": f"{str(getattr(wide, 'dtype', wide)).removeprefix('torch.')} {wide.item():g}",
        "float16": str(getattr(back, "dtype", back)).removeprefix("torch."),
    }


def observe(half_saved: Any, case: Case) -> dict[str, Any]:
    """Run forward in the context of the answer and backward after it, two times; then raise exceptions inside it.

    `early` tells whether its hooks are on before the context is entered, `within` what is counted before it is left.

    Forward begins in a second context inside the first. At last, call its hooks by hand.
    """
    inner, counts = {"saved": 0, "kept": 0}, {"saved": 0, "kept": 0}
    before, x = hooks_on(), case.x.detach().clone()
    with taken_off():
        manager = half_saved(counts)
        early = hooks_on() != before
        with manager:
            with taken_off(), half_saved(inner):
                case.alive.append(case.x[0, 0].sigmoid())  # saves what it puts out
            hooks, loss, within = hooks_on(), case.loss(), dict(counts)
        ends = hooks_on() == before
    outcomes = [
        raised(error, lambda: half_saved({"saved": 0, "kept": 0})) for error in (Stopped, Interruption)
    ]
    loss.backward(retain_graph=True)
    for leaf in (case.x, case.w, case.table):
        leaf.grad = None
    loss.backward()
    assert case.table.grad is not None
    return {
        "x": case.x.grad,
        "w": case.w.grad,
        "rows": case.table.grad.abs().sum(dim=1).nonzero().flatten().tolist(),
        "counts": dict(counts),
        "within": within,
        "inner": dict(inner),
        "early": early,
        "ends": ends,
        "raised": outcomes,
        "changed": not torch.equal(case.x, x),
    } | (_by_hand(*hooks) if hooks else dict.fromkeys(_BY_HAND))


PROBE = Probe("12.1", "half_saved", make_case, observe, cases=2)
