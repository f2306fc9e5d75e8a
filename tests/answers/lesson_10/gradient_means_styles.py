"""More answers to 10.2, `gradient_means`, in other styles, and what strangers got wrong."""

import contextlib
from collections import deque
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from tests.answers import alternative, edited, mistake


@alternative("10.2")
def gradient_means(model, loss):
    class Arrival(NamedTuple):
        name: str
        mean: float

    class Note(list):
        def of(self, name):
            return lambda grad: self.append(Arrival(name, float(np.mean(grad.numpy()))))

    arrived = Note()
    with contextlib.ExitStack() as stack:
        for name, param in model.named_parameters():
            if param.requires_grad:
                stack.callback(param.register_hook(arrived.of(name)).remove)
        loss.backward()
    return arrived


@alternative("10.2")
def gradient_means(model, loss):
    """What each pass adds to `.grad`, seen after it is added."""
    arrived, handles = [], []
    before = {p: 0 if p.grad is None else p.grad.clone() for p in model.parameters()}

    def note(param):
        arrived.append((names[param], (param.grad - before[param]).mean().item()))

    names = {param: name for name, param in model.named_parameters()}
    for param in filter(lambda p: p.requires_grad, names):
        handles.append(param.register_post_accumulate_grad_hook(note))
    try:
        loss.backward()
    finally:
        for handle in handles:
            handle.remove()
    return arrived


@alternative("10.2")
def gradient_means(model, loss):
    """Hooks of the nodes that add to `.grad`."""
    order, handles = deque(), []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        node = param.view_as(param).grad_fn.next_functions[0][0]

        def note(grads, name=name):
            order.append((name, grads[0].mean().item()))

        handles.append(node.register_prehook(note))
    try:
        loss.backward(retain_graph=False)
    finally:
        while handles:
            handles.pop().remove()
    return list(order)


@alternative("10.2")
def gradient_means(model, loss):
    def registered():
        for name, param in model.named_parameters():
            if param.requires_grad:
                yield param.register_hook(partial(note, name))

    def note(name, grad):
        nonlocal arrived
        arrived = [*arrived, (name, torch.mean(grad).item())]

    arrived = []
    handles = tuple(registered())
    torch.autograd.backward(loss)
    for handle in handles:
        handle.remove()
    return tuple(arrived)


@mistake("10.2", "not_written")
def gradient_means(model, loss):
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    grads = torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)
    return [(name, g.mean().item()) for (name, _), g in zip(named, grads) if g is not None]


@mistake("10.2", "module_hooks")
def gradient_means(model, loss):
    arrived, handles = [], []
    for name, module in model.named_modules():
        handles.append(
            module.register_full_backward_hook(
                lambda m, gi, go, name=name: arrived.append((name, go[0].mean().item()))
            )
        )
    loss.backward()
    for handle in handles:
        handle.remove()
    return arrived


edited("10.2", None, ("grad.mean().item()", "(grad.sum() / grad.numel()).item()"))
edited("10.2", None, ("        loss.backward()\n", "        loss.backward(retain_graph=True)\n"))
edited(
    "10.2",
    "twice",
    ("        loss.backward()\n", "        loss.backward(retain_graph=True)\n        loss.backward()\n"),
)
edited(
    "10.2",
    "not_written",
    (
        "        loss.backward()\n",
        "        torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True)\n",
    ),
)
edited("10.2", "zeroes", ("    return arrived", "    model.zero_grad()\n    return arrived"))
edited(
    "10.2",
    "zeroes",
    (
        "        loss.backward()\n",
        "        for p in model.parameters():\n            p.grad = None\n        loss.backward()\n",
    ),
)
edited(
    "10.2",
    "changes_gradient",
    (
        "        arrived.append((name, grad.mean().item()))",
        "        arrived.append((name, grad.mean().item()))\n        return grad.abs()",
    ),
)
edited("10.2", "changes_gradient", ("grad.mean().item()", "grad.mul_(2).mean().item() / 2"))
edited(
    "10.2",
    "one_parameter",
    ("            handles.append(param", "            pass\n    handles.append(param"),
    ("in model.named_parameters():", "in reversed(list(model.named_parameters())):"),
)
edited(
    "10.2",
    "one_parameter",
    ("(partial(note, name)))\n", "(partial(note, name)))\n            break\n"),
    (
        "in model.named_parameters():",
        "in list(model.named_parameters())[:1] + list(model.named_parameters()):",
    ),
)
edited("10.2", "too_late", ("    try:\n", "    for handle in handles:\n        handle.remove()\n    try:\n"))
edited("10.2", "no_pairs", ("return arrived", "return dict(arrived)"))
edited("10.2", "no_pairs", ("return arrived", "return iter(arrived)"))
edited("10.2", "no_pairs", ("return arrived", "return [name for name, mean in arrived]"))
edited("10.2", "order", ("return arrived", "return sorted(arrived)"), named=False)
edited("10.2", "not_the_mean", ("grad.mean().item()", "grad.abs().mean().item()"), points=4)
edited("10.2", "not_the_mean", ("grad.mean().item()", "grad.max().item()"), points=4)
edited("10.2", "not_python", ("grad.mean().item()", "grad.numpy().mean()"), points=4)
edited(
    "10.2",
    "state",
    ("def gradient_means(model, loss):", "arrived = []\n\n\ndef gradient_means(model, loss):"),
    ("arrived, handles = [], []", "handles = []"),
)
edited(
    "10.2",
    "requires_grad",
    (
        "    for name, param in model.named_parameters():\n        if param.requires_grad:",
        "    for name, param in model.named_parameters():\n        param.requires_grad_()\n        if param.requires_grad:",
    ),
    points=5,
)


@mistake("10.2", "lists_frozen")
def gradient_means(model, loss):
    loss.backward()
    return [(name, p.grad.mean().item()) for name, p in model.named_parameters() if p.grad is not None]


edited(
    "10.2", "skips_fresh", ("if param.requires_grad:", "if param.requires_grad and param.grad is not None:")
)
edited("10.2", "keeps_graph", ("        loss.backward()\n", "        loss.backward(create_graph=True)\n"))
edited("10.2", "rounds", ("grad.mean().item()", "round(grad.mean().item(), 3)"), points=4)
edited(
    "10.2",
    "others",
    (
        "        for handle in handles:\n            handle.remove()",
        "        for param in model.parameters():\n            (param._backward_hooks or {}).clear()",
    ),
    points=5,
)
