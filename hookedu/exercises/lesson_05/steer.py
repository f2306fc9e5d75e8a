"""05.4 `steer(module, direction, strength)`: push a module's output until the handle is removed."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import CALLS_NOW, NO_HANDLE, NOT_REGISTERED, WRONG_ARGUMENTS
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import hands_over
from hookedu.exercises.tools import copies, linear, module_hooks, same, whole
from hookedu.language import Text


def _case(rng: random.Random) -> tuple[torch.Tensor, ...]:
    """Return (x, direction, strength, first weight, second weight): two square layers, a batch of two."""
    while True:
        x, first, second = (whole(rng, 4).reshape(2, 2) for _ in range(3))
        if min(first.det().abs(), second.det().abs()) > 0.5:  # otherwise the layers could cancel a push
            return x, whole(rng, 2), torch.tensor(float(rng.randint(2, 5))), first, second


def _probe(steer: Any, rng: random.Random) -> dict[str, Any]:
    x, direction, strength, *weights = _case(rng)
    net, x = nn.Sequential(*map(linear, weights)), x.requires_grad_()
    made, plain_forward = [], net[0].forward

    def forward(x: torch.Tensor) -> torch.Tensor:
        """Keep the output of fc1 before any hook receives it, so that only a change in place can alter it."""
        made.append(plain_forward(x))
        return made[-1]

    net[0].forward = forward
    pushed = direction.clone()
    handle = steer(net[0], pushed, strength.item())
    report = {"handle": handle, "hooks": module_hooks(net)}
    steered = net(x)
    if not steered.requires_grad:
        steered = steered + 0 * sum(p.sum() for p in net.parameters())
    steered.sum().backward()
    report |= {"steered": copies(steered), "again": copies(net(x)), "x_grad": copies(x.grad)}
    report |= {"others": copies(made[:1]), "weights": [copies(p) for p in net.parameters()]}
    remove_handle(handle)
    return report | {"after": copies(net(x))}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, direction, strength, first, second = _case(rng)
    hidden, push = x @ first.T, strength * direction
    plain, steered = hidden @ second.T, (hidden + push) @ second.T
    kept = [first, torch.zeros(2), second, torch.zeros(2)]
    x_grad = torch.ones(2, 2) @ second @ first
    given = f"x = {show(x)}; fc1.weight = {show(first)}; fc2.weight = {show(second)}; "
    call = f"steer(fc1, {show(direction)}, {strength:g})"
    got = saw["steered"]
    if same(got, plain):
        mistake = "no_return" if saw["hooks"] else "not_registered"
    elif same(got, push.expand(2, 2) @ second.T):
        mistake = "replaces_output"
    elif same(got, (hidden + direction) @ second.T):
        mistake = "no_strength"
    elif same(got, (hidden - push) @ second.T):
        mistake = "wrong_sign"
    else:
        mistake = "steers_input" if same(got, (x + push) @ first.T @ second.T) else None
    return [
        Criterion(
            "untouched",
            same(saw["weights"], kept),
            essential=True,
            given=given + call,
            expected=f"fc1.bias == {show(kept[1])}",
            got=f"fc1.bias == {show(saw['weights'][1])}",
            mistake="changes_weights",
        ),
        Criterion(
            "steers",
            same(got, steered) and same(saw["again"], steered),
            points=2,
            essential=True,
            given=given + call + "; fc2(fc1(x))",
            expected=show(steered),
            got=show(got) if not same(got, steered) else show(saw["again"]),
            mistake="steers_once" if same(got, steered) else mistake,
        ),
        Criterion(
            "others",
            same(saw["others"], [hidden]),
            points=1,
            given=Text(
                zh="`fc1` 自己算出的 `output`，运行之后再看",
                en="the `output` that `fc1` itself made, after the run",
            ),
            expected=show(hidden),
            got=show(saw["others"][0]) if saw["others"] else "[]",
            mistake="in_place",
        ),
        Criterion(
            "gradient",
            same(saw["x_grad"], x_grad),
            points=1,
            given=given + call + "; fc2(fc1(x)).sum().backward()",
            expected=f"x.grad == {show(x_grad)}",
            got=f"x.grad == {show(saw['x_grad'])}",
            mistake="cuts_gradient",
        ),
        hands_over(call, saw["handle"], same(saw["after"], plain)),
    ]


STEER = Exercise(
    id="05.4",
    title=Text(zh="操纵输出", en="Steer an output"),
    answer="steer",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="前向钩子返回的张量会取代输出。所以算出新的输出，然后 `return` 它。",
            en="The tensor that a forward hook returns replaces the output. So compute the new output and `return` it.",
        ),
        Text(
            zh="`output + ...` 建立一个新张量；`output += ...` 改动的是别人可能还留着的那一个。",
            en="`output + ...` makes a new tensor; `output += ...` changes the one that others may have kept.",
        ),
        Text(
            zh="钩子只有一行：`return output + strength * direction`；然后 `return module.register_forward_hook(push)`。",
            en="The hook has one line: `return output + strength * direction`; then `return module.register_forward_hook(push)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "no_return",
            Text(
                zh="钩子触发了，输出却没有变：你算出了新的值，但没有 `return` 它。返回 `None` 就是「照旧」。",
                en="The hook fired, yet the output is the same: you computed a new value without `return`. "
                "To return `None` means: leave it as it is.",
            ),
            fails="steers",
        ),
        Mistake("not_registered", NOT_REGISTERED.says, fails="steers"),
        Mistake(
            "replaces_output",
            Text(
                zh="原来的输出丢了，只剩下方向：返回值会**取代**输出，所以要返回 `output + ...`。",
                en="The original output is gone and only the direction is left: what you return **replaces** the output, "
                "so return `output + ...`.",
            ),
            fails="steers",
        ),
        Mistake(
            "no_strength",
            Text(
                zh="方向加上了，可是没有乘 `strength`。",
                en="You added the direction, but did not multiply it by `strength`.",
            ),
            fails="steers",
        ),
        Mistake(
            "wrong_sign",
            Text(
                zh="推反了方向：应当加上 `strength * direction`，你减去了它。",
                en="You pushed the wrong way: add `strength * direction`; you subtracted it.",
            ),
            fails="steers",
        ),
        Mistake(
            "steers_input",
            Text(
                zh="你推的是**输入**：`register_forward_pre_hook` 在模块运行之前触发（第 06 课）。这里要改的是输出。",
                en="You pushed the **input**: `register_forward_pre_hook` fires before the module runs (lesson 06). "
                "Here the output is to change.",
            ),
            fails="steers",
        ),
        Mistake(
            "steers_once",
            Text(
                zh="第一次运行推动了，第二次没有：钩子要一直挂着，直到调用者 `handle.remove()`。",
                en="The first run was steered, the second was not: the hook should stay on until the caller says `handle.remove()`.",
            ),
            fails="steers",
        ),
        Mistake(
            "changes_weights",
            Text(
                zh="你改动了模型的参数，句柄取不掉这样的改动。参数不要碰，只在钩子里换掉输出。",
                en="You changed the model's parameters, and no handle takes that back. Leave them alone and replace the output in a hook.",
            ),
            fails="untouched",
        ),
        Mistake(
            "in_place",
            Text(
                zh="`output` 被你就地改动了（例如 `output += ...`）：别的钩子要是留着它，记录也跟着变。用 `output + ...` 建一个新的。",
                en="You changed `output` in place, with `output += ...` for example: where another hook had kept it, its "
                "record changed too. Make a new one: `output + ...`.",
            ),
            fails="others",
        ),
        Mistake(
            "cuts_gradient",
            Text(
                zh="前向传播对了，可是梯度到不了 `x`：`detach()`、`.data` 或 `torch.no_grad()` 切断了计算图。",
                en="The forward pass is right, but the gradient no longer reaches `x`: `detach()`, `.data` or "
                "`torch.no_grad()` cut the graph.",
            ),
            fails="gradient",
        ),
        Mistake(
            "returns_tuple",
            Text(
                zh="返回张量本身，不要包进元组。",
                en="Return the tensor itself, not wrapped in a tuple.",
            ),
            raises=r"must be Tensor, not (tuple|list)",
        ),
        *(CALLS_NOW, WRONG_ARGUMENTS, NO_HANDLE),
    ),
    insight=Text(
        zh="返回新张量就换掉了输出，原来的张量没有人动过，所以别的钩子、梯度和取下之后的模型都安然无恙。",
        en="Returning a new tensor replaces the output while nobody touches the old one, so other hooks, the gradient "
        "and the model after removal all stay sound.",
    ),
)
