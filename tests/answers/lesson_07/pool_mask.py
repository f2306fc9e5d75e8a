"""Answers to 07.2, `pool_mask`."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.answers import alternative, edited, mistake, unnamed


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


@mistake("07.2", "first_for_all")
def pool_mask(features, size):
    index = F.max_pool2d(features[:, :1], size, return_indices=True)[1].flatten(2)
    mask = torch.zeros_like(features[:, :1], dtype=torch.bool).flatten(2).scatter(2, index, True)
    return mask.view(len(features), 1, *features.shape[2:]).expand_as(features)


@mistake("07.2", "drops_signs")
def pool_mask(features, size):
    x = features.abs().requires_grad_()
    F.max_pool2d(x, size).sum().backward()
    return x.grad != 0


@mistake("07.2", "smallest")
def pool_mask(features, size):
    x = (-features).requires_grad_()
    F.max_pool2d(x, size).sum().backward()
    return x.grad != 0


@mistake("07.2", "flat_loss")
def pool_mask(features, size):
    x = features.clone().requires_grad_()
    y = F.max_pool2d(x, size)
    F.l1_loss(y, torch.zeros_like(y)).backward()
    return x.grad != 0


@mistake("07.2", "flat_loss")
def pool_mask(features, size):
    x = features.clone().requires_grad_()
    y = F.max_pool2d(x, size)
    F.mse_loss(y, torch.ones_like(y)).backward()
    return x.grad != 0


@mistake("07.2", "flat_loss")
def pool_mask(features, size):
    pooled, index = F.max_pool2d(features, size, return_indices=True)
    return F.max_unpool2d(pooled, index, size, output_size=features.shape) != 0


@mistake("07.2", "requires_grad", points=3)
def pool_mask(features, size):
    features.requires_grad_()
    return torch.autograd.grad(F.max_pool2d(features, size).sum(), features)[0] != 0


@mistake("07.2", "one_count")
def pool_mask(features, size):
    index = F.max_pool2d(features, size, return_indices=True)[1].flatten(1)
    return torch.zeros_like(features, dtype=torch.bool).flatten(1).scatter(1, index, True).view_as(features)


@mistake("07.2", "first_map_only")
def pool_mask(features, size):
    index = F.max_pool2d(features, size, return_indices=True)[1].flatten(2)
    mask = torch.zeros_like(features, dtype=torch.bool).flatten(2)
    for channel in range(features.shape[1]):
        mask[0, channel, index[0, channel]] = True
    return mask.view_as(features)


@mistake("07.2", "no_return")
def pool_mask(features, size):
    F.max_pool2d(features, size, return_indices=True)


@mistake("07.2", "other_tie", points=3)
def pool_mask(features, size):
    x = features.transpose(2, 3).contiguous().requires_grad_()
    F.max_pool2d(x, size).sum().backward()
    return (x.grad != 0).transpose(2, 3)


@unnamed("07.2", "routes")
def pool_mask(features, size):
    x = features.clone().requires_grad_()
    F.avg_pool2d(x, size).sum().backward()
    return x.grad != 0


@mistake("07.2", "grad", points=3)
def pool_mask(features, size):
    index = F.max_pool2d(features, size, return_indices=True)[1]
    mask = torch.zeros_like(features, dtype=torch.bool).flatten(2).scatter(2, index.flatten(2), True)
    features.grad = None
    return mask.view_as(features)


@mistake("07.2", "old_gradient")
def pool_mask(features, size):
    features.requires_grad_()
    F.max_pool2d(features, size).sum().backward()
    mask = features.grad != 0
    features.requires_grad_(False)
    features.grad = None
    return mask


edited("07.2", "rounded", ("F.max_pool2d(features,", "F.max_pool2d(features.round(),"))
edited("07.2", "rounded", ("F.max_pool2d(features,", "F.max_pool2d(features.long().float(),"))


@unnamed("07.2", "routes")
def pool_mask(features, size):
    order = torch.arange(features.numel()).view_as(features)
    index = F.max_pool2d(features - 1e-4 * order, size, return_indices=True)[1]
    mask = torch.zeros_like(features, dtype=torch.bool).flatten(2)
    return mask.scatter(2, index.flatten(2), True).view_as(features)


@mistake("07.2", "old_gradient")
def pool_mask(features, size):
    features.requires_grad_(True)
    F.max_pool2d(features, size).sum().backward()
    return features.grad != 0
