"""Answers to lesson 02 that got a message which was not true of them, found by a reader of all messages."""

from contextlib import contextmanager

import torch

from tests.answers import mistake


# The factory of section 2.8 without its `return`.
@mistake("02.2", "calls_now")
def watch_many(tensors, seen):
    def named(name):
        def keep(grad):
            seen[name] = grad

    return [t.register_hook(named(name)) for name, t in tensors.items() if t.requires_grad]


# A gradient asked for on the spot fires the hooks of others.
@mistake("02.3", "fires_others")
def observe_once(y, seen):
    (grad,) = torch.autograd.grad(y.sum(), y, retain_graph=True)
    seen.append(grad)
    return y.register_hook(lambda grad: None)


# Nothing is kept outside the call.
@mistake("02.3", "shared_flag")
def observe_once(y, seen):
    def keep(grad):
        if len(seen) == 1:
            seen.append(grad)
            handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.4", "calls_now")
@contextmanager
def watching(tensors):
    seen = {}

    def named(name):
        def keep(grad):
            seen[name] = grad

    handles = [t.register_hook(named(name)) for name, t in tensors.items() if t.requires_grad]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@mistake("02.4", "fires_others")
@contextmanager
def watching(tensors):
    seen = {}
    handles = []
    for name, t in tensors.items():
        if t.requires_grad:
            torch.autograd.grad(t.sum(), t, retain_graph=True)
            handles.append(t.register_hook(lambda grad, name=name: seen.update({name: grad})))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
