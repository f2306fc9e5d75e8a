"""What is observed of 13.3, `half_hook(group, bucket)`: a backward pass of DDP in a simulated group of ranks."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import whole

# Average of the large gradient, about: float16 holds it (up to 65504), but not its sum over three ranks or more.
_AVERAGE = 40_000.0
# Larger than anything that rank 0 sends, but infinity and the largest number of float16.
_HUGE = 60_000.0
# What a rank sends of a gradient that is larger than all float16, three times this at least. Below 65504 by little: whoever
# has a scale of their own for what is near that uses it here.
_PART = 63_000.0
RANKS = range(3, 7)


def make_case(rng: Draw) -> tuple[torch.Tensor, list[int]]:
    """Return (x, shares): x is the gradient of rank 0; three or four ranks, in turn 1 five or six.

    One value is small, the last is large; in turn 1 the first three are infinite, with both signs, and nan. Divided by no
    such number of ranks is the sum over all what rank 0 has.
    """
    shares = [1, *rng.sample(range(2, 8), rng.randint(2, 3) + 2 * rng.turn)]
    while sum(shares) in RANKS:
        shares = [1, *rng.sample(range(2, 8), len(shares) - 1)]
    times = round(_PART * sum(shares) / _AVERAGE)  # a whole number of times the large one is sent as `_PART`
    values = torch.cat([whole(rng, 5), torch.tensor([2.0**-8, _PART * len(shares) // times])])
    if rng.turn:
        values[:3] = torch.tensor([torch.inf, -torch.inf, torch.nan])
    return values, shares


def without_nan(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor with 0 in place of nan."""
    return torch.where(x.isnan(), torch.zeros_like(x), x)


def larger(x: torch.Tensor, shares: list[int]) -> int:
    """Return how many times as large gradients are of which float16 holds the part of a rank, but not the whole."""
    return int(_PART * len(shares) // float(x[-1]))


class _Stop(Exception):
    """Ends backward before DDP receives an invalid result, on which it may crash."""


class _Result(Future):
    """The future of a communication, settled when somebody waits or when the hook has returned.

    It is never settled earlier, so that an answer that reads the result too early is detected.
    """

    def __init__(self, settle: Callable[[], None]) -> None:
        super().__init__()
        self._settle = settle

    def wait(self) -> Any:
        self._settle()
        return super().wait()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        after = _Result(self._settle)

        def go_on(done: Future) -> None:
            try:
                after.set_result(callback(done))
            except Exception as error:
                after.set_exception(error)

        self.add_done_callback(go_on)
        return after


class _Work(dist.Work):
    """The return value of `dist.all_reduce`."""

    def __init__(self, result: _Result) -> None:
        super().__init__()
        self._result = result

    def wait(self, timeout: Any = None) -> bool:
        self._result.wait()
        return True

    def get_future(self) -> Future:
        return self._result


class Peers(dist.ProcessGroup):
    """Rank 0 of a process group, simulated in one process.

    Rank i's gradients are `shares[i]` times those of rank 0, and it runs the same hook: the sum of what all ranks send
    is thus what rank 0 sends, times the sum of the shares. Where the gradient of rank 0 is infinite, theirs is 0: if it
    sends the largest number there, the sum remains that. `sent` holds what it sent, `values` a copy, and `infinite`
    counts the values that were infinite.

    PyTorch supports process groups written in Python; its own tests use them (test_c10d_pypg.py).
    """

    def __init__(self, shares: list[int]) -> None:
        super().__init__(0, len(shares))
        self._total, self.sent, self.infinite, self._open = float(sum(shares)), [], 0, []
        self.values = torch.zeros(0)

    def allreduce(self, tensors: list[torch.Tensor], options: Any) -> dist.Work:  # pyright: ignore[reportIncompatibleMethodOverride]  # the one overload that PyTorch calls here
        average = options.reduceOp == dist.ReduceOp.AVG
        if not average and options.reduceOp != dist.ReduceOp.SUM:
            raise RuntimeError("the group of this check only knows ReduceOp.SUM and ReduceOp.AVG")
        self.sent += tensors
        self.values = torch.cat([self.values, *(tensor.float().flatten() for tensor in tensors)])
        self.infinite += sum(int(tensor.isinf().sum()) for tensor in tensors)
        result = _Result(self.settle)
        # As with gloo, an average is a sum first, and that of float16 may overflow.
        self._open.append((tensors, self.size() if average else 1, result))
        return _Work(result)

    def broadcast(self, tensors: list[torch.Tensor], options: Any) -> dist.Work:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return work that is done: rank 0, which sends, is this one. DDP calls it when it rebuilds its buckets."""
        result = _Result(lambda: None)
        result.set_result(tensors)
        return _Work(result)

    def settle(self) -> None:
        """Complete all pending communications, the latest first: whoever waits for one knows nothing of the others."""
        while self._open:
            tensors, parts, result = self._open.pop()
            for tensor in tensors:
                tensor.mul_(torch.where(tensor.abs() < _HUGE, self._total, 1.0)).div_(parts)
            result.set_result(tensors)

    def getBackendName(self) -> str:
        return "peers"


class _OtherBucket:
    """Another bucket of the same kind, with all gradients so many times as large; Python cannot make a `dist.GradBucket`.

    With `no_nan`, 0 stands where they are nan: an infinite number hides beside it, as the largest of both is nan.
    """

    def __init__(self, bucket: Any, times: float, no_nan: bool = False) -> None:
        self._bucket, self._buffer = bucket, times * bucket.buffer()
        if no_nan:
            self._buffer = without_nan(self._buffer)

    def buffer(self) -> torch.Tensor:
        return self._buffer

    def set_buffer(self, buffer: torch.Tensor) -> None:
        self._buffer = buffer

    def gradients(self) -> list[torch.Tensor]:
        pieces = self._buffer.split([gradient.numel() for gradient in self._bucket.gradients()])
        return [p.view_as(g) for p, g in zip(pieces, self._bucket.gradients(), strict=True)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bucket, name)

    def values_of(self, future: Any) -> torch.Tensor | None:
        """Return what a future holds for this bucket: bias, then weights, as float32; None if that cannot be told."""
        with contextlib.suppress(Exception):
            if future.done():
                value = future.wait()
                return torch.cat(sorted(value.split([g.numel() for g in self.gradients()]), key=len)).float()
        return None


def _part(half_hook: Any, bucket: Any, shares: list[int]) -> torch.Tensor:
    """Return what the answer sends of a bucket: bias, then weights."""
    peer = Peers(shares)
    half_hook(peer, bucket)
    peer.settle()
    return peer.values if bucket.gradients()[0].numel() == 1 else peer.values.roll(1)


def _dtypes(half_hook: Any, bucket: Any, shares: list[int]) -> list[str]:
    """Return the types in which the answer sends a bucket."""
    peer = Peers(shares)
    half_hook(peer, bucket)
    peer.settle()
    return sorted({str(tensor.dtype) for tensor in peer.sent})


def observe(half_hook: Any, case: tuple[torch.Tensor, list[int]]) -> dict[str, Any]:
    """Run backward with the hook of the answer in two steps, as far as what it returns allows.

    In the second the hook is called for another bucket first, and for both before any communication ends, as happens in
    training. At the end it is called as on a rank that has larger gradients, and no nan, on one that has only zeros, and on one whose gradients float16 cannot hold.
    """
    x, shares = case
    group, layer = Peers(shares), nn.Linear(len(x), 1)  # its two gradients share a bucket
    report: dict[str, Any] = dict.fromkeys(
        ("returned", "done", "value", "earlier", "part", "larger_part", "zeros", "huge")
    )
    grads: list[torch.Tensor] = []

    def hook(state, bucket):  # DDP accepts only its own annotations, or none
        other = _OtherBucket(bucket, -1) if grads else None
        # An answer may change the bucket, so these are made before.
        same, more = _OtherBucket(bucket, 1), _OtherBucket(bucket, larger(*case), no_nan=True)
        zeros = _OtherBucket(bucket, 0, no_nan=True)
        huge = _OtherBucket(bucket, 3 * larger(*case), no_nan=True)
        earlier = half_hook(group, other) if other else None
        returned = half_hook(group, bucket)
        group.settle()
        done = returned.done() if isinstance(returned, torch._C.Future) else None
        # wait() raises the error of the answer's callback, if any.
        value = returned.wait() if done else None
        if other:
            report["earlier"] = other.values_of(earlier)
            report["part"], report["larger_part"] = (_part(half_hook, b, shares) for b in (same, more))
            report["zeros"] = _part(half_hook, zeros, shares).numel() > 0
            report["huge"] = _dtypes(half_hook, huge, shares)
        else:
            report.update(
                returned=returned, done=done, value=value, sent=list(group.sent), infinite=group.infinite
            )
        if not isinstance(value, torch.Tensor) or value.shape != bucket.buffer().shape:
            raise _Stop
        return returned

    model = DistributedDataParallel(layer, process_group=group, init_sync=False)
    model.register_comm_hook(None, hook)
    with contextlib.suppress(_Stop):
        for _ in range(2):
            layer.zero_grad()
            model(x[None]).sum().backward()
            grads.append(
                torch.cat([p.grad.flatten() for p in (layer.bias, layer.weight) if p.grad is not None])
            )
    dtype, sent = getattr(report["value"], "dtype", None), report.pop("sent")
    return report | {
        "grads": grads,
        "sent": [str(tensor.dtype) for tensor in sent],
        "bytes_sent": sum(tensor.nbytes for tensor in sent),
        "float32": str(dtype).removeprefix("torch."),  # how the gradients, which are float32, come back
    }


PROBE = Probe("13.3", "half_hook", make_case, observe, cases=2)
