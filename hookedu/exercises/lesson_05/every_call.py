"""05.5 `every_call(model, x)`: all outputs of all leaf modules, however often each one runs."""

import random
from collections import OrderedDict
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import (
    CALLS_NOW,
    CUTS_GRADIENT,
    LATE_BINDING,
    REMOVES_OTHERS,
    RETURNS_TUPLE,
    WRONG_ARGUMENTS,
    Onlooker,
    graph_kept,
    is_cut,
    none_lost,
)
from hookedu.exercises.observation import show
from hookedu.exercises.shared import ATTACHED, all_detached, none_left
from hookedu.exercises.tools import linear, module_hooks, same, whole
from hookedu.language import Text


class _Interruption(Exception):
    """Raised by the model, as one that runs out of memory would."""


class _Twice(nn.Module):
    """A model that runs its body `rounds` times, as recurrent models do, and never runs `spare`."""

    def __init__(self, weight: torch.Tensor, rounds: int) -> None:
        super().__init__()
        self.body = nn.Sequential(OrderedDict(fc=linear(weight), act=nn.ReLU()))
        self.head, self.spare = linear(weight[:1]), nn.Tanh()
        self.rounds, self.broken = rounds, False
        self.cut = False  # whether a hook has detached an output
        self.hooks: int | None = None  # number of hooks during the last run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hooks = module_hooks(self)
        for _ in range(self.rounds):
            step = self.body(x)
            self.cut = self.cut or is_cut(step)
            x = x + step
        if self.broken:
            raise _Interruption
        out = self.head(x)
        self.cut = self.cut or is_cut(out)
        return out


def _case(rng: random.Random) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return (x, weight, rounds)."""
    while True:
        x, weight, rounds = whole(rng, 2).reshape(1, 2), whole(rng, 4).reshape(2, 2), rng.randint(2, 3)
        first, *_, last = _expected(x, weight, rounds)["body.fc"]
        if not torch.equal(first, last):  # otherwise the first call and the last are indistinguishable
            return x, weight, rounds


def _expected(x: torch.Tensor, weight: torch.Tensor, rounds: int) -> dict[str, list[torch.Tensor]]:
    fc, act = [], []
    for _ in range(rounds):
        fc.append(x @ weight.T)
        act.append(fc[-1].relu())
        x = x + act[-1]
    return {"body.fc": fc, "body.act": act, "head": [x @ weight[:1].T], "spare": []}


def _probe(every_call: Any, rng: random.Random) -> dict[str, Any]:
    x, weight, rounds = _case(rng)
    model = _Twice(weight, rounds)
    onlooker = Onlooker(model)
    theirs = module_hooks(model)
    found = every_call(model, x)
    groups = (
        [v if isinstance(v, (list, tuple)) else [v] for v in found.values()]
        if isinstance(found, dict)
        else []
    )
    attached = sum(isinstance(t, torch.Tensor) and t.requires_grad for group in groups for t in group)
    report = {
        "found": dict(found) if isinstance(found, dict) else found,
        "attached": attached,
        "cut": model.cut,
        "hooks": None if model.hooks is None else model.hooks - theirs,
        "root_calls": onlooker.root_calls,
        "training": all(m.training for m in model.modules()),
        "left": onlooker.others(),
        "lost": onlooker.lost(),
    }
    broken = _Twice(weight, rounds)
    broken.broken, onlooker = True, Onlooker(broken)
    with suppress(_Interruption):
        every_call(broken, x)
    return report | {
        "left_by_error": onlooker.others(),
        "lost": report["lost"] + onlooker.lost(),
    }


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, weight, rounds = _case(rng)
    expected, found = _expected(x, weight, rounds), saw["found"]
    given = f"x = {show(x)}; fc.weight = {show(weight)}; for _ in range({rounds}): x = x + body(x)"
    fires = Text(zh="`model` 自己的钩子触发 {n} 次", en="times that a hook on `model` itself fired: {n}")
    right_keys = isinstance(found, dict) and found.keys() == expected.keys()
    return [
        Criterion(
            "keys",
            right_keys,
            points=1,
            essential=True,
            given="every_call(model, x).keys()",
            expected=show(list(expected)),
            got=show(list(found) if isinstance(found, dict) else found),
            mistake=_wrong_keys(saw, expected),
        ),
        Criterion(
            "values",
            same(found, expected),
            points=1,
            essential=True,
            given=given,
            expected=show(expected),
            got=show(found),
            mistake=_wrong_values(found, expected) if right_keys else None,
        ),
        graph_kept("every_call(model, x)", not saw["cut"]),
        all_detached("every_call(model, x)", saw["attached"]),
        none_left("clean", "every_call(model, x)", saw["left"], "leaves_hooks"),
        none_lost("every_call(model, x)", saw["lost"]),
        Criterion(
            "through_call",
            saw["root_calls"] == 1,
            points=1,
            given="model.register_forward_hook(...); every_call(model, x)",
            expected=fires.format(n=1),
            got=fires.format(n=saw["root_calls"]),
            mistake="forward_directly" if saw["root_calls"] == 0 else None,
        ),
        Criterion(
            "as_found",
            saw["training"],
            points=1,
            given="model.train(); every_call(model, x)",
            expected="model.training == True",
            got="model.training == False",
            mistake="left_in_eval",
        ),
        none_left("clean_after_error", "every_call(broken, x)", saw["left_by_error"], "no_finally"),
    ]


def _wrong_keys(saw: dict[str, Any], expected: dict[str, Any]) -> str | None:
    found = saw["found"]
    if found is None:
        return "returns_nothing"
    if found == {} and saw["hooks"] == 0:
        return "children_generator"
    if not isinstance(found, dict) or not found:
        return None
    keys = found.keys()
    if keys == {"body", "head", "spare"} or keys == {"body", "head"}:
        return "only_children"
    if keys == expected.keys() - {"spare"}:
        return "idle_missing"
    if keys & {"", "body"}:
        return "containers_too"
    return "late_binding" if keys == {"spare"} else "class_names" if "Linear" in keys else None


def _wrong_values(found: dict[str, Any], expected: dict[str, list[torch.Tensor]]) -> str | None:
    groups = list(found.values())
    total = sum(map(len, expected.values()))
    sizes = [len(g) if isinstance(g, list) else None for g in groups]
    if sizes == [total] * len(groups):
        return "shared_list"
    if isinstance(found["spare"], list) and len(found["spare"]) == total:
        return "late_binding"
    fc, of = found["body.fc"], expected["body.fc"]
    if same(fc, of[-1]) or same(fc, of[-1:]):
        return "last_call_only"
    if same(fc, of[0]) or same(fc, of[:1]):
        return "first_call_only"
    return "runs_again" if isinstance(fc, list) and len(fc) > len(of) else None


EVERY_CALL = Exercise(
    id="05.5",
    title=Text(zh="记下每一次调用", en="Record every call"),
    answer="every_call",
    points=8,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="先给每个没有子模块的模块准备一个空列表：`[]`。判断「没有子模块」：`list(module.children())` 是空的。",
            en="First give every module without children an empty list of its own: `[]`. A module has no children "
            "when `list(module.children())` is empty.",
        ),
        Text(
            zh="钩子只做一件事：`seen[name].append(output.detach())`。`name` 要当场固定：`partial(keep, name)`。",
            en="The hook does one thing: `seen[name].append(output.detach())`. Fix `name` on the spot: `partial(keep, name)`.",
        ),
        Text(
            zh="循环：`for name, module in model.named_modules():`，`if not list(module.children()):`，`seen[name] = []`，"
            "`handles.append(module.register_forward_hook(partial(keep, name)))`。这些连同 `model(x)` 放进 `try:`，在 `finally:` 里逐个 `handle.remove()`，最后 `return seen`。",
            en="The loop: `for name, module in model.named_modules():`, `if not list(module.children()):`, `seen[name] = []`, "
            "`handles.append(module.register_forward_hook(partial(keep, name)))`. All that and `model(x)` in a `try:`, each `handle.remove()` in its `finally:`, then `return seen`.",
        ),
    ),
    mistakes=(
        Mistake(
            "last_call_only",
            Text(
                zh="每个模块只剩最后一次调用：`seen[name] = ...` 会盖掉前面的。用列表，`append` 进去。",
                en="Only the last call of each module is left: `seen[name] = ...` overwrites the earlier ones. Use a list and `append`.",
            ),
            fails="values",
        ),
        Mistake(
            "first_call_only",
            Text(
                zh="每个模块只有第一次调用：后面的调用被你跳过了（`setdefault`，或者 `if name not in seen`）。",
                en="Only the first call of each module is there: you skip the later ones (`setdefault`, or `if name not in seen`).",
            ),
            fails="values",
        ),
        Mistake(
            "shared_list",
            Text(
                zh="每个名字下都是全部的输出：所有名字共用了一个列表。`dict.fromkeys(names, [])` 只建一个列表；请给每个名字各建一个。",
                en="Every name holds all outputs: the names share one list. `dict.fromkeys(names, [])` makes a single list; "
                "make one for each name.",
            ),
            fails="values",
        ),
        Mistake(
            "runs_again",
            Text(
                zh="调用次数太多：你把 `model(x)` 运行了不止一次，或者同一个模块挂了不止一个钩子。",
                en="There are too many calls: you ran `model(x)` more than once, or attached more than one hook to a module.",
            ),
            fails="values",
        ),
        Mistake(
            "idle_missing",
            Text(
                zh="`spare` 一次也没有运行，但也应当有它的名字，下面是空列表：「没有运行过」也是一个发现。挂钩子的时候就建好列表。",
                en="`spare` never ran, yet its name should be there with an empty list: that it never ran is a finding too. "
                "Make the list when you attach the hook.",
            ),
            fails="keys",
        ),
        Mistake(
            "containers_too",
            Text(
                zh="容器（`body`）或模型自己（名字是空字符串）也在里面。只要没有子模块的：`not list(module.children())`。",
                en="A container (`body`) or the model itself (its name is the empty string) is in it too. "
                "Take only modules without children: `not list(module.children())`.",
            ),
            fails="keys",
        ),
        Mistake(
            "only_children",
            Text(
                zh="`named_children()` 只给第一层。更里面的要用 `named_modules()`。",
                en="`named_children()` gives the first level only. For those further in, use `named_modules()`.",
            ),
            fails="keys",
        ),
        Mistake(
            "class_names",
            Text(
                zh="键应当是模块在模型里的名字，例如 `body.fc`；类名会重复，两个 `Linear` 就混在一起了。",
                en="The keys should be the modules' names in the model, such as `body.fc`; class names repeat, and two `Linear` get mixed up.",
            ),
            fails="keys",
        ),
        Mistake(
            "returns_nothing",
            Text(
                zh="`every_call` 返回了 `None`：最后要 `return seen`。",
                en="`every_call` returned `None`: end with `return seen`.",
            ),
            fails="keys",
        ),
        Mistake("late_binding", LATE_BINDING.says),
        Mistake(
            "children_generator",
            Text(
                zh="`children()` 是生成器，永远为真：先 `list(...)`。",
                en="`children()` is a generator, which is always true: make it a `list(...)` first.",
            ),
            fails="keys",
            raises=r"'generator' has no len\(\)",
        ),
        Mistake(
            "forward_directly",
            Text(
                zh="别人挂在 `model` 上的钩子没有触发：你写的多半是 `model.forward(x)`。写 `model(x)`（5.2 节）。",
                en="A hook that someone had put on `model` did not fire: you probably wrote `model.forward(x)`. "
                "Write `model(x)` (section 5.2).",
            ),
            fails="through_call",
        ),
        Mistake(
            "left_in_eval",
            Text(
                zh="你把模型留在了评估模式：`model.eval()` 会改变模型，调用者并不知道。去掉它。",
                en="You left the model in evaluation mode: `model.eval()` changes it, and your caller does not know. Leave it out.",
            ),
            fails="as_found",
        ),
        Mistake(
            "no_finally",
            Text(
                zh="模型抛出了异常，取下钩子的代码没有执行，钩子留了下来。把它放进 `finally`。",
                en="The model raised, the removal never ran, and the hooks stayed. Put it into a `finally`.",
            ),
            fails="clean_after_error",
        ),
        Mistake(
            "leaves_hooks",
            Text(
                zh="值都对，可是钩子还挂在模型上，下次运行还会触发。把句柄收进列表，最后逐个 `handle.remove()`。",
                en="The values are right, but the hooks are still on the model and will fire at its next run. "
                "Collect the handles and call `handle.remove()` for each.",
            ),
            fails="clean",
        ),
        *(ATTACHED, CUTS_GRADIENT, REMOVES_OTHERS, RETURNS_TUPLE, CALLS_NOW, WRONG_ARGUMENTS),
    ),
    insight=Text(
        zh="一个模块一个列表，一次调用一项：`record()` 的 `.calls` 也是这样记的。",
        en="A list for each module, an entry for each call: `record()` keeps its `.calls` the same way.",
    ),
)
