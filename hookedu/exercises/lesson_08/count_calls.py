"""Exercise 08.5, `count_calls(model, x)`: count calls by class with one global hook, which is then removed."""

import random
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_08.shared import SomeonesHook, without_global_hooks
from hookedu.exercises.observation import show
from hookedu.exercises.tools import linear, module_hooks, whole
from hookedu.hooks.state import GLOBAL_HOOKS
from hookedu.language import Text


class _Interruption(Exception):
    """Raised by a model in its forward, as running out of memory would."""


class Model(nn.Module):
    """A model that runs its body `rounds` times, then modules in a plain list, which model.modules() omits."""

    def __init__(self, weight: torch.Tensor, rounds: int, n_hidden: int) -> None:
        super().__init__()
        self.body, self.rounds = nn.Sequential(linear(weight), nn.ReLU()), rounds
        self.hidden, self.broken = [nn.Tanh() for _ in range(n_hidden)], False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.rounds):
            x = self.body(x)
        for module in self.hidden:
            x = module(x)
        if self.broken:
            raise _Interruption
        return x


def _case(rng: random.Random) -> tuple[torch.Tensor, int, int]:
    """Return (weight, rounds, number of modules in the plain list)."""
    rounds, n_hidden = rng.sample(range(2, 12), 2)
    return whole(rng, 4).reshape(2, 2), rounds, n_hidden


def _probe(count_calls: Any, rng: random.Random) -> dict[str, Any]:
    case, x = _case(rng), torch.ones(1, 2)
    model, broken = Model(*case), Model(case[0], rounds=1, n_hidden=1)
    broken.broken = True
    with without_global_hooks():
        passed_on = False
        try:  # the broken one first: counts that outlive a call then show in the next
            count_calls(broken, x)
        except _Interruption:
            passed_on = True
        report = {"left_by_error": _hooks_on(broken), "passed_on": passed_on}
        for table in GLOBAL_HOOKS.values():  # hooks left by the first run must not count in the second
            table.clear()
        registers = (register_module_forward_pre_hook, register_module_forward_hook)
        theirs = [register(SomeonesHook()) for register in registers]
        found = count_calls(model, x)
        kept = sum(handle.id in (handle.hooks_dict_ref() or ()) for handle in theirs)
        return report | {
            # Of a Counter, which is a dict too, `encode` would keep only the type.
            "found": dict(found) if isinstance(found, dict) else found,
            "left": _hooks_on(model) - kept,
            "lost": kept < len(theirs),
        }


def _hooks_on(model: nn.Module) -> int:
    """Count the global hooks and the forward hooks of a model, together."""
    return module_hooks(model) + sum(
        len(table) for name, table in GLOBAL_HOOKS.items() if name.endswith("_hooks")
    )


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    _, rounds, n_hidden = _case(rng)
    expected = {"Model": 1, "Sequential": rounds, "Linear": rounds, "ReLU": rounds, "Tanh": n_hidden}
    found = saw["found"]
    counts = isinstance(found, dict) and all(type(n) is int for n in found.values())
    call = "count_calls(model, x)"
    hooks = Text(zh="留下的钩子：{n} 个", en="hooks left on: {n}")
    passed_on = Text(
        zh="异常传了出来，留下的钩子：{n} 个", en="the exception came through, hooks left on: {n}"
    )
    swallowed = Text(
        zh="异常没有传出来，留下的钩子：{n} 个", en="the exception did not come through, hooks left on: {n}"
    )
    return [
        Criterion(
            "counts",
            counts and found == expected,
            points=2,
            essential=True,
            given=Text(
                zh="`model` 运行 `body`（`Linear`、`ReLU`）{rounds} 次，再运行普通列表里的 {n} 个 `Tanh`",
                en="`model` runs `body` (`Linear`, `ReLU`) {rounds} times, then {n} `Tanh` from a plain list",
            ).format(rounds=rounds, n=n_hidden),
            expected=show(expected),
            got=show(found),
            mistake=_recognised(found, expected) if counts or not isinstance(found, dict) else None,
        ),
        Criterion(
            "clean",
            saw["left"] == 0,
            points=1,
            given=call,
            expected=hooks.format(n=0),
            got=hooks.format(n=saw["left"]),
            mistake="leaves_hook",
        ),
        Criterion(
            "others",
            not saw["lost"],
            points=1,
            given=call,
            expected=Text(zh="别人的全局钩子还在", en="someone else's global hook is still there"),
            got=Text(zh="别人的全局钩子没了", en="someone else's global hook is gone"),
            mistake="removes_others",
        ),
        Criterion(
            "clean_after_error",
            saw["left_by_error"] == 0 and saw["passed_on"] is True,
            points=1,
            given="count_calls(broken, x)",
            expected=passed_on.format(n=0),
            got=(passed_on if saw["passed_on"] else swallowed).format(n=saw["left_by_error"]),
            mistake="no_finally" if saw["left_by_error"] else "swallows",
        ),
    ]


def _recognised(found: Any, expected: dict[str, int]) -> str | None:
    if found is None:
        return "returns_nothing"
    if not isinstance(found, dict):
        return "returns_total" if type(found) is int and found == sum(expected.values()) else None
    # The text of a module, str(module), is not the name of its class.
    if not all(isinstance(key, str) and key.isidentifier() for key in found):
        return "keys_not_names"
    if found == {"Model": 1, "Sequential": 1, "Linear": 1, "ReLU": 1} | (
        {"Tanh": expected["Tanh"]} if "Tanh" in found else {}
    ):
        return "modules_not_calls"
    if found in ({}, {"Model": 1}):
        return "one_module_only" if found else "never_fires"
    if found == {name: 2 * n for name, n in expected.items()}:
        return "runs_twice"
    if found.keys() == expected.keys() and all(found[k] == expected[k] + 1 for k in found.keys() - {"Model"}):
        return "keeps_counting"
    missing = expected.keys() - found.keys()
    if any(found[key] != expected.get(key) for key in found):
        return "once_each" if set(found.values()) == {1} else None
    for mistake, names in (
        ("forward_directly", {"Model"}),
        ("leaves_only", {"Model", "Sequential"}),
        ("own_hooks_only", {"Tanh"}),
        ("own_hooks_only", {"Tanh", "Model"}),  # hooks through named_modules(), skipping its first name, ""
    ):
        if missing == names:
            return mistake
    return None


COUNT_CALLS = Exercise(
    id="08.5",
    title=Text(zh="数一数谁在运行", en="Count what runs"),
    answer="count_calls",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`register_module_forward_hook(note)` 挂一个全局钩子，返回句柄。钩子和平常一样收 3 个参数，第一个是刚运行完的模块。",
            en="`register_module_forward_hook(note)` registers a global hook and returns a handle. The hook takes 3 arguments as usual; the "
            "first is the module that has just run.",
        ),
        Text(
            zh="钩子里：`counts[type(module).__name__] += 1`，`counts` 是 `Counter()`。什么也不要返回，否则每个模块的输出都会被换掉。",
            en="In the hook: `counts[type(module).__name__] += 1`, with `counts` a `Counter()`. Return nothing, or every module's output is "
            "replaced.",
        ),
        Text(
            zh="句柄可以放进 `with`：`with register_module_forward_hook(note): model(x)`，出了异常也会取下。最后 `return counts`。",
            en="A handle works in a `with`: `with register_module_forward_hook(note): model(x)` takes it off even after an exception. Then "
            "`return counts`.",
        ),
    ),
    mistakes=(
        Mistake(
            "leaves_hook",
            Text(
                zh="数对了，可是钩子没有取下。全局钩子留着，以后**每个**模型都会触发它。用 `with`，或者 `handle.remove()`。",
                en="The counts are right, but the hook stayed. A global hook that is left on fires for **every** model from now on. Use a `with`, or "
                "`handle.remove()`.",
            ),
            fails="clean",
        ),
        Mistake(
            "no_finally",
            Text(
                zh="模型抛出了异常，取下钩子的代码没有执行。用 `with register_module_forward_hook(...):`，或者放进 `finally`。",
                en="The model raised, and the line that takes the hook off never ran. Use `with register_module_forward_hook(...):`, or a `finally`.",
            ),
            fails="clean_after_error",
        ),
        Mistake(
            "removes_others",
            Text(
                zh="别人的全局钩子也没了：不要清空那些表，也不要用 `remove_hooks`，只取下你自己的句柄。",
                en="Someone else's global hook is gone too: neither clear those tables nor use `remove_hooks`, remove your own handle only.",
            ),
            fails="others",
        ),
        Mistake(
            "own_hooks_only",
            Text(
                zh="`Tanh` 漏掉了：它们放在普通列表里，`model.modules()` 看不见，逐个挂钩子就够不到。全局钩子不用认识模块。",
                en="The `Tanh` are missing: they stand in a plain list, where `model.modules()` does not see them, so hooks on each module never reach "
                "them. A global hook need not know the modules.",
            ),
            fails="counts",
        ),
        Mistake(
            "modules_not_calls",
            Text(
                zh="你数的是模块，不是调用：`body` 运行几次就算几次，没有运行的不算。让模型运行起来，钩子每触发一次加 1。",
                en="You counted modules, not calls: `body` counts as often as it runs, and what does not run counts not at all. Let the model run, "
                "and add 1 whenever the hook fires.",
            ),
            fails="counts",
        ),
        Mistake(
            "once_each",
            Text(
                zh="每种都只记了 1 次。要累加：`counts[...] += 1`，不要写 `= 1`。",
                en="Each type was noted only 1 time. Add up: `counts[...] += 1`, not `= 1`.",
            ),
            fails="counts",
        ),
        Mistake(
            "forward_directly",
            Text(
                zh="`Model` 自己漏掉了，它也要算。若你写的是 `model.forward(x)`：那样会跳过它的钩子，要写 `model(x)`（第 05 课）。",
                en="`Model` itself is missing, and it counts too. If you wrote `model.forward(x)`: that skips its hooks, write `model(x)` "
                "(lesson 05).",
            ),
            fails="counts",
        ),
        Mistake(
            "leaves_only",
            Text(
                zh="有子模块的模块被你跳过了。这里每个运行的模块都算，`Sequential` 和 `Model` 也算。",
                en="You skipped modules that have children. Every module that runs counts here, `Sequential` and `Model` as well.",
            ),
            fails="counts",
        ),
        Mistake(
            "one_module_only",
            Text(
                zh="只有 `Model` 触发了：`model.register_forward_hook` 只管这一个模块。全局的是 `register_module_forward_hook(note)`，前面没有 `model.`。",
                en="Only `Model` fired: `model.register_forward_hook` is for this one module. The global one is "
                "`register_module_forward_hook(note)`, with no `model.` before it.",
            ),
            fails="counts",
        ),
        Mistake(
            "never_fires",
            Text(
                zh="一次也没有触发：模型运行的时候，钩子要挂着。先注册，再调用 `model(x)`，然后才取下。",
                en="It never fired: the hook has to be on while the model runs. Register first, then call `model(x)`, and only then take it off.",
            ),
            fails="counts",
        ),
        Mistake(
            "runs_twice",
            Text(
                zh="全都是 2 倍：要么 `model(x)` 运行了 2 次，要么钩子挂了 2 个。",
                en="Everything is there 2 times over: either `model(x)` ran 2 times, or 2 hooks were on.",
            ),
            fails="counts",
        ),
        Mistake(
            "keeps_counting",
            Text(
                zh="上一次调用的数也算进来了：`counts` 要在函数里面新建，每次从零开始。",
                en="The counts of an earlier call are in there, too: make `counts` anew inside the function, so that each call begins at zero.",
            ),
            fails="counts",
        ),
        Mistake(
            "swallows",
            Text(
                zh="模型的异常被你吞掉了，调用者以为一切正常。不要 `except`：`with` 或 `finally` 取下钩子，异常自己会传出去。",
                en="You swallowed the model's exception, and your caller believes that all went well. No `except`: a `with` or a `finally` takes the "
                "hook off, and the exception goes on by itself.",
            ),
            fails="clean_after_error",
        ),
        Mistake(
            "keys_not_names",
            Text(
                zh="键应当是类的名字，是字符串：`type(module).__name__`。",
                en="The keys should be names of classes, that is strings: `type(module).__name__`.",
            ),
            fails="counts",
        ),
        Mistake(
            "returns_nothing",
            Text(
                zh="`count_calls` 返回了 `None`：最后要 `return counts`。",
                en="`count_calls` returned `None`: end with `return counts`.",
            ),
            fails="counts",
        ),
        Mistake(
            "returns_total",
            Text(
                zh="这是总数。要按类的名字分开数，返回字典。",
                en="That is the total. Count each class by its name, and return a dictionary.",
            ),
            fails="counts",
        ),
        Mistake(
            "hook_returns",
            Text(
                zh="你的全局钩子返回了值，它取代了每个模块的输出。`lambda` 的值就是返回值：改用不写 `return` 的 `def`。",
                en="Your global hook returned a value, which replaced the output of every module. The value of a `lambda` is what it returns: use a "
                "`def` without `return`.",
            ),
            raises=r"must be Tensor, not \w+",
        ),
    ),
    insight=Text(
        zh="一个全局钩子看得见一切运行的模块，连 `model.modules()` 不认识的也在内；正因如此，用完必须马上取下。",
        en="One global hook sees every module that runs, even those unknown to `model.modules()`; which is why it must come off as soon as you "
        "are done.",
    ),
)
