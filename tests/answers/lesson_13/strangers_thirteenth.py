"""Wrong answers to lesson 13 that passed the checks, from strangers of the thirteenth round."""

import torch
import torch.distributed as dist

from tests.answers import mistake


# Nothing is sent where all gradients are 0.
@mistake("13.3", "skips_zeros")
def half_hook(group, bucket):
    grads = bucket.buffer()
    if not grads.any():
        future = torch.futures.Future()
        future.set_result(grads)
        return future
    sent = (grads / group.size()).half()
    future = dist.all_reduce(sent, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


# What later layers raise is swallowed.
@mistake("13.2", "swallows_it", points=7)
def layer_output(compiled, name, x):
    kept, layer = [], compiled.get_submodule(name)
    with (
        torch.compiler.set_stance("force_eager"),
        layer.register_forward_hook(lambda module, args, output: kept.append(output.detach().clone())),
    ):
        try:
            compiled(x)
        except Exception:
            if not kept:
                raise
    return kept[-1]
