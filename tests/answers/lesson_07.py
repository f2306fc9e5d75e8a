"""Right and wrong answers to the exercises of lesson 07."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import alternative, mistake

# --- 07.1 ---------------------------------------------------------------------------------------------------


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

    wanted = [x] if x.requires_grad else [layer.weight]
    with layer.register_full_backward_hook(note):
        torch.autograd.grad(layer(x).sum(), wanted)
    return tuple(found)


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


@mistake("07.1", "two_d_only", points=3)
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


@mistake("07.1", "none_has_no_shape")
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


# --- 07.2 ---------------------------------------------------------------------------------------------------


@alternative("07.2")
def pool_mask(features, size):
    x = features.detach().clone().requires_grad_()
    F.max_pool2d(x, size).sum().backward()
    return x.grad != 0


@alternative("07.2")
def pool_mask(features, size):
    mask = torch.zeros_like(features, dtype=torch.bool)
    batch, channels, height, width = features.shape
    for b in range(batch):
        for c in range(channels):
            for top in range(0, height - size + 1, size):
                for left in range(0, width - size + 1, size):
                    window = features[b, c, top : top + size, left : left + size]
                    row, column = divmod(window.flatten().argmax().item(), size)
                    mask[b, c, top + row, left + column] = True
    return mask


@alternative("07.2")
def pool_mask(features, size):
    seen = []
    probe = nn.Identity()
    with probe.register_full_backward_hook(lambda m, gi, go: seen.append(go[0])):
        F.max_pool2d(probe(features.clone().requires_grad_()), size).sum().backward()
    return seen[0].bool()


@mistake("07.2", "per_channel")
def pool_mask(features, size):
    return features == features.amax((2, 3), keepdim=True)


@mistake("07.2", "per_channel")
def pool_mask(features, size):
    return features == features.max()


@mistake("07.2", "across_channels")
def pool_mask(features, size):
    best = features.amax(1, keepdim=True)
    index = F.max_pool2d(features, size, return_indices=True)[1]
    mask = torch.zeros_like(features).flatten(2).scatter(2, index.flatten(2), 1.0).view_as(features) > 0
    return mask & (features == best)


@mistake("07.2", "across_channels")
def pool_mask(features, size):
    best = F.max_pool2d(features, size).amax(1, keepdim=True)
    large = best.repeat_interleave(size, 2).repeat_interleave(size, 3)
    mask = torch.zeros_like(features, dtype=torch.bool)
    height, width = large.shape[2:]
    mask[..., :height, :width] = features[..., :height, :width] == large
    return mask


@mistake("07.2", "pooled_shape")
def pool_mask(features, size):
    return F.max_pool2d(features, size, return_indices=True)[1]


@mistake("07.2", "pooled_shape")
def pool_mask(features, size):
    return F.max_pool2d(features, size) != 0


@mistake("07.2", "not_bool")
def pool_mask(features, size):
    x = features.clone().requires_grad_()
    F.max_pool2d(x, size).sum().backward()
    return x.grad


@mistake("07.2", "only_positive")
def pool_mask(features, size):
    return features > 0


@mistake("07.2", "only_positive")
def pool_mask(features, size):
    return features != 0


@mistake("07.2", "inverted")
def pool_mask(features, size):
    x = features.clone().requires_grad_()
    F.max_pool2d(x, size).sum().backward()
    return x.grad == 0


@mistake("07.2", "relu_first")
def pool_mask(features, size):
    index = F.max_pool2d(features.relu(), size, return_indices=True)[1]
    mask = torch.zeros_like(features, dtype=torch.bool).flatten(2)
    return mask.scatter(2, index.flatten(2), True).view_as(features)


@mistake("07.2", "one_count")
def pool_mask(features, size):
    index = F.max_pool2d(features, size, return_indices=True)[1]
    mask = torch.zeros_like(features, dtype=torch.bool)
    mask.view(-1)[index.flatten()] = True
    return mask


@mistake("07.2", "stride_one")
def pool_mask(features, size):
    x = features.clone().requires_grad_()
    F.max_pool2d(x, size, stride=1).sum().backward()
    return x.grad != 0


@mistake("07.2", "first_map_only")
def pool_mask(features, size):
    index = F.max_pool2d(features, size, return_indices=True)[1]
    mask = torch.zeros_like(features, dtype=torch.bool)
    mask[0, 0].view(-1)[index[0, 0].flatten()] = True
    return mask


@mistake("07.2", "marks_ties", points=3)
def pool_mask(features, size):
    pooled = F.max_pool2d(features, size)
    large = pooled.repeat_interleave(size, 2).repeat_interleave(size, 3)
    mask = torch.zeros_like(features, dtype=torch.bool)
    height, width = large.shape[2:]
    mask[..., :height, :width] = features[..., :height, :width] == large
    return mask


@mistake("07.2", "other_tie", points=3)
def pool_mask(features, size):
    flipped = features.clone()
    height, width = (n - n % size for n in features.shape[2:])
    mask = torch.zeros_like(features, dtype=torch.bool)
    x = flipped[..., :height, :width].flip(2, 3).requires_grad_()
    F.max_pool2d(x, size).sum().backward()
    mask[..., :height, :width] = x.grad.flip(2, 3) != 0
    return mask


@mistake("07.2", "border", points=3)
def pool_mask(features, size):
    x = features.clone().requires_grad_()
    F.max_pool2d(x, size, ceil_mode=True).sum().backward()
    return x.grad != 0


@mistake("07.2", "border", points=3)
def pool_mask(features, size):
    b, c, h, w = features.shape
    windows = features.reshape(b, c, h // size, size, w // size, size).permute(0, 1, 2, 4, 3, 5).flatten(4)
    mask = torch.zeros_like(windows, dtype=torch.bool).scatter(4, windows.argmax(4, keepdim=True), True)
    return mask.reshape(b, c, h // size, w // size, size, size).permute(0, 1, 2, 4, 3, 5).reshape(b, c, h, w)


# --- 07.3 ---------------------------------------------------------------------------------------------------


@alternative("07.3")
def guided_relu(model):
    handles = []

    def keep_positive(module, grad_input, grad_output):
        (grad,) = grad_input
        return (torch.where(grad > 0, grad, torch.zeros_like(grad)),)

    for name, module in model.named_modules():
        if type(module) is nn.ReLU:
            handles.append(module.register_full_backward_hook(keep_positive))
    return handles


@alternative("07.3")
def guided_relu(model):
    def drop_negative(module, grad_output):
        return tuple(grad.clamp(min=0) for grad in grad_output)

    return [
        m.register_full_backward_pre_hook(drop_negative) for m in model.modules() if isinstance(m, nn.ReLU)
    ]


@alternative("07.3")
def guided_relu(model):
    def catch(module, args, output):
        args[0].register_hook(lambda grad: grad.relu())

    return [m.register_forward_hook(catch) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "nothing_changed")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        (grad_input[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "nothing_changed")
def guided_relu(model):
    return []


@mistake("07.3", "deconvnet")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_output[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "top_level_only")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.children() if isinstance(m, nn.ReLU)]


@mistake("07.3", "every_module")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules()]


@mistake("07.3", "only_the_model")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [model.register_full_backward_hook(keep_positive)]


@mistake("07.3", "wrong_sign")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(max=0),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "absolute")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].abs(),)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@alternative("07.3")
def guided_relu(model):
    mine = [m for m in model.modules() if isinstance(m, nn.ReLU)]

    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),) if module in mine else None

    return [torch.nn.modules.module.register_module_full_backward_hook(keep_positive)]


@mistake("07.3", "every_model", points=4)
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        if isinstance(module, nn.ReLU):
            return (grad_input[0].clamp(min=0),)

    return [torch.nn.modules.module.register_module_full_backward_hook(keep_positive)]


@mistake("07.3", "wrong_size")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0][grad_input[0] > 0],)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "legacy", points=4)
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return (grad_input[0].clamp(min=0),)

    return [m.register_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "returns_tensor")
def guided_relu(model):
    def keep_positive(module, grad_input, grad_output):
        return grad_input[0].clamp(min=0)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "three_arguments")
def guided_relu(model):
    def keep_positive(grad):
        return grad.clamp(min=0)

    return [m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]


@mistake("07.3", "no_handle", points=4)
def guided_relu(model):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))


@mistake("07.3", "no_handle", points=4)
def guided_relu(model):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            handle = module.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(min=0),))
    return handle


# --- 07.4 ---------------------------------------------------------------------------------------------------


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, output):
        if torch.is_grad_enabled():
            output.register_hook(lambda grad: seen.append(grad.clone()))

    return layer.register_forward_hook(catch)


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.grad_fn is not None:
            output.register_hook(seen.append)
        return output

    return layer.register_forward_hook(catch)


@alternative("07.4")
def watch_output(layer, seen):
    def catch(module, args, output):
        try:
            output.register_hook(seen.append)
        except RuntimeError:
            pass

    return layer.register_forward_hook(catch)


@mistake("07.4", "full_hook")
def watch_output(layer, seen):
    return layer.register_full_backward_hook(lambda m, gi, go: seen.append(go[0]))


@mistake("07.4", "full_hook")
def watch_output(layer, seen):
    return layer.register_full_backward_pre_hook(lambda m, go: seen.append(go[0]))


@mistake("07.4", "returns_handle")
def watch_output(layer, seen):
    return layer.register_forward_hook(lambda m, args, output: output.register_hook(seen.append))


@mistake("07.4", "detached")
def watch_output(layer, seen):
    def catch(module, args, output):
        output.detach().register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "after_relu")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.retain_grad()
            output.register_hook(lambda grad: seen.append(output.grad))

    return layer.register_forward_hook(catch)


@mistake("07.4", "keeps_output")
def watch_output(layer, seen):
    def catch(module, args, output):
        output.retain_grad()
        seen.append(output)

    return layer.register_forward_hook(catch)


@mistake("07.4", "reads_dot_grad")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.retain_grad()
            seen.append(output.grad)

    return layer.register_forward_hook(catch)


@mistake("07.4", "hooks_input")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad and not caught:
            caught.append(args[0].register_hook(seen.append))

    caught = []
    return layer.register_forward_hook(catch)


@mistake("07.4", "hooks_weight")
def watch_output(layer, seen):
    return layer.weight.register_hook(seen.append)


@mistake("07.4", "not_registered")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(seen.append)

    return catch


@mistake("07.4", "not_registered")
def watch_output(layer, seen):
    def catch(module, args, output):
        def keep(grad):
            seen = [grad]

        if output.requires_grad:
            output.register_hook(keep)

    return layer.register_forward_hook(catch)


@mistake("07.4", "not_each_pass")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad and not seen:
            output.register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "not_each_pass")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(seen.append)
            output.register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "hooks_input")
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            args[0].register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "changes_gradient")
def watch_output(layer, seen):
    def catch(module, args, output):
        def keep(grad):
            seen.append(grad)
            return grad / grad.norm()

        output.register_hook(keep)

    return layer.register_forward_hook(catch)


@mistake("07.4", "changes_gradient")
def watch_output(layer, seen):
    def catch(module, args, output):
        leaf = output.detach().requires_grad_()
        leaf.register_hook(seen.append)
        return leaf * 1

    return layer.register_forward_hook(catch)


@mistake("07.4", "no_grad_crash", points=4)
def watch_output(layer, seen):
    def catch(module, args, output):
        output.register_hook(seen.append)

    return layer.register_forward_hook(catch)


@mistake("07.4", "no_handle", points=4)
def watch_output(layer, seen):
    def catch(module, args, output):
        if output.requires_grad:
            output.register_hook(seen.append)

    layer.register_forward_hook(catch)


# --- 07.5 ---------------------------------------------------------------------------------------------------


@alternative("07.5")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, grad_input, grad_output: (None,) * len(grad_input))


@alternative("07.5")
def stop_gradient(layer):
    return layer.register_forward_pre_hook(lambda module, args: tuple(arg.detach() for arg in args))


@alternative("07.5")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        if grad_input[0] is not None:
            return (grad_input[0] * 0,)

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "weights_too")
def stop_gradient(layer):
    return layer.register_full_backward_pre_hook(lambda m, go: tuple(torch.zeros_like(g) for g in go))


@mistake("07.5", "weights_too")
def stop_gradient(layer):
    def catch(module, args, output):
        output.register_hook(torch.zeros_like)

    return layer.register_forward_hook(catch)


@mistake("07.5", "freezes_layer")
def stop_gradient(layer):
    layer.requires_grad_(False)


@mistake("07.5", "nothing_stops")
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        grad_input = tuple(torch.zeros_like(grad) for grad in grad_input if grad is not None)

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "nothing_stops")
def stop_gradient(layer):
    pass


@mistake("07.5", "in_place", points=4)
def stop_gradient(layer):
    def stop(module, grad_input, grad_output):
        for grad in grad_input:
            if grad is not None:
                grad.zero_()

    return layer.register_full_backward_hook(stop)


@mistake("07.5", "in_place", points=4)
def stop_gradient(layer):
    def catch(module, args):
        if args[0].requires_grad:
            args[0].register_hook(torch.zeros_like)

    return layer.register_forward_pre_hook(catch)


@mistake("07.5", "wrong_size")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (torch.zeros(1),))


@mistake("07.5", "first_layer", points=4)
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (torch.zeros_like(gi[0]),))


@mistake("07.5", "first_layer", points=4)
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: (0 * gi[0],))


@mistake("07.5", "cuts_output")
def stop_gradient(layer):
    return layer.register_forward_hook(lambda module, args, output: output.detach())


@mistake("07.5", "returns_tensor")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda m, gi, go: torch.zeros_like(gi[0]))


@mistake("07.5", "three_arguments")
def stop_gradient(layer):
    return layer.register_full_backward_hook(lambda grad: (torch.zeros_like(grad),))


@mistake("07.5", "no_handle", points=4)
def stop_gradient(layer):
    layer.register_full_backward_hook(lambda m, grad_input, grad_output: (None,))
