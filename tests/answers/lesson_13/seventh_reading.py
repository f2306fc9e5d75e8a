"""Answers to lesson 13 that were told a cause that was not theirs, found in the seventh reading."""

import torch
import torch.distributed as dist

from tests.answers import mistake


@mistake("13.2", "never_fired")  # it fires, and assigns to a local name
def layer_output(compiled, name, x):
    found = None

    def keep(module, args, output):
        found = output.detach().clone()  # noqa: F841

    layer = compiled.get_submodule(name)
    with layer.register_forward_hook(keep), torch.compiler.set_stance("force_eager"):
        compiled(x)
    return found


@mistake("13.3", "returns_tensor")  # nothing is under way any more
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    dist.all_reduce(half, group=group)
    return half.float()


@mistake("13.4", "gives_none")  # not from all_reduce
def whole_norm(shards, group):
    squares = None
    for shard in shards:
        squares += shard.square().sum()
    dist.all_reduce(squares, group=group)
    return squares.sqrt().item()
