"""Right answers to 04.4, `watch_norms`."""

from functools import partial

import torch

from tests.answers import alternative


@alternative("04.4")
def watch_norms(model, seen):
    def noter(name):
        return lambda grad: seen.append((name, grad.square().sum().sqrt().item()))

    return [p.register_hook(noter(name)) for name, p in model.named_parameters() if p.requires_grad]


@alternative("04.4")
def watch_norms(model, seen):
    def note(name, grad):
        seen.append((name, torch.linalg.vector_norm(grad).item()))

    handles = []
    for name, param in model.named_parameters():
        if param.requires_grad:
            handles.append(param.register_hook(partial(note, name)))
    return handles
