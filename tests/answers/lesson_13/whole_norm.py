"""Answers to 13.4, `whole_norm`."""

import contextlib
import functools
import itertools
import math
from functools import reduce
from operator import add

import torch
import torch.distributed as dist
from torch import nn

from tests.answers import alternative, edited, mistake, unnamed


@alternative("13.4")
def whole_norm(shards, group):
    squares = sum((shard.pow(2).sum() for shard in shards), start=torch.zeros(()))
    dist.all_reduce(squares, group=group)
    return squares.sqrt()


@alternative("13.4")
def whole_norm(shards, group):
    total = torch.tensor([sum(s.square().sum().item() for s in shards)], dtype=torch.float32)
    dist.all_reduce(total, op=dist.ReduceOp.SUM, group=group)
    return total.item() ** 0.5


@alternative("13.4")
def whole_norm(shards, group):
    total = torch.zeros(1)
    for shard in shards:
        total += torch.linalg.vector_norm(shard) ** 2
    dist.all_reduce(total, group=group)
    return torch.sqrt(total)


@alternative("13.4")
def whole_norm(shards, group):
    flat = torch.cat([torch.zeros(0), *(shard.flatten() for shard in shards)])
    mine = flat @ flat
    dist.all_reduce(mine, group=group)
    return float(mine) ** 0.5


@alternative("13.4")
def whole_norm(shards, group):
    """As PyTorch computes it."""
    mine = nn.utils.get_total_norm(shards).square()
    work = dist.all_reduce(mine, group=group, async_op=True)
    work.wait()
    return mine.sqrt().item()


@alternative("13.4")
def whole_norm(shards, group):
    mine = torch.tensor(0.0, dtype=torch.float64)
    for shard in shards:
        mine += shard.double().square().sum()
    future = dist.all_reduce(mine, group=group, async_op=True).get_future()
    return future.then(lambda done: math.sqrt(done.value()[0])).wait()


@alternative("13.4")
def whole_norm(shards, group):
    """Each rank has a place of its own."""
    norms = torch.zeros(dist.get_world_size(group))
    norms[dist.get_rank(group)] = torch.stack([torch.zeros(()), *map(torch.Tensor.norm, shards)]).norm()
    dist.all_reduce(norms, group=group)
    return norms.norm().item()


@alternative("13.4")
def whole_norm(shards, group):
    if shards:
        squares = torch.stack([(shard * shard).sum() for shard in shards]).sum()
    else:
        squares = torch.tensor(0.0)
    dist.all_reduce(squares, group=group)
    return squares**0.5


@alternative("13.4")
def whole_norm(shards, group):
    squares = reduce(add, (torch.dot(s.reshape(-1), s.reshape(-1)) for s in shards), torch.zeros(()))
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(squares, group=group)
    return squares.sqrt().numpy()


@alternative("13.4")
class WholeNorm:
    def __new__(cls, shards, group):
        self = super().__new__(cls)
        self.total = torch.zeros(())
        for shard in shards:
            self.add(shard)
        dist.all_reduce(self.total, group=group)
        return self.total.sqrt().item()

    def add(self, shard):
        self.total = self.total + torch.einsum("i,i->", shard.ravel(), shard.ravel())


@alternative("13.4")
def whole_norm(shards, group):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        norms = [torch.norm(shard) for shard in shards]
        buffer = torch.tensor([torch.norm(torch.tensor(norms)) ** 2 if norms else 0.0])
        dist.all_reduce(buffer, group=group)
        (total,) = buffer.tolist()
    return math.sqrt(total)


@alternative("13.4")
def whole_norm(shards, group):
    def squares():
        for shard in shards:
            if shard.numel():
                yield float((shard.numpy().astype("float64") ** 2).sum())

    total = torch.tensor(math.fsum(squares()))
    dist.all_reduce(total, group=group)
    return total.sqrt().item()


@alternative("13.4")
def whole_norm(shards, group):
    values = list(itertools.chain.from_iterable(shard.flatten().tolist() for shard in shards))
    dist.all_reduce(total := torch.tensor(float(sum(v * v for v in values))), group=group)
    return total.item() ** 0.5


@alternative("13.4")
def whole_norm(shards, group):
    total = torch.zeros(())
    add_square = functools.partial(torch.Tensor.add_, total)
    for shard in shards:
        add_square(shard.detach().clone().square_().sum())
    group.allreduce([total]).wait()
    return total.sqrt()


@alternative("13.4")
def whole_norm(shards, group):
    mean = torch.zeros(())
    for shard in shards:
        mean += shard.square().sum()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG, group=group)
    return (mean * group.size()).sqrt().item()


@alternative("13.4")
def whole_norm(shards, group):
    """The root also where nothing has a gradient."""
    squares = {i: shard.square().sum() for i, shard in enumerate(shards)}
    total = torch.as_tensor(sum(squares.values()), dtype=torch.float32).clone()
    dist.all_reduce(total, group=group)
    return total.sqrt().item() if total != 0 else 0


edited("13.4", "never_sends", ("    dist.all_reduce(squares, group=group)\n", ""))
edited("13.4", "no_group", (", group=group", ""))
edited("13.4", "no_root", (".sqrt()", ""))
edited("13.4", "returns_nothing", ("    return squares", "    squares"))
edited("13.4", "takes_largest", ("(squares, group", "(squares, dist.ReduceOp.MAX, group"))
edited("13.4", "averages", ("(squares, group", "(squares, dist.ReduceOp.AVG, group"))
edited("13.4", "averages", ("return squares.sqrt()", "return (squares / group.size()).sqrt()"))
edited("13.4", "averages", (".sqrt().item()", ".sqrt().item() / group.size()"))
edited("13.4", "adds_norms_of_pieces", (".square().sum()", ".norm()"), (".sqrt()", ""))
edited("13.4", "another_norm", (".square().sum()", ".abs().sum()"), (".sqrt()", ""))
edited("13.4", "norm", (".square().sum()", ".sum().square()"), named=False)
edited("13.4", "norm", (".square().sum()", ".square().mean()"), named=False)
edited("13.4", "norm", (".square().sum()", ".norm()"), named=False)
edited("13.4", "own_only", ("group=group)", "group=group, async_op=True)"))
edited("13.4", "gives_none", ("    dist.all_reduce", "    squares = dist.all_reduce"))
edited(
    "13.4",
    "gives_none",
    (", group=group)\n    return squares.", ", group=group).sqrt()\n    return squares."),
)
edited(
    "13.4",
    "more_than_once",
    ("group=group)\n", "group=group)\n    dist.all_reduce(torch.ones(()), group=group)\n"),
    points=3,
)
edited("13.4", "skips", ("    squares =", "    if not shards:\n        return 0.0\n    squares ="))
edited("13.4", "some_wait", ("    dist.all", "    if squares > 0:\n        dist.all"))
edited("13.4", "skips", ("    dist.all", "    if sum(shard.numel() for shard in shards):\n        dist.all"))
edited("13.4", "per_piece", ("\n    dist.all_reduce", "\n        dist.all_reduce"))
edited("13.4", "some_wait", ("    dist.all", "    if group.rank() == 0:\n        dist.all"))
edited("13.4", "some_wait", ("    dist.all", "    if dist.get_rank(group) > 0:\n        dist.all"))
edited(
    "13.4",
    "another_way",
    ("    dist.all_reduce(", "    dist.barrier(group=group)\n    dist.all_reduce("),
)
edited("13.4", "another_way", ("dist.all_reduce(squares, ", "dist.reduce(squares, 0, "))
edited(
    "13.4",
    "returns_somewhere",
    ("return squares.sqrt().item()", "return squares.sqrt().item() if group.rank() == 0 else None"),
)
edited("13.4", "sends_number", ("    squares = torch.zeros(())", "    squares = 0"))
edited("13.4", "sends_number", ("all_reduce(squares,", "all_reduce(squares.item(),"))
edited("13.4", "sends_list", ("all_reduce(squares,", "all_reduce(shards,"))
edited("13.4", "norm", ("torch.zeros(())", "torch.zeros((), dtype=torch.float16)"), named=False)
edited("13.4", "norm", ("torch.zeros(())", "torch.zeros((), dtype=torch.bfloat16)"), named=False)
edited("13.4", "norm", ("all_reduce(squares,", "all_reduce(squares.nan_to_num_(),"), named=False)
edited(
    "13.4",
    "norm",
    ("    return", "    if not squares.isfinite():\n        return 0.0\n    return"),
    named=False,
)


@mistake("13.4", "adds_norms")
def whole_norm(shards, group):
    norm = torch.nn.utils.get_total_norm(shards)
    dist.all_reduce(norm, group=group)
    return norm.item()


@mistake("13.4", "adds_norms_of_pieces")
def whole_norm(shards, group):
    norm = torch.zeros(())
    for shard in shards:
        norm += shard.norm()
    dist.all_reduce(squares := norm.square(), group=group)
    return squares.sqrt().item()


@mistake("13.4", "needs_pieces")
def whole_norm(shards, group):
    squares = torch.stack([shard.square().sum() for shard in shards]).sum()
    dist.all_reduce(squares, group=group)
    return squares.sqrt().item()


@mistake("13.4", "needs_pieces")
def whole_norm(shards, group):
    squares = torch.cat([shard.flatten() for shard in shards]).square().sum()
    dist.all_reduce(squares, group=group)
    return squares.sqrt().item()


@mistake("13.4", "integers")
def whole_norm(shards, group):
    squares = torch.tensor(sum(shard.square().sum().item() for shard in shards))
    dist.all_reduce(squares, group=group)
    return squares.sqrt().item()


@mistake("13.4", "sends_pieces")
def whole_norm(shards, group):
    flat = torch.cat([torch.zeros(0), *(shard.flatten() for shard in shards)])
    dist.all_reduce(flat, group=group)
    return flat.norm().item()


@mistake("13.4", "sends_pieces")
def whole_norm(shards, group):
    squares = torch.tensor([shard.square().sum() for shard in shards])
    dist.all_reduce(squares, group=group)
    return squares.sum().sqrt().item()


@mistake("13.4", "keeps_state")
def whole_norm(shards, group, squares=torch.zeros(())):  # noqa: B008
    for shard in shards:
        squares += shard.square().sum()
    dist.all_reduce(squares, group=group)
    return squares.sqrt().item()


@mistake("13.4", "own_twice")
def whole_norm(shards, group):
    mine = sum((shard.square().sum() for shard in shards), torch.zeros(()))
    total = mine.clone()
    dist.all_reduce(total, group=group)
    return (total + mine).sqrt().item()


@mistake("13.4", "own_only")
def whole_norm(shards, group):
    squares = sum((shard.square().sum() for shard in shards), torch.zeros(()))
    dist.all_reduce(squares.clone(), group=group)
    return squares.sqrt().item()


@mistake("13.4", "another_way")
def whole_norm(shards, group):
    mine = torch.nn.utils.get_total_norm(shards)
    norms = [torch.zeros(()) for _ in range(group.size())]
    dist.all_gather(norms, mine, group=group)
    return torch.stack(norms).norm().item()


@mistake("13.4", "another_way")
def whole_norm(shards, group):
    norms = [None] * group.size()
    dist.all_gather_object(norms, torch.nn.utils.get_total_norm(shards).item(), group=group)
    return math.hypot(*norms)


@mistake("13.4", "argument", points=4)
def whole_norm(shards, group):
    squares = torch.zeros(())
    for shard in shards:
        squares += shard.square_().sum()
    dist.all_reduce(squares, group=group)
    return squares.sqrt().item()


@mistake("13.4", "argument", points=4)
def whole_norm(shards, group):
    squares = torch.zeros(())
    while shards:
        squares += shards.pop().square().sum()
    dist.all_reduce(squares, group=group)
    return squares.sqrt().item()


@unnamed("13.4", "norm")
def whole_norm(shards, group):
    """Counts values, not squares."""
    count = torch.tensor(float(sum(shard.count_nonzero() for shard in shards)))
    dist.all_reduce(count, group=group)
    return count.sqrt().item()


@mistake("13.4", "another_norm")
def whole_norm(shards, group):
    """The largest of all values."""
    places = torch.zeros(group.size())
    for shard in shards:
        for value in shard.flatten():
            places[group.rank()] = torch.maximum(places[group.rank()], value.abs())
    dist.all_reduce(places, group=group)
    return places.max().item()


@mistake("13.4", "some_wait")
def whole_norm(shards, group):
    """Once for each value."""
    total = 0.0
    for shard in shards:
        for value in shard.flatten():
            square = value.square()
            dist.all_reduce(square, group=group)
            total += square
    return total**0.5


@mistake("13.4", "more_than_once", points=3)
def whole_norm(shards, group):
    """All ranks as often as the one with the most pieces."""
    most, total = torch.zeros(group.size()), torch.zeros(())
    most[group.rank()] = len(shards)
    dist.all_reduce(most, group=group)
    for n in range(int(most.max())):
        square = shards[n].square().sum() if n < len(shards) else torch.zeros(())
        dist.all_reduce(square, group=group)
        total += square
    return total.sqrt().item()


edited(
    "13.4",
    "per_piece",
    (
        "    squares =",
        "    for shard in shards:\n        dist.all_reduce(shard.clone(), group=group)\n    return None\n    squares =",
    ),
)
edited("13.4", "returns_nothing", ("    return", "    if not squares:\n        return None\n    return"))


@mistake("13.4", "keeps_state")
def whole_norm(shards, group, known=[]):  # noqa: B006
    if not known:
        squares = sum((shard.square().sum() for shard in shards), torch.zeros(()))
        dist.all_reduce(squares, group=group)
        known.append(squares)
    return known[0].sqrt().item()
