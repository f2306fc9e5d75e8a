"""Answers to lesson 01 of strangers who had not read the checks, in their thirteenth round."""

import torch

from tests.answers import edited, mistake

# What requires no gradient is skipped, its .grad included.
edited(
    "01.3",
    "keeps",
    ("if tensor.requires_grad:", "tensor.grad = None\n        if tensor.requires_grad:"),
    named=False,
)


@mistake("01.3", "other_dtype")
def keep_all(tensors, loss):
    kept, handles = {}, []
    for name, tensor in tensors.items():
        if tensor.requires_grad and not tensor.is_leaf:
            handles.append(tensor.register_hook(lambda grad, name=name: kept.update({name: grad.tolist()})))
    loss.backward()
    for handle in handles:
        handle.remove()
    for name, grad in kept.items():
        tensors[name].grad = torch.tensor(grad)


# Steep slopes make small numbers in the vector.
edited("01.4", "yields", ("return wanted / slope", "return (wanted / slope).round(decimals=4)"), named=False)
