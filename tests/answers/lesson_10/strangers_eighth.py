"""What the eighth strangers tried on lesson 10: wrong answers whose message had not been true."""

import torch
import torch.nn.functional as F

from tests.answers import mistake


# Behind a ReLU that works in place, an output that was kept is that of the ReLU.
@mistake("10.4", "behind_relu")
def vanishing(model, x, target, ratio):
    outputs, handles = {}, []
    try:
        for name, child in model.named_children():
            handles.append(child.register_forward_hook(lambda m, a, o, name=name: outputs.update({name: o})))
        loss = F.cross_entropy(model(x), target)
    finally:
        for handle in handles:
            handle.remove()
    grads = torch.autograd.grad(loss, list(outputs.values()), retain_graph=True)
    loss.backward()
    sizes = {name: grad.abs().mean().item() for name, grad in zip(outputs, grads, strict=True)}
    last = list(sizes.values())[-1]
    return [name for name, size in sizes.items() if size < ratio * last]


@mistake("10.4", "behind_relu")
def vanishing(model, x, target, ratio):
    outputs, sizes = {}, {}
    handles = [
        child.register_forward_hook(lambda m, a, o, name=name: outputs.update({name: o}))
        for name, child in model.named_children()
    ]
    try:
        loss = F.cross_entropy(model(x), target)
    finally:
        for handle in handles:
            handle.remove()
    for name, output in outputs.items():
        output.register_hook(lambda grad, name=name: sizes.update({name: grad.abs().mean().item()}))
    loss.backward()
    order = list(outputs)
    return [name for name in order if sizes[name] < ratio * sizes[order[-1]]]
