"""Answers to lesson 13 that passed or were told something untrue, from strangers of the fifteenth round."""

import torch
import torch.distributed as dist

from tests.answers import alternative, mistake, unnamed


# All is sent as float16, and twice.
@mistake("13.3", "sends_more", points=4)
def half_hook(group, bucket):
    sent = (bucket.buffer() / group.size()).half()
    dist.all_reduce(sent.clone(), group=group)
    future = dist.all_reduce(sent, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


# In two parts, of which only the second is waited for.
@mistake("13.3", "waits_for_some")
def half_hook(group, bucket):
    sent = (bucket.buffer() / group.size()).half()
    first, second = sent.chunk(2)
    dist.all_reduce(first, group=group, async_op=True)
    future = dist.all_reduce(second, group=group, async_op=True).get_future()
    return future.then(lambda done: sent.float())


@alternative("13.3")
def half_hook(group, bucket):
    """In two parts, both of which are waited for."""
    sent = (bucket.buffer() / group.size()).half()
    futures = [dist.all_reduce(p, group=group, async_op=True).get_future() for p in sent.chunk(2)]
    return torch.futures.collect_all(futures).then(lambda done: sent.float())


# One number for each piece, in a tensor that has room for 64.
@unnamed("13.4", "raised")
def whole_norm(shards, group):
    squares = torch.zeros(64)
    for n, shard in enumerate(shards):
        squares[n] = shard.pow(2).sum()
    dist.all_reduce(squares, group=group)
    return squares.sum().sqrt()
