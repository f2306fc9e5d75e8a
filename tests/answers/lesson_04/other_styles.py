"""Right answers to the exercises of lesson 04 in less usual styles."""

import functools
import math
import weakref
from collections import defaultdict

import numpy as np
import torch
from torch import nn

from tests.answers import alternative


@alternative("04.1")
def predict(k, m, s):
    passes = 2
    at_y, at_w = m + s, (m + s) * k
    return m, sum([at_y] * passes), at_w, sum([at_w] * passes)


@alternative("04.1")
def predict(k, m, s):
    return (m, (out := m + s) * 2, (through := k * out), through * 2)


@alternative("04.1")
def predict(k, m, s):
    y_grad = w_grad = 0
    for _ in range(2):
        look = m
        y_grad += look + s
        look_w = k * (look + s)
        w_grad += look_w
    return [look, y_grad, look_w, w_grad]


@alternative("04.1")
def predict(k, m, s):
    return torch.tensor([1.0, 2.0, k, 2 * k]) * torch.tensor([m, m + s, m + s, m + s])


@alternative("04.1")
def predict(k, m, s):
    numbers = {"look": m, "y.grad": 2 * (m + s)}
    numbers |= {"look_w": k * numbers["y.grad"] / 2, "look_after": k * numbers["y.grad"]}
    return list(numbers.values())


@alternative("04.2")
def sgd_in_backward(model, lr):
    class Step:
        def __init__(self, lr):
            self.lr = lr

        @torch.no_grad()
        def __call__(self, param):
            param.sub_(self.lr * param.grad)
            param.grad = None

    hook, known = Step(lr), set()
    return [
        module._parameters[name].register_post_accumulate_grad_hook(hook)
        for module in model.modules()
        for name, param in module.named_parameters(recurse=False)
        if param.requires_grad and (id(param) not in known and not known.add(id(param)))
    ]


@alternative("04.2")
def sgd_in_backward(model, lr):
    def step(lr, param):
        param.data = param.data - lr * param.grad
        param.grad = None

    hook = functools.partial(step, lr)
    trained = filter(lambda p: p.requires_grad, model.parameters())
    return list(map(lambda p: p.register_post_accumulate_grad_hook(hook), trained))


@alternative("04.2")
def sgd_in_backward(model, lr):
    def stepper(reference):
        def step(_):
            param = reference()
            param.data.add_(param.grad, alpha=-lr)
            setattr(param, "grad", None)

        return step

    handles = {}
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        handles[name] = param.register_post_accumulate_grad_hook(stepper(weakref.ref(param)))
    return list(handles.values())


@alternative("04.2")
def sgd_in_backward(model, lr):
    def step(param):
        with torch.no_grad():
            new = param.numpy() - np.float32(lr) * param.grad.numpy()
            param.copy_(torch.from_numpy(new))
        param.grad = None

    handles = []
    for p in model.parameters():
        p.requires_grad and handles.append(p.register_post_accumulate_grad_hook(step))
    return handles


@alternative("04.3")
def freeze_rows(embedding, rows):
    class Freeze:
        def __init__(self, rows):
            self.rows = frozenset(rows)

        def __call__(self, grad):
            return torch.stack([row * (n not in self.rows) for n, row in enumerate(grad)])

    return embedding.weight.register_hook(Freeze(rows))


@alternative("04.3")
def freeze_rows(embedding, rows):
    frozen = torch.isin(torch.arange(embedding.num_embeddings), torch.tensor(rows))
    return embedding.weight.register_hook(lambda grad: grad.masked_fill(frozen[:, None], 0))


@alternative("04.3")
def freeze_rows(embedding, rows):
    def freeze(rows, grad):
        values = grad.numpy().copy()
        values[rows] = 0
        return torch.from_numpy(values)

    return embedding.weight.register_hook(functools.partial(freeze, rows))


@alternative("04.3")
def freeze_rows(embedding, rows):
    def freeze(grad):
        return torch.where(learns, grad, torch.zeros(()))

    learns = torch.ones_like(embedding.weight, dtype=torch.bool)
    for row in rows:
        learns[row] = False
    return embedding.weight.register_hook(freeze)


@alternative("04.3")
def freeze_rows(embedding, rows):
    def freeze(grad):
        new = grad.detach().clone()
        for row in rows:
            new[row].zero_()
        return new

    (handle := embedding.weight.register_hook(freeze))
    return handle


@alternative("04.3")
def freeze_rows(embedding, rows):
    return embedding.get_parameter("weight").register_hook(
        lambda grad: grad.index_put((torch.tensor(rows),), grad.new_zeros(()))
    )


@alternative("04.4")
def watch_norms(model, seen):
    class Note:
        def __init__(self, name):
            self.name = name

        def __call__(self, grad):
            seen.append((self.name, math.sqrt((grad * grad).sum())))

    return [p.register_hook(Note(name)) for name, p in model.named_parameters() if p.requires_grad]


@alternative("04.4")
def watch_norms(model, seen):
    """A post-accumulate hook may do it too, if another hook notes what there was before."""
    handles, before = [], defaultdict(float)
    for name, param in model.named_parameters():
        if param.requires_grad:

            def note(_, name=name, param=param):
                before[name] = 0 if param.grad is None else param.grad.clone()

            def add(param, name=name):
                seen.append((name, (param.grad - before[name]).norm().item()))

            handles += [param.register_hook(note), param.register_post_accumulate_grad_hook(add)]
    return handles


@alternative("04.4")
def watch_norms(model, seen):
    def hooks():
        for name, param in model.named_parameters():
            if param.requires_grad:
                yield param.register_hook(
                    lambda grad, name=name: seen.extend([(name, float(np.linalg.norm(grad.numpy())))])
                )

    return list(hooks())


@alternative("04.4")
def watch_norms(model, seen):
    def note(grad, *, name):
        seen.insert(len(seen), (name, torch.norm(grad).tolist()))

    trained = {name: param for name, param in model.named_parameters() if param.requires_grad}
    return [param.register_hook(functools.partial(note, name=name)) for name, param in trained.items()]


@alternative("04.4")
def watch_norms(model, seen):
    def noting(name):
        def note(grad):
            norm = grad.flatten() @ grad.flatten()
            seen.append((name, norm.item() ** 0.5))
            return grad

        return note

    handles = ()
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        handles += (param.register_hook(noting(name)),)
    return [*handles]


@alternative("04.4")
def watch_norms(model, seen):
    handles, known = [], set()

    def visit(module: nn.Module, prefix):
        for name, param in module._parameters.items():
            if param is not None and param.requires_grad and param not in known:
                known.add(param)
                full = prefix + name
                handles.append(
                    param.register_hook(lambda grad, full=full: seen.append((full, grad.norm(p=2).item())))
                )
        for name, child in module.named_children():
            visit(child, f"{prefix}{name}.")

    visit(model, "")
    return handles


@alternative("04.4")
def watch_norms(model, seen):
    from collections import namedtuple

    Noted = namedtuple("Noted", "name norm")
    return [
        p.register_hook(lambda grad, name=name: seen.append(Noted(name, grad.norm().item())))
        for name, p in model.named_parameters()
        if p.requires_grad
    ]
