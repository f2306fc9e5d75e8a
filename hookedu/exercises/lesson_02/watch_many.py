"""02.2 `watch_many(tensors, seen)`: watch many tensors, each under its own name."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_02.shared import (
    CHANGES_GRADIENT,
    HOOKS_EVERYTHING,
    SKIPS_LEAVES,
    SWITCHES_ON,
    left_alone,
    unchanged,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on, remove_handle
from hookedu.exercises.shared import CALLS_NOW, HANDLE, LATE_BINDING, TWO_ARGUMENTS
from hookedu.exercises.tools import copies, same, whole
from hookedu.language import Text

_NAMES = ("stem", "conv", "gate", "pool", "skip", "head")


def _case(rng: random.Random) -> tuple[torch.Tensor, dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Return (x, tensors, weights).

    Of the five named tensors, the second requires no gradient and the fourth is a leaf that does. The weights are the
    gradients of the other four.
    """
    x, names = whole(rng, 2).requires_grad_(), rng.sample(_NAMES, 5)
    made = (2 * x, torch.ones(2), 3 * x, whole(rng, 2).requires_grad_(), x + 1)
    weights = {name: whole(rng, 2) for name in (names[0], *names[2:])}
    return x, dict(zip(names, made, strict=True)), weights


def _loss(tensors: dict[str, torch.Tensor], weights: dict[str, torch.Tensor]) -> torch.Tensor:
    return sum(((weights[name] * tensors[name]).sum() for name in weights), start=torch.zeros(()))


def _probe(watch_many: Any, rng: random.Random) -> dict[str, Any]:
    x, tensors, weights = _case(rng)
    seen: dict[str, Any] = {}
    handles = watch_many(tensors, seen)
    hooks = {name: hooks_on(tensor) for name, tensor in tensors.items()}
    _loss(tensors, weights).backward(retain_graph=True)
    report = {"hooks": hooks, "seen": copies(seen), "handles": handles}
    (2 * _loss(tensors, weights)).backward(retain_graph=True)
    report |= {"second": copies(seen), "x_grad": copies(x.grad)}
    report["switched"] = list(tensors.values())[1].requires_grad
    for handle in handles if isinstance(handles, (list, tuple)) else ():
        remove_handle(handle)
    seen.clear()
    _loss(tensors, weights).backward()
    return report | {"after_removal": len(seen)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    _, tensors, weights = _case(rng)
    names = list(tensors)
    notes = {names[1]: " (requires_grad=False)", names[3]: " (leaf)"}
    given = "tensors: " + ", ".join(name + notes.get(name, "") for name in names)
    twice = given + "; loss.backward(); (2 * loss).backward()"
    seen, second, handles = saw["seen"], saw["second"], saw["handles"]
    newest = {name: 2 * weight for name, weight in weights.items()}
    expected_x = 3 * (2 * weights[names[0]] + 3 * weights[names[2]] + weights[names[4]])
    if not seen:
        mistake = "rebinds_dict" if any(saw["hooks"].values()) else None
    elif seen.keys() == {names[4]}:
        mistake = "late_binding"
    elif seen.keys() == {names[0]}:
        mistake = "returns_in_loop"
    elif seen.keys() == weights.keys() - {names[3]}:
        mistake = "skips_leaves"
    else:
        mistake = "wrong_keys" if not seen.keys() <= set(names) else None
    if same(second, weights):
        repeated = "keeps_the_first"
    else:
        repeated = "adds_up" if same(second, {n: 3 * w for n, w in weights.items()}) else None
    good = isinstance(handles, list) and handles == [HANDLE] * 4 and saw["after_removal"] == 0
    if handles == HANDLE or handles == [HANDLE]:
        missing = "one_handle"
    elif isinstance(handles, list) and None in handles and HANDLE in handles:
        missing = "none_in_list"
    else:
        missing = "no_handle"
    return [
        unchanged(twice, saw["x_grad"], expected_x),
        Criterion(
            "sees",
            same(seen, weights),
            points=2,
            essential=True,
            given=given,
            expected=f"seen == {show(weights)}",
            got=f"seen == {show(seen)}",
            mistake=mistake,
        ),
        Criterion(
            "newest",
            same(second, newest),
            essential=True,
            given=twice,
            expected=f"seen == {show(newest)}",
            got=f"seen == {show(second)}",
            mistake=repeated,
        ),
        left_alone(f"watch_many(tensors, seen); tensors['{names[1]}']", saw["switched"]),
        Criterion(
            "handle",
            good,
            points=1,
            given="handles = watch_many(tensors, seen)",
            expected=Text(
                zh="一个列表，里面是 {n} 个句柄，它们能取下所有钩子",
                en="a list of {n} handles that take all the hooks off",
            ).format(n=4),
            got=show(handles).replace("<", "").replace(">", ""),
            mistake=missing,
        ),
    ]


WATCH_MANY = Exercise(
    id="02.2",
    title=Text(zh="按名字看住许多张量", en="Watch many tensors by name"),
    answer="watch_many",
    points=3,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="先过一遍 `tensors.items()`，跳过 `requires_grad` 为 `False` 的：它们不接受钩子。",
            en="Walk through `tensors.items()` and skip those whose `requires_grad` is `False`: they take no hook.",
        ),
        Text(
            zh="钩子运行时循环早已结束，所以每个钩子要有自己的 `name`。第 2.8 节列出了 3 种办法。",
            en="When a hook runs, the loop is long over, so each hook needs a `name` of its own. Section 2.8 shows 3 ways.",
        ),
        Text(
            zh="循环里写 `def keep(grad, name=name): seen[name] = grad`，再把 `tensor.register_hook(keep)` 收进一个列表，循环之后返回它。",
            en="In the loop: `def keep(grad, name=name): seen[name] = grad`; collect `tensor.register_hook(keep)` "
            "in a list and return it after the loop.",
        ),
    ),
    mistakes=(
        LATE_BINDING,
        Mistake(
            "returns_in_loop",
            Text(
                zh="只有第一个张量被看住了：`return` 写在了循环里面，第一轮就结束了。",
                en="Only the first tensor is watched: the `return` stands inside the loop, which ends in its first round.",
            ),
            fails="sees",
        ),
        Mistake(
            "rebinds_dict",
            Text(
                zh="钩子触发了，`seen` 却是空的：`seen = ...` 只是换了一个局部名字。请写进调用者给的字典：`seen[name] = grad`。",
                en="The hooks fired, yet `seen` is empty: `seen = ...` only gave a local name another value. "
                "Write into the caller's dictionary: `seen[name] = grad`.",
            ),
            fails="sees",
        ),
        Mistake(
            "wrong_keys",
            Text(
                zh="`seen` 的键应当是 `tensors` 里的名字，而不是序号或张量本身。",
                en="The keys of `seen` should be the names in `tensors`, not numbers or the tensors themselves.",
            ),
            fails="sees",
        ),
        Mistake(
            "one_handle",
            Text(
                zh="只交回了 1 个句柄，可是钩子有好几个：另外几个就再也取不下来了。把每个句柄都收进列表。",
                en="You gave back 1 handle, but there are several hooks: the others can never be taken off. "
                "Collect every handle in a list.",
            ),
            fails="handle",
        ),
        Mistake(
            "no_handle",
            Text(
                zh="应当返回一个列表，里面是每一次 `register_hook` 给出的句柄。少了它们，这些钩子就取不下来。",
                en="Return a list with the handle of every `register_hook`. Without them these hooks cannot be taken off.",
            ),
            fails="handle",
        ),
        Mistake(
            "none_in_list",
            Text(
                zh="列表里混进了 `None`：跳过的张量不该留下位置，调用者会对列表里的每一个调用 `remove()`。",
                en="There is a `None` in your list: a tensor that you skip leaves no place behind; your caller calls "
                "`remove()` on everything in it.",
            ),
            fails="handle",
        ),
        Mistake(
            "keeps_the_first",
            Text(
                zh="第 2 次反向传播之后，`seen` 里还是第 1 次的梯度。每次都要写进去：`seen[name] = grad`。",
                en="After backward number 2, `seen` still holds the gradients of number 1. Write in each pass: `seen[name] = grad`.",
            ),
            fails="newest",
        ),
        Mistake(
            "adds_up",
            Text(
                zh="`seen` 里是 2 次反向传播加起来的梯度，像 `.grad` 那样。这里只要这一次的：`seen[name] = grad`。",
                en="`seen` holds the gradients of 2 passes added up, as `.grad` would. Only the one of this pass is wanted: `seen[name] = grad`.",
            ),
            fails="newest",
        ),
        *(CHANGES_GRADIENT, CALLS_NOW, TWO_ARGUMENTS, HOOKS_EVERYTHING, SKIPS_LEAVES, SWITCHES_ON),
    ),
    insight=Text(
        zh="每个钩子都在循环的当下拿到了自己的 `name`，所以反向传播时各报各的名字。",
        en="Every hook got its own `name` at the moment the loop made it, so in backward each reports under its own.",
    ),
)
