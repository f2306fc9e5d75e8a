"""More wrong answers to 04.2, `sgd_in_backward`."""

import torch

from tests.answers import mistake, unnamed


@mistake("04.2", "misses_parameters")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * param.grad
        param.grad = None

    handles = []
    for param in model.parameters():
        if param.requires_grad:
            last = param
    handles.append(last.register_post_accumulate_grad_hook(step))
    return handles


@mistake("04.2", "misses_parameters")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * param.grad
        param.grad = None

    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    params = {p for module in linear for p in module.parameters() if p.requires_grad}
    return [p.register_post_accumulate_grad_hook(step) for p in params]


@mistake("04.2", "misses_parameters")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * param.grad
        param.grad = None

    handles = {}
    for child in model.children():
        for param in child.parameters(recurse=False):
            if param.requires_grad and param not in handles:
                handles[param] = param.register_post_accumulate_grad_hook(step)
    return list(handles.values())


@mistake("04.2", "grad_is_none")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * param.grad
        param.grad = None

    handles = []
    for module in model.modules():
        for param in module.parameters():  # those of inner modules come up again
            if param.requires_grad:
                handles.append(param.register_post_accumulate_grad_hook(step))
    return handles


@unnamed("04.2", "second_step", points=4)
def sgd_in_backward(model, lr):
    velocity = {}

    @torch.no_grad()
    def step(param):
        velocity[param] = 0.9 * velocity.get(param, 0) + param.grad
        param -= lr * velocity[param]
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "removes_itself", points=2)
def sgd_in_backward(model, lr):
    handles = {}

    def step(param):
        param -= lr * param.grad
        param.grad = None
        handles[param].remove()

    for p in model.parameters():
        if p.requires_grad:
            handles[p] = p.register_post_accumulate_grad_hook(step)
    return list(handles.values())


@mistake("04.2", "mode", points=4)
def sgd_in_backward(model, lr):
    @torch.no_grad()
    def step(param):
        param -= lr * param.grad
        param.grad = None

    model.train()
    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "frozen_learns")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * param.grad
        param.grad = None

    model.requires_grad_()
    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters()]


@mistake("04.2", "no_handles", points=4)
def sgd_in_backward(model, lr):
    @torch.no_grad()
    def step(param):
        param -= lr * param.grad
        param.grad = None

    params = [p for p in model.parameters() if p.requires_grad]
    return [p.register_post_accumulate_grad_hook(step) for p in params][1:]


@unnamed("04.2", "first_step")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * (param.grad + 0.1 * param)
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@unnamed("04.2", "first_step")
def sgd_in_backward(model, lr):
    def step(param):
        param -= lr * param.grad.sign()
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@unnamed("04.2", "first_step")
def sgd_in_backward(model, lr):
    def step(param):
        param -= 0.25 * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "rebinds_param")
def sgd_in_backward(model, lr):
    def step(param):
        param - lr * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]
