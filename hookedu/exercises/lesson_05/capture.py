"""05.1 `capture(module, seen)`: keep input and output of every call, and return the handle."""

import random
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import (
    CALLS_NOW,
    CUTS_GRADIENT,
    NO_HANDLE,
    NOT_REGISTERED,
    RETURNS_TUPLE,
    WRONG_ARGUMENTS,
    graph_kept,
    is_cut,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import hands_over
from hookedu.exercises.tools import copies, module_hooks, same, whole
from hookedu.language import Text


def _case(rng: random.Random) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return (kernels, pictures) for the network of example E3, each filled with a single number."""
    kernels = whole(rng, 2).reshape(2, 1, 1, 1).expand(2, 1, 3, 3)
    return kernels, [torch.full((1, 1, 4, 4), v) for v in whole(rng, 2).tolist()]


def _probe(capture: Any, rng: random.Random) -> dict[str, Any]:
    kernels, pictures = _case(rng)
    conv, seen = nn.Conv2d(1, 2, 3, bias=False), []
    with torch.no_grad():
        conv.weight.copy_(kernels)
    net = nn.Sequential(conv, nn.MaxPool2d(2))
    handle = capture(conv, seen)
    report = {"early": len(seen), "hooks": module_hooks(net), "handle": handle}
    outs = [net(x) for x in pictures]
    report |= {"out": copies(outs), "cut": sum(map(is_cut, outs))}
    report["seen"] = [list(pair) if isinstance(pair, tuple) else pair for pair in copies(seen)]
    remove_handle(handle)
    net(pictures[0])
    return report | {"after_removal": len(seen) - len(report["seen"])}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    kernels, pictures = _case(rng)
    maps = [F.conv2d(x, kernels) for x in pictures]
    expected, out = [[x, m] for x, m in zip(pictures, maps, strict=True)], [F.max_pool2d(m, 2) for m in maps]
    seen, given = saw["seen"], f"conv.weight[:, 0, 0, 0] = {show(kernels[:, 0, 0, 0])}; "
    given += f"net(torch.full((1, 1, 4, 4), {pictures[0].max():g})); net(torch.full((1, 1, 4, 4), {pictures[1].max():g}))"
    return [
        Criterion(
            "unchanged",
            same(saw["out"], out),
            essential=True,
            given=given,
            expected=f"net(x) == {show([o.flatten() for o in out])}",
            got=f"net(x) == {show([o.flatten() if isinstance(o, torch.Tensor) else o for o in saw['out']])}",
            mistake="changes_output",
        ),
        graph_kept(given, saw["cut"] == 0),
        Criterion(
            "sees",
            same(seen, expected),
            points=2,
            essential=True,
            given=given,
            expected=f"seen == {_shapes(expected)}",
            got=f"seen == {_shapes(seen)}",
            mistake=_recognise(saw, expected),
        ),
        hands_over("capture(conv, seen)", saw["handle"], saw["after_removal"] == 0),
    ]


def _recognise(saw: dict[str, Any], expected: list[Any]) -> str | None:
    seen = saw["seen"]
    if saw["early"]:
        return "too_early"
    if not seen:
        return "rebinds_list" if saw["hooks"] else "not_registered"
    first = seen[0]
    if isinstance(first, torch.Tensor) or len(seen) == 2 * len(expected):
        return "not_a_pair"
    if isinstance(first, list) and len(first) == 2:
        if isinstance(first[0], list):
            return "keeps_the_tuple"
        if same(first, expected[0][::-1]):
            return "wrong_order"
    return "not_a_pair" if isinstance(first, (list, dict)) and len(first) != 2 else None


def _shapes(value: Any) -> str:
    """Format nested tensors by shape, first and last value: whole feature maps are too long for one line."""
    if isinstance(value, torch.Tensor):
        ends = f" {value.flatten()[0]:g}…{value.flatten()[-1]:g}" if value.numel() > 1 else f" {show(value)}"
        return "×".join(map(str, value.shape)) + ends
    if isinstance(value, list):
        return "[" + ", ".join(_shapes(v) for v in value[:8]) + "]"
    return show(value)


CAPTURE = Exercise(
    id="05.1",
    title=Text(zh="捕获输入和输出", en="Capture input and output"),
    answer="capture",
    points=3,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="前向钩子有 3 个参数：`module`、`args`、`output`。你要的输入在元组 `args` 里，是它的第一项。",
            en="A forward hook takes 3 arguments: `module`, `args`, `output`. The input you want is in the tuple "
            "`args`: its first item.",
        ),
        Text(
            zh="在 `capture` 里写一个 `keep(module, args, output)`，让它往 `seen` 里添加一对，什么也不返回。",
            en="Inside `capture` write `keep(module, args, output)`, which adds a pair to `seen` and returns nothing.",
        ),
        Text(
            zh="`keep` 里：`seen.append((args[0], output))`；最后一行：`return module.register_forward_hook(keep)`。",
            en="In `keep`: `seen.append((args[0], output))`; the last line: `return module.register_forward_hook(keep)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "keeps_the_tuple",
            Text(
                zh="你留下的是整个元组 `args`。前向钩子拿到的位置参数总是装在元组里，输入张量是 `args[0]`。",
                en="You kept the whole tuple `args`. A forward hook always gets the positional arguments in a tuple; "
                "the input tensor is `args[0]`.",
            ),
            fails="sees",
        ),
        Mistake(
            "not_a_pair",
            Text(
                zh="每次调用应当往 `seen` 里添加一对 `(x, output)`。注意里层的括号：`seen.append((args[0], output))`。",
                en="Each call should add one pair `(x, output)` to `seen`. Mind the inner parentheses: "
                "`seen.append((args[0], output))`.",
            ),
            fails="sees",
        ),
        Mistake(
            "wrong_order",
            Text(
                zh="两样都在，次序反了：先输入，后输出。",
                en="Both are there, but the other way round: first the input, then the output.",
            ),
            fails="sees",
        ),
        Mistake(
            "rebinds_list",
            Text(
                zh="钩子触发了，`seen` 却是空的：`seen = ...` 只是新建了一个局部名字。要往调用者给的列表里添加：`seen.append(...)`。",
                en="The hook fired, yet `seen` is empty: `seen = ...` only makes a new local name. "
                "Add to the caller's list instead: `seen.append(...)`.",
            ),
            fails="sees",
        ),
        Mistake("not_registered", NOT_REGISTERED.says, fails="sees"),
        Mistake(
            "too_early",
            Text(
                zh="`capture` 刚返回，`seen` 里就有东西了，而模块还没有运行过。`capture` 只挂上钩子，添加的事由钩子去做。",
                en="`seen` was filled as soon as `capture` returned, before the module had run at all. "
                "`capture` only attaches the hook; adding is the hook's work.",
            ),
            fails="sees",
        ),
        Mistake(
            "changes_output",
            Text(
                zh="网络的输出变了：你的钩子返回了一个张量，或者就地改动了 `output`。只看不改的钩子什么也不返回。",
                en="The net's output has changed: your hook returned a tensor, or modified `output` in place. "
                "A hook that only watches returns nothing.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "pre_hook",
            Text(
                zh="`register_forward_pre_hook` 在模块运行**之前**触发，那时还没有 `output`。这里要用 `register_forward_hook`。",
                en="`register_forward_pre_hook` fires **before** the module runs, when there is no `output` yet. "
                "Use `register_forward_hook` here.",
            ),
            raises=r"missing 1 required positional argument",
        ),
        Mistake(
            "calls_again",
            Text(
                zh="钩子里又调用了 `module(...)`，于是钩子再次触发，没完没了。输出已经算好了，就是参数 `output`。",
                en="Your hook calls `module(...)` again, which fires the hook again, without end. "
                "The output is ready: it is the argument `output`.",
            ),
            raises=r"^RecursionError",
        ),
        *(CUTS_GRADIENT, RETURNS_TUPLE, CALLS_NOW, WRONG_ARGUMENTS, NO_HANDLE),
    ),
    insight=Text(
        zh="`args[0]` 是输入，`output` 是输出；`keep` 什么也不返回，所以网络照常运行，好像没有人在看。",
        en="`args[0]` is the input, `output` the output; `keep` returns nothing, so the net runs on as if nobody looked.",
    ),
)
