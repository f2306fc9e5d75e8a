"""Exercise 12.4, `half_hook(group, bucket)`: a communication hook that sends half as many bytes."""

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from hookedu.exercises.exercise import Criterion, Exercise
from hookedu.exercises.lesson_12.shared import says
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.tools import close, copies, whole
from hookedu.language import Text

# Average of the large gradient: float16 holds it (up to 65504), but not its sum over three ranks or more.
_AVERAGE = 40_000.0


class _Stop(Exception):
    """Ends backward before DDP receives an invalid result, on which it may crash."""


class _Result(Future):
    """The future of a communication, settled when somebody waits or when the hook has returned.

    It is never settled earlier, so that an answer that reads the result too early is detected.
    """

    def __init__(self, settle: Callable[[], None]):
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

    def __init__(self, result: _Result):
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
    is thus what rank 0 sends, times the sum of the shares.

    PyTorch supports process groups written in Python; its own tests use them (test_c10d_pypg.py).
    """

    def __init__(self, shares: list[int]):
        super().__init__(0, len(shares))
        self._total, self.sent, self._open = float(sum(shares)), [], []

    def allreduce(self, tensors: list[torch.Tensor], options: Any) -> dist.Work:  # pyright: ignore[reportIncompatibleMethodOverride]  # the one overload that PyTorch calls here
        if options.reduceOp != dist.ReduceOp.SUM:
            raise RuntimeError("Cannot use ReduceOp.AVG with Gloo: this group only sums")
        self.sent += [[str(t.dtype).removeprefix("torch."), t.numel()] for t in tensors]
        result = _Result(self.settle)
        self._open.append((tensors, result))
        return _Work(result)

    def settle(self) -> None:
        """Complete all pending communications."""
        while self._open:
            tensors, result = self._open.pop(0)
            for tensor in tensors:
                tensor.mul_(self._total)
            result.set_result(tensors)

    def getBackendName(self) -> str:
        return "peers"


def _case(rng: random.Random) -> tuple[torch.Tensor, list[int]]:
    """Return (x, shares): x is the gradient of rank 0, its last value is large; at least three ranks."""
    shares = [1, *rng.sample(range(2, 8), rng.randint(2, 5))]
    return torch.cat([whole(rng, 4), torch.tensor([_AVERAGE * len(shares) // sum(shares)])]), shares


def _probe(half_hook: Any, rng: random.Random) -> dict[str, Any]:
    x, shares = _case(rng)
    group, layer = Peers(shares), nn.Linear(len(x), 1, bias=False)
    report: dict[str, Any] = {"returned": None, "value": None, "done": True, "calls": 0}

    def hook(state, bucket):  # DDP accepts only its own annotations, or none
        report["calls"] += 1
        returned = half_hook(group, bucket)
        group.settle()
        report["returned"] = returned
        if not isinstance(returned, Future):
            raise _Stop
        report["done"] = returned.done()
        if not report["done"]:
            raise _Stop
        report["value"] = returned.wait()  # raises the error of the answer's callback, if any
        if not isinstance(report["value"], torch.Tensor) or report["value"].shape != bucket.buffer().shape:
            raise _Stop
        return returned

    model = DistributedDataParallel(layer, process_group=group, init_sync=False)
    model.register_comm_hook(None, hook)
    try:
        model(x[None]).sum().backward()
        report["grad"] = copies(layer.weight.grad)
    except _Stop:
        report["grad"] = None
    report["is_future"] = isinstance(report["returned"], Future)
    value = report["value"]
    dtype = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
    return report | {"value": copies(value), "dtype": dtype, "sent": group.sent}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, shares = _case(rng)
    n, total = len(shares), sum(shares)
    got, expected = saw["grad"], (x * total / n)[None]
    a_future = saw["is_future"]
    bytes_each = {"float16": 2, "bfloat16": 2, "float32": 4}
    sent = sum(bytes_each.get(dtype, 8) * size for dtype, size in saw["sent"])
    types = {dtype for dtype, _ in saw["sent"]}
    given = Text(
        zh="{n} 个进程，进程 0 的梯度是 {x}，其余的是它的 {shares} 倍",
        en="{n} ranks; the gradient of rank 0 is {x}, and the others' are {shares} times that",
    ).format(n=n, x=show(x), shares=show(shares[1:]))
    size = Text(zh="发送 {n} 字节", en="{n} bytes sent")
    return [
        Criterion(
            "future",
            a_future and saw["done"] and isinstance(saw["value"], torch.Tensor),
            essential=True,
            given="half_hook(group, bucket)",
            expected=Text(zh="一个装着张量的 Future", en="a Future that holds a tensor"),
            got=show(saw["value"] if a_future and saw["done"] else saw["returned"]).strip("<>"),
            mistake=_no_future(saw, a_future),
        ),
        Criterion(
            "average",
            close(got, expected, 2e-3) and types != {"bfloat16"},
            points=3,
            essential=True,
            given=given,
            expected=show(expected),
            got=show(got),
            mistake="other_shape" if got is None else _recognised(got, x, n, total, types),
        ),
        Criterion(
            "bytes",
            sent == 2 * len(x),
            points=2,
            given=given,
            expected=size.format(n=2 * len(x)),
            got=size.format(n=sent),
            mistake="sends_float32" if sent == 4 * len(x) else None,
        ),
        Criterion(
            "float32",
            saw["dtype"] == "float32",
            points=1,
            given="half_hook(group, bucket).wait().dtype",
            expected="float32",
            got=saw["dtype"],
            mistake="stays_half",
        ),
    ]


def _no_future(saw: dict[str, Any], a_future: bool) -> str | None:
    if not a_future:
        if saw["returned"] is None:
            return "returns_nothing"
        return "returns_work" if saw["returned"] == Opaque("_Work") else "returns_tensor"
    if not saw["done"]:
        return "never_done"
    if saw["value"] is None:
        return "then_returns_nothing"
    return "value_is_list" if isinstance(saw["value"], list) else None


def _recognised(got: Any, x: torch.Tensor, n: int, total: int, sent: set[str]) -> str | None:
    """Return the mistake that the small values show, or None; the large value shows only overflow."""
    if not isinstance(got, torch.Tensor) or got.shape != (1, len(x)):
        return None
    if sent == {"bfloat16"}:
        return "bfloat16"
    small, likely = x[:-1], {}
    likely["overflow"] = small * total / n
    likely["no_average"] = small * total
    likely["divided_twice"] = small * total / n**2
    likely["fixed_size"] = small * total / 2
    likely["reads_too_early" if sent else "never_sends"] = small
    found = next((name for name, value in likely.items() if close(got[0, :-1], value, 2e-3)), None)
    if found is None and close(got[0, :-1], small / n, 2e-3):
        return "reads_too_early" if sent else "never_sends"
    return found


HALF_HOOK = Exercise(
    id="12.4",
    title=Text(zh="只传一半的字节", en="Half the bytes"),
    answer="half_hook",
    points=6,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="从 12.7 的 `average` 出发：只有发送的张量变了，`half = (bucket.buffer() / group.size()).half()`。先除再求和，否则和会超出 float16 的 65504。",
            en="Start from `average` in 12.7: only what is sent changes, `half = (bucket.buffer() / group.size()).half()`. Divide before the sum, which could exceed "
            "the 65504 of float16.",
        ),
        Text(
            zh="`future = dist.all_reduce(half, group=group, async_op=True).get_future()`：结果到了才能读，所以写在 `future.then(...)` 里。",
            en="`future = dist.all_reduce(half, group=group, async_op=True).get_future()`: the result may only be read once it is there, so read it "
            "inside `future.then(...)`.",
        ),
        Text(
            zh="最后 `return future.then(lambda done: done.value()[0].float())`：`value()` 是一个列表，里面只有一个张量。",
            en="At the end `return future.then(lambda done: done.value()[0].float())`: `value()` is a list that holds one tensor.",
        ),
    ),
    mistakes=(
        says(
            "returns_nothing",
            "你的钩子返回了 `None`：少了 `return`，或者 `all_reduce` 没有 `async_op=True`，给出的就是 `None`。DDP 要一个 Future；在真的训练里，没有它进程会直接崩溃。",
            "Your hook returned `None`: a `return` is missing, or `all_reduce` ran without `async_op=True` and gave `None`. DDP wants a Future; in a real training, the process crashes without one.",
            fails="future",
        ),
        says(
            "returns_work",
            "`all_reduce(..., async_op=True)` 给出的是通信的句柄，不是 Future：再用 `.get_future()` 取。",
            "What `all_reduce(..., async_op=True)` gives is the handle of the communication, not its Future: take that with `.get_future()`.",
            fails="future",
            raises=r"'_?Work' object has no attribute",
        ),
        says(
            "returns_tensor",
            "你返回的不是 Future。通信还在路上，DDP 要的是 `future.then(...)` 的结果。",
            "What you returned is no Future. The communication is still under way, and DDP wants what `future.then(...)` gives.",
            fails="future",
        ),
        says(
            "then_returns_nothing",
            "这个 Future 里装的是 `None`：交给 `.then(...)` 的函数返回什么，里面就是什么。那个函数也要 `return`。",
            "This Future holds `None`: what the function in `.then(...)` returns is what it will hold. That function needs a `return`, too.",
            fails="future",
        ),
        says(
            "other_shape",
            "Future 里的张量，形状和 `bucket.buffer()` 不同。DDP 要的是桶里全部的梯度，首尾相接；`bucket.gradients()` 给的是一个一个参数的。",
            "The tensor in your Future is not shaped like `bucket.buffer()`. DDP wants all gradients of the bucket, end to end; `bucket.gradients()` gives those of single parameters.",
            fails="average",
        ),
        says(
            "future_is_no_list",
            "交给 `.then(...)` 的函数收到的 `done` 是 Future，不是列表：先 `done.value()`，再 `[0]`。",
            "What the function in `.then(...)` gets, `done`, is a Future and not a list: first `done.value()`, then `[0]`.",
            raises=r"'(_Result|Future)' object (is not subscriptable|has no attribute '(float|half|to|div_?|mul_?|copy_)')",
        ),
        says(
            "value_is_list",
            "这个 Future 里装的是列表。用 `.then(lambda done: done.value()[0].float())` 取出张量。",
            "This Future holds a list. Take the tensor out with `.then(lambda done: done.value()[0].float())`.",
            fails="future",
            raises=r"'list' object has no attribute|list.*must be (Tensor|real number)|float\(\) argument must be.*list",
        ),
        says(
            "never_done",
            "你返回的 Future 永远不会完成，DDP 会一直等下去。返回 `all_reduce` 的 Future，或者它的 `.then(...)`。",
            "The Future that you returned is never done, and DDP would wait for ever. Return that of `all_reduce`, or its `.then(...)`.",
            fails="future",
        ),
        says(
            "overflow",
            "小的梯度对了，大的成了 `inf`：几个进程的和超出了 float16 的 65504。先除以 `group.size()`，再 `all_reduce`。",
            "The small gradients are right, the large one became `inf`: the sum over the ranks exceeds the 65504 of float16. Divide by `group.size()` first, then "
            "`all_reduce`.",
            fails="average",
        ),
        says(
            "no_average",
            "这是和，不是平均：`all_reduce` 只求和，还要除以 `group.size()`。",
            "This is the sum, not the average: `all_reduce` only adds, so divide by `group.size()`.",
            fails="average",
        ),
        says(
            "fixed_size",
            "你除以了 2，这一组却不止 2 个进程：用 `group.size()`。",
            "You divided by 2, but this group has more than 2 ranks: use `group.size()`.",
            fails="average",
        ),
        says(
            "bfloat16",
            "你发送的是 bfloat16，它的有效位数更少，平均值更粗。这里要的是 float16：`.half()`。",
            "You sent bfloat16, which keeps fewer digits and makes the average coarser. Asked for here is float16: `.half()`.",
            fails="average",
        ),
        says(
            "divided_twice",
            "除了两次 `group.size()`：发送之前除过，就不要再除。",
            "Divided by `group.size()` twice: once before sending is enough.",
            fails="average",
        ),
        says(
            "never_sends",
            "只有自己的梯度：没有调用 `dist.all_reduce`，各进程的权重会越走越远。",
            "These are your own gradients only: `dist.all_reduce` was never called, and the ranks' weights would drift apart.",
            fails="average",
        ),
        says(
            "reads_too_early",
            "`async_op=True` 马上就返回，那时还没有求和，你就读了。把后面的事写进 `future.then(...)`，或者先 `wait()`。",
            "`async_op=True` returns at once, before anything was added, and you read too early. Put what follows into `future.then(...)`, or `wait()` first.",
            fails="average",
            raises=r"completed\(\) INTERNAL ASSERT FAILED",  # raised by Future.value() before there is a value
        ),
        says(
            "sends_float32",
            "平均是对的，发送的却是 float32，字节没有减少：先 `.half()`，再 `all_reduce`。",
            "The average is right, but float32 was sent, which saves no bytes: `.half()` first, then `all_reduce`.",
            fails="bytes",
        ),
        says(
            "stays_half",
            "字节省下来了，Future 里装的却还是 float16。梯度原来是什么类型，就交回什么类型：在 `.then(...)` 里加上 `.float()`。",
            "The bytes are saved, but the Future still holds float16. Hand gradients back in the type they came in: add `.float()` inside "
            "`.then(...)`.",
            fails="float32",
        ),
        says(
            "not_async",
            "没有 `async_op=True`，`all_reduce` 就等到做完，返回 `None`，没有 Future 可取。",
            "Without `async_op=True` the `all_reduce` waits until all is done and returns `None`, so there is no Future to get.",
            raises=r"'NoneType' object has no attribute '(get_future|then|wait)'",
        ),
        says(
            "no_group",
            "要告诉 `all_reduce` 在哪一组进程里通信：`dist.all_reduce(half, group=group, async_op=True)`，进程数是 `group.size()`。",
            "Tell `all_reduce` which group to talk to: `dist.all_reduce(half, group=group, async_op=True)`; the number of ranks is `group.size()`.",
            raises=r"Default process group has not been initialized",
        ),
        says(
            "average_operation",
            "gloo 不会求平均，只会求和：去掉 `ReduceOp.AVG`，自己除以 `group.size()`。",
            "gloo cannot average, only add: drop `ReduceOp.AVG`, and divide by `group.size()` yourself.",
            raises=r"Cannot use ReduceOp.AVG",
        ),
        says(
            "bucket_is_no_tensor",
            "`bucket` 不是张量：梯度在 `bucket.buffer()` 里，首尾相接排成一个张量。",
            "`bucket` is not a tensor: the gradients are in `bucket.buffer()`, end to end in one tensor.",
            raises=r"'torch\._C\._distributed_c10d\.GradBucket'|GradBucket",
        ),
    ),
    insight=Text(
        zh="PyTorch 自带的 `fp16_compress_hook` 就是这么写的；`powerSGD_hook` 压得更狠。",
        en="PyTorch's own `fp16_compress_hook` is written this way; `powerSGD_hook` compresses much further.",
    ),
)
