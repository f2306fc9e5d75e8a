"""More answers to 10.1, `child_means`, in other styles, and what strangers got wrong."""

import contextlib
import weakref
from collections import OrderedDict, defaultdict
from functools import partial

import numpy as np
import torch

from tests.answers import alternative, edited


@alternative("10.1")
def child_means(model, x):
    means = OrderedDict()
    with contextlib.ExitStack() as stack:
        for name, child in model.named_children():

            def note(module, args, output, *, name=name):
                means[name] = float(np.mean(output.detach().numpy()))

            stack.callback(child.register_forward_hook(note).remove)
        model(x)
    return means


@alternative("10.1")
def child_means(model, x):
    """A global hook, which looks only at children."""
    names = weakref.WeakKeyDictionary({child: name for name, child in model.named_children()})
    means = defaultdict(float)

    def note(module, args, output):
        if (name := names.get(module)) is not None:
            means[name] += torch.mean(output).item()

    with contextlib.ExitStack() as stack:
        stack.callback(torch.nn.modules.module.register_module_forward_hook(note).remove)
        model(x)
    return means


@alternative("10.1")
def child_means(model, x):
    class Note:
        def __init__(self, name):
            self.name = name

        def __call__(self, module, args, output):
            found.append((self.name, output.clone()))

    found = []
    handles = [child.register_forward_hook(Note(name)) for name, child in model.named_children()]
    try:
        with torch.no_grad():
            model(x)
    finally:
        [handle.remove() for handle in handles]
    return {name: sum(output.flatten().tolist()) / output.numel() for name, output in found}


@alternative("10.1")
def child_means(model, x):
    @contextlib.contextmanager
    def hooked(hook):
        handles = []
        try:
            for name, child in model.named_children():
                handles.append(child.register_forward_hook(partial(hook, name)))
            yield
        finally:
            while handles:
                handles.pop().remove()

    def note(name, module, args, output):
        means.update({name: output.detach().mean(dtype=torch.float64).item()})

    means = {}
    with hooked(note):
        model(x)
    return means


@alternative("10.1")
def child_means(model, x):
    """The method is replaced for a while."""
    means, forwards = {}, {}

    def noting(name, forward):
        def forward_and_note(*args, **kwargs):
            output = forward(*args, **kwargs)
            means[name] = output.mean().item()
            return output

        return forward_and_note

    for name, child in model.named_children():
        forwards[child] = child.forward
        child.forward = noting(name, child.forward)
    try:
        model(x)
    finally:
        for child in forwards:
            del child.forward
    return means


edited(
    "10.1", None, ("means, handles = {}, []", "means: dict[str, float] = dict()\n    handles: list = list()")
)
edited("10.1", None, ("output.mean().item()", "(output.sum() / output.numel()).item()"))
edited("10.1", "other_mode", ("    try:\n", "    model.eval()\n    try:\n"))
edited("10.1", "mode", ("    return means", "    model.train()\n    return means"), points=5)
edited(
    "10.1",
    "other_mode",
    (
        "model(x)\n",
        "was = model.training\n        model.eval()\n        model(x)\n        model.train(was)\n",
    ),
)
edited("10.1", "runs", ("model(x)\n", "model(x)\n        model(x)\n"), points=5)
edited(
    "10.1",
    "others",
    (
        "        for handle in handles:\n            handle.remove()",
        "        for module in model.children():\n            module._forward_hooks.clear()",
    ),
    points=5,
)
edited("10.1", "no_dictionary", ("return means", "return list(means.items())"))
edited("10.1", "no_dictionary", ("return means", "return list(means.values())"))
edited(
    "10.1",
    "one_child",
    ("            handles.append(child", "            pass\n        handles.append(child"),
)
edited("10.1", "one_child", ("(partial(note, name)))\n", "(partial(note, name)))\n            break\n"))
edited(
    "10.1",
    "all_modules",
    ("model(x)\n", "handles.append(model.register_forward_hook(partial(note, '')))\n        model(x)\n"),
)
edited(
    "10.1",
    "not_run",
    (
        "model(x)\n",
        "for name, child in model.named_children():\n            note(name, child, (), torch.zeros(1))\n",
    ),
)
edited(
    "10.1",
    "one_dictionary",
    ("def child_means(model, x):", "means = {}\n\n\ndef child_means(model, x):"),
    ("means, handles = {}, []", "handles = []"),
    ("means[name] = ", "means[name] = means.get(name, 0) + "),
)
edited("10.1", "keeps_tensors", ("output.mean().item()", "output.mean().detach()"))
edited("10.1", "not_python", ("output.mean().item()", "output.detach().numpy().mean()"))
edited("10.1", "means", ("output.mean().item()", "output[0].mean().item()"), named=False)
edited("10.1", "means", ("output.mean().item()", "output.abs().mean().item()"), named=False)
edited("10.1", "means", ("output.mean().item()", "output.sum().item()"), named=False)
edited(
    "10.1",
    "changes_output",
    ("means[name] = output.mean().item()", "means[name] = output.mean().item()\n        output.data.zero_()"),
)
edited(
    "10.1",
    "no_finally",
    (
        "    finally:\n        for handle in handles:\n            handle.remove()",
        "    except OSError:\n        pass\n    for handle in handles:\n        handle.remove()",
    ),
    points=5,
)
edited(
    "10.1",
    "swallows",
    ("handle.remove()\n    return means", "handle.remove()\n        return means"),
    points=5,
)
edited(
    "10.1",
    "attributes",
    ("            handles.append(child", "            child.name = name\n            handles.append(child"),
    points=5,
)
edited(
    "10.1",
    "one_dictionary",
    ("(model, x):", "(model, x, means={}):"),
    ("means, handles = {}, []", "handles = []"),
)
edited("10.1", "not_run", ("        model(x)", "        model.forward(x)"))
edited("10.1", "grad", ("        model(x)", "        model.zero_grad()\n        model(x)"), points=5)
edited(
    "10.1",
    "other_mode",
    ("    try:\n", "    modes = {m: m.training for m in model.modules()}\n    model.eval()\n    try:\n"),
    ("    return means", "    for m, was in modes.items():\n        m.training = was\n    return means"),
)
edited("10.1", "means", ("output.mean().item()", "output.nanmean().item()"), named=False)
edited("10.1", "means", ("output.mean().item()", "round(output.mean().item(), 4)"), named=False)
# A type of exception is singled out.
edited(
    "10.1", "swallows", ("    finally:\n", "    except ValueError:\n        pass\n    finally:\n"), points=5
)
