"""Exercise 07.3, `guided_relu(model)`: let every ReLU pass back positive gradients only."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_07.shared import (
    NO_HANDLE,
    RETURNS_TENSOR,
    THREE_ARGUMENTS,
    WRONG_SIZE,
    linear,
    quiet,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import HANDLE
from hookedu.exercises.tools import copies, same, whole
from hookedu.language import Text

# (grad_output, input of the ReLU) -> grad_input
_Rule = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_RULES: dict[str, _Rule] = {
    "plain": lambda grad, before: torch.where(before > 0, grad, 0.0),
    "guided": lambda grad, before: torch.where(before > 0, grad.clamp(min=0), 0.0),
    "deconvnet": lambda grad, before: grad.clamp(min=0),
    "wrong_sign": lambda grad, before: torch.where(before > 0, grad.clamp(max=0), 0.0),
    "absolute": lambda grad, before: torch.where(before > 0, grad.abs(), 0.0),
}


def _model(rng: random.Random) -> tuple[nn.Sequential, torch.Tensor, torch.Tensor]:
    """Return (model, x, w) for loss = (w * model(x)).sum(); the second of two ReLUs is inside a block."""
    block = nn.Sequential(linear(rng, 4, 4), nn.ReLU())
    model = nn.Sequential(linear(rng, 3, 4), nn.ReLU(), block, linear(rng, 4, 2))
    return model, torch.stack([whole(rng, 3), whole(rng, 3)]), torch.stack([whole(rng, 2), whole(rng, 2)])


def _gradients(model: nn.Sequential, x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute the gradient of x under every rule, by hand."""
    first, second, last = (m.weight.detach() for m in model.modules() if isinstance(m, nn.Linear))
    low = x @ first.T
    high = low.clamp(min=0) @ second.T

    def back(at_high: _Rule, at_low: _Rule) -> torch.Tensor:
        return at_low(at_high(w @ last, high) @ second, low) @ first

    found = {name: back(rule, rule) for name, rule in _RULES.items()}
    found["top_level_only"] = back(_RULES["plain"], _RULES["guided"])
    found["every_module"] = found["guided"].clamp(min=0)
    found["only_the_model"] = found["plain"].clamp(min=0)
    return found


def _case(rng: random.Random) -> tuple[nn.Sequential, torch.Tensor, torch.Tensor]:
    """Return a case in which every rule gives a different gradient."""
    while True:
        model, x, w = _model(rng)
        found = list(_gradients(model, x, w).values())
        if not any(torch.equal(a, b) for i, a in enumerate(found) for b in found[:i]):
            return model, x, w


def _probe(guided_relu: Any, rng: random.Random) -> dict[str, Any]:
    model, x, w = _case(rng)
    other = _case(rng)
    relus = [module for module in model.modules() if isinstance(module, nn.ReLU)]
    with quiet():
        handles = guided_relu(model)
        legacy = any(relu._backward_hooks and relu._is_full_backward_hook is False for relu in relus)

        def gradient(model: nn.Module, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor | None:
            leaf = x.clone().requires_grad_()
            (w * model(leaf)).sum().backward()
            return copies(leaf.grad)

        report = {"legacy": legacy, "handles": handles, "x_grad": gradient(model, x, w)}
        report["other"] = gradient(*other)
        for handle in handles if isinstance(handles, (list, tuple)) else ():
            remove_handle(handle)
        return report | {"after": gradient(model, x, w)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    model, x, w = _case(rng)
    found, untouched = _gradients(model, x, w), _gradients(*_case(rng))["plain"]
    mistake = next((n for n, g in found.items() if n != "guided" and same(saw["x_grad"], g)), None)
    handles = saw["handles"]
    good = isinstance(handles, list) and bool(handles) and all(h == HANDLE for h in handles)
    given = f"model = Sequential(Linear, ReLU, Sequential(Linear, ReLU), Linear); x = {show(x)}; loss = ({show(w)} * model(x)).sum()"
    return [
        Criterion(
            "guided",
            same(saw["x_grad"], found["guided"]),
            points=2,
            essential=True,
            given=given,
            expected=f"x.grad == {show(found['guided'])}",
            got=f"x.grad == {show(saw['x_grad'])}",
            mistake="nothing_changed" if mistake == "plain" else mistake,
        ),
        Criterion(
            "others",
            same(saw["other"], untouched),
            points=1,
            given="handles = guided_relu(model); (w * another_model(x)).sum().backward()",
            expected=f"x.grad == {show(untouched)}",
            got=f"x.grad == {show(saw['other'])}",
            mistake="every_model",
        ),
        Criterion(
            "handle",
            good and same(saw["after"], found["plain"]),
            points=1,
            given="handles = guided_relu(model)",
            expected=Text(zh="2 个句柄的列表", en="a list of 2 handles"),
            got=show(handles).replace("<", "").replace(">", ""),
            mistake=None if good else "no_handle",
        ),
        Criterion(
            "full",
            not saw["legacy"],
            points=1,
            given="guided_relu(model)",
            expected="register_full_backward_hook",
            got="register_backward_hook" if saw["legacy"] else "register_full_backward_hook",
            mistake="legacy",
        ),
    ]


GUIDED_RELU = Exercise(
    id="07.3",
    title=Text(zh="导向 ReLU", en="Guided ReLU"),
    answer="guided_relu",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`model.modules()` 会走遍所有层，块里面的也不漏。挑出 `nn.ReLU`，每个挂一个 `register_full_backward_hook`。",
            en="`model.modules()` walks through all layers, those inside blocks too. Pick each `nn.ReLU` and call "
            "`register_full_backward_hook` on it.",
        ),
        Text(
            zh="`grad_input` 已经是 ReLU 自己的规则算好的：输入不大于 `0` 的地方是 `0`。你只需再去掉负的，用 `clamp(min=0)`。",
            en="`grad_input` already went through ReLU's own rule: `0` where the input was not above `0`. All that is left is to "
            "drop what is negative, with `clamp(min=0)`.",
        ),
        Text(
            zh="钩子里一行：`return (grad_input[0].clamp(min=0),)`。最后返回 `[m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]`。",
            en="One line in the hook: `return (grad_input[0].clamp(min=0),)`. At the end return "
            "`[m.register_full_backward_hook(keep_positive) for m in model.modules() if isinstance(m, nn.ReLU)]`.",
        ),
    ),
    mistakes=(
        Mistake(
            "nothing_changed",
            Text(
                zh="梯度和没有钩子时一样。要么没有 `return`，要么返回的就是原来的 `grad_input`，要么钩子没挂上。",
                en="The gradient is the one without hooks: the `return` is missing, or it gives back `grad_input` as it was, or no "
                "hook was hung up.",
            ),
            fails="guided",
        ),
        Mistake(
            "deconvnet",
            Text(
                zh="你返回的是 `grad_output`，ReLU 自己的规则就丢了：输入不大于 `0` 的地方也有梯度流回去（这叫 DeconvNet 规则）。请从 `grad_input` 出发。",
                en="You returned `grad_output`, which loses ReLU's own rule: gradients now pass where the input was not above `0` "
                "(the DeconvNet rule). Start from `grad_input`.",
            ),
            fails="guided",
        ),
        Mistake(
            "top_level_only",
            Text(
                zh="块里面的 ReLU 没有挂上：`model.children()` 只看最上面一层。用 `model.modules()`。",
                en="The ReLU inside the block has no hook: `model.children()` sees the top level only. Use `model.modules()`.",
            ),
            fails="guided",
        ),
        Mistake(
            "every_module",
            Text(
                zh="你给每个模块都挂了钩子，`Linear` 的负梯度也被去掉了。只挂 `nn.ReLU`：`isinstance(module, nn.ReLU)`。",
                en="Every module has your hook, so negative gradients of `Linear` are lost as well. Only `nn.ReLU` should have it: "
                "`isinstance(module, nn.ReLU)`.",
            ),
            fails="guided",
        ),
        Mistake(
            "only_the_model",
            Text(
                zh="钩子只挂在了整个模型上：只有最后流到 `x` 的梯度被截断了。要挂在每个 `nn.ReLU` 上。",
                en="Only the model as a whole has your hook, so only what reaches `x` was cut. Hang it on each `nn.ReLU`.",
            ),
            fails="guided",
        ),
        Mistake(
            "wrong_sign",
            Text(
                zh="留下的是负的，去掉的是正的。`clamp(min=0)` 去掉负数，`clamp(max=0)` 去掉正数。",
                en="You kept the negative and dropped the positive. `clamp(min=0)` drops negatives, `clamp(max=0)` positives.",
            ),
            fails="guided",
        ),
        Mistake(
            "absolute",
            Text(
                zh="`abs()` 把负梯度翻成了正的。导向 ReLU 让它们变成 `0`。",
                en="`abs()` turns negative gradients into positive ones. Guided ReLU makes them `0`.",
            ),
            fails="guided",
        ),
        Mistake(
            "every_model",
            Text(
                zh="另一个模型的梯度也变了：全局钩子对所有模块生效。只挂在 `model.modules()` 里的 `nn.ReLU` 上。",
                en="Another model's gradient changed too: a global hook fires for every module. Hook only the `nn.ReLU` in "
                "`model.modules()`.",
            ),
            fails="others",
        ),
        Mistake(
            "legacy",
            Text(
                zh="用的是旧式的 `register_backward_hook`。ReLU 只有一步运算，所以它碰巧对；换成 `register_full_backward_hook`。",
                en="This is the legacy `register_backward_hook`. A ReLU is a single operation, so it happens to be right; use "
                "`register_full_backward_hook`.",
            ),
            fails="full",
        ),
        *(RETURNS_TENSOR, WRONG_SIZE, THREE_ARGUMENTS, NO_HANDLE),
    ),
    insight=Text(
        zh="两个条件都要满足，梯度才回得去：前向时输入为正，反向时梯度为正。这就是导向反向传播（Guided Backpropagation）的全部。",
        en="A gradient passes only under both conditions: the input was positive in forward, the gradient is positive in "
        "backward. That is all there is to guided backpropagation.",
    ),
)
