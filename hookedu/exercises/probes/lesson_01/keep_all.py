"""What is observed of 01.3, `keep_all(tensors, loss)`: the gradients that are kept, and what happened to the tensors."""

import warnings
from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import ATTRIBUTES, GRAD
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, whole


class Case(NamedTuple):
    """Tensors by name, a loss computed from them, and how, as a message shows it."""

    tensors: dict[str, torch.Tensor]
    loss: torch.Tensor
    given: str


def make_case(rng: Draw) -> Case:
    """Return a chain; or, under random names, a graph with two leaves, a shortcut and several ranks.

    In that graph, what requires no gradient has an old one all the same, and one tensor goes by two names. In the last
    case all is in float64, and instead of that a tensor gets a gradient of 0.
    """
    if rng.turn == 0:
        n = rng.randint(2, 3)
        x, data, k = whole(rng, n).requires_grad_(), whole(rng, n), rng.randint(2, 5)
        h = k * x
        y = h**2
        tensors, loss = {"x": x, "data": data, "h": h, "y": y}, (data * y).sum()
        given = f"x = {x.tolist()}; data = {data.tolist()}; h = {k} * x; y = h**2; loss = (data * y).sum()"
    else:
        a, b, c, d, e, f, g = names = rng.sample("abcdefgkmnpqrs", 7)
        one, two, data = (
            whole(rng, 4).reshape(2, 2).requires_grad_(),
            whole(rng, 1)[0].requires_grad_(),
            whole(rng, 2),
        )
        data.grad = whole(rng, 2)
        written = "{}"
        if rng.turn == 2:
            old, data = data.grad.double(), data.double()
            one, two = (leaf.detach().double().requires_grad_() for leaf in (one, two))
            data.grad, written = old, "torch.tensor({}, dtype=torch.float64)"
        values = [written.format(value.tolist()) for value in (one, two, data, data.grad)]
        product = one * two
        total = product + one
        first = total[0, 0]
        last, last_given = (total, e) if rng.turn == 1 else (2 * one, f"2 * {a}")
        tensors = dict(zip(names, (one, two, data, product, total, first, last), strict=True))
        loss = first * (data * total).sum()
        if rng.turn == 2:
            loss = loss + (0 * last).sum()
        given = "; ".join(f"{n} = {v}" for n, v in zip((a, b, c, f"{c}.grad"), values, strict=True))
        given += f"; {d} = {a} * {b}; {e} = {d} + {a}; "
        given += f"{f} = {e}[0, 0]; {g} = {last_given}; loss = {f} * ({c} * {e}).sum()"
        given += f" + (0 * {g}).sum()" * (rng.turn == 2)
    order = [*tensors]
    if rng.turn == 1:
        order.reverse()
    elif rng.turn == 2:  # a tensor that keeps no gradient by itself comes first, and another one last
        order.insert(0, order.pop(3))
    return Case({name: tensors[name] for name in order}, loss, given.replace(".0", ""))


def observe(keep_all: Any, case: Case) -> dict[str, Any]:
    """Call once, and look at the tensors; `passes` counts how often backward started from the loss.

    Somebody else has a hook on every tensor that can carry one.
    """
    tensors, loss, _ = case
    given, passes = dict(tensors), []
    frozen = [tensor for tensor in tensors.values() if not tensor.requires_grad]
    for tensor in tensors.values():
        if tensor.requires_grad:
            tensor.register_hook(lambda grad: None)
    loss.register_hook(lambda grad: passes.append(1))
    keep_all(given, loss)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading .grad of non-leaves is intended here
        found = {name: tensor.grad for name, tensor in tensors.items()}
    return {
        "grads": copies(found),
        "attached": [name for name, grad in found.items() if grad is not None and grad.requires_grad],
        "retains": any(tensor.retains_grad for tensor in tensors.values()),
        "passes": len(passes),
        "data_flag": any(tensor.requires_grad for tensor in frozen),
        "replaced": any(given.get(name) is not tensor for name, tensor in tensors.items()),
    }


PROBE = Probe("01.3", "keep_all", make_case, observe, cases=3, leaves=(GRAD, ATTRIBUTES))
