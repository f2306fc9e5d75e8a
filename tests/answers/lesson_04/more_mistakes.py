"""Wrong answers to the exercises of lesson 04 that are right in plain cases only: with one call, whole models, no past."""

import torch
from torch.autograd.graph import register_multi_grad_hook

from tests.answers import alternative, edited, mistake, unnamed

# Two calls that share something.


@mistake("04.2", "one_memory")
def sgd_in_backward(model, lr):
    global rate
    rate = lr

    @torch.no_grad()
    def step(param):
        param -= rate * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.3", "one_memory")
def freeze_rows(embedding, rows, frozen={}):
    frozen["rows"] = rows

    def freeze(grad):
        grad = grad.clone()
        grad[frozen["rows"]] = 0
        return grad

    return embedding.weight.register_hook(freeze)


@mistake("04.4", "one_memory")
def watch_norms(model, seen):
    watch_norms.seen = seen
    return [
        p.register_hook(lambda grad, name=name: watch_norms.seen.append((name, grad.norm().item())))
        for name, p in model.named_parameters()
        if p.requires_grad
    ]


# What others left: hooks, and an older .grad.

_CLEAR = "    for p in model.parameters():\n        (p._backward_hooks or {}).clear()\n    handles = []"
_CLEAR_POST = _CLEAR.replace("_backward_hooks", "_post_accumulate_grad_hooks")
edited("04.2", "others", ("    handles = []", _CLEAR_POST), points=4)
edited("04.4", "others", ("    handles = []", _CLEAR), points=4)
edited(
    "04.3",
    "others",
    ("    def freeze", "    (embedding.weight._backward_hooks or {}).clear()\n    def freeze"),
    points=4,
)
edited("04.2", "grad", ("    handles = []", "    model.zero_grad()\n    handles = []"), points=4)
edited("04.4", "grad", ("    handles = []", "    model.zero_grad()\n    handles = []"), points=4)
edited("04.3", "grad", ("    def freeze", "    embedding.weight.grad = None\n    def freeze"), points=4)
edited("04.4", "replaces", ("    handles = []", "    seen.clear()\n    handles = []"), points=4)
edited("04.2", "clears_others", ("param.grad = None", "model.zero_grad()"))


@mistake("04.2", "steps_at_once")
def sgd_in_backward(model, lr):
    def step(param):
        if param.grad is not None:
            param.data -= lr * param.grad
            param.grad = None

    handles = []
    for param in model.parameters():
        if param.requires_grad:
            step(param)
            handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.3", "wipes_older", points=4)
def freeze_rows(embedding, rows):
    def freeze(grad):
        if embedding.weight.grad is not None:
            embedding.weight.grad[rows] = 0
        grad = grad.clone()
        grad[rows] = 0
        return grad

    return embedding.weight.register_hook(freeze)


@mistake("04.2", "changes_others")
def sgd_in_backward(model, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)  # also of frozen ones, which may have a .grad

    def step(param):
        optimizer.step()
        optimizer.zero_grad()

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


edited(
    "04.3",
    "replaces_the_weight",
    ("    def freeze", "    embedding.weight = torch.nn.Parameter(embedding.weight.data)\n    def freeze"),
)

# Passes that use some parameters only, shared parameters, and small numbers.


@mistake("04.2", "waits_for_all", points=4)
def sgd_in_backward(model, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    waiting = {}

    def step(param):
        waiting[param], param.grad = param.grad, None
        if len(waiting) == len(params):
            for p, grad in waiting.items():
                p -= lr * grad
            waiting.clear()

    return [p.register_post_accumulate_grad_hook(step) for p in params]


@mistake("04.2", "grad_is_none")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * param.grad
        param.grad = None

    handles = []
    for module in model.modules():
        for param in module.parameters(recurse=False):
            if param.requires_grad:
                handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.4", "waits_for_all", points=4)
def watch_norms(model, seen):
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    waiting = []

    def note(grad, name):
        waiting.append((name, grad.norm().item()))
        if len(waiting) == len(names):
            seen.extend(waiting)
            waiting.clear()

    return [
        model.get_parameter(name).register_hook(lambda grad, name=name: note(grad, name)) for name in names
    ]


edited("04.4", "sees", ("named_parameters()", "named_parameters(remove_duplicate=False)"), named=False)
edited("04.4", "rounds", ("grad.norm().item()", "round(grad.norm().item(), 4)"), points=4)


@mistake("04.4", "skips_zero", points=4)
def watch_norms(model, seen):
    def note(grad, name):
        if grad.norm() > 0:
            seen.append((name, grad.norm().item()))

    return [
        p.register_hook(lambda grad, name=name: note(grad, name))
        for name, p in model.named_parameters()
        if p.requires_grad
    ]


edited(
    "04.2",
    "turns_on",
    ("        param.grad = None", "        param.grad = None\n        torch.set_grad_enabled(True)"),
)
edited("04.2", "handles", ("    return handles", "    return handles * 2"), points=4, named=False)
edited("04.4", "handles", ("    return handles", "    return handles * 2"), points=4, named=False)
edited("04.3", "other_dtype", ("return grad\n", "return grad.float()\n"))


@mistake("04.3", "other_dtype")
def freeze_rows(embedding, rows):
    learns = torch.ones(embedding.num_embeddings, 1)
    learns[rows] = 0
    return embedding.weight.register_hook(lambda grad: grad * learns)


@alternative("04.3")
def freeze_rows(embedding, rows):
    learns = torch.ones(embedding.num_embeddings, 1)
    learns[rows] = 0
    return embedding.weight.register_hook(lambda grad: grad * learns.to(grad.dtype))


# Messages.


@mistake("04.2", "multi_grad_hook")
def sgd_in_backward(model, lr):
    params = [p for p in model.parameters() if p.requires_grad]

    def step(grads):
        with torch.no_grad():
            for p, grad in zip(params, grads, strict=True):
                if grad is not None:
                    p -= lr * grad
                p.grad = None

    return [register_multi_grad_hook(params, step)]


@mistake("04.2", "never_ran")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * param.grad
        param.grad = None

    return (p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad)


@mistake("04.4", "never_ran")
def watch_norms(model, seen):
    for name, p in model.named_parameters():
        if p.requires_grad:
            yield p.register_hook(lambda grad, name=name: seen.append((name, grad.norm().item())))


edited("04.1", "value_2", ("2 * (m + s)", "2 * int(m + s)"), points=3, named=False)

edited("04.4", "not_the_norm", ("grad.norm().item()", "grad.norm().item() + 1e-3"), points=4)
edited("04.4", "rounds_off", ("grad.norm().item()", "int(grad.norm())"), points=3)
edited("04.4", "rounds_off", ("grad.norm().item()", "round(grad.norm().item(), 1)"), points=4)


@mistake("04.4", "adds_up", points=4)
def watch_norms(model, seen):
    totals = dict.fromkeys(name for name, _ in model.named_parameters())

    def watch(name, param):
        def note(grad):
            totals[name] = (totals[name] or 0) + grad.norm().item()
            seen.append((name, totals[name]))

        return param.register_hook(note)

    return [watch(name, p) for name, p in model.named_parameters() if p.requires_grad]


@unnamed("04.4", "alone", points=4)
def watch_norms(model, seen):
    def watch(name, param):
        def note(grad):
            norm = grad.norm().item()
            if norm == 0 or norm > 1e-4:
                seen.append((name, norm))

        return param.register_hook(note)

    return [watch(name, p) for name, p in model.named_parameters() if p.requires_grad]


@mistake("04.2", "replaces_parameters")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * param.grad
        param.grad = None

    handles = []
    for module in model.modules():
        for name, param in list(module.named_parameters(recurse=False)):
            if param.requires_grad:
                new = torch.nn.Parameter(param.detach().clone())
                setattr(module, name, new)
                handles.append(new.register_post_accumulate_grad_hook(step))
    return handles
