"""Further wrong answers to the exercises of lesson 13 that readers wrote without knowing the checks."""

import torch.distributed as dist

from tests.answers import unnamed


@unnamed("13.3", "average")
def half_hook(group, bucket):
    buffer = bucket.buffer() / group.size()
    scale = buffer.abs().max().clamp(min=1e-12)
    sent = (buffer / scale).half()
    future = dist.all_reduce(sent, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float() * scale)
