"""05.3 `extracting(model, names)`: outputs by name, and no hook left behind whatever fails."""

import random
from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import (
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
from hookedu.exercises.tools import copies, is_manager, linear, same, whole
from hookedu.language import Text


class _Interruption(Exception):
    """Raised by the model's last layer, as one that runs out of memory would."""


class _Head(nn.Module):
    def __init__(self, broken: bool) -> None:
        super().__init__()
        self.broken = broken

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.broken:
            raise _Interruption
        return x.sum(1)


def _case(rng: random.Random) -> tuple[torch.Tensor, torch.Tensor, list[str]]:
    """Return (x, weight, names) for a model with `body.fc`, `body.act` and `head`; `body` varies."""
    stem = rng.choice(("body", "trunk", "block"))
    while True:
        x, weight = whole(rng, 2).reshape(1, 2), whole(rng, 4).reshape(2, 2)
        # If ReLU let nothing through, it would be impossible to tell what a hook changed.
        if (x @ weight.T > 0).any():
            return x, weight, [f"{stem}.fc", f"{stem}.act"]


def _model(weight: torch.Tensor, names: list[str], broken: bool = False) -> nn.Sequential:
    body = nn.Sequential(OrderedDict(fc=linear(weight), act=nn.ReLU()))
    return nn.Sequential(OrderedDict([(names[0].split(".")[0], body), ("head", _Head(broken))]))


def _probe(extracting: Any, rng: random.Random) -> dict[str, Any]:
    x, weight, names = _case(rng)
    model = _model(weight, names)
    onlooker = Onlooker(model)
    manager = extracting(model, list(names))
    if not is_manager(manager):
        return {"manager": manager}
    with manager as seen:
        hooks, out = onlooker.others(), model(x)
        first = copies(seen)
        again = model(2 * x)
        cut = is_cut(out) or is_cut(again)
    kept = seen.values() if isinstance(seen, dict) else ()
    attached = sum(isinstance(t, torch.Tensor) and t.requires_grad for t in kept)
    report = {"manager": True, "hooks": hooks, "out": copies(out), "seen": first, "attached": attached}
    report |= {"again": copies(again), "cut": cut, "at_end": copies(seen)}
    model(3 * x)
    report |= {"after": copies(seen), "left": onlooker.others(), "lost": onlooker.lost()}

    broken, escaped = _model(weight, names, broken=True), False
    onlooker = Onlooker(broken)
    try:
        with extracting(broken, list(names)):
            broken(x)
    except _Interruption:
        escaped = True
    report |= {"escaped": escaped, "left_by_error": onlooker.others()}
    report["lost"] += onlooker.lost()

    misspelt, refused = _model(weight, names), False
    onlooker = Onlooker(misspelt)
    try:
        with extracting(misspelt, [*names, "head.nope"]):
            pass
    except Exception:
        refused = True
    report["lost"] += onlooker.lost()
    return report | {"refused": refused, "left_by_name": onlooker.others()}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, weight, names = _case(rng)
    if saw["manager"] is not True:
        return [
            Criterion(
                "is_manager",
                passed=False,
                essential=True,
                given="manager = extracting(model, names)",
                expected="manager.__enter__, manager.__exit__",
                got=show(saw["manager"]).strip("<>"),
                mistake="not_a_manager",
            )
        ]
    seen, expected = saw["seen"], dict(zip(names, (x @ weight.T, (x @ weight.T).relu()), strict=True))
    call = f"with extracting(model, {names}) as seen: "
    refuses = Text(zh="写错的名字引发异常", en="the misspelt name raises an exception")
    accepts = Text(zh="写错的名字没有人理会", en="nobody minds the misspelt name")
    return [
        Criterion(
            "unchanged",
            same(saw["out"], expected[names[1]].sum(1)),
            essential=True,
            given=f"x = {show(x)}; {call}model(x)",
            expected=f"model(x) == {show(expected[names[1]].sum(1))}",
            got=f"model(x) == {show(saw['out'])}",
            mistake="changes_output",
        ),
        graph_kept(f"{call}model(x); model(2 * x)", not saw["cut"]),
        Criterion(
            "unchanged_again",
            same(saw["again"], 2 * expected[names[1]].sum(1)),
            essential=True,
            given=f"x = {show(x)}; {call}model(x); model(2 * x)",
            expected=f"model(2 * x) == {show(2 * expected[names[1]].sum(1))}",
            got=f"model(2 * x) == {show(saw['again'])}",
            mistake="changes_output",
        ),
        Criterion(
            "sees",
            same(seen, expected),
            points=1,
            essential=True,
            given=f"x = {show(x)}; {call}model(x)",
            expected=f"seen == {show(expected)}",
            got=f"seen == {show(seen)}",
            mistake=_recognise(saw, names),
        ),
        all_detached(call + "model(x)", saw["attached"]),
        none_left(
            "clean",
            call + "model(x)",
            max(saw["left"], not same(saw["after"], saw["at_end"])),
            "never_removes",
        ),
        none_lost(call + "model(x)", saw["lost"]),
        none_left("clean_after_error", call + "model(broken)", saw["left_by_error"], "no_finally"),
        Criterion(
            "error_escapes",
            saw["escaped"],
            points=1,
            given=call + "model(broken)",
            expected=Text(zh="异常传出来", en="the exception comes through"),
            got=Text(zh="异常不见了", en="the exception is gone"),
            mistake="swallows_error",
        ),
        Criterion(
            "refuses_name",
            saw["refused"],
            points=1,
            given=f"with extracting(model, {[*names, 'head.nope']}): ...",
            expected=refuses,
            got=accepts,
            mistake="ignores_bad_name",
        ),
        none_left(
            "clean_after_name",
            f"with extracting(model, {[*names, 'head.nope']}): ...",
            saw["left_by_name"],
            "leaves_on_bad_name",
        ),
    ]


def _recognise(saw: dict[str, Any], names: list[str]) -> str | None:
    seen = saw["seen"]
    if seen is None:
        return "yields_nothing"
    if not isinstance(seen, dict):
        return "yields_something_else"
    if not seen and not saw["hooks"]:
        return "not_on_inside"
    if seen.keys() == {names[1]} and saw["hooks"] == 2:
        return "late_binding"
    return "wrong_keys" if seen and not seen.keys() <= set(names) else None


EXTRACTING = Exercise(
    id="05.3",
    title=Text(zh="提取器", en="An extractor"),
    answer="extracting",
    points=8,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="骨架和练习 02.4 一样：`@contextmanager`，一个 `yield seen`，取下钩子的代码放进 `finally`。",
            en="The frame is that of exercise 02.4: `@contextmanager`, one `yield seen`, and the removal in a `finally`.",
        ),
        Text(
            zh="名字写错时 `get_submodule` 会抛出异常，而前面的钩子已经挂上了。所以**挂钩子的循环**也要放在 `try` 里面。",
            en="A misspelt name makes `get_submodule` raise, when the earlier hooks are already on. So the **loop that "
            "attaches them** belongs inside the `try` as well.",
        ),
        Text(
            zh="次序是：`seen, handles = {}, []`，`try:`，循环里 `handles.append(...)`，`yield seen`，`finally:` 逐个 `handle.remove()`。"
            "钩子用 `partial(keep, name)`，里面 `seen[name] = output.detach()`。",
            en="In this order: `seen, handles = {}, []`, `try:`, the loop with `handles.append(...)`, `yield seen`, "
            "`finally:` each `handle.remove()`. The hook is `partial(keep, name)`, and in it `seen[name] = output.detach()`.",
        ),
    ),
    mistakes=(
        Mistake(
            "not_a_manager",
            Text(
                zh="`extracting(model, names)` 给出的东西不能放进 `with`。如果你写的是带 `yield` 的函数，多半是忘了 `@contextmanager` 这一行。",
                en="What `extracting(model, names)` gives cannot stand in a `with`. If you wrote a function with `yield`, "
                "the line `@contextmanager` is probably missing.",
            ),
            fails="is_manager",
        ),
        Mistake(
            "yields_in_loop",
            Text(
                zh="`yield` 只能执行一次，不要放进循环。",
                en="One `yield`, outside the loop: it may run only once.",
            ),
            raises=r"generator didn't stop",
        ),
        Mistake(
            "yields_nothing",
            Text(
                zh="`as seen` 得到了 `None`。要 `yield seen`（写成类的话，由 `__enter__` 返回它）。",
                en="`as seen` received `None`. Write `yield seen` (in a class, return it from `__enter__`).",
            ),
            fails="sees",
        ),
        Mistake(
            "yields_something_else",
            Text(
                zh="`as seen` 应当得到一个字典「名字 → 输出」，得到的却是别的东西。",
                en="`as seen` should receive a dictionary from names to outputs; it got something else.",
            ),
            fails="sees",
        ),
        Mistake(
            "not_on_inside",
            Text(
                zh="在 `with` 块里面一个钩子也没有：还没到 `yield`，它们就被取下了（或者从没挂上）。",
                en="Inside the `with` block no hook was on: they came off before the `yield`, or were never attached.",
            ),
            fails="sees",
        ),
        Mistake(
            "wrong_keys",
            Text(
                zh="`seen` 的键应当是 `names` 里带点的全名，例如 `body.fc`，而不是类名、序号或最后一段。",
                en="The keys of `seen` should be the full dotted names in `names`, such as `body.fc`, "
                "not class names, numbers or the last part alone.",
            ),
            fails="sees",
        ),
        Mistake(
            "dotted_name",
            Text(
                zh="`getattr` 不认识带点的名字。`model.get_submodule(name)` 会一层一层往里找。",
                en="`getattr` knows no dotted names. `model.get_submodule(name)` walks inwards step by step.",
            ),
            raises=r"has no attribute '\w+\.\w+'",
        ),
        Mistake(
            "only_children",
            Text(
                zh="`named_children()` 只有第一层，里面没有带点的名字。用 `get_submodule(name)`，或者 `dict(model.named_modules())`。",
                en="`named_children()` holds the first level only, without dotted names. Use `get_submodule(name)`, "
                "or `dict(model.named_modules())`.",
            ),
            raises=r"^KeyError: '\w+\.\w+'",
        ),
        Mistake(
            "changes_output",
            Text(
                zh="模型的输出变了：你的钩子返回了一个值。只看不改的钩子什么也不返回。",
                en="The model's output has changed: your hook returned a value. A hook that only watches returns nothing.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "never_removes",
            Text(
                zh="块结束之后钩子还在。`yield` 之后要逐个 `handle.remove()`。",
                en="After the block the hooks are still on. After the `yield`, call `handle.remove()` for each.",
            ),
            fails="clean",
        ),
        Mistake(
            "no_finally",
            Text(
                zh="模型在块里抛出异常，`yield` 后面的代码就不执行了，钩子留了下来。把取下钩子的代码放进 `finally`。",
                en="The model raised inside the block, the code after the `yield` never ran, and the hooks stayed. "
                "Put the removal into a `finally`.",
            ),
            fails="clean_after_error",
        ),
        Mistake(
            "swallows_error",
            Text(
                zh="模型的异常被你吞掉了，调用者不会知道出了错。不要用 `except` 接住它（写成类的话，`__exit__` 不要返回 `True`）。",
                en="You swallowed the model's exception, so the caller never learns of it. "
                "No `except` here (in a class: `__exit__` must not return `True`).",
            ),
            fails="error_escapes",
        ),
        Mistake(
            "ignores_bad_name",
            Text(
                zh="`head.nope` 并不存在，你却一声不响地跳过了它：调用者会一直等一个永远不来的输出。让 `get_submodule` 的异常传出去。",
                en="There is no `head.nope`, yet you passed over it in silence: your caller would wait for an output that "
                "never comes. Let the exception of `get_submodule` through.",
            ),
            fails="refuses_name",
        ),
        Mistake(
            "leaves_on_bad_name",
            Text(
                zh="最后一个名字写错了，前面几个钩子却已经挂上，再也没有人取下。挂钩子的循环也要放进 `try`。",
                en="The last name was misspelt, but the hooks before it were already on, and nobody takes them off. "
                "The loop that attaches them belongs inside the `try` too.",
            ),
            fails="clean_after_name",
        ),
        Mistake("late_binding", LATE_BINDING.says, fails="sees"),
        *(ATTACHED, CUTS_GRADIENT, REMOVES_OTHERS, RETURNS_TUPLE, WRONG_ARGUMENTS),
    ),
    insight=Text(
        zh="不管哪一步出错，钩子都取下了。",
        en="Wherever it fails, every hook comes off.",
    ),
)
