"""Answers to 07.1, `grad_shapes`."""

import copy

import torch

from tests.answers import alternative, edited, mistake, unnamed


@alternative("07.1")
def grad_shapes(layer, x):
    inner = x.shape if x.requires_grad else None
    return [inner], [x.shape[:-1] + (layer.out_features,)]


@alternative("07.1")
def grad_shapes(layer, x):
    found = []

    def note(module, grad_input, grad_output):
        for grads in (grad_input, grad_output):
            found.append(tuple(None if grad is None else tuple(grad.shape) for grad in grads))

    wanted = [t for t in (x, *layer.parameters()) if t.requires_grad]
    with layer.register_full_backward_hook(note):
        torch.autograd.grad(layer(x).sum(), wanted)
    return tuple(found)


edited(
    "07.1",
    "asks_weight",
    (
        "wanted = [t for t in (x, *layer.parameters()) if t.requires_grad]",
        "wanted = [x] if x.requires_grad else [layer.weight]",
    ),
    of=grad_shapes,
    points=3,
)
edited("07.1", "asks_weight", ("(x, *layer.parameters())", "(x, layer.weight)"), of=grad_shapes, points=3)


@alternative("07.1")
def grad_shapes(layer, x):
    with torch.no_grad():
        output = layer(x)
    return (tuple(x.shape) if x.requires_grad else None,), (tuple(output.shape),)


@alternative("07.1")
def grad_shapes(layer, x):
    found = []
    layer = copy.deepcopy(layer)
    layer.register_full_backward_hook(lambda m, gi, go: found.extend([gi, go]))
    layer(x.detach().clone().requires_grad_(x.requires_grad)).sum().backward()
    return tuple(tuple(None if grad is None else tuple(grad.shape) for grad in grads) for grads in found)


@mistake("07.1", "swapped")
def grad_shapes(layer, x):
    return ((*x.shape[:-1], layer.out_features),), (tuple(x.shape),)


@mistake("07.1", "weight_shapes")
def grad_shapes(layer, x):
    return (tuple(x.shape), tuple(layer.weight.shape)), ((*x.shape[:-1], layer.out_features),)


@mistake("07.1", "weight_shapes")
def grad_shapes(layer, x):
    found = []

    def note(module, grad_input, grad_output):
        for grads in (grad_input, grad_output):
            found.append(tuple(None if grad is None else tuple(grad.shape) for grad in grads))

    with layer.register_backward_hook(note):
        layer(x).sum().backward()
    return tuple(found)


@mistake("07.1", "no_tuples")
def grad_shapes(layer, x):
    return tuple(x.shape), (*x.shape[:-1], layer.out_features)


@mistake("07.1", "no_batch")
def grad_shapes(layer, x):
    return ((layer.in_features,),), ((layer.out_features,),)


@mistake("07.1", "same_both")
def grad_shapes(layer, x):
    return (tuple(x.shape),), (tuple(x.shape),)


@mistake("07.1", "keeps_tensors")
def grad_shapes(layer, x):
    found = []
    with layer.register_full_backward_hook(lambda m, gi, go: found.extend([gi, go])):
        layer(x).sum().backward()
    return tuple(found)


@mistake("07.1", "two_d_only", points=2)
def grad_shapes(layer, x):
    inner = (x.shape[0], layer.in_features) if x.requires_grad else None
    return (inner,), ((x.shape[0], layer.out_features),)


@mistake("07.1", "always_a_shape", points=3)
def grad_shapes(layer, x):
    return (tuple(x.shape),), ((*x.shape[:-1], layer.out_features),)


@mistake("07.1", "drops_none", points=3)
def grad_shapes(layer, x):
    inner = (tuple(x.shape),) if x.requires_grad else ()
    return inner, ((*x.shape[:-1], layer.out_features),)


@mistake("07.1", "none_has_no_shape", points=2)
def grad_shapes(layer, x):
    found = []

    def note(module, grad_input, grad_output):
        for grads in (grad_input, grad_output):
            found.append(tuple(tuple(grad.shape) for grad in grads))

    with layer.register_full_backward_hook(note):
        layer(x).sum().backward()
    return tuple(found)


@mistake("07.1", "leaves_traces", points=3)
def grad_shapes(layer, x):
    found = []

    def note(module, grad_input, grad_output):
        for grads in (grad_input, grad_output):
            found.append(tuple(None if grad is None else tuple(grad.shape) for grad in grads))

    layer.register_full_backward_hook(note)
    layer(x).sum().backward()
    return tuple(found)


@mistake("07.1", "leaves_traces", points=3)
def grad_shapes(layer, x):
    found = []

    def note(module, grad_input, grad_output):
        for grads in (grad_input, grad_output):
            found.append(tuple(None if grad is None else tuple(grad.shape) for grad in grads))

    with layer.register_full_backward_hook(note):
        layer(x).sum().backward()
    return tuple(found)


@mistake("07.1", "leaves_traces", points=3)
def grad_shapes(layer, x):
    found = []
    layer = copy.deepcopy(layer)
    layer.register_full_backward_hook(lambda m, gi, go: found.extend([gi, go]))
    layer(x).sum().backward()
    return tuple(tuple(None if grad is None else tuple(grad.shape) for grad in grads) for grads in found)


@mistake("07.1", "bare_none", points=3)
def grad_shapes(layer, x):
    return (tuple(x.shape),) if x.requires_grad else None, ((*x.shape[:-1], layer.out_features),)


@mistake("07.1", "three_arguments")
def grad_shapes(layer, x):
    found = []

    def note(grad_input, grad_output):
        found.extend([grad_input, grad_output])

    with layer.register_full_backward_hook(note):
        layer(x).sum().backward()
    return tuple(found)


@mistake("07.1", "asks_frozen", points=3)
def grad_shapes(layer, x):
    y = layer(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    return (tuple(grad.shape),), (tuple(y.shape),)


@mistake("07.1", "asks_frozen", points=2)
def grad_shapes(layer, x):
    found = []
    y = layer(x)
    handle = x.register_hook(lambda grad: found.append(tuple(grad.shape)))
    y.sum().backward()
    handle.remove()
    return tuple(found), (tuple(y.shape),)


@mistake("07.1", "is_none")
def grad_shapes(layer, x):
    return (tuple(x.shape) if x.requires_grad else None,), ((*x.shape[:-1], *layer.bias.shape),)


@mistake("07.1", "is_none")
def grad_shapes(layer, x):
    result = (tuple(x.shape) if x.requires_grad else None,), (tuple(layer(x).shape),)
    layer.weight.grad.zero_()
    return result


@mistake("07.1", "is_none")
def grad_shapes(layer, x):
    y = layer(x)
    y.sum().backward()
    inner = tuple(x.grad.shape) if x.requires_grad else None
    layer.zero_grad()
    x.grad = None
    return (inner,), (tuple(y.shape),)


@mistake("07.1", "always_a_shape", points=2)
def grad_shapes(layer, x):
    x.requires_grad_()
    return (tuple(x.shape),), ((*x.shape[:-1], layer.out_features),)


@mistake("07.1", "no_return")
def grad_shapes(layer, x):
    (tuple(x.shape),), ((*x.shape[:-1], layer.out_features),)


@unnamed("07.1", "none", points=3)
def grad_shapes(layer, x):
    return (tuple(x.shape) if x.requires_grad else 0,), ((*x.shape[:-1], layer.out_features),)


@mistake("07.1", "two_d_only", points=3)
def grad_shapes(layer, x):
    n = x.shape[0] if x.dim() == 2 else tuple(x.shape[:2])
    outer = (n, layer.out_features) if x.dim() == 2 else (*n, layer.out_features)
    return (tuple(x.shape) if x.requires_grad else None,), (outer,)


edited("07.1", "same_both", ("(*x.shape[:-1], layer.out_features)", "tuple(x.shape)"))
edited(
    "07.1",
    "output_none",
    (
        "((*x.shape[:-1], layer.out_features),)",
        "((*x.shape[:-1], layer.out_features) if x.requires_grad or layer.weight.requires_grad else None,)",
    ),
    points=3,
)
edited("07.1", "mode", ("grad_input = (", "layer.train()\n    grad_input = ("), points=3)
edited("07.1", "asks_leaf", ("if x.requires_grad", "if x.requires_grad and x.is_leaf"), points=3)
edited(
    "07.1",
    "output_none",
    (
        "((*x.shape[:-1], layer.out_features),)",
        "((*x.shape[:-1], layer.out_features) if layer.weight.requires_grad else None,)",
    ),
)
edited(
    "07.1", "leaves_traces", ("grad_input = (", "layer.requires_grad_(True)\n    grad_input = ("), points=3
)
edited("07.1", "others", ("grad_input = (", "layer._backward_hooks.clear()\n    grad_input = ("), points=3)


@mistake("07.1", "bias_is_none", points=3)
def grad_shapes(layer, x):
    inner = tuple(x.shape) if x.requires_grad or (layer.bias.requires_grad and x.requires_grad) else None
    return (inner,), (tuple(layer(x).shape),)
