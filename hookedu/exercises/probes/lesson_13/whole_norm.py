"""What is observed of 13.4, `whole_norm(shards, group)`: the answer on each rank of a group, in one process.

Ranks run one after the other. What a rank sends at its first communication is noted, and the rank is stopped there. When
that is known of all ranks, each runs anew, gets the result of the first communication, and goes on to its second, and so
on until all have returned.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _world
from torch.futures import Future

from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import whole

ROUNDS = 100  # communications of a rank; an answer with more of them is stopped
_SHAPES = ((2,), (3,), (1, 2), (2, 2), (2, 1, 2))
_EMPTY = ((0,), (0, 2))

# Methods of a process group, other than allreduce, by which ranks communicate.
_OTHERS = (
    "broadcast allgather _allgather_base allgather_coalesced allgather_into_tensor_coalesced allreduce_coalesced reduce "
    "gather scatter reduce_scatter _reduce_scatter_base reduce_scatter_tensor_coalesced alltoall alltoall_base barrier "
    "monitored_barrier send recv recv_anysource"
)


def make_case(rng: Draw) -> list[list[torch.Tensor]]:
    """Return the pieces of each rank, of three or four, with different numbers of pieces.

    In turn 0 the last rank has no piece, in turn 1 rank 0, in turn 4 nobody has a value. Values are large in turn 1 and
    small in turn 5, where rank 0 has many, the first not in the order of memory; one is infinite in turn 2, nan in turn 3.
    """
    ranks = rng.randint(3, 4)
    counts = rng.sample(range(1, 5), ranks)
    counts[-1] += 1  # two at least, of which one may be empty
    if rng.turn == 4:
        return [[torch.zeros(rng.choice(_EMPTY)) for _ in range(n - 1)] for n in counts]
    scale = {1: 300.25, 5: 1 / 64}.get(rng.turn, 1.0)
    pieces = [[scale * _piece(rng, rng.choice(_SHAPES)) for _ in range(n)] for n in counts]
    last = pieces[-1]
    if rng.turn != 0:
        last[0], last[1] = rng.sample([last[0], torch.zeros(rng.choice(_EMPTY))], 2)
    if rng.turn in (0, 1):
        pieces[rng.turn - 1] = []
    if rng.turn == 2:
        pieces[0][0].view(-1)[0] = rng.choice((torch.inf, -torch.inf))
    if rng.turn == 5:
        pieces[0][0] = scale * _piece(rng, (2, 3)).T
        pieces[0] += [scale * _piece(rng, (1,)) for _ in range(70)]  # more than anybody makes room for
    if rng.turn == 3:
        max(last, key=torch.numel).view(-1)[0] = torch.nan
    return pieces


def _piece(rng: Draw, shape: tuple[int, ...]) -> torch.Tensor:
    return whole(rng, torch.Size(shape).numel()).reshape(shape)


class _Stop(BaseException):
    """Ends a run of the answer at a communication of which the result is not known yet."""


class _Work(dist.Work):
    """The return value of `dist.all_reduce`; the result is there when somebody waits for it."""

    def __init__(self, tensors: list[torch.Tensor], result: torch.Tensor | None) -> None:
        super().__init__()
        self._tensors, self._result, self._future = tensors, result, Future()

    def wait(self, timeout: Any = None) -> bool:
        if self._result is not None:
            with torch.no_grad():
                self._tensors[0].copy_(self._result)
        if not self._future.done():
            self._future.set_result(self._tensors)
        return True

    def is_completed(self) -> bool:
        return self.wait()

    def get_future(self) -> Future:
        return _Result(self)


class _Result(Future):
    """The future of a communication."""

    def __init__(self, work: _Work) -> None:
        super().__init__()
        self._work = work

    def wait(self) -> Any:
        self._work.wait()
        return self._work._tensors

    value = wait

    def then(self, callback: Callable[[Future], Any]) -> Future:
        self._work.wait()
        return self._work._future.then(callback)


# What all_reduce makes of the tensors of all ranks, one below the other.
_OPERATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "SUM": lambda tensors: tensors.sum(0).to(tensors.dtype),
    "AVG": lambda tensors: tensors.mean(0),
    "MAX": lambda tensors: tensors.amax(0),
    "MIN": lambda tensors: tensors.amin(0),
    "PRODUCT": lambda tensors: tensors.prod(0).to(tensors.dtype),
}


def _name_of(op: Any) -> str:
    for name in _OPERATIONS:
        if op == getattr(dist.ReduceOp, name):
            return name
    raise RuntimeError(f"the group of this check knows only {', '.join(_OPERATIONS)}")


class Rank(dist.ProcessGroup):
    """One rank of a group; `known` are the results of its first communications, None for those that failed."""

    def __init__(self, rank: int, ranks: int, known: list[torch.Tensor | None]) -> None:
        super().__init__(rank, ranks)
        self._known, self.sent, self.op, self.others = known, [], "SUM", []

    def allreduce(self, tensors: Any, options: Any = None) -> dist.Work:  # pyright: ignore[reportIncompatibleMethodOverride]  # the overloads that PyTorch calls here
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        self.sent.append(tensors[0].detach().clone())
        self.op = _name_of(getattr(options, "reduceOp", dist.ReduceOp.SUM))
        if len(self.sent) > len(self._known):
            raise _Stop
        work = _Work(tensors, self._known[len(self.sent) - 1])
        if not getattr(options, "asyncOp", False):
            work.wait()
        return work

    def getBackendName(self) -> str:
        return "gloo"


def _other(name: str) -> Callable[..., Any]:
    def communicate(self: Rank, *args: Any, **kwargs: Any) -> Any:
        self.others.append(name)
        raise _Stop

    return communicate


for _name in _OTHERS.split():
    setattr(Rank, _name, _other(_name))


@contextlib.contextmanager
def _as_rank(group: Rank, world: Rank) -> Iterator[None]:
    """Make `world` the default group, as it is in a training. The last ranks of it are not in the group."""
    before = _world.default_pg
    _world.default_pg = world
    for one in (group, world):
        _world.pg_map[one] = ("gloo", None)  # pyright: ignore[reportArgumentType]
        _world.pg_group_ranks[one] = {rank: rank for rank in range(one.size())}
    try:
        yield
    finally:
        _world.default_pg = before
        for one in (group, world):
            del _world.pg_map[one], _world.pg_group_ranks[one]


def _value(result: Any) -> Any:
    """Return a number as a float, whether it is one of Python, NumPy or PyTorch; anything else as it is."""
    if isinstance(result, torch.Tensor):
        return float(result) if result.numel() == 1 and not result.is_complex() else result
    if isinstance(result, bool) or not hasattr(result, "__float__"):
        return result
    return float(result)


class _Group:
    """All ranks of a group, and what is known of their communications."""

    def __init__(self, whole_norm: Any, pieces: list[list[torch.Tensor]]) -> None:
        self._answer, self._pieces = whole_norm, pieces
        self._known: list[torch.Tensor | None] = []
        self.sent: list[list[torch.Tensor]] = [[] for _ in pieces]
        self.ops: list[str] = []
        self.results: list[Any] = [None] * len(pieces)
        self.returned = [False] * len(pieces)
        self.failed: int | None = None  # the first round in which what the ranks send does not fit together
        self.others: set[str] = set()
        self.steady, self.default = True, False

    def _run(self, rank: int) -> str | None:
        """Run the answer on a rank; return what its communication is, if it was stopped there."""
        group = Rank(rank, len(self._pieces), self._known)
        world = Rank(rank, len(self._pieces) + 1, [])
        with _as_rank(group, world), contextlib.suppress(_Stop):
            self.results[rank] = _value(self._answer(copy.deepcopy(self._pieces[rank]), group))
            self.returned[rank] = True
        before = self.sent[rank]
        self.steady &= len(group.sent) >= len(before) and all(map(_alike, group.sent, before))
        self.sent[rank], self.default = group.sent, self.default or bool(world.sent or world.others)
        self.others |= {*group.others, *world.others}
        return None if self.returned[rank] else group.op

    def run(self) -> None:
        """Run all ranks until each has returned, or would wait for ever."""
        for n in range(ROUNDS):
            ops = {rank: op for rank in range(len(self._pieces)) if (op := self._run(rank))}
            if not ops or self.others or self.default:
                return
            # Where some have returned, the others wait for ever; what follows only counts.
            tensors, kinds = [self.sent[rank][-1] for rank in ops], sorted({*ops.values()})
            self.ops += kinds
            fit = len({(tensor.dtype, tensor.shape) for tensor in tensors}) == 1
            self._known.append(_OPERATIONS[kinds[0]](torch.stack(tensors)) if fit else None)
            if self.failed is None and not fit:
                self.failed = n


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one.nan_to_num(), other.nan_to_num())


def observe(whole_norm: Any, case: list[list[torch.Tensor]]) -> dict[str, Any]:
    """Run the answer on every rank, as often as it communicates and once more."""
    group = _Group(whole_norm, case)
    group.run()
    place = group.failed or 0
    sent = [sent[place] if len(sent) > place else None for sent in group.sent]
    return {
        "counts": [len(sent) for sent in group.sent],
        "dtypes": [None if one is None else str(one.dtype).removeprefix("torch.") for one in sent],
        "shapes": [None if one is None else list(one.shape) for one in sent],
        "ops": group.ops,
        "results": group.results,
        "returned": group.returned,
        "default": group.default,
        "others": sorted(group.others),
        "steady": group.steady,
    }


PROBE = Probe("13.4", "whole_norm", make_case, observe, cases=6)
