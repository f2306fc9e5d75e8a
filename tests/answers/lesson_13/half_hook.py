"""Answers to 13.3, `half_hook`."""

import torch
import torch.distributed as dist

from tests.answers import alternative, edited, mistake, unnamed


@alternative("13.3")
def half_hook(group, bucket):
    buffer = bucket.buffer()
    half = buffer.div(group.size()).to(torch.float16)
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: buffer.copy_(done.value()[0]))


@alternative("13.3")
def half_hook(group, bucket):
    half = (bucket.buffer() / dist.get_world_size(group)).half()
    dist.all_reduce(half, group=group)
    done = torch.futures.Future()
    done.set_result(half.float())
    return done


@alternative("13.3")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    work = dist.all_reduce(half, group=group, async_op=True)
    return work.get_future().then(lambda done: done.wait()[0]).then(lambda done: done.value().float())


@mistake("13.3", "half_first")
def half_hook(group, bucket):
    """PyTorch's own, which divides what is float16 already."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    return fp16_compress_hook(group, bucket)


@mistake("13.3", "returns_nothing")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    future.then(lambda done: done.value()[0].float())


@mistake("13.3", "returns_work")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    return dist.all_reduce(half, group=group, async_op=True)


@mistake("13.3", "returns_tensor")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    dist.all_reduce(half, group=group)
    return half.float()


@mistake("13.3", "value_is_list")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    return dist.all_reduce(half, group=group, async_op=True).get_future()


@mistake("13.3", "value_is_list")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value().float())


@mistake("13.3", "never_done")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    dist.all_reduce(half, group=group)
    return torch.futures.Future()


@mistake("13.3", "overflow")
def half_hook(group, bucket):
    future = dist.all_reduce(bucket.buffer().half(), group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float() / group.size())


@mistake("13.3", "no_average")
def half_hook(group, bucket):
    future = dist.all_reduce(bucket.buffer().half(), group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "divided_twice")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float() / group.size())


@mistake("13.3", "never_sends")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    done = torch.futures.Future()
    done.set_result(half.float())
    return done


@mistake("13.3", "never_sends")
def half_hook(group, bucket):
    done = torch.futures.Future()
    done.set_result(bucket.buffer().half().float())
    return done


@mistake("13.3", "reads_too_early")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    dist.all_reduce(half, group=group, async_op=True)
    done = torch.futures.Future()
    done.set_result(half.float())
    return done


@mistake("13.3", "reads_too_early")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    result = half.float()
    return future.then(lambda done: result)


@mistake("13.3", "sends_float32", points=4)
def half_hook(group, bucket):
    sent = bucket.buffer() / group.size()
    future = dist.all_reduce(sent, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


@mistake("13.3", "sends_float32", points=4)
def half_hook(group, bucket):
    rounded = (bucket.buffer() / group.size()).half().float()
    future = dist.all_reduce(rounded, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].half().float())


@mistake("13.3", "not_async")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "no_group")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "overflow")
def half_hook(group, bucket):
    half = bucket.buffer().half()
    future = dist.all_reduce(half, op=dist.ReduceOp.AVG, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "bucket_is_no_tensor")
def half_hook(group, bucket):
    half = bucket.half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "stays_half", points=5)
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


@mistake("13.3", "fixed_size")
def half_hook(group, bucket):
    half = bucket.buffer().half() / 2
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "bfloat16")
def half_hook(group, bucket):
    half = bucket.buffer().bfloat16() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "then_returns_nothing")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()

    def back(done):
        done.value()[0].float()

    return dist.all_reduce(half, group=group, async_op=True).get_future().then(back)


@mistake("13.3", "other_shape")
def half_hook(group, bucket):
    half = (bucket.gradients()[0] / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "future_is_no_list")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done[0].float())


@mistake("13.3", "future_is_no_list")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.float())


@mistake("13.3", "returns_work")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    work = dist.all_reduce(half, group=group, async_op=True)
    return work.then(lambda done: done.value()[0].float())


@mistake("13.3", "returns_nothing")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    return dist.all_reduce(half, group=group)


@mistake("13.3", "reads_too_early")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.value()[0].float()


edited("13.3", "divided_twice", ("all_reduce(half,", "all_reduce(half, op=dist.ReduceOp.AVG,"))
edited("13.3", "sends_float32", (".half()", ""), points=4)
edited("13.3", "other_shape", ("bucket.buffer()", "bucket.gradients()[-1]"))
edited("13.3", "other_shape", ("bucket.buffer()", "bucket.buffer()[None]"))
edited("13.3", "no_group", ("group=group, ", ""))


@unnamed("13.3", "raised")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, op=dist.ReduceOp.MAX, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "mixed_up")
def half_hook(group, bucket, kept={}):  # noqa: B006
    def divided():
        return (bucket.buffer() / group.size()).half()

    half = kept.setdefault(0, divided())
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


# One buffer for all calls, of which two may be open at once.
@mistake("13.3", "mixed_up")
def half_hook(group, bucket, kept={}):  # noqa: B006
    half = kept.setdefault(0, torch.empty_like(bucket.buffer(), dtype=torch.float16))
    half.copy_(bucket.buffer() / group.size())
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "loses_inf")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()

    def back(done):
        result = done.value()[0].float()
        result[result.isinf()] = 0
        return result

    return dist.all_reduce(half, group=group, async_op=True).get_future().then(back)


edited("13.3", "loses_inf", ("[0].float()", "[0].float().nan_to_num()"))
edited("13.3", "loses_inf", (".half()", ".half().nan_to_num()"))
edited("13.3", "loses_inf", (".half()", ".clamp(-65504, 65504).half()"))
edited("13.3", "sends_inf", (".half()", ".mul(1024).half()"), ("[0].float()", "[0].float() / 1024"))
edited("13.3", "float32", ("[0].float()", "[0].double()"), points=5, named=False)


@unnamed("13.3", "average")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    half[half.abs() < 1e-2] = 0
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@alternative("13.3")
def half_hook(group, bucket):
    half = bucket.buffer().div_(group.size()).half()  # as DDP does it without a hook
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("13.3", "mixed_up")
def half_hook(group, bucket):
    global half
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: half.float())


@mistake("13.3", "mixed_up")
def half_hook(group, bucket, kept={}):  # noqa: B006
    half = (bucket.buffer() / group.size()).half()
    kept["future"] = dist.all_reduce(half, group=group, async_op=True).get_future()
    return kept["future"].then(lambda done: kept["future"].value()[0].float())


@mistake("13.3", "mixed_up")
def half_hook(group, bucket, last=[None]):  # noqa: B006
    last[0] = bucket.buffer()
    half = (last[0] / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: last[0].copy_(done.value()[0]))


edited(
    "13.3", "half_first", ("(bucket.buffer() / group.size()).half()", "bucket.buffer().half() / group.size()")
)


@mistake("13.3", "own_scale")
def half_hook(group, bucket):
    """Keeps what it sends below 30000, as large gradients of its own require."""
    part = bucket.buffer() / group.size()
    top = part.abs().max()
    scale = torch.where(torch.isfinite(top) & (top > 30000), top / 30000, torch.ones_like(top))
    future = dist.all_reduce((part / scale).half(), group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float() * scale)


@alternative("13.3")
def half_hook(group, bucket):
    """Sends a quarter, which all ranks do alike."""
    future = dist.all_reduce(
        (bucket.buffer() / group.size() / 4).half(), group=group, async_op=True
    ).get_future()
    return future.then(lambda done: done.value()[0].float() * 4)


edited("13.3", "sends", (".half()", ".clamp(-30000, 30000).half()"), named=False)


@mistake("13.3", "own_scale")
def half_hook(group, bucket):
    """Makes 1000 of its own largest."""
    part = bucket.buffer() / group.size()
    top = part[part.isfinite()].abs().max() / 1000
    future = dist.all_reduce((part / top).half(), group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float() * top)
