"""Wrong answers to 13.2 and 13.3 from readers who did not know the checks: the eighth round."""

import torch
import torch.distributed as dist

from tests.answers import mistake, unnamed


# The hook comes off after one kind of exception only.
@mistake("13.2", "unrestored", points=7)
def layer_output(compiled, name, x):
    seen = []
    layer = compiled.get_submodule(name)
    handle = layer.register_forward_hook(lambda m, a, out: seen.append(out.detach().clone()))
    try:
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    except RuntimeError:
        handle.remove()
        raise
    handle.remove()
    return seen[-1]


# The layer runs once more, on an input that has been overwritten since.
@unnamed("13.2", "output")
def layer_output(compiled, name, x):
    inputs = []
    layer = compiled.get_submodule(name)
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        with layer.register_forward_pre_hook(lambda m, args: inputs.append(args[0])):
            compiled(x)
        return layer(inputs[0])


# Each rank has a scale of its own for what is near the largest number of float16.
@mistake("13.3", "own_scale")
def half_hook(group, bucket):
    buffer = bucket.buffer() / group.size()
    scale = max(1.0, buffer.abs().max().item() / 60000)
    sent = (buffer / scale).half()
    future = dist.all_reduce(sent, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float() * scale)


@mistake("13.3", "own_scale")
def half_hook(group, bucket):
    buffer = bucket.buffer() / group.size()
    finite = buffer[buffer.isfinite()].abs()
    scale = (finite.max() / 60000).clamp(min=1.0) if finite.numel() else 1.0
    sent = (buffer / scale).half()
    future = dist.all_reduce(sent, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float() * scale)
