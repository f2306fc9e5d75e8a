"""Answers to lesson 04 of people who looked for what its checks let through, or wrongly refused: the sixth time."""

from typing import NamedTuple

import numpy as np
import torch
from torch.utils.weak import WeakIdKeyDictionary

from tests.answers import alternative, edited, mistake, unnamed

# Other kinds of four numbers.


@alternative("04.1")
def predict(k, m, s):
    class Four(NamedTuple):
        look: float
        y_grad: float
        look_w: float
        w_grad: float

    return Four(m, 2 * (m + s), k * (m + s), 2 * k * (m + s))


@alternative("04.1")
def predict(k, m, s):
    return tuple(np.cumsum([m + s, m + s])[[0, 1, 0, 1]] * np.array([1, 1, k, k]) - np.array([s, 0, 0, 0]))


@alternative("04.1")
def predict(k, m, s):
    return np.array([1, 2, k, 2 * k]) * np.array([m, m + s, m + s, m + s])


# Parameters that a pass does not reach; gradients of 0, a learning rate of 0; eval mode.


@mistake("04.2", "touches_unreached")
def sgd_in_backward(model, lr):
    """One optimizer for all: it passes over parameters without a .grad, but not over those with an older one."""
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=lr)

    def step(_):
        optimizer.step()
        optimizer.zero_grad()

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "touches_unreached")
def sgd_in_backward(model, lr):
    params = [p for p in model.parameters() if p.requires_grad]

    @torch.no_grad()
    def step(param):
        param -= lr * param.grad
        for p in params:
            p.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in params]


@mistake("04.2", "zeroes_grad", points=4)
def sgd_in_backward(model, lr):
    @torch.no_grad()
    def step(param):
        if param.grad.any():
            param -= lr * param.grad
            param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


edited(
    "04.2",
    "freed",
    ("    handles = []", "    if not lr:\n        return []\n    handles = []"),
    points=4,
    named=False,
)
edited(
    "04.2",
    "one_mode",
    ("            param -= lr", "            if model.training:\n                param -= lr"),
)

# One tensor for all passes, a second call for the same embedding, eval mode, other dtypes, infinities.


@mistake("04.3", "one_buffer")
def freeze_rows(embedding, rows):
    buffer = torch.empty_like(embedding.weight.detach())

    def freeze(grad):
        buffer.copy_(grad)
        buffer[rows] = 0
        return buffer

    return embedding.weight.register_hook(freeze)


@unnamed("04.3", "both")
def freeze_rows(embedding, rows):
    if not hasattr(freeze_rows, "known"):
        freeze_rows.known = WeakIdKeyDictionary()
    index = torch.tensor(rows)
    old = freeze_rows.known.get(embedding.weight)
    if old is not None and old.hooks_dict_ref() and old.id in old.hooks_dict_ref():
        return old
    handle = embedding.weight.register_hook(lambda grad: grad.index_fill(0, index, 0))
    freeze_rows.known[embedding.weight] = handle
    return handle


@mistake("04.3", "others", points=4)
def freeze_rows(embedding, rows):
    if not hasattr(freeze_rows, "known"):
        freeze_rows.known = WeakIdKeyDictionary()
    if embedding.weight in freeze_rows.known:
        freeze_rows.known[embedding.weight].remove()
    index = torch.tensor(rows)
    handle = embedding.weight.register_hook(lambda grad: grad.index_fill(0, index, 0))
    freeze_rows.known[embedding.weight] = handle
    return handle


edited(
    "04.3",
    "freezes",
    (
        "        grad = grad.clone()",
        "        if not embedding.training:\n            return grad\n        grad = grad.clone()",
    ),
    named=False,
)
edited("04.3", "freezes", ("return grad\n", "return grad.half().to(grad.dtype)\n"), named=False)
edited("04.3", "freezes", ("return grad\n", "return grad.float().to(grad.dtype)\n"), named=False)
edited("04.3", "passes", ("return grad\n", "return torch.nan_to_num(grad)\n"), named=False)

# Two passes with the same numbers, nan, a single number, parameters of equal values, eval mode.


def _noting(change):
    """Register the reference answer to 04.4 with another way to note a norm."""
    return ("                seen.append((name, grad.norm().item()))", change)


edited(
    "04.4",
    "alone",
    _noting(
        "                pair = (name, grad.norm().item())\n                if pair not in seen:\n                    seen.append(pair)"
    ),
    points=4,
    named=False,
)
edited(
    "04.4",
    "alone",
    _noting(
        "                norm = grad.norm().item()\n                if norm == norm:\n                    seen.append((name, norm))"
    ),
    points=4,
    named=False,
)
edited(
    "04.4",
    "one_mode",
    _noting(
        "                if model.training:\n                    seen.append((name, grad.norm().item()))"
    ),
)
edited(
    "04.4",
    "changes_gradient",
    _noting(
        "                seen.append((name, grad.norm().item()))\n                return torch.nan_to_num(grad)"
    ),
)
edited("04.4", "rounds_off", ("grad.norm().item()", 'float(f"{grad.norm().item():.4g}")'), points=4)
edited("04.4", "raised", ("grad.norm().item()", "grad.reshape(grad.shape[0], -1).norm().item()"), named=False)


@unnamed("04.4", "alone", points=4)
def watch_norms(model, seen):
    last = {}

    def note(name, grad):
        norm = grad.norm().item()
        if last.get(name) != norm:
            last[name] = norm
            seen.append((name, norm))

    return [
        p.register_hook(lambda grad, name=name: note(name, grad))
        for name, p in model.named_parameters()
        if p.requires_grad
    ]


@unnamed("04.4", "sees")
def watch_norms(model, seen):
    def watch(p):
        def note(grad):
            named = model.named_parameters()
            name = next(n for n, q in named if q.shape == p.shape and torch.equal(q, p))
            seen.append((name, grad.norm().item()))

        return p.register_hook(note)

    return [watch(p) for p in model.parameters() if p.requires_grad]
