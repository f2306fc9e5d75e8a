"""What the tenth strangers tried on lesson 12: wrong answers that had passed, or whose messages had not been true."""

import copy

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from tests.answers import mistake


# Nothing that was ever saved is let go.
@mistake("12.1", "leaks", points=8)
def half_saved(counts, kept=[]):  # noqa: B006
    def pack(tensor):
        kept.append(tensor.half() if tensor.dtype == torch.float32 else tensor.detach())
        counts["saved"] += tensor.nbytes
        counts["kept"] += kept[-1].nbytes
        return len(kept) - 1, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: kept[packed[0]].to(packed[1]))


# The gradients go to a copy.
@mistake("12.3", "runs_copy", points=4)
def count_recomputed(model, x):
    model = copy.deepcopy(model)
    counts = {name: 0 for name, _ in model.named_children()}

    def started(name):
        return lambda module, args: counts.update({name: counts[name] + 1})

    y = checkpoint(model, x, use_reentrant=False)
    handles = [child.register_forward_pre_hook(started(name)) for name, child in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


# Places that MaxPool2d saves are left out, which are never as large as the input.
@mistake("12.4", "floats_only")
def forecast(build, shape):
    saved = set()

    def pack(tensor):
        if tensor.is_floating_point():
            saved.add(tensor.untyped_storage())

    with torch.device("meta"):
        model, x = build(), torch.empty(shape)
        with saved_tensors_hooks(pack, lambda packed: packed):
            model(x)
    own = {tensor.untyped_storage() for tensor in (*model.parameters(), *model.buffers())}
    return sum(storage.nbytes() for storage in saved - own)


# A buffer that is not in the state_dict counts.
@mistake("12.4", "not_in_state_dict")
def forecast(build, shape):
    saved = set()
    with torch.device("meta"):
        model, x = build(), torch.empty(shape)
        with saved_tensors_hooks(lambda t: saved.add(t.untyped_storage()), lambda t: t):
            model(x)
    own = {tensor.untyped_storage() for tensor in model.state_dict().values()}
    return sum(storage.nbytes() for storage in saved - own)
