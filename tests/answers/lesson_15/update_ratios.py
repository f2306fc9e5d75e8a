"""Answers to 15.2, `update_ratios`."""

from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

import tests.answers
from tests.answers import alternative, mistake, unnamed


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

edited("15.2", "yields_nothing", ("yield steps", "yield"))
edited("15.2", "no_manager", ("        yield steps", "        return steps"), ("@contextmanager\n", ""))
edited("15.2", "not_a_list", ("yield steps", "yield before or 0"))
edited("15.2", "no_manager_error", ("        yield steps\n", "        steps\n"))
edited(
    "15.2",
    "changes_weights",
    (
        "before.update(",
        "model.requires_grad_(True)\n        for param in model.parameters():\n            param.data.mul_(0.5)\n        before.update(",
    ),
)
edited(
    "15.2",
    "changes_weights",
    (
        "steps.append(ratios)",
        "steps.append(ratios)\n        for param in model.parameters():\n            param.data.add_(1)",
    ),
)
edited(
    "15.2",
    "not_on_inside",
    (
        "        yield steps\n    finally:\n        pre.remove()\n        post.remove()",
        "        pass\n    finally:\n        pre.remove()\n        post.remove()\n    yield steps",
    ),
)
edited("15.2", "no_steps", ("steps.append(ratios)", "nonlocal steps\n        steps = [*steps, ratios]"))
edited(
    "15.2",
    "keeps_tensors",
    ("old.norm().item(), (param.detach() - old).norm().item()", "old.norm(), (param.detach() - old).norm()"),
)
edited(
    "15.2",
    "not_python",
    ("moved / size if size else None", "torch.tensor(moved / size).numpy()[()] if size else None"),
)
edited(
    "15.2",
    "one_dictionary",
    ("    ratios = {}", "    pass"),
    ("    steps, before = [], {}", "    steps, before, ratios = [], {}, {}"),
)
edited("15.2", "one_entry", ("steps.append(ratios)", "steps[:] = [ratios]"))
edited(
    "15.2",
    "one_number",
    (
        "steps.append(ratios)",
        "values = [value for value in ratios.values() if value is not None]\n        steps.append(sum(values) / len(values))",
    ),
)
edited(
    "15.2",
    "only_of_optimizer",
    (
        "old = before[name]",
        "known = {id(p) for group in optimizer.param_groups for p in group['params']}\n            if id(param) not in known:\n                continue\n            old = before[name]",
    ),
)
edited(
    "15.2",
    "leaves_out",
    ("old = before[name]", "old = before[name]\n            if not old.norm():\n                continue"),
)
edited(
    "15.2",
    "leaves_out",
    (
        "old = before[name]",
        "old = before[name]\n            if param.grad is None:\n                continue",
    ),
)
edited("15.2", "no_copy", ("param.detach().clone()", "param.detach()"))
edited("15.2", "no_copy", ("param.detach().clone()", "param"))
edited(
    "15.2",
    "no_copy",
    ("moved / size if size else None", "moved / size if size else None"),
    ("register_step_post_hook(end)", "register_step_pre_hook(end)"),
)
edited(
    "15.2",
    "divides_by_new",
    ("size, moved = old.norm().item(),", "size, moved = param.detach().norm().item(),"),
    ("if size else None", "if old.norm() else None"),
)
edited(
    "15.2",
    "difference_of_norms",
    ("(param.detach() - old).norm().item()", "abs(param.detach().norm().item() - old.norm().item())"),
)
edited(
    "15.2",
    "difference_of_norms",
    ("(param.detach() - old).norm().item()", "param.detach().norm().item() - old.norm().item()"),
)
edited("15.2", "not_divided", ("moved / size if size else None", "moved"))
edited(
    "15.2",
    "other_measure",
    (
        "old.norm().item(), (param.detach() - old).norm().item()",
        "old.abs().mean().item(), (param.detach() - old).abs().mean().item()",
    ),
)
edited("15.2", "other_measure", ("moved / size if", "moved**2 / size**2 if"))
edited(
    "15.2",
    "upside_down",
    ("moved / size if size else None", "size / moved if size and moved else (None if not size else 0.0)"),
)
edited("15.2", "no_none", ("if size else None", "if size else 0.0"))
edited("15.2", "no_none", ("if size else None", "if size else float('inf')"))
edited("15.2", "adds_to_divisor", ("moved / size if size else None", "moved / (size + 1e-12)"))
edited("15.2", "divides_by_zero", ("moved / size if size else None", "moved / size"))
edited(
    "15.2",
    "returns_value",
    (
        "before.update({name: param.detach().clone() for name, param in model.named_parameters()})",
        "before.update({name: param.detach().clone() for name, param in model.named_parameters()})\n        return before",
    ),
)
edited("15.2", "three_arguments", ("def begin(optimizer, args, kwargs)", "def begin(optimizer)"))
edited("15.2", "three_arguments", ("def end(optimizer, args, kwargs)", "def end(optimizer)"))
edited("15.2", "leaves_hooks", ("        post.remove()", "        pass"), points=5)
edited("15.2", "leaves_hooks", ("        pre.remove()\n        post.remove()", "        pass"), points=5)
edited(
    "15.2",
    "no_finally",
    (
        "    finally:\n        pre.remove()\n        post.remove()",
        "    except ZeroDivisionError:\n        pass\n    pre.remove()\n    post.remove()",
    ),
    points=5,
)
edited(
    "15.2", "swallows", ("    finally:", "    except BaseException:\n        pass\n    finally:"), points=5
)
edited(
    "15.2",
    "every_optimizer",
    ("optimizer.register_step_pre_hook", "register_optimizer_step_pre_hook"),
    ("optimizer.register_step_post_hook", "register_optimizer_step_post_hook"),
)


@mistake("15.2", "by_rate")
@contextmanager
def update_ratios(model, optimizer):
    steps = []

    def begin(optimizer, args, kwargs):
        rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
        entry = {}
        for name, param in model.named_parameters():
            size = param.norm().item()
            grad = param.grad if param.grad is not None else torch.zeros_like(param)
            entry[name] = rates.get(id(param), 0.0) * grad.norm().item() / size if size else None
        steps.append(entry)

    handle = optimizer.register_step_pre_hook(begin)
    try:
        yield steps
    finally:
        handle.remove()


@mistake("15.2", "of_the_gradient")
@contextmanager
def update_ratios(model, optimizer):
    steps = []

    def begin(optimizer, args, kwargs):
        entry = {}
        for name, param in model.named_parameters():
            size = param.norm().item()
            grad = param.grad if param.grad is not None else torch.zeros_like(param)
            entry[name] = grad.norm().item() / size if size else None
        steps.append(entry)

    handle = optimizer.register_step_pre_hook(begin)
    try:
        yield steps
    finally:
        handle.remove()


@mistake("15.2", "since_last")
@contextmanager
def update_ratios(model, optimizer):
    steps = []
    old = {name: param.detach().clone() for name, param in model.named_parameters()}

    def end(optimizer, args, kwargs):
        entry = {}
        for name, param in model.named_parameters():
            size = old[name].norm().item()
            entry[name] = (param.detach() - old[name]).norm().item() / size if size else None
            old[name] = param.detach().clone()
        steps.append(entry)

    handle = optimizer.register_step_post_hook(end)
    try:
        yield steps
    finally:
        handle.remove()


@unnamed("15.2", "steps")
@contextmanager
def update_ratios(model, optimizer):
    steps, old = [], []

    def begin(optimizer, args, kwargs):
        old[:] = [param.detach().clone() for param in model.parameters()]

    def end(optimizer, args, kwargs):
        steps.append(
            [
                ((param.detach() - kept).norm() / kept.norm()).item() if kept.norm() else None
                for param, kept in zip(model.parameters(), old, strict=True)
            ]
        )

    one, two = optimizer.register_step_pre_hook(begin), optimizer.register_step_post_hook(end)
    try:
        yield steps
    finally:
        one.remove()
        two.remove()


edited(
    "15.2", "changes_weights", ("steps.append(ratios)", "steps.append(ratios)\n        optimizer.zero_grad()")
)
edited(
    "15.2",
    "leaves_out",
    (
        "old = before[name]",
        "old = before[name]\n            if not param.requires_grad:\n                continue",
    ),
)


@mistake("15.2", "only_gradient")
@contextmanager
def update_ratios(model, optimizer):
    steps = []

    def end(optimizer, args, kwargs):
        steps.append(
            {n: 0.0 if p.grad is None else p.grad.norm().item() for n, p in model.named_parameters()}
        )

    with optimizer.register_step_post_hook(end):
        yield steps


@mistake("15.2", "none_grad")
@contextmanager
def update_ratios(model, optimizer):
    steps = []

    def end(optimizer, args, kwargs):
        steps.append({n: (p.grad.norm() / p.norm()).item() for n, p in model.named_parameters()})

    with optimizer.register_step_post_hook(end):
        yield steps
