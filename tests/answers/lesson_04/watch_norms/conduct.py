"""Wrong answers to 04.4, `watch_norms`: what they do besides, such as hooks that stay, lost errors, a changed model."""

from functools import partial

from tests.answers import mistake


@mistake("04.4", "keeps_gradients", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "keeps_tensors", points=4)
def watch_norms(model, seen):
    def note(name, g):
        seen.append((name, g.norm()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "changes_gradient")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().item()))
        return grad / grad.norm()

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "returns_norm")
def watch_norms(model, seen):
    def note(name, grad):
        norm = grad.norm()
        seen.append((name, norm.item()))
        return norm

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "returns_norm")
def watch_norms(model, seen):
    return [p.register_hook(lambda grad: grad.norm().item()) for p in model.parameters() if p.requires_grad]


@mistake("04.4", "hooks_frozen")
def watch_norms(model, seen):
    handles = []
    for name, param in model.named_parameters():
        handles.append(param.register_hook(lambda grad, name=name: seen.append((name, grad.norm().item()))))
    return handles


@mistake("04.4", "no_handles", points=4)
def watch_norms(model, seen):
    for name, param in model.named_parameters():
        if param.requires_grad:
            param.register_hook(lambda grad, name=name: seen.append((name, grad.norm().item())))


@mistake("04.4", "replaces")
def watch_norms(model, seen):
    def note(grad, name):
        seen.clear()
        seen.append((name, grad.norm().item()))

    return [p.register_hook(partial(note, name=n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "replaces")
def watch_norms(model, seen):
    count = sum(p.requires_grad for p in model.parameters())

    def note(grad, name):
        if len(seen) == count:
            seen.clear()
        seen.append((name, grad.norm().item()))

    return [p.register_hook(partial(note, name=n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "removes_itself")
def watch_norms(model, seen):
    handles = {}

    def note(grad, name):
        seen.append((name, grad.norm().item()))
        handles[name].remove()

    for name, p in model.named_parameters():
        if p.requires_grad:
            handles[name] = p.register_hook(partial(note, name=name))
    return list(handles.values())


@mistake("04.4", "frozen_learns")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().item()))

    frozen = [p for p in model.parameters() if not p.requires_grad]
    model.requires_grad_()
    for p in frozen[1:]:
        p.requires_grad = False
    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p not in set(frozen)]


@mistake("04.4", "changes_gradient")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().item()))
        grad /= grad.norm()

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "keeps_tensors", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().numpy()))

    return [p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad]


@mistake("04.4", "no_handles", points=4)
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, grad.norm().item()))

    return {n: p.register_hook(partial(note, n)) for n, p in model.named_parameters() if p.requires_grad}


@mistake("04.4", "clears_grad")
def watch_norms(model, seen):
    def note(param, name):
        seen.append((name, param.grad.norm().item()))
        param.grad = None

    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [p.register_post_accumulate_grad_hook(partial(note, name=n)) for n, p in named]
