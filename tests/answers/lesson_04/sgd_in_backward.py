"""Answers to 04.2, `sgd_in_backward`."""

import torch

from tests.answers import alternative, mistake


@alternative("04.2")
def sgd_in_backward(model, lr):
    def step(param):
        param.data.add_(param.grad, alpha=-lr)
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@alternative("04.2")
def sgd_in_backward(model, lr):
    """As the tutorial does it: one optimizer a parameter."""
    handles, optimizers = [], {}
    for param in model.parameters():
        if not param.requires_grad:
            continue
        optimizers[param] = torch.optim.SGD([param], lr=lr)

        def step(param):
            optimizers[param].step()
            optimizers[param].zero_grad()

        handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@alternative("04.2")
def sgd_in_backward(model, lr):
    @torch.no_grad()
    def step(param):
        param -= lr * param.grad
        param.grad = None

    handles = []
    for param in filter(lambda p: p.requires_grad, model.parameters()):
        handles += [param.register_post_accumulate_grad_hook(step)]
    return tuple(handles)


@alternative("04.2")
def sgd_in_backward(model, lr):
    def step(param):
        with torch.no_grad():
            param.copy_(param - lr * param.grad)
        del param.grad

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "no_handles", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        param.data.add_(param.grad, alpha=-lr)
        param.grad = None

    handles = []
    for param in model.parameters():
        if param.requires_grad:
            param.register_post_accumulate_grad_hook(step)
            handles.append(param.register_hook(lambda grad: None))
    for handle in handles:
        handle.remove()
    return handles


@mistake("04.2", "not_registered")
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad = None

    return [step for param in model.parameters()]


@mistake("04.2", "rebinds_param")
def sgd_in_backward(model, lr):
    def step(param):
        param = param - lr * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "takes_param_for_gradient")
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(grad, param=param):
                with torch.no_grad():
                    param -= lr * grad
                param.grad = None

            handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.2", "wrong_sign")
def sgd_in_backward(model, lr):
    def step(param):
        param.data += lr * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "late_binding")
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(_):  # the last parameter is the first to get its gradient, so this does not even fail
                param.data -= lr * param.grad

            handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.2", "steps_at_once")
def sgd_in_backward(model, lr):
    for param in model.parameters():
        param.data -= lr * param.data


@mistake("04.2", "keeps_grad", points=3)
def sgd_in_backward(model, lr):
    def step(param):
        with torch.no_grad():
            param -= lr * param.grad

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "tensor_hook", points=4)
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(grad, param=param):
                param.data -= lr * grad
                param.grad = None

            handles.append(param.register_hook(step))
    return handles


@mistake("04.2", "zeroes_grad", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad.zero_()

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "frees_at_the_end", points=3)
def sgd_in_backward(model, lr):
    ps = [p for p in model.parameters() if p.requires_grad]
    n = 0

    def step(param):
        nonlocal n
        n += 1
        if n % len(ps) == 0:
            for p in ps:
                p -= lr * p.grad
                p.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in ps]


@mistake("04.2", "calls_now")
def sgd_in_backward(model, lr):
    def step(param):
        pass

    return [p.register_post_accumulate_grad_hook(step(p)) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "no_argument")
def sgd_in_backward(model, lr):
    def step():
        model.zero_grad()

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "hooks_frozen")
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters()]


@mistake("04.2", "no_handles", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad = None

    for param in model.parameters():
        if param.requires_grad:
            param.register_post_accumulate_grad_hook(step)


@mistake("04.2", "no_handles", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        param.data -= lr * param.grad
        param.grad = None

    for param in model.parameters():
        if param.requires_grad:
            handle = param.register_post_accumulate_grad_hook(step)
    return handle


@mistake("04.2", "returns_from_hook")
def sgd_in_backward(model, lr):
    return [
        p.register_post_accumulate_grad_hook(lambda param: param.data.sub_(lr * param.grad))
        for p in model.parameters()
        if p.requires_grad
    ]


@mistake("04.2", "grad_is_none")
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(grad, param=param):
                param.data -= lr * param.grad
                param.grad = None

            handles.append(param.register_hook(step))
    return handles


@mistake("04.2", "grad_is_none")
def sgd_in_backward(model, lr):
    handles = []
    for param in model.parameters():
        if param.requires_grad:

            def step(_):
                param.data.add_(param.grad, alpha=-lr)
                param.grad = None

            handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.2", "returns_from_hook")
def sgd_in_backward(model, lr):
    return [
        p.register_post_accumulate_grad_hook(
            lambda param: (param.sub_(lr * param.grad), setattr(param, "grad", None))
        )
        for p in model.parameters()
        if p.requires_grad
    ]


@mistake("04.2", "keeps_grad", points=2)
def sgd_in_backward(model, lr):
    """The hook returns the parameter itself, which PyTorch lets through."""
    return [
        p.register_post_accumulate_grad_hook(lambda param: param.sub_(lr * param.grad))
        for p in model.parameters()
        if p.requires_grad
    ]


@mistake("04.2", "grad_is_none")
def sgd_in_backward(model, lr):
    for param in model.parameters():
        param.data -= lr * param.grad
