"""What is observed of 12.1, `half_saved(counts)`: a step under its hooks, and its hooks called by hand."""

import random
from typing import Any, NamedTuple

import torch
from torch._C import _autograd

from hookedu.exercises.probing import Probe
from hookedu.hooks.tensors import parts

ROW = 2051  # a number that float16 would round to 2052


class Case(NamedTuple):
    """Leaves of a graph, and the number of columns of its second product; float16 changes every value of x and w."""

    x: torch.Tensor
    w: torch.Tensor
    table: torch.Tensor
    columns: int

    def loss(self) -> torch.Tensor:
        """Compute a loss, on the way to which autograd saves tensors of float32, int64, bool and float64."""
        row = self.table.index_select(0, torch.tensor([ROW]))
        product = self.x @ self.w + torch.where(self.x > 0, row, 2 * row)
        return (product @ torch.ones(2, self.columns)).sum() + (self.x.double() ** 2).sum()


def make_case(rng: random.Random) -> Case:
    """Return a case with fresh values."""
    x, w = torch.tensor([[[rng.randint(1025, 2040) + 0.375 for _ in "12"] for _ in "12"] for _ in "xw"])
    w = torch.nn.Parameter(w.clone())  # autograd passes weights in a type of their own
    table = torch.zeros(ROW + 2, 2, requires_grad=True)
    return Case(x.clone().requires_grad_(), w, table, rng.randint(3, 9))


def _hooks_on() -> Any:
    """Return the pair (pack, unpack) that is in force, or None."""
    return _autograd._top_saved_tensors_default_hooks(False)


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return all tensors inside of what `pack` returned."""
    if isinstance(value, torch.Tensor):
        return [value]
    held = [item for _, item in parts(value)] or list(getattr(value, "__dict__", {}).values())
    return [tensor for item in held for tensor in _tensors(item)]


@torch.no_grad()  # as autograd calls them
def _by_hand(pack: Any, unpack: Any) -> dict[str, Any]:
    """Call these hooks on our own tensors; a value is None where it cannot be observed.

    packed: bytes that `pack` really keeps of a tensor of 400 bytes. detached: whether what it keeps of a float64
    output holds no graph. float16: the dtype in which a float16 tensor comes back.
    """
    with torch.enable_grad():
        output = torch.ones(2, dtype=torch.float64, requires_grad=True).exp()
    storages = {t.untyped_storage().data_ptr(): t.nbytes for t in _tensors(pack(torch.rand(100)))}
    back = unpack(pack(torch.ones(2, dtype=torch.float16)))
    return {
        "packed": sum(storages.values()) or None,
        "detached": not any(tensor.requires_grad for tensor in _tensors(pack(output))),
        "float16": str(getattr(back, "dtype", back)).removeprefix("torch."),
    }


def observe(half_saved: Any, case: Case) -> dict[str, Any]:
    """Run forward in the context of the answer and backward after it; then call its hooks by hand."""
    counts, before = {"saved": 0, "kept": 0}, _hooks_on()
    try:
        with half_saved(counts):
            hooks, loss = _hooks_on(), case.loss()
        ends = _hooks_on() == before
    finally:
        while _hooks_on() not in (None, before):  # hooks that the answer left in force
            _autograd._pop_saved_tensors_default_hooks()
    loss.backward()
    assert case.table.grad is not None
    return {
        "x": case.x.grad,
        "w": case.w.grad,
        "rows": case.table.grad.abs().sum(dim=1).nonzero().flatten().tolist(),
        "counts": dict(counts),
        "ends": ends,
    } | (_by_hand(*hooks) if hooks else dict.fromkeys(("packed", "detached", "float16")))


PROBE = Probe("12.1", "half_saved", make_case, observe)
