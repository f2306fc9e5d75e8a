"""Right answers to 15.2, `update_ratios`."""

from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

import tests.answers
from tests.answers import alternative


@alternative("15.2")
@contextmanager
def update_ratios(model, optimizer):
    steps, before = [], {}

    def begin(optimizer, args, kwargs):
        before.update({name: param.detach().clone() for name, param in model.named_parameters()})

    def end(optimizer, args, kwargs):
        ratios = {}
        for name, param in model.named_parameters():
            old = before[name]
            size, moved = old.norm().item(), (param.detach() - old).norm().item()
            ratios[name] = moved / size if size else None
        steps.append(ratios)

    pre = optimizer.register_step_pre_hook(begin)
    post = optimizer.register_step_post_hook(end)
    try:
        yield steps
    finally:
        pre.remove()
        post.remove()


edited = partial(tests.answers.edited, of=update_ratios)


@alternative("15.2")
class UpdateRatios:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.steps, self.old = [], {}

    def __enter__(self):
        self.pre = self.optimizer.register_step_pre_hook(self.before)
        self.post = self.optimizer.register_step_post_hook(self.after)
        return self.steps

    def before(self, optimizer, args, kwargs):
        self.old = {n: p.detach().clone() for n, p in self.model.named_parameters()}

    def after(self, optimizer, args, kwargs):
        self.steps.append({n: self.ratio(n, p) for n, p in self.model.named_parameters()})

    def ratio(self, name, param):
        old = self.old[name]
        if old.norm() == 0:
            return None
        return ((param.detach() - old).norm() / old.norm()).item()

    def __exit__(self, kind, error, trace):
        self.pre.remove()
        self.post.remove()


@alternative("15.2")
@contextmanager
def update_ratios(model, optimizer):
    steps, old = [], {}

    @torch.no_grad()
    def begin(*_):
        for name, param in model.named_parameters():
            old[name] = param.clone()

    @torch.no_grad()
    def end(*_):
        row = {}
        for name, param in model.named_parameters():
            size = float(torch.linalg.vector_norm(old[name]))
            row[name] = float(torch.dist(param, old[name])) / size if size > 0 else None
        steps.append(row)

    with ExitStack() as stack:
        stack.enter_context(optimizer.register_step_pre_hook(begin))
        stack.enter_context(optimizer.register_step_post_hook(end))
        yield steps


@alternative("15.2")
@contextmanager
def update_ratios(model, optimizer):
    steps = []
    before = None

    def pre(opt, args, kwargs):
        nonlocal before
        before = [p.data.clone() for p in model.parameters()]

    def post(opt, args, kwargs):
        names = [n for n, _ in model.named_parameters()]
        moved = [(p.data - b).norm().item() for p, b in zip(model.parameters(), before, strict=True)]
        sizes = [b.norm().item() for b in before]
        steps.append({n: None if s == 0 else m / s for n, m, s in zip(names, moved, sizes, strict=True)})

    handles = [optimizer.register_step_pre_hook(pre), optimizer.register_step_post_hook(post)]
    try:
        yield steps
    finally:
        for handle in handles:
            handle.remove()


@alternative("15.2")
@contextmanager
def update_ratios(model, optimizer):
    """Global hooks that look at this optimizer only."""
    steps, old = [], {}

    def begin(which, args, kwargs):
        if which is optimizer:
            old.update({n: p.detach().clone() for n, p in model.named_parameters()})

    def end(which, args, kwargs):
        if which is not optimizer:
            return
        ratios = {}
        for n, p in model.named_parameters():
            try:
                ratios[n] = (p.detach() - old[n]).norm().item() / old[n].norm().item()
            except ZeroDivisionError:
                ratios[n] = None
        steps.append(ratios)

    one, two = register_optimizer_step_pre_hook(begin), register_optimizer_step_post_hook(end)
    try:
        yield steps
    finally:
        one.remove()
        two.remove()


@alternative("15.2")
@contextmanager
def update_ratios(model, optimizer):
    """Replace `step` for a while, without a hook."""
    steps = []
    step = optimizer.step

    def watched(*args, **kwargs):
        before = {n: p.detach().clone() for n, p in model.named_parameters()}
        result = step(*args, **kwargs)
        steps.append(
            {
                n: ((p.detach() - before[n]).norm() / before[n].norm()).item() if before[n].any() else None
                for n, p in model.named_parameters()
            }
        )
        return result

    optimizer.step = watched
    try:
        yield steps
    finally:
        optimizer.step = step


@alternative("15.2")
@contextmanager
def update_ratios(model, optimizer):
    """By state_dict, and in float64 with NumPy."""
    steps, copies = [], []

    def numbers():
        return {n: p.detach().double().numpy().copy() for n, p in model.named_parameters()}

    def begin(optimizer, args, kwargs):
        copies.append(numbers())

    def end(optimizer, args, kwargs):
        old, new = copies.pop(), numbers()
        steps.append({})
        for name in new:
            size = float((old[name] ** 2).sum()) ** 0.5
            moved = float(((new[name] - old[name]) ** 2).sum()) ** 0.5
            steps[-1][name] = moved / size if size else None

    pre = optimizer.register_step_pre_hook(begin)
    try:
        post = optimizer.register_step_post_hook(end)
        try:
            yield steps
        finally:
            post.remove()
    finally:
        pre.remove()


@alternative("15.2")
def update_ratios(model, optimizer):
    class Watch(list):
        def __enter__(self):
            self.hooks = (
                optimizer.register_step_pre_hook(self.begin),
                optimizer.register_step_post_hook(self.end),
            )
            return self

        def begin(self, *_):
            self.old = {name: torch.clone(param).detach() for name, param in model.named_parameters()}

        def end(self, *_):
            entry = {}
            for name, param in model.named_parameters():
                size = self.old[name].norm()
                entry[name] = (
                    None if size.item() == 0 else (torch.sub(param, self.old[name]).norm() / size).item()
                )
            self.append(entry)

        def __exit__(self, *error):
            for hook in self.hooks:
                hook.remove()

    return Watch()


@alternative("15.2")
@contextmanager
def update_ratios(model, optimizer):
    steps = []

    def begin(optimizer, args, kwargs):
        steps.append({name: param.detach().clone() for name, param in model.named_parameters()})

    def end(optimizer, args, kwargs):
        entry = steps[-1]
        for name, param in model.named_parameters():
            old = entry[name]
            entry[name] = ((param - old).norm() / old.norm()).item() if old.count_nonzero() else None

    first, second = optimizer.register_step_pre_hook(begin), optimizer.register_step_post_hook(end)
    try:
        yield steps
    finally:
        second.remove()
        first.remove()


@alternative("15.2")
@contextmanager
def update_ratios(model, optimizer):
    import copy

    steps, box = [], {}

    def begin(optimizer, args, kwargs):
        box["model"] = {k: copy.deepcopy(v.data) for k, v in model.named_parameters()}

    def end(optimizer, args, kwargs):
        ratios = dict.fromkeys(box["model"])
        for k, v in model.named_parameters():
            n = box["model"][k].pow(2).sum().sqrt().item()
            if n:
                ratios[k] = (v.data - box["model"][k]).pow(2).sum().sqrt().item() / n
        steps.append(ratios)

    handles = []
    try:
        handles.append(optimizer.register_step_pre_hook(begin))
        handles.append(optimizer.register_step_post_hook(end))
        yield steps
    finally:
        while handles:
            handles.pop().remove()


edited("15.2", None, ("moved / size if size else None", "None if size == 0 else moved / size"))
edited(
    "15.2",
    None,
    (
        "before.update({name: param.detach().clone() for name, param in model.named_parameters()})",
        "before.clear()\n        for name, param in model.named_parameters():\n            before[name] = torch.empty_like(param).copy_(param).detach()",
    ),
)
edited("15.2", None, ("(param.detach() - old).norm()", "(old - param.data).norm()"))
edited("15.2", None, ("param.detach().clone()", "param.data.clone()"))
edited("15.2", None, ("old.norm().item(), ", "old.flatten().dot(old.flatten()).sqrt().item(), "))
edited("15.2", None, ("old = before[name]", "old = before.pop(name)"))
