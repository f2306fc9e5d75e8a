"""01.3 `keep_all(tensors, loss)`: run backward so that non-leaves keep their gradients too."""

import random
import warnings
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.tools import close, copies, whole
from hookedu.language import Text


def _case(rng: random.Random) -> tuple[dict[str, torch.Tensor], float, torch.Tensor]:
    """Return (tensors, k, loss): leaf x, data without gradient, h = k * x, y = h**2, loss = (data * y).sum()."""
    n = rng.randint(2, 3)
    x, data, k = whole(rng, n).requires_grad_(), whole(rng, n), float(rng.randint(2, 5))
    h = k * x
    y = h**2
    tensors = {"x": x, "data": data, "h": h, "y": y}
    order = rng.sample(sorted(tensors), len(tensors))
    return {name: tensors[name] for name in order}, k, (data * y).sum()


def _probe(keep_all: Any, rng: random.Random) -> dict[str, Any]:
    tensors, _, loss = _case(rng)
    given = dict(tensors)
    keep_all(given, loss)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading .grad of non-leaves is intended here
        grads = {name: copies(tensor.grad) for name, tensor in tensors.items()}
    return {
        "grads": grads,
        "retains": tensors["h"].retains_grad or tensors["y"].retains_grad,
        "data_flag": tensors["data"].requires_grad,
        "replaced": [name for name in tensors if given.get(name) is not tensors[name]],
    }


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    tensors, k, _ = _case(rng)
    x, data, h = (tensors[name].detach() for name in ("x", "data", "h"))
    expected = {"y": data, "h": 2 * h * data, "x": k * 2 * h * data}
    grads = saw["grads"]
    right = {name: close(grads.get(name), expected[name]) for name in expected}
    if saw["replaced"]:
        mistake = "works_on_copies"
    elif grads["x"] is None:
        mistake = "no_backward"
    elif any(close(grads["x"], times * expected["x"]) for times in (2.0, 3.0, 4.0)):
        mistake = "backward_in_loop"
    elif right["x"] and grads["h"] is None and grads["y"] is None:
        mistake = "retains_too_late" if saw["retains"] else "leaves_only"
    elif right["x"] and (grads["h"] is None or grads["y"] is None):
        mistake = "misses_some"
    else:
        mistake = None
    given = f"x = {show(x)}; data = {show(data)}; h = {k:g} * x; y = h**2; loss = (data * y).sum()"
    wrong = [name for name in expected if not right[name]] or ["y"]
    return [
        Criterion(
            "data_untouched",
            not saw["data_flag"],
            essential=True,
            given=given,
            expected="data.requires_grad == False",
            got=f"data.requires_grad == {saw['data_flag']}",
            mistake="changes_data",
        ),
        Criterion(
            "keeps",
            all(right.values()),
            points=3,
            essential=True,
            given=given,
            expected="; ".join(f"{name}.grad == {show(expected[name])}" for name in wrong),
            got="; ".join(f"{name}.grad == {show(grads[name])}" for name in wrong),
            mistake=mistake,
        ),
    ]


KEEP_ALL = Exercise(
    id="01.3",
    title=Text(zh="留住每一个梯度", en="Keep every gradient"),
    answer="keep_all",
    points=3,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="先后次序最要紧：`retain_grad()` 要在 `backward()` 之前调用。",
            en="The order matters most: call `retain_grad()` before `backward()`.",
        ),
        Text(
            zh="过一遍 `tensors.values()`；`requires_grad` 为 `False` 的跳过，其余的都调用 `retain_grad()`（对叶子也无妨）。",
            en="Walk through `tensors.values()`; skip those whose `requires_grad` is `False` and call `retain_grad()` on "
            "the others (on a leaf it does no harm).",
        ),
        Text(
            zh="`for tensor in tensors.values():`，里面 `if tensor.requires_grad: tensor.retain_grad()`；循环之后 `loss.backward()`，只做一次。",
            en="`for tensor in tensors.values():`, in it `if tensor.requires_grad: tensor.retain_grad()`; after the loop "
            "`loss.backward()`, only once.",
        ),
    ),
    mistakes=(
        Mistake(
            "leaves_only",
            Text(
                zh="只有叶子 `x` 留住了梯度。`h` 和 `y` 是算出来的，要在反向传播之前对它们调用 `retain_grad()`。",
                en="Only the leaf `x` kept its gradient. `h` and `y` were computed: call `retain_grad()` on them before backward.",
            ),
            fails="keeps",
        ),
        Mistake(
            "retains_too_late",
            Text(
                zh="`retain_grad()` 调用得太晚：反向传播已经过去，梯度也扔掉了。把它移到 `backward()` 之前。",
                en="`retain_grad()` came too late: backward was over and the gradients were gone. Move it before `backward()`.",
            ),
            fails="keeps",
        ),
        Mistake(
            "misses_some",
            Text(
                zh="有的非叶子留住了梯度，有的没有。每一个需要梯度的张量都要调用 `retain_grad()`。",
                en="Some non-leaves kept their gradient and some did not. Call `retain_grad()` on every tensor that requires one.",
            ),
            fails="keeps",
        ),
        Mistake(
            "backward_in_loop",
            Text(
                zh="反向传播做了不止一次，梯度于是累加了起来（或者计算图已被释放）。`backward()` 应当在循环之后，只做一次。",
                en="Backward ran more than once, so the gradients added up (or the graph was gone). "
                "`backward()` belongs after the loop, only once.",
            ),
            fails="keeps",
            raises=r"backward through the graph a second time",
        ),
        Mistake(
            "no_backward",
            Text(
                zh="连 `x.grad` 都是 `None`：反向传播还没有做。最后要调用 `loss.backward()`。",
                en="Even `x.grad` is `None`: backward has not run. Call `loss.backward()` at the end.",
            ),
            fails="keeps",
        ),
        Mistake(
            "retains_data",
            Text(
                zh="`data` 的 `requires_grad` 是 `False`：它永远不会有梯度，`retain_grad()` 也就不接受它。跳过这样的张量。",
                en="`data` has `requires_grad=False`: it never gets a gradient, so `retain_grad()` refuses it. Skip such tensors.",
            ),
            raises=r"can't retain_grad on Tensor that has requires_grad=False",
        ),
        Mistake(
            "changes_data",
            Text(
                zh="你给 `data` 打开了 `requires_grad`。它本来就不该有梯度：跳过它，不要改它。",
                en="You turned `requires_grad` on for `data`. It is not meant to have a gradient: skip it, do not change it.",
            ),
            fails="data_untouched",
        ),
        Mistake(
            "works_on_copies",
            Text(
                zh="你把字典里的张量换成了别的（`detach()`、`clone()`），而 `loss` 是由原来那些算出来的。请用原来的张量。",
                en="You put other tensors into the dictionary (from `detach()` or `clone()`), but `loss` was computed from the "
                "ones it had. Work with those.",
            ),
            fails="keeps",
        ),
        Mistake(
            "uses_the_return",
            Text(
                zh="`retain_grad()` 什么也不返回，不要写 `t = t.retain_grad()`。它改变的是张量本身。",
                en="`retain_grad()` returns nothing, so do not write `t = t.retain_grad()`. It changes the tensor itself.",
            ),
            raises=r"'NoneType' object has no attribute",
        ),
    ),
    insight=Text(
        zh="`retain_grad()` 是事先的一句吩咐：「经过时替我留一份」。代价是内存，所以 PyTorch 不会自己这么做。",
        en="`retain_grad()` is an order given beforehand: keep a copy when it passes. It costs memory, "
        "which is why PyTorch does not do it unasked.",
    ),
)
