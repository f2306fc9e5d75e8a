"""What is observed of 12.2, `put_away(shelf, at_least)`: the calls of a shelf of ours, and what memory stays alive."""

import contextlib
import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import Interruption, Stopped
from hookedu.exercises.probes.lesson_12.shared import KINDS, Shelf, drained, hooks_on, raised, taken_off
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies


class Case(NamedTuple):
    """Leaves of a graph, the bound in bytes, the number of elements (float32) around it, and the kind of the first key."""

    x: torch.Tensor
    w: nn.Parameter
    table: nn.Parameter
    at_least: int
    n: int
    first: int

    @property
    def leaves(self) -> tuple[torch.Tensor, ...]:
        return self.x, self.w, self.table

    def loss(
        self, midway: Callable[[torch.Tensor], None] = lambda grad: None, made: list[Any] | None = None
    ) -> torch.Tensor:
        """Compute a loss, on the way to which tensors of many types and sizes are saved: below `4 * n` bytes, just so, above.

        `midway` is called in backward when all is done but for the first operation, which saves x and w. To `made` are
        added weak references to the memory of those that nothing but the graph keeps alive, with their bytes.
        """
        n, noted = self.n, [] if made is None else made

        def note(tensor: torch.Tensor) -> torch.Tensor:
            noted.append((tensor.nbytes, weakref.ref(tensor.untyped_storage())))
            return tensor

        start = self.x.mul(self.w)  # `*` would report a TypeError of `pack` as its own; 2 * n + 2 elements
        start.register_hook(midway)
        one, none = start[0], start[:0]  # views, of 4 and 0 bytes, of a large storage
        total = one.mul(one) + none.mul(none).sum()
        for size in (n - 1, n, n + 1):
            part = note(2 * start[:size])
            total = total + part.mul(part).sum() + note((-part).relu()).sum()  # relu saves what it puts out
        for size in (n // 2 - 1, n // 2):  # with 8 bytes each
            total = total + note(start[:size].double()).pow(2).sum().float()
            index = note(torch.arange(size))
            total = total + self.table.index_select(0, index).sum()
        for size in (n, 2 * n):  # with 2 bytes each
            total = total + note(start[:size].half()).pow(2).sum().float()
        row = self.table.view(1, -1)
        for mask in (note(start > 0), note(self.table > 0)):  # 2 * n + 2 bytes, and 4 * n
            total = total + torch.where(mask, mask.float() * 3, row.flatten()[: mask.numel()]).sum()
        # A view that takes up more bytes than the memory behind it.
        ones = note(torch.ones(2, 1).expand(2, n))
        total = total + start.view(-1, 2).matmul(ones).sum()
        return total + note(start.sum()).pow(2)


def make_case(rng: Draw) -> Case:
    """Return a case; the bound is 0 in turn 2, where all goes on the shelf."""
    n = 2 * rng.randint(3, 6)

    def numbers(size: int) -> torch.Tensor:
        # With more digits than float16 has.
        return torch.tensor([rng.choice([-3, -2, 2, 3]) + 2**-12 for _ in range(size)])

    x = numbers(2 * n + 2).requires_grad_()
    w, table = nn.Parameter(numbers(2 * n + 2)), nn.Parameter(numbers(4 * n))
    return Case(x, w, table, 0 if rng.turn == 2 else 4 * n, n, rng.randrange(len(KINDS)))


@contextlib.contextmanager
def _promptly() -> Iterator[list[str]]:
    """Switch the collector off, which might let go of a ring at any time; note exceptions that Python can only print."""
    ignored: list[str] = []
    hook, collects = sys.unraisablehook, gc.isenabled()
    sys.unraisablehook = lambda what: ignored.append(f"{what.exc_type.__name__}: {what.exc_value}"[:100])
    gc.disable()
    try:
        yield ignored
    finally:
        sys.unraisablehook = hook
        gc.enable() if collects else None


def _held(put_away: Any, at_least: int) -> bool:
    """Check whether a graph that is thrown away without backward stays, held by the output that it saved."""
    leaf = torch.ones(3, requires_grad=True)
    lives = weakref.ref(leaf)
    with taken_off(), put_away(Shelf(0), at_least):
        output = leaf.exp()
    del leaf, output
    return lives() is not None


def _later(put_away: Any, case: Case) -> dict[str, Any]:
    """Note how many keys are left: after backward inside the `with`, after a graph thrown away there, and outside."""
    shelf = Shelf(case.first)
    manager = put_away(shelf, case.at_least)
    with taken_off(), manager:
        torch.autograd.grad(case.loss(), case.leaves)
        within = shelf.left
        loss = case.loss()
        del loss
        thrown_within = shelf.left
        loss = case.loss()
    del loss
    return {"within": within, "thrown_within": thrown_within, "thrown": shelf.left}


_NAMES = (
    *(
        "grads",
        "puts",
        "kept",
        "gets",
        "held",
        "early",
        "retained",
        "midway",
        "drops",
        "inner",
        "idle",
        "ends",
    ),
    *("within", "thrown_within", "thrown", "rings", "raised", "ignored"),
)


def observe(put_away: Any, case: Case) -> dict[str, Any]:
    """Run forward once and backward twice, with a second shelf in use; then run more graphs that end in other ways.

    Of an answer whose hooks are on before the `with`, nothing else is observed.
    """
    shelf, inner, midway, made = Shelf(case.first), Shelf(0), [], []
    with drained(), _promptly() as ignored, taken_off():
        before = hooks_on()
        manager, second = put_away(shelf, case.at_least), put_away(inner, 4)
        if hooks_on() != before:
            return dict.fromkeys(_NAMES) | {"idle": False}
        with manager:
            with taken_off(), second:
                small = case.x[0].exp()  # saves 4 bytes
            loss = case.loss(lambda grad: midway.append(shelf.left), made)
            puts = shelf.copies()
        ends, begun = hooks_on() == before, len(shelf.calls)
        torch.autograd.grad(small, case.x)
        kept = [(nbytes, memory() is not None) for nbytes, memory in made]
        grads = [torch.autograd.grad(loss, case.leaves, retain_graph=True)]
        again, held = len(shelf.calls), sum(memory() is not None for memory in shelf.fetched)
        grads.append(torch.autograd.grad(loss, case.leaves))
        seen = {
            "grads": copies(grads),
            "puts": puts,
            "kept": kept,
            "gets": [shelf.noted("get", *calls) for calls in ((0, begun), (begun, again), (again,))],
            "held": held,
            "early": shelf.noted("drop", 0, begun),
            "retained": shelf.noted("drop", begun, again),
            "midway": midway[-1:],
            "drops": shelf.noted("drop"),
            "inner": [call for call, _ in inner.calls],
            "idle": True,
            "ends": ends,
        }
        del loss, small
        seen |= _later(put_away, case)
        seen["rings"] = [_held(put_away, bound) for bound in (100, 0)]
        seen["raised"] = [
            raised(error, lambda: put_away(Shelf(0), case.at_least)) for error in (Stopped, Interruption)
        ]
    return seen | {"ignored": ignored}


PROBE = Probe("12.2", "put_away", make_case, observe, cases=3)
