"""Answers to 08.2, `output_shapes`."""

import contextlib
import copy
from functools import partial

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from hookedu import record, remove_hooks
from tests.answers import alternative, mistake


@alternative("08.2")
def output_shapes(model, x):
    shapes = {}
    with contextlib.ExitStack() as stack:
        for name, child in model.named_children():

            def note(module, args, output, name=name):
                shapes[name] = output.shape

            stack.enter_context(child.register_forward_hook(note))
        with torch.no_grad():
            model(x)
    return shapes


@alternative("08.2")
def output_shapes(model, x):
    names = {child: name for name, child in model.named_children()}
    shapes = {}

    def note(module, args, output):
        if module in names:
            shapes[names[module]] = list(output.shape)

    with register_module_forward_hook(note):
        model(x)
    return shapes


@alternative("08.2")
def output_shapes(model, x):
    names = [name for name, _ in model.named_children()]
    with record(model, layers=names) as rec:
        model(x)
    return {name: tuple(rec[name].activation.shape) for name in names}


@mistake("08.2", "late_binding")
def output_shapes(model, x):
    shapes, handles = {}, []
    for name, child in model.named_children():

        def note(module, args, output):
            shapes[name] = tuple(output.shape)

        handles.append(child.register_forward_hook(note))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "marks_modules", points=4)
def output_shapes(model, x):
    shapes, handles = {}, []

    def note(module, args, output):
        shapes[module.__name__] = tuple(output.shape)

    for name, child in model.named_children():
        child.__name__ = name
        handles.append(child.register_forward_hook(note))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "marks_modules", points=4)
def output_shapes(model, x):
    shapes, handles = {}, []
    for name, child in model.named_children():
        child.label = name
        handles.append(child.register_forward_hook(lambda m, a, o: shapes.update({m.label: tuple(o.shape)})))
    model(x)
    [handle.remove() for handle in handles]
    return shapes


@mistake("08.2", "replaces_children", points=4)
def output_shapes(model, x):
    shapes = {}

    class Wrapper(nn.Module):
        def __init__(self, name, inner):
            super().__init__()
            self.name, self.inner = name, inner

        def forward(self, x):
            output = self.inner(x)
            shapes[self.name] = tuple(output.shape)
            return output

    for name, child in list(model.named_children()):
        setattr(model, name, Wrapper(name, child))
    model(x)
    return shapes


@mistake("08.2", "hooks", points=4)
def output_shapes(model, x):
    shapes = {}
    for name, child in model.named_children():
        child.register_forward_hook(lambda m, a, o, name=name: shapes.update({name: tuple(o.shape)}))
    model(x)
    return shapes


@mistake("08.2", "class_names")
def output_shapes(model, x):
    shapes, handles = {}, []

    def note(module, args, output):
        shapes[type(module).__name__] = tuple(output.shape)

    for child in model.children():
        handles.append(child.register_forward_hook(note))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "every_module")
def output_shapes(model, x):
    shapes, handles = {}, []

    def note(name, module, args, output):
        shapes[name] = tuple(output.shape)

    for name, module in model.named_modules():
        handles.append(module.register_forward_hook(partial(note, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "keeps_tensors")
def output_shapes(model, x):
    outputs, handles = {}, []

    def note(name, module, args, output):
        outputs[name] = output.detach()

    for name, child in model.named_children():
        handles.append(child.register_forward_hook(partial(note, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return outputs


@mistake("08.2", "input_shapes")
def output_shapes(model, x):
    shapes, handles = {}, []

    def note(name, module, output, *rest):
        shapes[name] = tuple(output[0].shape)

    for name, child in model.named_children():
        handles.append(child.register_forward_hook(partial(note, name)))
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "returns_nothing")
def output_shapes(model, x):
    def note(name, module, args, output):
        print(name, tuple(output.shape))

    handles = [child.register_forward_hook(partial(note, name)) for name, child in model.named_children()]
    model(x)
    for handle in handles:
        handle.remove()


@mistake("08.2", "never_runs")
def output_shapes(model, x):
    shapes = {}

    def note(name, module, args, output):
        shapes[name] = tuple(output.shape)

    for name, child in model.named_children():
        with child.register_forward_hook(partial(note, name)):
            pass
    model(x)
    return shapes


@mistake("08.2", "chains_children")
def output_shapes(model, x):
    shapes = {}
    for name, child in model.named_children():
        x = child(x)
        shapes[name] = tuple(x.shape)
    return shapes


@mistake("08.2", "hook_returns")
def output_shapes(model, x):
    shapes, handles = {}, []
    for name, child in model.named_children():
        handles.append(
            child.register_forward_hook(lambda m, a, o, name=name: shapes.setdefault(name, tuple(o.shape)))
        )
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mistake("08.2", "runs_copy", points=4)
def output_shapes(model, x):
    twin, shapes = copy.deepcopy(model), {}
    for name, child in twin.named_children():
        child.register_forward_hook(lambda m, a, output, name=name: shapes.update({name: output.shape}))
    twin(x)
    return shapes


@mistake("08.2", "mode", points=4)
def output_shapes(model, x):
    shapes = {}
    model.eval()
    with contextlib.ExitStack() as stack:
        for name, child in model.named_children():
            hook = lambda m, a, output, name=name: shapes.update({name: tuple(output.shape)})  # noqa: E731
            stack.enter_context(child.register_forward_hook(hook))
        model(x)
    return shapes


@mistake("08.2", "runs_again", points=4)
def output_shapes(model, x):
    shapes = {}
    for name, child in model.named_children():
        hook = lambda m, a, output, name=name: shapes.update({name: tuple(output.shape)})  # noqa: E731
        with child.register_forward_hook(hook):
            model(x)
    return shapes


@mistake("08.2", "others", points=4)
def output_shapes(model, x):
    shapes = {}
    for name, child in model.named_children():
        child.register_forward_hook(lambda m, a, o, name=name: shapes.update({name: tuple(o.shape)}))
    model(x)
    remove_hooks(model, owner="user")
    return shapes
