"""What is observed of 04.3, `freeze_rows(embedding, rows)`: gradients with the hook and, at last, without it."""

import copy
from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_04.shared import all_hooks_on, remove_handles, tensor_hooks_on, use
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, noted, whole


class Case(NamedTuple):
    """Embedding, rows to freeze, and c: without hooks, the gradient of (c * embedding(all rows)).sum() is c."""

    embedding: torch.nn.Embedding
    rows: list[int]
    c: torch.Tensor


def make_case(rng: Draw) -> Case:
    """Return a case of five unsorted rows with others in between and rows[0] < rows[-1], of two rows, or of one.

    In turn 0 it is in eval mode. In turn 1 it is float16, which a float32 mask would make float32; from then on the
    embedding was used before. In turn 2 c is of thirds in float64, which every smaller dtype would change.
    """
    # More columns than rows, so that every row index is a valid column index.
    weight = torch.stack([whole(rng, 12) for _ in range(11)])
    first = rng.randint(0, 2)
    a, b, middle, d, e = range(first, first + 9, 2)
    rows = [rng.choice([[middle, a, d, b, e], [a, e, b, d, middle]]), [10, 0], [middle]][rng.turn]
    c = torch.stack([whole(rng, 12) for _ in range(11)])
    dtype = (torch.float32, torch.float16, torch.float64)[rng.turn]
    embedding = torch.nn.Embedding.from_pretrained(weight.to(dtype), freeze=False)
    if rng.turn:
        use(embedding)
    c = c.to(dtype)
    return Case(embedding.train(rng.turn > 0), rows, c / 3 if rng.turn == 2 else c)


def free(case: Case) -> int:
    """Return a row that is not to be frozen."""
    return next(row for row in range(len(case.c)) if row not in case.rows)


def infinite(case: Case) -> torch.Tensor:
    """Return c with an infinity in that row."""
    c = case.c.clone()
    c[free(case), 0] = torch.inf
    return c


def observe(freeze_rows: Any, case: Case) -> dict[str, Any]:
    """Freeze rows; take gradients in several ways, without the hook, and with three calls alive."""
    embedding, rows, c = case
    adapter = torch.nn.Parameter(torch.zeros_like(c))
    weight, older, other = embedding.weight, copies(embedding.weight.grad), copy.deepcopy(embedding)
    handle = freeze_rows(embedding, list(rows))
    weight.grad = None
    names = ("grad", "asked", "adapter_grad", "direct", "grad_after", "kept", "left", "beside")
    names += ("other_mode", "held", "passes", "one_buffer", "both")
    report: dict[str, Any] = dict.fromkeys(names) | {"gave": []}
    report |= {"handle": handle, "hooks": all_hooks_on(weight), "tensor_hooks": tensor_hooks_on(weight)}
    report |= {"weight": copies(weight), "requires_grad": weight.requires_grad}
    report["replaced"] = embedding.weight is not weight
    if report["replaced"] or not weight.requires_grad:
        return report
    report["gave"] = noted(weight)

    def loss(c: torch.Tensor) -> torch.Tensor:
        return (c * embedding(torch.arange(len(c)))).sum()

    loss(c).backward()
    report["grad"], weight.grad = weight.grad, None
    embedding.train(not embedding.training)
    report["other_mode"] = torch.autograd.grad(loss(c), weight)[0]
    embedding.train(not embedding.training)
    first = torch.autograd.grad(loss(-2 * c), weight)[0]
    report["asked"] = copies(first)
    second = torch.autograd.grad(loss(infinite(case)), weight)[0]
    # The first one is read again: a later pass must not overwrite it.
    report |= {"held": copies(first), "passes": copies(second)}
    report["one_buffer"] = first.data_ptr() == second.data_ptr()
    weight.grad = older
    # An adapter is added to the weight: the addition passes the same gradient tensor to both.
    (c.clone() * (weight + adapter)).sum().backward()
    report |= {
        "adapter_grad": copies(adapter.grad),
        "direct": copies(weight.grad),
        "kept": all_hooks_on(weight),
    }
    remove_handles(handle)
    weight.grad = None
    loss(c).backward()
    report |= {"grad_after": copies(weight.grad), "left": all_hooks_on(weight)}
    handles = [freeze_rows(embedding, list(rows)), freeze_rows(other, [(row + 1) % len(c) for row in rows])]
    weight.grad = None
    loss(c).backward()
    report["beside"] = copies(weight.grad)
    handles.append(freeze_rows(embedding, [free(case)]))
    weight.grad = None
    loss(c).backward()
    report["both"] = copies(weight.grad)
    remove_handles(handles)
    return report


PROBE = Probe("04.3", "freeze_rows", make_case, observe, cases=3, leaves=(HANDLES,))
