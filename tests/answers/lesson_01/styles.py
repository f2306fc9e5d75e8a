"""Right answers to 01.2, 01.3 and 01.4 in further styles."""

import contextlib
from functools import partial
from operator import methodcaller

import numpy as np
import torch

from tests.answers import alternative


@alternative("01.2")
def sum_gradients(w, losses):
    torch.optim.SGD([w], lr=0.1).zero_grad()
    torch.autograd.backward(losses)


@alternative("01.2")
def sum_gradients(w, losses):
    (w.grad,) = torch.autograd.grad(losses, w)


@alternative("01.2")
def sum_gradients(w, losses):
    total = torch.zeros_like(w)
    for loss in losses:
        total += torch.autograd.grad(loss, w, retain_graph=True)[0]
    w.grad = total


@alternative("01.2")
def sum_gradients(w, losses):
    w.grad = torch.zeros_like(w)
    *first, last = losses
    for loss in first:
        loss.backward(retain_graph=True)
    last.backward()


@alternative("01.2")
def sum_gradients(w, losses):
    w.grad = sum(map(lambda loss: torch.autograd.grad(loss, w, retain_graph=True)[0], losses))


@alternative("01.2")
def sum_gradients(w, losses):
    del w.grad
    list(map(methodcaller("backward", retain_graph=True), losses))


@alternative("01.2")
def sum_gradients(w, losses):
    back, left = partial(torch.Tensor.backward, retain_graph=True), list(losses)
    w.grad = None
    for _ in losses:
        back(left.pop())


@alternative("01.2")
class SumGradients:
    def __init__(self, w, losses):
        w.grad = None
        for loss in losses:
            self.add(loss)

    def add(self, loss):
        loss.backward(retain_graph=True)


@alternative("01.2")
def sum_gradients(w, losses):
    found = []
    handle = w.register_hook(lambda grad: found.append(grad.numpy().copy()))
    with contextlib.ExitStack() as stack:
        stack.callback(handle.remove)
        for loss in losses:
            loss.backward(retain_graph=True)
    w.grad = torch.from_numpy(np.asarray(np.sum(found, axis=0)))


@alternative("01.2")
def sum_gradients(w, losses):
    if (old := w.grad) is not None:
        old.zero_()
    torch.autograd.backward(losses, [torch.tensor(1.0)] * len(losses), inputs=[w])


@alternative("01.2")
def sum_gradients(w, losses):
    def run(first, *rest):
        first.backward(retain_graph=bool(rest))
        if rest:
            run(*rest)

    w.grad = None
    run(*losses)


@alternative("01.3")
def keep_all(tensors, loss):
    loss.backward(inputs=[t for t in tensors.values() if t.requires_grad])


@alternative("01.3")
def keep_all(tensors, loss):
    for tensor in filter(lambda t: t.grad_fn, tensors.values()):
        tensor.retain_grad()
    torch.autograd.backward(loss)


@alternative("01.3")
def keep_all(tensors, loss):
    for tensor in tensors.values():
        with contextlib.suppress(RuntimeError):  # refused where no gradient is required
            tensor.retain_grad()
    loss.backward()


@alternative("01.3")
def keep_all(tensors, loss):
    [t.retain_grad() for t in tensors.values() if t.requires_grad]
    loss.backward(torch.ones_like(loss))


@alternative("01.3")
def keep_all(tensors, loss):
    kept = {}
    with contextlib.ExitStack() as stack:
        for name, tensor in tensors.items():
            if tensor.requires_grad:
                stack.enter_context(tensor.register_hook(partial(kept.__setitem__, name)))
        loss.backward()
    for name, grad in kept.items():
        if not tensors[name].is_leaf:
            tensors[name].grad = grad.clone()


@alternative("01.3")
def keep_all(tensors, loss):
    names = [name for name, tensor in tensors.items() if tensor.requires_grad]
    grads = dict(zip(names, torch.autograd.grad(loss, [tensors[name] for name in names]), strict=True))
    while names and (name := names.pop()):
        tensors[name].grad = torch.from_numpy(grads[name].numpy().copy())


@alternative("01.3")
class KeepAll:
    def __init__(self, tensors, loss):
        self.tensors, self.loss = tensors, loss
        self.ask()
        self.run()

    def ask(self):
        for tensor in self.tensors.values():
            if tensor.requires_grad is False:
                continue
            tensor.retain_grad()

    def run(self):
        try:
            self.loss.backward()
        finally:
            self.tensors = self.loss = None


@alternative("01.4")
def choose_vector(x, y, wanted):
    slopes = []
    handle = x.register_hook(slopes.append)
    torch.autograd.grad(y.sum(), x, retain_graph=True)
    handle.remove()
    return wanted / slopes[0]


@alternative("01.4")
def choose_vector(x, y, wanted):
    slope = torch.autograd.grad([y], [x], [torch.ones_like(y)], retain_graph=True)[0]
    return torch.from_numpy(wanted.numpy() / slope.numpy())


@alternative("01.4")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return torch.div(wanted, slope).detach()


@alternative("01.4")
def choose_vector(x, y, wanted):
    (slope,) = torch.autograd.grad(y, x, torch.ones(y.shape), retain_graph=True)
    return torch.tensor([w / s for w, s in zip(wanted.tolist(), slope.tolist(), strict=True)])


@alternative("01.4")
def choose_vector(x, y, wanted):
    v = torch.empty_like(y)
    for i in range(y.numel()):
        one = torch.zeros_like(y)
        one[i] = 1
        slope = torch.autograd.grad(y, x, one, retain_graph=True)[0][i]
        v[i] = wanted[i] / slope
    return v


@alternative("01.4")
def choose_vector(x, y, wanted):
    try:
        y.backward(gradient=torch.ones_like(y), retain_graph=True, inputs=[x])
        return wanted * x.grad.reciprocal()
    finally:
        x.grad = None


@alternative("01.4")
def choose_vector(x, y, wanted):
    v = torch.ones_like(y, requires_grad=True)
    (slope,) = torch.autograd.grad(y, x, v, retain_graph=True, create_graph=True)
    (per_v,) = torch.autograd.grad(slope.sum(), v, retain_graph=True)
    return wanted / per_v


@alternative("01.4")
def choose_vector(x, y, wanted):
    rows = torch.autograd.grad(y, x, torch.eye(len(y)), retain_graph=True, is_grads_batched=True)[0]
    return wanted / rows.diagonal()
