"""Helpers, criteria and mistakes shared by exercises about forward hooks in all lessons."""

from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Mistake
from hookedu.exercises.shared import no_handle
from hookedu.exercises.tools import module_hooks
from hookedu.language import Text


class Onlooker:
    """Forward hooks of a third party, one per module of a model, which no answer may remove.

    `root_calls` counts the calls of the model itself.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model, self.root_calls = model, 0
        self._look = self._count  # a single bound method, recognised later by identity
        for module in model.modules():
            module.register_forward_hook(self._look)

    def _count(self, module: nn.Module, args: Any, output: Any) -> None:
        self.root_calls += module is self._model

    def _still_on(self) -> int:
        return sum(hook is self._look for m in self._model.modules() for hook in m._forward_hooks.values())

    def lost(self) -> int:
        """Return how many of these hooks are gone."""
        return len(list(self._model.modules())) - self._still_on()

    def others(self) -> int:
        """Return how many other hooks are registered: those of the answer."""
        return module_hooks(self._model) - self._still_on()


def is_cut(out: torch.Tensor) -> bool:
    """Check whether a hook detached this output of a model: grad mode is on, but it requires no gradient."""
    return torch.is_grad_enabled() and not out.requires_grad


def none_lost(given: str, lost: int) -> Criterion:
    """Require that all hooks of others are still registered; `lost` is how many are not."""
    says = Text(zh="别人的钩子少了 {n} 个", en="{n} hooks of others are gone")
    return Criterion(
        "others",
        lost == 0,
        points=1,
        given=given,
        expected=says.format(n=0),
        got=says.format(n=lost),
        mistake="removes_others",
    )


def graph_kept(given: str, kept: bool) -> Criterion:
    """Require that a hook that only observes leaves the graph of the observed output intact."""
    return Criterion(
        "graph",
        kept,
        essential=True,
        given=given,
        expected="out.requires_grad == True",
        got="out.requires_grad == False",
        mistake="cuts_gradient",
    )


CALLS_NOW = Mistake(
    "calls_now",
    Text(
        zh="`register_forward_hook(...)` 收到的是 `None`：你在注册时就把函数调用掉了。要传的是函数本身，模块运行完由 PyTorch 去调用它。",
        en="`register_forward_hook(...)` was handed `None`: you called your function while registering it. "
        "Pass the function itself; PyTorch calls it when the module has run.",
    ),
    raises=r"'NoneType' object is not callable",
)
WRONG_ARGUMENTS = Mistake(
    "wrong_arguments",
    Text(
        zh="PyTorch 调用前向钩子时会传入 3 个参数：`hook(module, args, output)`。用不到的也要接住。",
        en="PyTorch calls a forward hook with 3 arguments: `hook(module, args, output)`. "
        "Take all of them, also those you do not need.",
    ),
    raises=r"takes (?:from \d+ to )?\d+ positional arguments? but [34] were given",
)
RETURNS_TUPLE = Mistake(
    "returns_tuple",
    Text(
        zh="你的钩子返回的不是张量，它取代了输出，下一层就出错了。`lambda` 的值就是返回值：只看的钩子最好用 `def` 写，不写 `return`。",
        en="Your hook returned something that is not a tensor. It replaced the output, and the next layer failed. "
        "The value of a `lambda` is what it returns: a hook that only looks is best a `def` without `return`.",
    ),
    raises=r"must be Tensor, not \w+",
)
NO_HANDLE = no_handle("module.register_forward_hook(...)")
NOT_REGISTERED = Mistake(
    "not_registered",
    Text(
        zh="模块上没有钩子：只写好函数还不够，要用 `module.register_forward_hook(...)` 把它挂上去。",
        en="There is no hook on the module: writing the function is not enough, "
        "`module.register_forward_hook(...)` attaches it.",
    ),
)
REMOVES_OTHERS = Mistake(
    "removes_others",
    Text(
        zh="别人的钩子也被取下了：只用你自己的句柄 `remove()`。",
        en="You took off someone else's hook too: remove only through your own handles.",
    ),
    fails="others",
)
CUTS_GRADIENT = Mistake(
    "cuts_gradient",
    Text(
        zh="你的钩子返回了断开的张量，它取代了输出：什么也不要返回。",
        en="Your hook returned a detached tensor, which replaced the output: return nothing.",
    ),
    fails="graph",
)
LATE_BINDING = Mistake(
    "late_binding",
    Text(
        zh="所有输出都记到了最后一个名字下：钩子运行时才去读 `name`，那时循环早已走完。"
        "当场固定它，例如 `partial(keep, name)`（第 02 课）。",
        en="Every output was filed under the last name: the hook looks `name` up when it runs, and by then the loop "
        "is over. Fix it inside the loop, for example with `partial(keep, name)` (lesson 02).",
    ),
)
