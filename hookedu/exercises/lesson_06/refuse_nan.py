"""Exercise 06.1, `refuse_nan(layer, name)`: a guard that stops a forward pass before the layer runs."""

import contextlib
import io
import random
import re
import warnings
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_06.shared import (
    CALLS_NOW,
    NO_HANDLE,
    NOT_REGISTERED,
    ONE_ARGUMENT,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import hands_over
from hookedu.exercises.tools import copies, module_hooks, same, whole
from hookedu.language import Text

_NAMES = ("stem", "norm", "gate", "neck", "head", "encoder")
# Errors that learners raise on purpose. A NameError or TypeError inside a hook is a slip, and its traceback says
# more than a verdict.
_PLAIN = (ValueError, AssertionError)
_ON_PURPOSE = (*_PLAIN, RuntimeError, ArithmeticError)


def _case(rng: random.Random) -> tuple[str, torch.Tensor, torch.Tensor]:
    """Return (name, clean batch, the same batch with NaN).

    There are more NaN than rows or columns, so that no other count gives the right number by chance.
    """
    columns = rng.randint(2, 3)
    clean = whole(rng, 3 * columns).reshape(3, columns)
    broken = clean.clone()
    for place in rng.sample(range(broken.numel()), rng.randint(4, 5)):
        broken.view(-1)[place] = float("nan")
    return rng.choice(_NAMES), clean, broken


def _call(
    layer: nn.Module, *inputs: torch.Tensor, expected: tuple[type[Exception], ...] = _ON_PURPOSE
) -> dict[str, Any]:
    """Call the layer; return its output or error, and whether anything was printed or warned."""
    said, output, error = io.StringIO(), None, None
    with contextlib.redirect_stdout(said), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            output = layer(*inputs)
        except Exception as caught:
            if not isinstance(caught, expected) and type(caught) is not Exception:
                raise
            error = caught
    if error is None:
        return {"error": None, "output": copies(output), "said": bool(said.getvalue() or warned)}
    kind = "ValueError" if isinstance(error, ValueError) else type(error).__name__
    return {"error": kind, "message": str(error), "said": False}


def _gradient(layer: nn.Module, clean: torch.Tensor) -> torch.Tensor | None:
    """Return the gradient that a clean input receives through the layer."""
    x = clean.clone().requires_grad_()
    output = layer(x)
    if isinstance(output, torch.Tensor) and output.requires_grad:
        output.sum().backward()
    return copies(x.grad)


def _probe(refuse_nan: Any, rng: random.Random) -> dict[str, Any]:
    name, clean, broken = _case(rng)
    layer = nn.BatchNorm1d(clean.shape[1])
    handle = refuse_nan(layer, name)
    hooks = module_hooks(layer)
    report = {"handle": handle, "hooks": hooks, "clean": _call(layer, clean, expected=_PLAIN)}
    report |= {"broken": _call(layer, broken), "mean": copies(layer.running_mean)}
    remove_handle(handle)
    report |= {"after_removal": _call(layer, broken)["error"]}

    two = nn.Bilinear(clean.shape[1], clean.shape[1], 1)
    refuse_nan(two, name)
    report["second"] = _call(two, clean, broken)["error"]
    report["both"] = _call(two, broken, broken).get("message")
    endless = nn.ReLU()
    refuse_nan(endless, name)
    if report["clean"]["error"] is None:
        report["gradient"] = _gradient(endless, clean)
    return report | {"infinity": _call(endless, torch.where(broken.isnan(), float("inf"), broken))["error"]}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    name, clean, broken = _case(rng)
    norm = nn.BatchNorm1d(clean.shape[1])
    with torch.no_grad():
        output = norm(clean)
    count = int(broken.isnan().sum())
    call, error = saw["clean"], saw["broken"]["error"]
    said = saw["broken"].get("message") or ""
    counted, apart = (str(count) in _numbers(text) for text in (said, saw["both"] or said))
    gradient = (clean > 0).to(clean.dtype)
    if error or saw["hooks"] == 0:
        silent = "not_registered"
    else:
        silent = "only_says" if saw["broken"]["said"] else "never_true"
    given = f"layer = nn.BatchNorm1d({clean.shape[1]}); refuse_nan(layer, {name!r}); "
    bad = given + f"layer({show(broken)})"
    both = f"layer = nn.Bilinear(...); layer({show(broken)}, {show(broken)})"
    only_total = name in said and counted and not apart
    return [
        Criterion(
            "unchanged",
            call["error"] is None and same(call.get("output"), output),
            essential=True,
            given=given + f"layer({show(clean)})",
            expected=show(output),
            got=call["error"] or show(call.get("output")),
            mistake="refuses_everything" if call["error"] else "changes_output",
        ),
        Criterion(
            "refuses",
            error is not None,
            points=1,
            essential=True,
            given=bad,
            expected="ValueError",
            got=Text(zh="没有异常", en="no exception") if error is None else str(error),
            mistake=silent,
        ),
        Criterion(
            "before",
            same(saw["mean"], norm.running_mean),
            essential=True,
            given=bad,
            expected=f"layer.running_mean == {show(norm.running_mean)}",
            got=f"layer.running_mean == {show(saw['mean'])}",
            mistake="too_late",
        ),
        Criterion(
            "kind",
            error == "ValueError",
            points=1,
            given=bad,
            expected="ValueError",
            got=str(error),
            mistake="wrong_kind",
        ),
        Criterion(
            "says",
            name in said and counted and apart,
            points=1,
            given=both if only_total else bad,
            expected=Text(
                zh="信息里有 `{name}` 和 `{count}`", en="a message that contains `{name}` and `{count}`"
            ).format(name=name, count=count),
            got=repr(saw["both"] if only_total else said),
            mistake="no_name" if name not in said else "adds_up" if only_total else "no_count",
        ),
        Criterion(
            "every_input",
            saw["second"] is not None,
            points=1,
            given=f"layer = nn.Bilinear(...); layer({show(clean)}, {show(broken)})",
            expected="ValueError",
            got=Text(zh="没有异常", en="no exception"),
            mistake="first_only",
        ),
        Criterion(
            "infinity",
            saw["infinity"] is None,
            points=1,
            given=f"layer = nn.ReLU(); layer({show(torch.where(broken.isnan(), float('inf'), broken))})",
            expected=Text(zh="没有异常", en="no exception"),
            got=str(saw["infinity"]),
            mistake="refuses_infinity",
        ),
        Criterion(
            "gradient",
            same(saw.get("gradient"), gradient),
            points=1,
            given=f"x = {show(clean)}; nn.ReLU()(x).sum().backward()",
            expected=f"x.grad == {show(gradient)}",
            got=f"x.grad == {show(saw.get('gradient'))}",
            mistake="cuts_gradient",
        ),
        hands_over("refuse_nan(layer, name)", saw["handle"], saw["after_removal"] is None),
    ]


def _numbers(said: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", said)


REFUSE_NAN = Exercise(
    id="06.1",
    title=Text(zh="拒绝 NaN", en="Refuse NaN"),
    answer="refuse_nan",
    points=7,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="在 `refuse_nan` 里写一个 `def guard(module, args):`，用 `register_forward_pre_hook` 挂到 `layer` 上。`args` 是元组，先用循环逐个取出张量。",
            en="Inside `refuse_nan` write `def guard(module, args):` and attach it to `layer` with `register_forward_pre_hook`. "
            "`args` is a tuple: loop over it to get at the tensors.",
        ),
        Text(
            zh="`nan` 和谁都不相等，连自己也不等，所以要用 `torch.isnan(value)`；`torch.isnan(value).sum().item()` 就是个数。",
            en="`nan` equals nothing, not even itself, so ask `torch.isnan(value)`; `torch.isnan(value).sum().item()` is the count.",
        ),
        Text(
            zh='循环里两行：`count = torch.isnan(value).sum().item()`，`if count: raise ValueError(f"{name}: {count} nan")`；最后 `return layer.register_forward_pre_hook(guard)`。',
            en="Two lines in the loop: `count = torch.isnan(value).sum().item()` and "
            '`if count: raise ValueError(f"{name}: {count} nan")`; at the end `return layer.register_forward_pre_hook(guard)`.',
        ),
    ),
    mistakes=(
        Mistake("not_registered", NOT_REGISTERED, fails="refuses"),
        Mistake(
            "never_true",
            Text(
                zh="钩子挂着，却从不拒绝。多半是拿 `==` 和 `nan` 比：`nan` 和谁都不相等，连自己也不等。请用 `torch.isnan(...)`，并且 `raise`。",
                en="The hook is on but never refuses. Most likely it compares with `==`: `nan` equals nothing, not even itself. "
                "Use `torch.isnan(...)`, and `raise`.",
            ),
            fails="refuses",
        ),
        Mistake(
            "only_says",
            Text(
                zh="你的钩子只是打印或警告了一声，前向传播照常往下走。要拦住它，就得 `raise ValueError(...)`。",
                en="Your hook printed or warned, and the forward pass went on. To stop it you have to `raise ValueError(...)`.",
            ),
            fails="refuses",
        ),
        Mistake(
            "too_late",
            Text(
                zh="异常是抛出了，可是层已经运行过，`running_mean` 里已经有了 `nan`。要用在 `forward` 之前运行的那一种：`register_forward_pre_hook`。",
                en="It was refused, but only after the layer had run: `running_mean` already holds `nan`. "
                "Use the kind that runs before `forward`: `register_forward_pre_hook`.",
            ),
            fails="before",
        ),
        Mistake(
            "refuses_everything",
            Text(
                zh="干净的输入也被拒绝了：你的条件总是成立。`.any` 少了括号就是一个方法，永远算真；要写 `.any()`。",
                en="A clean input was refused as well: your condition always holds. Without parentheses `.any` is a method, "
                "and that counts as true; write `.any()`.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "changes_output",
            Text(
                zh="干净的输入得到了不同的结果：钩子返回的东西会替换输入。只检查的钩子什么也不返回。",
                en="A clean input now gives another output: what a hook returns replaces the input. A guard returns nothing.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "wrong_kind",
            Text(
                zh="拦住了，但异常的类型不对：这里要的是 `ValueError`，好让调用者能只捕获它（`assert` 在 `python -O` 下还会消失）。",
                en="Refused, but with the wrong type of exception: raise `ValueError`, so that a caller can catch just that "
                "(and under `python -O` an `assert` vanishes).",
            ),
            fails="kind",
        ),
        Mistake(
            "no_name",
            Text(
                zh="异常的信息里没有这一层的名字 `name`：在几十层的网络里，读的人不知道出在哪里。用 f 字符串把它写进去。",
                en="The message does not contain `name`: in a network of fifty layers nobody would know where to look. "
                "Put it in with an f-string.",
            ),
            fails="says",
        ),
        Mistake(
            "no_count",
            Text(
                zh="信息里没有 `nan` 的个数。`torch.isnan(value).sum().item()` 就是它。",
                en="The message does not say how many `nan` there are. `torch.isnan(value).sum().item()` is the number.",
            ),
            fails="says",
        ),
        Mistake(
            "adds_up",
            Text(
                zh="个数是所有输入加在一起的。要的是**那个**输入里有几个 `nan`：在循环里逐个数，数到就抛出。",
                en="Your count adds up all inputs. Say how many `nan` **that** input holds: count one input at a time in the loop, "
                "and raise there.",
            ),
            fails="says",
        ),
        Mistake(
            "first_only",
            Text(
                zh="第二个输入里的 `nan` 溜过去了：你只看了 `args[0]`。用循环检查 `args` 里的每一个。",
                en="A `nan` in the second input slipped through: you looked at `args[0]` only. Loop over all of `args`.",
            ),
            fails="every_input",
        ),
        Mistake(
            "refuses_infinity",
            Text(
                zh="`inf` 也被拒绝了。注意力的掩码常常故意用它，这里应当放行：用 `isnan`，不用 `isfinite`。",
                en="`inf` was refused as well. Attention masks hold it on purpose, so let it pass: `isnan`, not `isfinite`.",
            ),
            fails="infinity",
        ),
        Mistake(
            "cuts_gradient",
            Text(
                zh="干净的输入通过了，梯度却回不到它：钩子返回了 `detach()` 过的张量，换掉了输入。只检查的钩子什么也不返回。",
                en="A clean input passes, but its gradient never comes back: your hook returned tensors after `detach()`, and they "
                "replaced the input. A guard returns nothing.",
            ),
            fails="gradient",
        ),
        Mistake(
            "tuple_for_tensor",
            Text(
                zh="`args` 是一个元组，不是张量：先取出里面的张量，再交给 `torch.isnan`。",
                en="`args` is a tuple, not a tensor: take the tensors out of it before you ask `torch.isnan`.",
            ),
            raises=r"must be Tensor, not tuple|'tuple' object has no attribute",
        ),
        Mistake(
            "ambiguous",
            Text(
                zh="`if` 后面是整个张量，PyTorch 不知道你指哪一个数。加上 `.any()`：只要有一个就算。",
                en="The `if` got a whole tensor, and PyTorch cannot tell which number you mean. Add `.any()`: one is enough.",
            ),
            raises=r"Boolean value of Tensor",
        ),
        *(CALLS_NOW, ONE_ARGUMENT, NO_HANDLE),
    ),
    insight=Text(
        zh="前置钩子里的异常让 `forward` 根本不运行，所以层里什么都没有被污染，报错的地方就是出错的地方。",
        en="An exception in a pre-hook keeps `forward` from running at all: nothing in the layer is spoilt, "
        "and the error is raised where the fault is.",
    ),
)
