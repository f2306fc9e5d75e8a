"""Exercise 10.5, `clip_before_step(optimizer, max_norm)`: clip_grad_norm_ as a hook of the optimizer."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on, remove_handle
from hookedu.exercises.shared import HANDLE, hands_over, no_handle
from hookedu.exercises.tools import close, copies, whole
from hookedu.language import Text


def _case(rng: random.Random) -> tuple[list[torch.Tensor], list[torch.Tensor], float]:
    """Return (values of a, b and c, their gradients after both backward passes, max_norm)."""
    while True:
        values, grads = [[whole(rng, n) for n in (2, 1, 3)] for _ in range(2)]
        max_norm = float(rng.randint(4, 8))
        if all(g.norm() > max_norm for g in (grads[0], grads[2])) and torch.cat(grads).abs().max() > max_norm:
            return values, grads, max_norm


def _optimizer(values: list[torch.Tensor]) -> tuple[torch.optim.Optimizer, list[torch.nn.Parameter]]:
    """Return (optimizer with two groups, [a, b, c]); a fourth parameter never gets a gradient."""
    a, b, c = (torch.nn.Parameter(v.clone()) for v in values)
    unused = torch.nn.Parameter(torch.ones(2))
    return torch.optim.SGD([{"params": [a, unused]}, {"params": [b, c]}], lr=1.0), [a, b, c]


def _step(
    optimizer: torch.optim.Optimizer,
    params: list[torch.nn.Parameter],
    values: list[torch.Tensor],
    grads: list[torch.Tensor],
) -> list[torch.Tensor]:
    """Start from `values`, run backward on 3 and on -2 times `grads`, and step; return how far each moved."""
    with torch.no_grad():
        for p, value in zip(params, values, strict=True):
            p.copy_(value)
    optimizer.zero_grad()
    for times in (3, -2):
        products = ((times * g * p).sum() for p, g in zip(params, grads, strict=True))
        sum(products, torch.zeros(())).backward()
    optimizer.step()
    return [(value - p).detach() for p, value in zip(params, values, strict=True)]


def _probe(clip_before_step: Any, rng: random.Random) -> dict[str, Any]:
    values, grads, max_norm = _case(rng)
    optimizer, params = _optimizer(values)
    handle = clip_before_step(optimizer, max_norm)
    on_params = sum(hooks_on(p) + len(p._post_accumulate_grad_hooks or ()) for p in params)
    hooks = len(optimizer._optimizer_step_pre_hooks) + on_params
    report = {"hooks": hooks, "on_params": on_params, "moved": _step(optimizer, params, values, grads)}
    report |= {"kept": [copies(p.grad) for p in params]}
    report |= {"short": _step(optimizer, params, values, [g / 100 for g in grads]), "handle": handle}
    remove_handle(handle)
    return report | {"after": _step(optimizer, params, values, grads)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    values, grads, max_norm = _case(rng)
    wanted = _clipped(grads, max_norm)
    short = [g / 100 for g in grads]
    given = f"grads = {show(grads)}; max_norm = {max_norm:g}; optimizer.step(); lr = 1"
    return [
        Criterion(
            "clips",
            _all_close(saw["moved"], wanted),
            points=3,
            essential=True,
            given=given,
            expected=Text(zh="移动了 {by}", en="moved by {by}").format(by=f"`{show(wanted)}`"),
            got=Text(zh="移动了 {by}", en="moved by {by}").format(by=f"`{show(saw['moved'])}`"),
            mistake=_wrong(saw, values, grads, max_norm),
        ),
        Criterion(
            "leaves",
            _all_close(saw["short"], short),
            points=1,
            given=f"grads = {show(short)}; max_norm = {max_norm:g}; optimizer.step(); lr = 1",
            expected=Text(zh="移动了 {by}", en="moved by {by}").format(by=f"`{show(short)}`"),
            got=Text(zh="移动了 {by}", en="moved by {by}").format(by=f"`{show(saw['short'])}`"),
            mistake="always_scales",
        ),
        hands_over("clip_before_step(optimizer, max_norm)", saw["handle"], _all_close(saw["after"], grads)),
    ]


def _clipped(grads: list[torch.Tensor], max_norm: float) -> list[torch.Tensor]:
    total = torch.cat(grads).norm()
    return [g * (max_norm / total).clamp(max=1) for g in grads]


def _all_close(got: Any, expected: list[torch.Tensor]) -> bool:
    return isinstance(got, list) and all(close(g, e) for g, e in zip(got, expected, strict=True))


def _wrong(
    saw: dict[str, Any], values: list[torch.Tensor], grads: list[torch.Tensor], max_norm: float
) -> str | None:
    moved, (a, b, c) = saw["moved"], grads
    if _all_close(moved, grads):
        if _all_close(saw["kept"], _clipped(grads, max_norm)):
            return "too_late"
        return "nothing_changed" if saw["hooks"] or saw["handle"] == HANDLE else "not_registered"
    if _all_close(moved, [clip for g in grads for clip in _clipped([g], max_norm)]):
        return "each_by_its_own"
    if _all_close(moved, [*_clipped([a], max_norm), *_clipped([b, c], max_norm)]):
        return "each_group"
    if _all_close(moved, [*_clipped([a], max_norm), b, c]):
        return "first_group_only"
    if _all_close(moved, [g.clamp(-max_norm, max_norm) for g in grads]):
        return "clamps_elements"
    scaled = {
        "sum_of_norms": sum(g.norm() for g in grads),
        "unit_norm": max_norm * torch.cat(grads).norm(),
        "norm_of_the_parameters": torch.cat([*values, torch.ones(2)]).norm(),
    }
    for mistake, total in scaled.items():
        if _all_close(moved, [g * max_norm / total for g in grads]):
            return mistake
    return "in_backward" if saw["on_params"] else None


CLIP_BEFORE_STEP = Exercise(
    id="10.5",
    title=Text(zh="用钩子裁剪", en="Clip through a hook"),
    answer="clip_before_step",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`optimizer.register_step_pre_hook(clip)` 返回句柄；`clip` 收到 `optimizer, args, kwargs`，什么也不返回。",
            en="`optimizer.register_step_pre_hook(clip)` returns the handle; `clip` takes `optimizer, args, kwargs` and returns nothing.",
        ),
        Text(
            zh="先把所有组里不是 `None` 的 `.grad` 收进一个列表，总范数是各范数的平方和再开方；只有大于 `max_norm` 时才缩小。",
            en="First collect every `.grad` that is not `None`, of all groups, in one list. The norm of all is the root of the sum of the squared norms; shrink "
            "only where it exceeds `max_norm`.",
        ),
        Text(
            zh="`grads = [p.grad for group in optimizer.param_groups for p in group['params'] if p.grad is not None]`，"
            "`total = sum(grad.norm() ** 2 for grad in grads) ** 0.5`，`if total > max_norm:` 对每个 `grad.mul_(max_norm / total)`。",
            en="`grads = [p.grad for group in optimizer.param_groups for p in group['params'] if p.grad is not None]`, "
            "`total = sum(grad.norm() ** 2 for grad in grads) ** 0.5`, `if total > max_norm:` and for each `grad.mul_(max_norm / total)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "not_registered",
            Text(
                zh="优化器上没有钩子：用 `optimizer.register_step_pre_hook(...)` 挂上去，再返回句柄。",
                en="There is no hook on the optimizer: attach one with `optimizer.register_step_pre_hook(...)` and return the handle.",
            ),
            fails="clips",
        ),
        Mistake(
            "nothing_changed",
            Text(
                zh="钩子运行了，梯度却没变：`p.grad * factor` 只造出一个新张量。要写回去：`p.grad.mul_(factor)`。",
                en="The hook is on, but no gradient changed: `p.grad * factor` only makes a new tensor. Write it back: `p.grad.mul_(factor)`.",
            ),
            fails="clips",
        ),
        Mistake(
            "too_late",
            Text(
                zh="梯度裁剪了，可是参数已经走过了：`register_step_post_hook` 在 `step()` 之后才触发。要用 pre。",
                en="The gradients are clipped, but the parameters had moved already: `register_step_post_hook` fires after `step()`. Take pre.",
            ),
            fails="clips",
        ),
        Mistake(
            "each_by_its_own",
            Text(
                zh="每个参数各裁各的，方向就变了。所有梯度合起来只有一个范数、一个系数。",
                en="Each parameter was clipped by its own norm, which turns the direction. There is one norm and one factor for all.",
            ),
            fails="clips",
        ),
        Mistake(
            "each_group",
            Text(
                zh="每组各算了一个范数。`clip_grad_norm_` 把所有参数合在一起：先把各组的收进一个列表。",
                en="You took a norm for each group. `clip_grad_norm_` takes all parameters together: collect those of all groups in one list.",
            ),
            fails="clips",
        ),
        Mistake(
            "first_group_only",
            Text(
                zh="只裁剪了第一组：循环 `optimizer.param_groups` 里的每一组。",
                en="Only the first group was clipped: loop over all of `optimizer.param_groups`.",
            ),
            fails="clips",
        ),
        Mistake(
            "clamps_elements",
            Text(
                zh="你把每个元素单独截断了，那是 `clip_grad_value_`。这里所有梯度乘以同一个数。",
                en="You cut each element by itself: that is `clip_grad_value_`. Here all gradients are multiplied by one number.",
            ),
            fails="clips",
        ),
        Mistake(
            "sum_of_norms",
            Text(
                zh="总范数不是各范数之和：先平方，相加，再开方。",
                en="The norm of all is not the sum of the norms: square them, add, take the root.",
            ),
            fails="clips",
        ),
        Mistake(
            "unit_norm",
            Text(
                zh="总范数成了 1：除以总范数之后，还要乘以 `max_norm`。",
                en="The norm of all became 1: after dividing by it, multiply by `max_norm`.",
            ),
            fails="clips",
        ),
        Mistake(
            "norm_of_the_parameters",
            Text(
                zh="你用的是参数的范数，要的是梯度的：`p.grad.norm()`。",
                en="You took the norm of the parameters. That of the gradients is wanted: `p.grad.norm()`.",
            ),
            fails="clips",
        ),
        Mistake(
            "in_backward",
            Text(
                zh="你在反向传播里就裁剪了。`step()` 之前可能有几次反向传播相加，要等加完再裁：把钩子挂在优化器上。",
                en="You clipped during backward. Several passes may be added up before `step()`, and only the sum should be clipped: put the hook on the optimizer.",
            ),
            fails="clips",
        ),
        Mistake(
            "always_scales",
            Text(
                zh="短的梯度也被拉长到 `max_norm`：只有总范数大于它时才缩小。",
                en="Short gradients were stretched to `max_norm`: shrink only where the norm of all exceeds it.",
            ),
            fails="leaves",
        ),
        Mistake(
            "none_grad",
            Text(
                zh="有一个参数没有用到，它的 `.grad` 是 `None`：跳过它。",
                en="One parameter was not used, and its `.grad` is `None`: skip it.",
            ),
            raises=r"'NoneType' object has no attribute|unsupported operand.*NoneType|expected Tensor.*NoneType",
        ),
        Mistake(
            "returns_value",
            Text(
                zh="优化器的钩子只能返回 `None` 或 `(args, kwargs)`：去掉你的 `return`。",
                en="A hook of an optimizer returns `None` or `(args, kwargs)`, nothing else: drop your `return`.",
            ),
            raises=r"must return None or a tuple of \(new_args, new_kwargs\)",
        ),
        Mistake(
            "three_arguments",
            Text(
                zh="优化器的钩子收到 3 个参数：`def clip(optimizer, args, kwargs)`。",
                en="A hook of an optimizer is called with 3 arguments: `def clip(optimizer, args, kwargs)`.",
            ),
            raises=r"positional arguments? but \d (?:was|were) given|missing \d required positional",
        ),
        no_handle("register_step_pre_hook(...)"),
    ),
    insight=Text(
        zh="`step()` 之前是唯一一处既等齐了所有参数、又加完了所有反向传播的地方；在那里直接调用 `clip_grad_norm_` 也一样。",
        en="Just before `step()` is the one place where all parameters have arrived and all passes are added up; calling `clip_grad_norm_` right there does the same.",
    ),
)
