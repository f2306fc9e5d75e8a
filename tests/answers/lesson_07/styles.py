"""Right answers to the exercises of lesson 07 in further styles."""

import functools
import types
import weakref
from collections import deque
from contextlib import ExitStack
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import alternative


@alternative("07.1")
def grad_shapes(layer, x):
    found = {}
    with ExitStack() as stack:
        stack.enter_context(
            layer.register_full_backward_hook(lambda m, gi, go: found.update(inner=gi, outer=go))
        )
        needed = [
            tensor for tensor in (layer.weight, layer.bias, x) if tensor is not None and tensor.requires_grad
        ]
        torch.autograd.grad(layer(x).mean(), needed)
    return tuple(tuple(g if g is None else g.shape for g in found[key]) for key in ("inner", "outer"))


@alternative("07.1")
def grad_shapes(layer, x):
    *leading, _ = x.shape
    outer = tuple(leading + [layer.weight.size(0)])
    return (None if not x.requires_grad else tuple(x.size()),), (outer,)


@alternative("07.1")
def grad_shapes(layer, x):
    with torch.no_grad():
        return tuple((s,) for s in (tuple(x.shape) if x.requires_grad else None, tuple(layer(x).shape)))


@alternative("07.1")
def grad_shapes(layer, x):
    twin = nn.Linear(layer.in_features, layer.out_features)
    shapes = []

    class Note:
        def __call__(self, module, *both):
            for grads in both:
                shapes.append(tuple(map(lambda g: getattr(g, "shape", None), grads)))

    twin.register_full_backward_hook(Note())
    twin(torch.zeros(x.shape, requires_grad=x.requires_grad)).sum().backward()
    inner, outer = shapes
    return inner, outer


@alternative("07.1")
def grad_shapes(layer, x):
    y = layer(x)

    def shapes(*tensors):
        return tuple(tuple(t.shape) if t.requires_grad else None for t in tensors)

    return shapes(x), shapes(y)


@alternative("07.2")
def pool_mask(features, size):
    values = features.numpy()
    mask = np.zeros(values.shape, dtype=bool)
    for b, c, i, j in np.ndindex(*values.shape[:2], values.shape[2] // size, values.shape[3] // size):
        window = values[b, c, i * size : (i + 1) * size, j * size : (j + 1) * size]
        row, column = np.unravel_index(window.argmax(), window.shape)
        mask[b, c, i * size + row, j * size + column] = True
    return torch.from_numpy(mask)


@alternative("07.2")
def pool_mask(features, size):
    b, c, h, w = features.shape
    rows, columns = h // size, w // size
    cut = features[..., : rows * size, : columns * size]
    windows = cut.unfold(2, size, size).unfold(3, size, size).flatten(4)
    best = F.one_hot(windows.argmax(-1), size * size).bool()
    best = best.view(b, c, rows, columns, size, size).permute(0, 1, 2, 4, 3, 5)
    mask = torch.zeros(b, c, h, w, dtype=torch.bool)
    mask[..., : rows * size, : columns * size] = best.reshape(b, c, rows * size, columns * size)
    return mask


@alternative("07.2")
def pool_mask(features, size):
    pooled, index = nn.MaxPool2d(size, return_indices=True)(features)
    ones = torch.ones_like(pooled)
    return F.max_unpool2d(ones, index, size, output_size=features.shape).bool()


@alternative("07.2")
def pool_mask(features, size):
    pool = nn.MaxPool2d(size)
    _, back = torch.func.vjp(pool, features)
    (grad,) = back(torch.ones_like(pool(features)))
    return grad.gt(0)


@alternative("07.2")
def pool_mask(features, size):
    kept = {}

    class Before(nn.Module):
        def forward(self, x):
            (x := x.clone()).register_hook(lambda grad: kept.update(mask=grad != 0))
            return x

    net = nn.Sequential(Before(), nn.MaxPool2d(size))
    net(features.clone().requires_grad_()).mean().backward()
    return kept["mask"]


@alternative("07.3")
class GuidedReluHandles(list):
    def __init__(self, model):
        super().__init__(
            m.register_full_backward_hook(self.keep) for m in model.modules() if isinstance(m, nn.ReLU)
        )

    def keep(self, module, grad_input, grad_output):
        return tuple(grad.relu() for grad in grad_input)


@alternative("07.3")
def guided_relu(model):
    def hook(lowest, module, grad_input, grad_output):
        return (torch.clamp(grad_input[0], min=lowest),)

    handles = []
    model.apply(
        lambda m: (
            handles.append(m.register_full_backward_hook(partial(hook, 0)))
            if isinstance(m, nn.ReLU)
            else None
        )
    )
    return handles


@alternative("07.3")
def guided_relu(model):
    mine = weakref.WeakSet(m for m in model.modules() if isinstance(m, nn.ReLU))

    def before(module, grads):
        return (grads[0] * (grads[0] > 0),) if module in mine else None

    return [nn.modules.module.register_module_full_backward_pre_hook(before)]


@alternative("07.3")
def guided_relu(model):
    def relus(module):
        if isinstance(module, nn.ReLU):
            yield module
        for child in module.children():
            yield from relus(child)

    def keep(module, gi, go):
        (grad,) = gi
        new = grad.clone()
        new[new < 0] = 0
        return (new,)

    return list(map(lambda m: m.register_full_backward_hook(keep), relus(model)))


@alternative("07.3")
def guided_relu(model):
    def positive(make):
        @functools.wraps(make)
        def hook(*grads):
            return tuple(g.clamp(min=0.0) for g in make(*grads))

        return hook

    @positive
    def keep(module, grad_input, grad_output):
        return grad_input

    handles = deque()
    for name, module in model.named_modules():
        match module:
            case nn.ReLU():
                handles.append(module.register_full_backward_hook(keep))
    return [*handles]


@alternative("07.4")
class OutputWatcher:
    def __new__(cls, layer, seen):
        self = super().__new__(cls)
        self.seen = seen
        return layer.register_forward_hook(self)

    def __call__(self, module, args, output):
        if output.requires_grad:
            output.register_hook(self.keep)

    def keep(self, grad):
        self.seen.append(grad.detach().clone())


@alternative("07.4")
def watch_output(layer, seen):
    def catch(store, module, args, output):
        node = output.grad_fn
        if node:
            node.register_prehook(lambda grads: store(grads[0]))

    return layer.register_forward_hook(partial(catch, seen.append))


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, kwargs, output):
        if not output.requires_grad:
            return None

        def keep(grad):
            seen.extend([torch.from_numpy(grad.numpy().copy())])

        output.register_hook(keep)

    return layer.register_forward_hook(catch, with_kwargs=True)


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, output):
        def keep(grad):
            nonlocal count
            seen.insert(count, grad)
            count += 1

        return output if not output.requires_grad else (output.register_hook(keep), output)[1]

    count = len(seen)
    return layer.register_forward_hook(catch)


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, output):
        if module is layer and output.requires_grad:
            torch.autograd.graph.register_multi_grad_hook([output], lambda grads: seen.append(grads[0]))

    return torch.nn.modules.module.register_module_forward_hook(catch)


@alternative("07.5")
class GradientStop:
    def __new__(cls, layer):
        return layer.register_full_backward_hook(super().__new__(cls))

    def __call__(self, module, grad_input, grad_output):
        return tuple(map(self.none, grad_input))

    @staticmethod
    def none(grad):
        return None


@alternative("07.5")
def stop_gradient(layer):
    def cut(module, args, kwargs):
        def off(value):
            return value.detach() if isinstance(value, torch.Tensor) else value

        return tuple(off(a) for a in args), {key: off(value) for key, value in kwargs.items()}

    return layer.register_forward_pre_hook(cut, with_kwargs=True)


@alternative("07.5")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        new = list(grad_input)
        for place, _ in enumerate(new):
            new[place] = None
        return tuple(new)

    return layer.register_full_backward_hook(stop)


@alternative("07.5")
def stop_gradient(layer):
    def stop(target, module, grad_input, grad_output):
        if module is target():
            return (*(None for _ in grad_input),)

    hook = partial(stop, weakref.ref(layer))
    return torch.nn.modules.module.register_module_full_backward_hook(hook)


@alternative("07.5")
def stop_gradient(layer):
    def new(module, args):
        for arg in args:
            yield arg.data

    def before(self, args):
        return tuple(new(self, args))

    return layer.register_forward_pre_hook(lambda m, args: types.MethodType(before, m)(args))
