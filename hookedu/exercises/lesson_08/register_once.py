"""Exercise 08.4, `register_once(handles, name, module, hook)`: a registration that never stacks hooks."""

import random
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_08.shared import SomeonesHook
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import HANDLE
from hookedu.language import Text


def _case(rng: random.Random) -> dict[str, Any]:
    """Return two names, and the numbers that hooks record, which all differ."""
    numbers = rng.sample(range(100, 1000), 8)
    names = rng.sample(["count", "keep", "shapes", "norms"], 2)
    return {
        "names": names,
        "runs": numbers[: rng.randint(3, 5)],
        "other": numbers[5],
        "second": numbers[6],
        "moved": numbers[7],
    }


def _probe(register_once: Any, rng: random.Random) -> dict[str, Any]:
    case = _case(rng)
    name, second_name = case["names"]
    a, b, x = nn.Identity(), nn.Identity(), torch.ones(1)
    seen: list[int] = []

    def noting(number: int) -> SomeonesHook:  # a new hook each time, as in a cell that runs again
        return SomeonesHook(lambda module, args, output: seen.append(number))

    def fired(*modules: nn.Module) -> list[int]:
        seen.clear()
        for module in modules:
            module(x)
        return list(seen)

    a.register_forward_hook(noting(case["other"]))  # someone else's hook
    handles: dict[Any, Any] = {}
    returned: Any = None
    after_each = []
    for number in case["runs"]:
        returned = register_once(handles, name, a, noting(number))
        after_each.append(fired(a))
    stored = handles.get(name)
    report = {
        "returned": returned,
        "stored": stored,
        "on": isinstance(stored, RemovableHandle) and stored.id in (stored.hooks_dict_ref() or ()),
        "first": after_each[0],
        "again": after_each[-1],
    }
    register_once(handles, second_name, a, noting(case["second"]))
    report["two_names"] = fired(a)
    register_once(handles, name, b, noting(case["moved"]))
    report["moved"] = fired(a, b)
    silent = remove_handle(handles.get(name)) and remove_handle(handles.get(second_name))
    return report | {"removable": silent, "after": fired(a, b)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    case = _case(rng)
    name, second_name = case["names"]
    other, runs, second, moved = case["other"], case["runs"], case["second"], case["moved"]
    call = f"register_once(handles, {name!r}, a, hook)"
    fires = Text(zh="触发的钩子：{hooks}", en="hooks that fired: {hooks}")
    return [
        Criterion(
            "again",
            saw["again"] == [other, runs[-1]],
            points=2,
            essential=True,
            given=Text(
                zh="`{call}` 运行 {n} 次，钩子依次是 {hooks}；`a` 上原有别人的 {other}；然后 `a(x)`",
                en="`{call}` runs {n} times, with the hooks {hooks}; someone else's {other} is on `a`; then `a(x)`",
            ).format(call=call, n=len(runs), hooks=show(runs), other=other),
            expected=fires.format(hooks=show([other, runs[-1]])),
            got=fires.format(hooks=show(saw["again"])),
            mistake=_recognised(saw, other, runs),
        ),
        Criterion(
            "two_names",
            saw["two_names"] == [other, runs[-1], second],
            points=1,
            given=f"register_once(handles, {second_name!r}, a, hook); a(x)",
            expected=fires.format(hooks=show([other, runs[-1], second])),
            got=fires.format(hooks=show(saw["two_names"])),
            mistake="one_for_all" if saw["two_names"] == [other, second] else None,
        ),
        Criterion(
            "moved",
            saw["moved"] == [other, second, moved],
            points=1,
            given=f"register_once(handles, {name!r}, b, hook); a(x); b(x)",
            expected=fires.format(hooks=show([other, second, moved])),
            got=fires.format(hooks=show(saw["moved"])),
            mistake="stays_on_old_module" if runs[-1] in saw["moved"] else None,
        ),
        Criterion(
            "handle",
            saw["returned"] == HANDLE and saw["removable"] and saw["after"] == [other],
            points=1,
            given=f"handle = {call}",
            expected="RemovableHandle",
            got=show(saw["returned"]).strip("<>"),
            mistake="no_handle" if saw["returned"] != HANDLE else None,
        ),
    ]


def _recognised(saw: dict[str, Any], other: int, runs: list[int]) -> str | None:
    fired = saw["again"]
    if other not in fired:
        return "clears_module"
    if fired == [other, *runs]:
        return "stacks" if saw["stored"] == HANDLE else "not_stored"
    if fired == [other, runs[0]]:
        return "keeps_old"
    if fired != [other]:
        return None
    if saw["on"]:
        return "another_kind"
    return "either_or" if saw["first"] == [other, runs[0]] else "removes_new"


REGISTER_ONCE = Exercise(
    id="08.4",
    title=Text(zh="永不叠加的注册", en="Registration that never stacks"),
    answer="register_once",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="三步：`name` 下有旧句柄，就取下它；挂上新的钩子；把新句柄存到 `handles[name]`。",
            en="Three steps: where `name` has an old handle, take that off; register the new hook; store its handle in `handles[name]`.",
        ),
        Text(
            zh="第一次运行时还没有旧的：`if name in handles:` 之后再 `handles[name].remove()`。",
            en="At the first run there is no old one: `handles[name].remove()` belongs under `if name in handles:`.",
        ),
        Text(
            zh="接着 `handles[name] = module.register_forward_hook(hook)`，最后 `return handles[name]`。",
            en="Then `handles[name] = module.register_forward_hook(hook)` and `return handles[name]`.",
        ),
    ),
    mistakes=(
        Mistake(
            "stacks",
            Text(
                zh="旧的还挂着，钩子叠在了一起。存新句柄之前，先 `handles[name].remove()`。",
                en="The old hooks are still on: they stack. Before you store the new handle, call `handles[name].remove()`.",
            ),
            fails="again",
        ),
        Mistake(
            "not_stored",
            Text(
                zh="句柄没有存进 `handles`，下一次运行就找不到旧的了：`handles[name] = ...`。",
                en="The handle was not stored in `handles`, so the next run cannot find the old one: `handles[name] = ...`.",
            ),
            fails="again",
        ),
        Mistake(
            "keeps_old",
            Text(
                zh="已经有了就不再注册，于是留下的是**旧**函数：你改了钩子再运行单元，改动不会生效。取下旧的，挂上新的。",
                en="You register only if there is none yet, so the **old** function stays: edit the hook, run the cell again, and nothing "
                "changes. Take the old one off and register the new one.",
            ),
            fails="again",
        ),
        Mistake(
            "clears_module",
            Text(
                zh="模块上别人的钩子也没了。不要清空 `module._forward_hooks`，也不要用 `remove_hooks`：只取下 `handles[name]` 那一个。",
                en="Someone else's hook on the module is gone as well. Neither clear `module._forward_hooks` nor use `remove_hooks`: take off "
                "the one in `handles[name]` only.",
            ),
            fails="again",
        ),
        Mistake(
            "removes_new",
            Text(
                zh="一个也不剩：你取下的是刚挂上的。先取下旧的，再挂新的，次序不能反。",
                en="None is left: you took off the one that you had just registered. First the old one off, then the new one on.",
            ),
            fails="again",
        ),
        Mistake(
            "either_or",
            Text(
                zh="第一次挂上了，再运行时只取下了旧的，没有挂新的。注册要写在 `if` 之后，每次都执行，不要写在 `else` 里。",
                en="The first run registered; the next took the old one off and registered nothing. Registering belongs after the `if`, at "
                "every run, not into its `else`.",
            ),
            fails="again",
        ),
        Mistake(
            "another_kind",
            Text(
                zh="你挂成了另一种钩子。`hook` 收 `(module, args, output)`，是前向钩子：用 `register_forward_hook`。",
                en="You registered another kind of hook. `hook` takes `(module, args, output)`, it is a forward hook: use "
                "`register_forward_hook`.",
            ),
            fails="again",
            raises=r"missing 1 required positional argument: 'output'",
        ),
        Mistake(
            "stores_no_handle",
            Text(
                zh="`handles[name]` 里存的不是句柄，所以取不下来。句柄是 `module.register_forward_hook(hook)` 返回的那个，存它。",
                en="What you stored in `handles[name]` is not a handle, so it cannot take anything off. The handle is what "
                "`module.register_forward_hook(hook)` returns: store that.",
            ),
            raises=r"has no attribute 'remove'",
        ),
        Mistake(
            "one_for_all",
            Text(
                zh="另一个名字的钩子也被取下了。只管 `handles[name]`，不要动别的名字。",
                en="The hook under the other name is gone too. Deal with `handles[name]` only, and leave other names alone.",
            ),
            fails="two_names",
        ),
        Mistake(
            "stays_on_old_module",
            Text(
                zh="换了模块，旧模块上的钩子还在：旧的可能挂在别处。`handles[name].remove()` 知道它在哪里，不用你去找。",
                en="The module changed, and the hook on the old one stayed: the old hook may hang elsewhere. `handles[name].remove()` knows "
                "where, you need not look.",
            ),
            fails="moved",
        ),
        Mistake(
            "no_handle",
            Text(
                zh="没有把句柄交出来：最后 `return handles[name]`。",
                en="The handle was not returned: end with `return handles[name]`.",
            ),
            fails="handle",
        ),
        Mistake(
            "no_old_one",
            Text(
                zh="第一次运行时 `handles` 里还没有这个名字：先用 `if name in handles:` 判断，或者 `handles.pop(name, None)`。",
                en="At the first run `handles` has no such name yet: ask `if name in handles:` first, or use `handles.pop(name, None)`.",
            ),
            raises=r"^KeyError",
        ),
        Mistake(
            "calls_now",
            Text(
                zh="你在注册时就把 `hook` 调用掉了。传函数本身：`register_forward_hook(hook)`，不写括号。",
                en="You called `hook` while registering it. Pass the function itself, without parentheses: `register_forward_hook(hook)`.",
            ),
            raises=r"missing 3 required positional arguments",
        ),
    ),
    insight=Text(
        zh="句柄要放在单元之外，单元才能放心地重跑。`record()` 也是这样：同一个单元再运行一次，旧的记录器会被换掉。",
        en="Keep the handle outside of the cell, and the cell can run as often as you like. `record()` works that way too: run a cell again and "
        "its earlier recorder is replaced.",
    ),
)
