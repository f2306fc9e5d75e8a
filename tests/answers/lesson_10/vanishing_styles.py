"""More answers to 10.4, `vanishing`, in other styles, and what strangers got wrong."""

import contextlib
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from tests.answers import alternative, edited, mistake


@alternative("10.4")
def vanishing(model, x, target, ratio):
    """Copies of the outputs stay out of reach of what works in place."""
    outputs = {}

    def keep(name, module, args, output):
        outputs[name] = output
        return output.clone()

    with contextlib.ExitStack() as stack:
        for name, child in model.named_children():
            stack.callback(child.register_forward_hook(partial(keep, name)).remove)
        loss = F.cross_entropy(model(x), target)
    grads = torch.autograd.grad(loss, list(outputs.values()))
    sizes = [np.abs(grad.numpy()).mean() for grad in grads]
    return [name for name, size in zip(outputs, sizes) if size < ratio * sizes[-1]]


@alternative("10.4")
def vanishing(model, x, target, ratio):
    """A global hook that looks at children only."""
    names = {child: name for name, child in model.named_children()}
    sizes = {}

    def catch(module, args, output):
        if name := names.get(module):
            sizes[name] = None
            output.register_hook(partial(measure, name))

    def measure(name, grad):
        sizes[name] = grad.abs().mean()

    with contextlib.ExitStack() as stack:
        stack.callback(torch.nn.modules.module.register_module_forward_hook(catch).remove)
        F.cross_entropy(model(x), target).backward()
    *_, last = sizes.values()
    return [name for name in sizes if torch.lt(sizes[name], ratio * last)]


@alternative("10.4")
def vanishing(model, x, target, ratio):
    class Stethoscope:
        def __init__(self):
            self.order, self.size = [], {}

        def on(self, name):
            def hook(module, args, output):
                self.order += [name]
                output.register_hook(lambda grad: self.size.__setitem__(name, float(grad.abs().mean())))

            return hook

        def __enter__(self):
            self.handles = [c.register_forward_hook(self.on(n)) for n, c in model.named_children()]
            return self

        def __exit__(self, *error):
            for handle in self.handles:
                handle.remove()

    with Stethoscope() as s:
        F.cross_entropy(model(x), target).backward()
    limit = s.size[s.order[-1]] * ratio
    return list(filter(lambda name: s.size[name] < limit, s.order))


@alternative("10.4")
def vanishing(model, x, target, ratio):
    """A loss of its own, and a list of pairs that backward fills."""
    ran, handles = [], []

    def catch(name):
        def hook(module, args, output):
            ran.append(pair := [name])
            output.register_hook(lambda grad: pair.append(grad.abs().mean().item()))

        return hook

    for name, child in model.named_children():
        handles.append(child.register_forward_hook(catch(name)))
    try:
        output = model(x)
    finally:
        for handle in handles:
            handle.remove()
    (-output.log_softmax(1)[range(len(target)), target].mean()).backward()
    reference = ran[-1][1]
    return [name for name, size in ran if size < ratio * reference]


edited("10.4", None, ("grad.abs().mean().item()", "grad.norm(1).item() / grad.numel()"))
edited(
    "10.4", None, ("sizes[name] < ratio * sizes[order[-1]]", "not sizes[name] >= sizes[order[-1]] * ratio")
)
edited("10.4", "other_mode", ("    try:\n", "    model.eval()\n    try:\n"))
edited("10.4", "mode", ("    try:\n", "    model.train(model.training)\n    try:\n"), points=6)
edited("10.4", "other_mode", ("    try:\n", "    model.train()\n    try:\n"))
edited("10.4", "requires_grad", ("    try:\n", "    model.requires_grad_(True)\n    try:\n"), points=6)
edited(
    "10.4", "runs", ("        F.cross", "        model(x)\n        order.clear()\n        F.cross"), points=6
)
edited(
    "10.4",
    "twice",
    (
        ".backward()\n",
        ".backward(retain_graph=True)\n        F.cross_entropy(model.out, target).backward()\n",
    ),
    points=6,
)
edited(
    "10.4",
    "or_equal",
    ("sizes[name] < ratio * sizes[order[-1]]", "sizes[name] <= ratio * sizes[order[-1]]"),
)
edited("10.4", "finds", ("for name in order if", "for name in order[:-1] if"), named=False)
edited("10.4", "finds", ("for name in order if", "for name in order if sizes[name] and"), named=False)
edited(
    "10.4", "wrong_side", ("sizes[name] < ratio * sizes[order[-1]]", "sizes[name] * ratio < sizes[order[-1]]")
)
edited(
    "10.4", "wrong_side", ("sizes[name] < ratio * sizes[order[-1]]", "sizes[name] < sizes[order[-1]] / ratio")
)
edited("10.4", "against_first", ("sizes[order[-1]]", "sizes[order[0]]"))
edited("10.4", "against_first", ("sizes[order[-1]]", "list(sizes.values())[-1]"))
edited("10.4", "against_largest", ("sizes[order[-1]]", "max(sizes.values())"))
edited("10.4", "turned_round", ("sizes[name] < ratio", "sizes[name] > ratio"))
edited("10.4", "by_norm", ("grad.abs().mean()", "grad.abs().sum()"))
edited("10.4", "by_norm", ("grad.abs().mean()", "grad.abs().max()"))
edited("10.4", "signed", ("grad.abs().mean()", "grad.mean()"))
edited("10.4", "signed", ("grad.abs().mean()", "grad.mean().abs()"))
edited("10.4", "other_measure", ("grad.abs().mean()", "grad.square().mean().sqrt()"))
edited("10.4", "other_measure", ("grad.abs().mean()", "grad.abs().median()"))
edited("10.4", "other_measure", ("grad.abs().mean()", "grad.relu().mean()"))
edited("10.4", "other_measure", ("grad.abs().mean()", "grad[0].abs().mean()"))
edited("10.4", "other_measure", ("grad.abs().mean()", "grad[-1].abs().mean()"))
edited("10.4", "all_modules", ("model.named_children()", "model.named_modules()"))
edited(
    "10.4",
    "changes_output",
    ("        order.append(name)\n", "        order.append(name)\n        output = output * 2\n"),
    (
        "sizes.update({name: grad.abs().mean().item()}))",
        "sizes.update({name: grad.abs().mean().item()}))\n        return output",
    ),
)
edited("10.4", "no_names", ("return [name for", "return [sizes[name] for"))
edited("10.4", "returns_nothing", ("    return [name for", "    [name for"))
edited(
    "10.4",
    "state",
    ("def vanishing(model, x, target, ratio):", "order = []\n\n\ndef vanishing(model, x, target, ratio):"),
    ("order, sizes, handles = [], {}, []", "sizes, handles = {}, []"),
)
edited(
    "10.4",
    "swallows",
    ("            handle.remove()\n    return", "            handle.remove()\n        return"),
    points=6,
)
edited(
    "10.4",
    "others",
    (
        "            handle.remove()\n",
        "            handle.remove()\n        for child in model.children():\n            child._forward_hooks.clear()\n",
    ),
    points=6,
)


@mistake("10.4", "not_run")
def vanishing(model, x, target, ratio):
    sizes, outputs = {}, {}
    for name in model.run:
        x = model[name](x)
        x = outputs[name] = x.clone()
    grads = torch.autograd.grad(F.cross_entropy(x, target), list(outputs.values()))
    sizes = {name: grad.abs().mean().item() for name, grad in zip(outputs, grads)}
    return [name for name in sizes if sizes[name] < ratio * sizes[name]]


edited("10.4", "against_nothing", (" * sizes[order[-1]]", ""))
edited("10.4", "against_last_defined", ("sizes[order[-1]]", "sizes[list(dict(model.named_children()))[-1]]"))
edited("10.4", "not_run", ("model(x)", "model.forward(x)"))
edited(
    "10.4",
    "other_mode",
    ("    try:\n", "    modes = {m: m.training for m in model.modules()}\n    model.eval()\n    try:\n"),
    ("    return", "    for m, was in modes.items():\n        m.training = was\n    return"),
)
edited("10.4", None, ("    try:\n", "    model.zero_grad()\n    try:\n"))
for loss in (
    "model(x).sum()",
    "model(x).mean()",
    "F.nll_loss(model(x), target)",
    "F.mse_loss(model(x), F.one_hot(target, 4).float())",
    "F.cross_entropy(model(x).softmax(1), target)",
    "F.cross_entropy(model(x), torch.zeros_like(target))",
    'F.cross_entropy(model(x), target, reduction="sum")',
):
    edited("10.4", "other_loss", ("F.cross_entropy(model(x), target)", loss))
