"""What the fifth stranger tried on lesson 01: wrong answers that had been accepted, and right ones."""

import functools
import operator

import numpy as np
import torch

from tests.answers import alternative, edited, mistake, unnamed


@mistake("01.1", "one_name_each")
def classify(tensors):
    names = {id(t): n for n, t in tensors.items()}
    return {
        names[id(t)]: ("keeps" if t.is_leaf else "passes") if t.requires_grad else "none"
        for t in tensors.values()
    }


@mistake("01.1", "one_name_each")
def classify(tensors):
    kinds, done = {}, set()
    for name, tensor in tensors.items():
        if tensor in done:
            continue
        done.add(tensor)
        kinds[name] = ("keeps" if tensor.is_leaf else "passes") if tensor.requires_grad else "none"
    return kinds


@alternative("01.1")
def classify(
    tensors,
):  # asks autograd itself; nothing is said of no_grad, where it would call everything "none"
    out = {}
    for name, t in tensors.items():
        if (t * 1).grad_fn is None:
            out[name] = "none"
        else:
            out[name] = "keeps" if t.grad_fn is None else "passes"
    return out


@alternative("01.1")
def classify(tensors):
    table = {(True, True): "keeps", (True, False): "passes", (False, True): "none"}
    return dict(zip(tensors, map(lambda t: table[t.requires_grad, t.is_leaf], tensors.values())))


@mistake("01.2", "frees_graph")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses:
        loss.backward(retain_graph=loss is not losses[-1])


@mistake("01.2", "frees_graph")
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses:
        loss.backward(retain_graph=bool(loss != losses[-1]))


@unnamed("01.2", "adds")
def sum_gradients(w, losses):
    by_value = {loss.item(): loss for loss in losses}
    w.grad = None
    sum(by_value.values()).backward()


@mistake("01.2", "other_dtype")
def sum_gradients(w, losses):
    w.grad = torch.zeros(w.shape)
    for loss in losses:
        loss.backward(retain_graph=True)


@mistake("01.2", "other_dtype")
def sum_gradients(w, losses):
    found = [torch.autograd.grad(loss, w, retain_graph=True)[0].numpy() for loss in losses]
    w.grad = torch.from_numpy(np.asarray(np.sum(found, axis=0), dtype=np.float32))


@mistake("01.2", "clears_others", points=2)
def sum_gradients(w, losses):
    total = sum(losses)
    nodes = [total.grad_fn]
    for node in nodes:
        for n, _ in node.next_functions:
            if n is not None:
                nodes.append(n)
                if hasattr(n, "variable"):
                    n.variable.grad = None
    total.backward()


@mistake("01.2", "keeps_graph", points=2)
def sum_gradients(w, losses):
    w.grad = None
    sum(losses).backward(create_graph=True)


@mistake("01.2", "keeps_graph", points=2)
def sum_gradients(w, losses):
    w.grad = None
    for loss in losses:
        loss.backward(create_graph=True)


@alternative("01.2")
def sum_gradients(w, losses):
    (w.grad,) = torch.autograd.grad(losses, [w])


@alternative("01.2")
def sum_gradients(w, losses):
    w.grad = None
    functools.reduce(operator.add, losses).backward(inputs=[w])


edited("01.4", "yields", ("wanted / slope", "wanted / (slope + 1e-8)"), named=False)
edited(
    "01.4",
    "yields",
    ("wanted / slope", "torch.where(slope.abs() > 1e-3, wanted / slope, torch.zeros_like(wanted))"),
    named=False,
)


@unnamed("01.4", "yields")
def choose_vector(x, y, wanted):
    (g,) = torch.autograd.grad(y, x, y.detach(), retain_graph=True)
    return (wanted * y.detach() / g).nan_to_num()


@alternative("01.4")
def choose_vector(x, y, wanted):
    try:
        y.sum().backward(retain_graph=True, inputs=[x])
        s = x.grad
    finally:
        x.grad = None
    return torch.where(s == 0, 0.0, wanted / s)


@alternative("01.4")
def choose_vector(x, y, wanted):
    s = torch.autograd.grad(y.sum(), x, retain_graph=True)[0].numpy()
    w = wanted.detach().numpy()
    return torch.from_numpy(np.asarray(np.divide(w, s, out=np.zeros_like(w), where=s != 0)))
