"""Answers to lesson 04 of strangers who had not read the checks, in their eleventh round: passes with create_graph=True."""

import torch

from tests.answers import mistake


@mistake("04.2", "not_under_graph", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        if param.grad.requires_grad:
            return
        with torch.no_grad():
            param -= lr * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "not_under_graph", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        if torch.is_grad_enabled():
            return
        param -= lr * param.grad
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]


@mistake("04.2", "not_under_graph", points=4)
def sgd_in_backward(model, lr):
    def step(param):
        with torch.no_grad():
            param.sub_(lr * param.grad)
        if not param.grad.requires_grad:
            param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad]
