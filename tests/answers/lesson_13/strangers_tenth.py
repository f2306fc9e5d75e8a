"""What the tenth strangers tried on lesson 13: wrong answers that had passed, at times."""

import torch
import torch.distributed as dist

from tests.answers import mistake


# Nothing is compiled any more, in the whole program.
@mistake("13.2", "changes_settings", points=7)
def layer_output(compiled, name, x):
    seen = []
    torch._dynamo.config.disable = True
    layer = compiled.get_submodule(name)
    with layer.register_forward_hook(lambda module, args, output: seen.append(output.detach().clone())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[-1]


# The number of ranks is that of the first group.
@mistake("13.3", "fixed_size")
def half_hook(group, bucket, size=[]):  # noqa: B006
    if not size:
        size.append(group.size())
    half = (bucket.buffer() / size[0]).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())
