"""Wrong answers to 04.4, `watch_norms`: what comes out is not what was asked for."""

from functools import partial

import torch
from torch.autograd.graph import register_multi_grad_hook

from tests.answers import mistake, unnamed


@mistake("04.4", "asks_too_early")
def watch_norms(model, seen):
    for name, param in model.named_parameters():
        seen.append((name, param.norm().item()))


@mistake("04.4", "not_registered")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().item()))

    return [partial(note, name) for name, p in model.named_parameters()]


@mistake("04.4", "rebinds_list")
def watch_norms(model, seen):
    def note(name, grad):
        seen = [(name, grad.norm().item())]

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "no_pairs")
def watch_norms(model, seen):
    def note(grad):
        seen.append(grad.norm().item())

    return [p.register_hook(note) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "model_order", points=2)
def watch_norms(model, seen):
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def note(grads):
        for name, grad in zip(trained, grads, strict=True):
            seen.append((name, grad.norm().item()))

    return register_multi_grad_hook(tuple(trained.values()), note)


@mistake("04.4", "model_order", points=3)
def watch_norms(model, seen):
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def note(grads):
        seen.extend((name, grad.norm().item()) for name, grad in zip(trained, grads, strict=True))

    return [register_multi_grad_hook(tuple(trained.values()), note)]


@mistake("04.4", "norm_of_the_sum", points=4)
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:

            def note(param, name=name):
                seen.append((name, param.grad.norm().item()))

            handles.append(param.register_post_accumulate_grad_hook(note))
    return handles


@mistake("04.4", "norm_of_the_parameter", points=4)
def watch_norms(model, seen):
    handles = []
    for name, p in model.named_parameters():
        if p.requires_grad:

            def note(grad, name=name, p=p):
                seen.append((name, p.norm().item()))

            handles.append(p.register_hook(note))
    return handles


@mistake("04.4", "upside_down", points=2)
def watch_norms(model, seen):
    def note(name, grad):
        seen.insert(0, (name, grad.norm().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "not_the_norm", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.abs().mean().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "not_the_norm", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.square().sum().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "late_binding")
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(lambda grad: seen.append((name, grad.norm().item()))))
    return handles


@mistake("04.4", "calls_now")
def watch_norms(model, seen):
    def note(param):
        pass

    return [p.register_hook(note(p)) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "no_argument")
def watch_norms(model, seen):
    def note():
        for name, param in model.named_parameters():
            seen.append((name, param.grad.norm().item()))

    return [p.register_hook(note) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "two_arguments")
def watch_norms(model, seen):
    def note(grad, name):
        seen.append((name, grad.norm().item()))

    return [p.register_hook(note) for _, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "difference_of_sums", points=4)
def watch_norms(model, seen):
    """It takes away what was there before, as if nobody ever called zero_grad()."""
    names = {param: name for name, param in model.named_parameters()}
    before = {}

    def note(param):
        this_pass = param.grad - before.get(param, 0)
        before[param] = param.grad.clone()
        seen.append([names[param], float(this_pass.norm())])

    return [p.register_post_accumulate_grad_hook(note) for p in names if p.requires_grad]


@mistake("04.4", "misses_parameters")
def watch_norms(model, seen):
    def note(grad, name):
        seen.append((name, grad.norm().item()))

    return [
        m.weight.register_hook(partial(note, name=f"{n}.weight"))
        for n, m in model.named_modules()
        if isinstance(m, torch.nn.Linear) and m.weight.requires_grad
    ]


@mistake("04.4", "misses_parameters")
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:

            def note(grad, name=name):
                seen.append((name, grad.norm().item()))

    handles.append(param.register_hook(note))
    return handles


@mistake("04.4", "not_the_norm", points=3)
def watch_norms(model, seen):
    def note(name, grad):
        norm = torch.linalg.norm(grad, 2) if grad.dim() == 2 else grad.norm()
        seen.append((name, norm.item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "not_the_norm")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, torch.linalg.norm(grad, ord=2).item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "first_pass", points=4)
def watch_norms(model, seen):
    norms = {}

    def note(name, grad):
        norms.setdefault(name, grad.norm().item())
        seen.append((name, norms[name]))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@unnamed("04.4", "sees")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name.split(".")[-1], grad.norm().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "no_pairs")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append({name: grad.norm().item()})

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@unnamed("04.4", "sees")
def watch_norms(model, seen):
    def note(name, grad):
        if name not in dict(seen):
            seen.append((name, grad.norm().item()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "difference_of_norms", points=4)
def watch_norms(model, seen):
    """Right only where the gradients of two passes point in one direction."""
    handles = []

    def attach(name, p):
        last = {}

        def before(grad):
            last["norm"] = 0.0 if p.grad is None else p.grad.norm().item()

        def after(p):
            seen.append((name, p.grad.norm().item() - last["norm"]))

        handles.append(p.register_hook(before))
        handles.append(p.register_post_accumulate_grad_hook(after))

    for name, p in model.named_parameters():
        if p.requires_grad:
            attach(name, p)
    return handles


@mistake("04.4", "difference_of_norms", points=4)
def watch_norms(model, seen):
    last = {}

    def note(name, p):
        norm = p.grad.norm().item()
        seen.append((name, norm - last.get(name, 0.0)))
        last[name] = norm

    return [
        p.register_post_accumulate_grad_hook(partial(note, name))
        for name, p in model.named_parameters()
        if p.requires_grad
    ]
