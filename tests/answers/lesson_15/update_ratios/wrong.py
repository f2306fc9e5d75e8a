"""Wrong answers to 15.2, `update_ratios`."""

from contextlib import contextmanager

import torch

from tests.answers import mistake, unnamed
from tests.answers.lesson_15.update_ratios.right import edited

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
