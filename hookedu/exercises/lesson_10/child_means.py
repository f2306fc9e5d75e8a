"""Exercise 10.1, `child_means(model, x)`: the mean of every child's output, before it is overwritten."""

import random
from collections import OrderedDict
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import CALLS_NOW, LATE_BINDING, RETURNS_TUPLE, WRONG_ARGUMENTS
from hookedu.exercises.lesson_10.shared import (
    LEAVES_HOOKS,
    NO_FINALLY,
    RETURNS_NOTHING,
    SWALLOWS,
    Chain,
    backward_hooks,
    clean_after_error,
    interrupted,
    number_close,
    rounded,
)
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.shared import none_left
from hookedu.exercises.tools import linear, same, whole
from hookedu.language import Text

_RUN = ("stem", "act", "head")


def _case(rng: random.Random) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (x, weight of the stem, weight of the head); the ReLU changes some values, but not all."""
    while True:
        x, stem, head = whole(rng, 3).reshape(1, 3), whole(rng, 9).reshape(3, 3), whole(rng, 6).reshape(2, 3)
        values = x @ stem.T
        means = [v.mean().item() for v in (x, values, values.relu(), values.relu() @ head.T)]
        if (values < 0).any() and (values > 0).any() and len({round(m, 2) for m in means}) == 4:
            return x, stem, head


def _model(stem: torch.Tensor, head: torch.Tensor, broken: bool = False) -> Chain:
    children = {
        "head": linear(head),
        "act": nn.ReLU(inplace=True),
        "stem": nn.Sequential(OrderedDict(fc=linear(stem))),
    }
    return Chain(children, _RUN, broken)


def _probe(child_means: Any, rng: random.Random) -> dict[str, Any]:
    x, stem, head = _case(rng)
    model = _model(stem, head)
    found = child_means(model, x)
    report = {
        "found": dict(found) if isinstance(found, dict) else found,
        "order": list(found) if isinstance(found, dict) else [],
        "out": None if model.out is None else model.out.detach(),
        "left": backward_hooks(model),
    }
    broken = _model(stem, head, broken=True)
    return report | interrupted(child_means, broken, x)


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, stem, head = _case(rng)
    before = x @ stem.T
    after = before.relu()
    out = after @ head.T
    expected = {name: v.mean().item() for name, v in zip(_RUN, (before, after, out), strict=True)}
    found = saw["found"]
    given = f"x = {show(x)}; stem.fc.weight = {show(stem)}; head.weight = {show(head)}"
    keys = isinstance(found, dict) and found.keys() == expected.keys()
    values = keys and all(number_close(found[name], expected[name]) for name in _RUN)
    return [
        Criterion(
            "names",
            keys,
            points=1,
            essential=True,
            given="child_means(model, x).keys()",
            expected=show(list(_RUN)),
            got=show(saw["order"] if isinstance(found, dict) else found),
            mistake=_wrong_names(found, saw["order"]),
        ),
        Criterion(
            "unchanged",
            same(saw["out"], out),
            essential=True,
            given=given,
            expected=f"model(x) == {show(out)}",
            got=f"model(x) == {show(saw['out'])}",
            mistake="changes_output",
        ),
        Criterion(
            "means",
            values,
            points=2,
            essential=True,
            given=given,
            expected=show(rounded(expected)),
            got=show(rounded(found)),
            mistake=_wrong_means(found, expected, x.mean().item()) if keys else None,
        ),
        Criterion(
            "order",
            saw["order"] == list(_RUN),
            points=1,
            given="list(child_means(model, x))",
            expected=show(list(_RUN)),
            got=show(saw["order"]),
            mistake="model_order",
        ),
        none_left("clean", "child_means(model, x)", saw["left"], "leaves_hooks"),
        clean_after_error("child_means(broken, x)", saw),
    ]


def _wrong_names(found: Any, order: list[Any]) -> str | None:
    if found is None:
        return "returns_nothing"
    if order == ["stem"]:
        return "late_binding"
    if "stem.fc" in order:
        return "all_modules"
    return "class_names" if "Linear" in order else None


def _wrong_means(found: dict[str, Any], expected: dict[str, float], x_mean: float) -> str | None:
    values = [found[name] for name in _RUN]
    if any(isinstance(v, (torch.Tensor, Opaque)) for v in values):
        return "keeps_tensors"
    if number_close(found["stem"], expected["act"]):
        return "too_late"
    return "of_the_input" if number_close(found["stem"], x_mean) else None


CHILD_MEANS = Exercise(
    id="10.1",
    title=Text(zh="子模块的均值", en="Means of the children"),
    answer="child_means",
    points=6,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`model.named_children()` 给出名字和子模块。名字要当场固定，例如 `partial(note, name)`。",
            en="`model.named_children()` gives names and children. Fix the name on the spot, for example with `partial(note, name)`.",
        ),
        Text(
            zh="钩子里一行：`means[name] = output.mean().item()`。当场算，不要留下张量。",
            en="One line in the hook: `means[name] = output.mean().item()`. Compute it there; keep no tensor.",
        ),
        Text(
            zh="`try:` 里循环，`handles.append(child.register_forward_hook(partial(note, name)))`，再 `model(x)`；`finally:` 里逐个 `handle.remove()`；最后 `return means`。",
            en="In `try:` loop with `handles.append(child.register_forward_hook(partial(note, name)))`, then `model(x)`; in `finally:` "
            "each `handle.remove()`; last, `return means`.",
        ),
    ),
    mistakes=(
        replace(LATE_BINDING, fails="names"),
        replace(RETURNS_NOTHING, fails="names"),
        Mistake(
            "all_modules",
            Text(
                zh="里面有更深处的模块（`stem.fc`）或模型自己：要的是第一层，`named_children()`。",
                en="It holds modules further in (`stem.fc`) or the model itself. The first level is wanted: `named_children()`.",
            ),
            fails="names",
        ),
        Mistake(
            "class_names",
            Text(
                zh="键应当是名字，例如 `head`，不是类名：两个同类的子模块会混在一起。",
                en="The keys should be names, such as `head`, not class names: two children of one class get mixed up.",
            ),
            fails="names",
        ),
        Mistake(
            "changes_output",
            Text(
                zh="模型的输出变了：钩子返回的张量取代了它。只看的钩子什么也不返回。",
                en="The model's output changed: the tensor that your hook returns replaced one. A hook that only looks returns nothing.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "too_late",
            Text(
                zh="`stem` 的数其实是 `act` 的：你留下了张量，最后才算，那时就地 ReLU 已经改写了它。在钩子里当场算。",
                en="The number of `stem` is that of `act`: you kept the tensor and computed at the end, when the in-place ReLU had "
                "overwritten it. Compute inside the hook.",
            ),
            fails="means",
        ),
        Mistake(
            "keeps_tensors",
            Text(
                zh="值应当是 Python 的数：`output.mean().item()`。张量会占住内存，还可能连着计算图。",
                en="The values should be Python numbers: `output.mean().item()`. Tensors hold memory, and maybe a graph.",
            ),
            fails="means",
        ),
        Mistake(
            "of_the_input",
            Text(
                zh="这是输入的均值：`args` 是输入，要的是 `output`。",
                en="That is the mean of the input: `args` holds inputs, `output` is wanted.",
            ),
            fails="means",
        ),
        Mistake(
            "model_order",
            Text(
                zh="次序是定义的次序，不是运行的次序。不要预先填好字典，让钩子按触发的次序来填。",
                en="This is the order of definition, not that of running. Don't fill the dictionary beforehand; let the hooks fill it as they fire.",
            ),
            fails="order",
        ),
        *(LEAVES_HOOKS, NO_FINALLY, SWALLOWS, RETURNS_TUPLE, CALLS_NOW, WRONG_ARGUMENTS),
    ),
    insight=Text(
        zh="在钩子里算成一个数，再大的模型也只留下一张小表，就地操作也来不及捣乱。",
        en="With a number made inside the hook, the largest model leaves a small table, and nothing done in place can spoil it.",
    ),
)
