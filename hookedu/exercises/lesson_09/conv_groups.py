"""Exercise 09.1, `conv_groups(model, x)`: keep convolution outputs despite later in-place operations."""

import random
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import (
    CUTS_GRADIENT,
    REMOVES_OTHERS,
    Onlooker,
    graph_kept,
    is_cut,
    none_lost,
)
from hookedu.exercises.lesson_09.shared import (
    CHANGES_MODEL,
    LEAVES_HOOKS,
    NO_FINALLY,
    RETURNS_NOTHING,
    Interruption,
    conv,
    picture,
    settings,
    unchanged,
)
from hookedu.exercises.observation import show
from hookedu.exercises.shared import ATTACHED, all_detached, none_left
from hookedu.exercises.tools import same
from hookedu.language import Text

_CALL = "conv_groups(model, x)"
_SMALL, _LARGE = "(2, 1, 2, 2)", "(2, 2, 3, 3)"
_OUTPUT = "(1, 2, 2, 2)"  # output shape of every call


class _Net(nn.Module):
    """Three convolutions whose outputs are overwritten: two by in-place ReLUs (one runs twice), one by `+=`."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        inner = nn.Sequential(conv(rng, 2, 2, 3, padding=1), nn.ReLU(inplace=True))
        self.body = nn.Sequential(conv(rng, 1, 2, 2), nn.ReLU(inplace=True), inner)
        self.last, self.relu = conv(rng, 2, 2, 3, padding=1), nn.ReLU(inplace=True)
        self.broken = self.cut = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        self.cut = self.cut or is_cut(h)
        h = self.body[2](h)
        if self.broken:
            raise Interruption
        out = self.last(h)
        self.cut = self.cut or is_cut(out)
        out += h
        return self.relu(out)


def _truth(net: _Net, x: torch.Tensor) -> tuple[dict[str, list], dict[str, list], list]:
    """Return (every output, what `detach()` alone would keep, the large group with all `inplace` off)."""
    with torch.no_grad():
        first, second, last = (m for m in net.modules() if isinstance(m, nn.Conv2d))
        a = first._conv_forward(x, first.weight, None)
        b = second._conv_forward(a.relu(), second.weight, None)
        c = second._conv_forward(b.relu(), second.weight, None)
        d = last._conv_forward(c.relu(), last.weight, None)
        summed = d + c.relu()
    overwritten = {_SMALL: [a.relu()], _LARGE: [b.relu(), c.relu(), summed.relu()]}
    return {_SMALL: [a], _LARGE: [b, c, d]}, overwritten, [b, c, summed]


def _case(rng: random.Random) -> tuple[_Net, torch.Tensor]:
    """Return (net, x) such that outputs differ from call to call and overwriting changes each of them."""
    while True:
        net, x = _Net(rng), picture(rng, 1, 1, 3, 3)
        truth, overwritten, switched_off = _truth(net, x)
        pairs = [*zip(truth[_LARGE], overwritten[_LARGE], strict=True), (truth[_LARGE][2], switched_off[2])]
        if not any(torch.equal(*pair) for pair in pairs) and (truth[_SMALL][0] < 0).any():
            b, c, d = truth[_LARGE]
            if not torch.equal(b, c) and not torch.equal(c, d):
                return net, x


def _named(found: Any) -> Any:
    """Convert keys to text: a shape may be a tuple or a torch.Size."""
    if not isinstance(found, dict):
        return found
    return {str(tuple(k)) if isinstance(k, tuple) else k: v for k, v in found.items()}


def _probe(conv_groups: Any, rng: random.Random) -> dict[str, Any]:
    net, x = _case(rng)
    onlooker, before = Onlooker(net), settings(net)
    found = _named(conv_groups(net, x.clone()))
    groups = found.values() if isinstance(found, dict) else ()
    kept = [t for group in groups for t in (group if isinstance(group, list | tuple) else [group])]
    report = {
        "found": found,
        "attached": sum(isinstance(t, torch.Tensor) and t.requires_grad for t in kept),
        "cut": net.cut,
        "unchanged": settings(net) == before,
        "left": onlooker.others(),
        "lost": onlooker.lost(),
    }
    for module in net.modules():
        module._forward_hooks.clear()
    net.broken, onlooker = True, Onlooker(net)
    with suppress(Interruption):
        conv_groups(net, x.clone())
    return report | {"left_by_error": onlooker.others()}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    net, x = _case(rng)
    expected, overwritten, switched_off = _truth(net, x)
    found = saw["found"]
    right_keys = isinstance(found, dict) and found.keys() == expected.keys()
    given = f"x = {show(x)}; model: conv, relu_, [conv, relu_] × 2, conv, out += h, relu_"
    return [
        Criterion(
            "keys",
            right_keys,
            points=1,
            essential=True,
            given=f"{_CALL}.keys()",
            expected=show(list(expected)),
            got=show(list(found) if isinstance(found, dict) else found),
            mistake=_wrong_keys(found, expected),
        ),
        Criterion(
            "values",
            same(found, expected),
            points=2,
            essential=True,
            given=given,
            **_first_difference(found, expected, right_keys),
            mistake=_wrong_values(found, expected, overwritten, switched_off) if right_keys else None,
        ),
        graph_kept(_CALL, not saw["cut"]),
        all_detached(_CALL, saw["attached"]),
        unchanged(_CALL, saw["unchanged"]),
        none_left("clean", _CALL, saw["left"], "leaves_hooks"),
        none_lost(_CALL, saw["lost"]),
        none_left("clean_after_error", "conv_groups(broken, x)", saw["left_by_error"], "no_finally"),
    ]


def _first_difference(found: Any, expected: dict[str, list], right_keys: bool) -> dict[str, str]:
    """Return `expected` and `got` of the first group that differs: all groups would fill a page."""
    key = next((k for k in expected if right_keys and not same(found[k], expected[k])), _SMALL)
    return {
        "expected": f"[{key}] == {show(expected[key])}",
        "got": f"[{key}] == {show(found[key])}" if right_keys else show(found),
    }


def _wrong_keys(found: Any, expected: dict[str, list]) -> str | None:
    if found is None:
        return "returns_nothing"
    if not isinstance(found, dict):
        return None
    keys = set(found)
    if keys == {"(2, 2)", "(3, 3)"}:
        return "kernel_size"
    if keys == {_OUTPUT}:
        return "output_shape"
    if keys == {_LARGE}:
        n = len(found[_LARGE]) if isinstance(found[_LARGE], list) else 1
        return "only_children" if n == 1 else "late_binding"
    return "by_name" if keys & {"last", "body.0"} else None


def _wrong_values(found: dict, expected: dict, overwritten: dict, switched_off: list) -> str | None:
    large, of = found[_LARGE], expected[_LARGE]
    if same(found, overwritten):
        return "overwritten"
    if same(large, switched_off):
        return "plus_equals"
    if any(same(large, last) for group in (of, overwritten[_LARGE]) for last in (group[-1], group[-1:])):
        return "last_call_only"
    return "runs_twice" if isinstance(large, list) and len(large) == 2 * len(of) else None


CONV_GROUPS = Exercise(
    id="09.1",
    title=Text(zh="不怕就地操作", en="Immune to in-place operations"),
    answer="conv_groups",
    points=8,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`model.modules()` 走遍所有模块，多深都找得到；`isinstance(module, nn.Conv2d)` 挑出卷积。钩子里 `module.weight.shape` 就是键。",
            en="`model.modules()` visits all modules, however deep; `isinstance(module, nn.Conv2d)` picks the convolutions. In the hook, "
            "`module.weight.shape` is the key.",
        ),
        Text(
            zh="钩子当场复制：`groups[tuple(module.weight.shape)].append(output.detach().clone())`，`groups = defaultdict(list)`。",
            en="The hook copies at once: `groups[tuple(module.weight.shape)].append(output.detach().clone())`, with `groups = defaultdict(list)`.",
        ),
        Text(
            zh="注册和 `model(x)` 都放进 `try:`，每个句柄放进列表；`finally:` 里 `for handle in handles: handle.remove()`；最后 `return dict(groups)`。",
            en="Registering and `model(x)` go into a `try:`, each handle into a list; in its `finally:` `for handle in handles: handle.remove()`; "
            "then `return dict(groups)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "overwritten",
            Text(
                zh="留下的全被改写了：一个负数也没有。`detach()` 与 `output` 共用内存；要在钩子里 `output.detach().clone()`，运行完再 `clone()` 就晚了。",
                en="All that you kept was overwritten: no negative number is left. `detach()` shares memory with `output`; take "
                "`output.detach().clone()` inside the hook, for after the run it is too late.",
            ),
            fails="values",
        ),
        Mistake(
            "plus_equals",
            Text(
                zh="就地的 ReLU 你防住了，可是最后一个卷积的输出被 `out += h` 改写了：它没有开关（9.3 节）。用 `clone()`。",
                en="You warded off the in-place ReLUs, but `out += h` overwrote the last convolution's output: that has no switch (section 9.3). "
                "Use `clone()`.",
            ),
            fails="values",
        ),
        Mistake(
            "last_call_only",
            Text(
                zh="每组只剩最后一张：同一形状有好几个卷积，一个卷积也会运行多次。每个键配一个列表，`append` 进去。",
                en="Only the last output of each group is left: several convolutions share a shape, and one may run several times. "
                "Give each key a list and `append`.",
            ),
            fails="values",
        ),
        Mistake(
            "runs_twice",
            Text(
                zh="每次调用都记了两遍：`model(x)` 只能运行一次，钩子也只挂一次。",
                en="Every call is there twice: run `model(x)` only once, and hook each module once.",
            ),
            fails="values",
        ),
        Mistake(
            "kernel_size",
            Text(
                zh="键是 `kernel_size`，只有高和宽。要的是整个核的形状 `tuple(module.weight.shape)`，包括通道数。",
                en="Your keys are `kernel_size`, height and width only. Wanted is the whole kernel's shape, `tuple(module.weight.shape)`, with its channels.",
            ),
            fails="keys",
        ),
        Mistake(
            "output_shape",
            Text(
                zh="键是输出的形状。要的是卷积核的形状 `tuple(module.weight.shape)`：输出一样大的卷积，核不一定一样。",
                en="Your keys are the outputs' shapes. Wanted is the kernel's, `tuple(module.weight.shape)`: convolutions that give equal shapes "
                "may have different kernels.",
            ),
            fails="keys",
        ),
        Mistake(
            "by_name",
            Text(
                zh="键是模块的名字。这里按形状分组：`tuple(module.weight.shape)`。",
                en="Your keys are the modules' names. Here we group by shape: `tuple(module.weight.shape)`.",
            ),
            fails="keys",
        ),
        Mistake(
            "only_children",
            Text(
                zh="只找到了最外层的卷积：`children()` 不往里走，`modules()` 才走遍每一层。",
                en="You found the outermost convolution only: `children()` does not go inside, `modules()` does.",
            ),
            fails="keys",
        ),
        Mistake(
            "late_binding",
            Text(
                zh="所有输出都记到了最后一个形状下：钩子运行时循环早已走完（第 02 课）。从钩子的参数 `module` 读形状。",
                en="All outputs were filed under the last shape: when the hook runs, the loop is over (lesson 02). Read the shape from the "
                "hook's argument `module`.",
            ),
            fails="keys",
        ),
        Mistake(
            "every_module",
            Text(
                zh="你给每个模块都挂了钩子，而 ReLU 没有 `weight`：先用 `isinstance(module, nn.Conv2d)` 挑出来。",
                en="You hooked every module, and a ReLU has no `weight`: pick with `isinstance(module, nn.Conv2d)` first.",
            ),
            raises=r"has no attribute 'weight'",
        ),
        *(RETURNS_NOTHING, ATTACHED, CUTS_GRADIENT, CHANGES_MODEL, LEAVES_HOOKS, REMOVES_OTHERS, NO_FINALLY),
    ),
    insight=Text(
        zh="在钩子里 `detach().clone()`，之后谁就地改什么都与你无关；`record()` 默认的 `copy=True` 就是这样。",
        en="After `detach().clone()` in the hook, nobody's in-place operation concerns you; that is what `record()` does with its default `copy=True`.",
    ),
)
