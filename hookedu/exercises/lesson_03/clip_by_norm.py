"""03.2 `clip_by_norm(y, max_norm)`: shorten a gradient whose norm is too large, and leave every other alone."""

import random
from dataclasses import replace
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_03.shared import (
    FORGOT_RETURN,
    IN_PLACE,
    NOT_REGISTERED,
    OTHER_SHAPE,
    RETURNS_NO_TENSOR,
    STILL_AT_WORK,
    WRONG_TENSOR,
    Paths,
    hands_over_all,
    neighbour,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on, remove_handle
from hookedu.exercises.shared import HANDLE, MISREGISTERED, NO_HANDLE
from hookedu.exercises.tools import close, copies, same
from hookedu.language import Text

_ROUND = (
    (1, 2, 2, 3),
    (2, 3, 6, 7),
    (2, 6, 9, 11),
    (4, 4, 7, 9),
    (1, 4, 8, 9),
)  # three values and their norm


def _case(rng: random.Random) -> tuple[Paths, list[torch.Tensor], float]:
    """Return (paths, gradients, max_norm): one gradient above max_norm, one below it, and 0."""
    paths = Paths.make(rng, 3)
    with torch.no_grad():
        paths.x.mul_(10)  # so that the norm of y differs from that of the gradient
    *sides, norm = rng.choice(_ROUND)
    rng.shuffle(sides)
    short = torch.tensor([float(rng.choice((-1, 1)) * v) for v in sides])
    return paths, [rng.choice((4, 5, 6)) * short, short, torch.zeros(3)], 2.0 * norm


def _grid(paths: Paths, gradients: list[torch.Tensor]) -> Paths:
    """Return the case in two dimensions: one row of its gradient w is above max_norm, the other below."""
    s, x = (torch.stack([leaf.detach()] * 2).requires_grad_() for leaf in (paths.s, paths.x))
    return Paths(s, x, paths.k, torch.stack(gradients[:2]))


def _per_dim(gradient: torch.Tensor, max_norm: float, dim: int) -> torch.Tensor:
    """Return the gradient with each column (dim 0) or each row (dim 1) clipped separately."""
    return gradient * (max_norm / gradient.norm(dim=dim, keepdim=True)).clamp(max=1)


def _probe(clip_by_norm: Any, rng: random.Random) -> dict[str, Any]:
    paths, gradients, max_norm = _case(rng)
    passes, hooks, handle = [], 0, None
    for gradient in gradients:
        skip, y = paths.run()
        handle = clip_by_norm(y, max_norm)
        hooks = hooks_on(y)
        (gradient * (skip + y)).sum().backward()
        passes.append([copies(paths.x.grad), copies(paths.s.grad)])
    grid = _grid(paths, gradients)
    skip, y = grid.run()
    clip_by_norm(y, max_norm)
    (grid.w * (skip + y)).sum().backward()
    skip, y = paths.run()
    handle = clip_by_norm(y, max_norm)
    remove_handle(handle)
    (gradients[0] * (skip + y)).sum().backward()
    return {
        "passes": passes,
        "grid": copies(grid.x.grad),
        "hooks": hooks,
        "handle": handle,
        "after_removal": copies(paths.x.grad),
    }


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    paths, (long, short, zero), max_norm = _case(rng)
    (got_long, s_long), (got_short, _), (got_zero, _) = saw["passes"]
    y, k = (paths.k * paths.x).detach(), paths.k
    wanted = long * (max_norm / long.norm())
    grid = _grid(paths, [long, short])
    wanted_grid = k * grid.w * (max_norm / grid.w.norm())
    per_dim = any(close(saw["grid"], k * _per_dim(grid.w, max_norm, dim)) for dim in (0, 1))

    def given(gradient: torch.Tensor) -> str:
        return f"max_norm = {max_norm:g}; y = {k:g} * x; loss = ({show(gradient)} * (skip + y)).sum()"

    if same(got_long, k * long):
        wrong = "wrong_tensor" if saw["handle"] == HANDLE else "not_registered"
        reverse = "reversed" if not close(got_short, k * short) else "forgot_return"
        mistake = reverse if saw["hooks"] else wrong
    elif close(got_long, k * long / long.norm()):
        mistake = "unit_norm"
    elif close(got_long, k * long.clamp(-max_norm, max_norm)):
        mistake = "clips_elements"
    elif any(close(got_long, k * long * max_norm / long.norm(p)) for p in (1, torch.inf)):
        mistake = "other_norm"
    elif close(got_long, k * long * long.norm() / max_norm):
        mistake = "upside_down"
    else:
        mistake = "norm_of_y" if close(got_long, k * long * max_norm / y.norm()) else None
    return [
        Criterion(
            "clips",
            close(got_long, k * wanted),
            points=2,
            essential=True,
            given=given(long),
            expected=f"x.grad == {show(k * wanted)}",
            got=f"x.grad == {show(got_long)}",
            mistake=mistake,
        ),
        Criterion(
            "leaves",
            close(got_short, k * short),
            essential=True,
            given=given(short),
            expected=f"x.grad == {show(k * short)}",
            got=f"x.grad == {show(got_short)}",
            mistake="always_scales" if close(got_short, k * short * (max_norm / short.norm())) else None,
        ),
        Criterion(
            "whole",
            close(saw["grid"], wanted_grid),
            essential=True,
            given=given(grid.w),
            expected=f"x.grad == {show(wanted_grid)}",
            got=f"x.grad == {show(saw['grid'])}",
            mistake="per_row" if per_dim else None,
        ),
        neighbour(given(long), s_long, 2 * long),
        Criterion(
            "zero",
            same(got_zero, k * zero),
            points=1,
            given=given(zero),
            expected=f"x.grad == {show(zero)}",
            got=f"x.grad == {show(got_zero)}",
            mistake="zero_becomes_nan",
        ),
        hands_over_all("clip_by_norm(y, max_norm)", saw["handle"], saw["after_removal"], k * long),
    ]


CLIP_BY_NORM = Exercise(
    id="03.2",
    title=Text(zh="按范数裁剪", en="Clip by norm"),
    answer="clip_by_norm",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="钩子里先算 `norm = grad.norm()`。只有它大于 `max_norm` 时才需要动手。",
            en="In the hook, first `norm = grad.norm()`. Only when it is larger than `max_norm` is there anything to do.",
        ),
        Text(
            zh="方向不变、大小变成 `max_norm`：乘以 `max_norm / norm`。其余情况什么也不返回，梯度就保持原样。",
            en="Same direction, norm `max_norm`: multiply by `max_norm / norm`. In every other case return nothing, "
            "and the gradient stays as it is.",
        ),
        Text(
            zh="`def clip(grad):` 里：`norm = grad.norm()`，`if norm > max_norm: return grad * (max_norm / norm)`；最后 `return y.register_hook(clip)`。",
            en="In `def clip(grad):` write `norm = grad.norm()` and `if norm > max_norm: return grad * (max_norm / norm)`; "
            "last, `return y.register_hook(clip)`.",
        ),
    ),
    mistakes=(
        replace(FORGOT_RETURN, fails="clips"),
        replace(NOT_REGISTERED, fails="clips"),
        replace(WRONG_TENSOR, fails="clips"),
        Mistake(
            "clips_elements",
            Text(
                zh="你把每个元素单独截断了（`clamp`），方向因此变了。按范数裁剪是整个张量乘以同一个数。",
                en="You cut each element by itself (`clamp`), and so the direction changed. Clipping by norm multiplies "
                "the whole tensor by one number.",
            ),
            fails="clips",
        ),
        Mistake(
            "unit_norm",
            Text(
                zh="现在的范数是 1，而不是 `max_norm`：除以 `grad.norm()` 之后，还要乘以 `max_norm`。",
                en="Its norm is now 1 and not `max_norm`: after dividing by `grad.norm()`, multiply by `max_norm`.",
            ),
            fails="clips",
        ),
        Mistake(
            "norm_of_y",
            Text(
                zh="你用的是 `y` 的范数。要比较的是梯度的范数：`grad.norm()`。",
                en="You took the norm of `y`. What has to be compared is the norm of the gradient, `grad.norm()`.",
            ),
            fails="clips",
        ),
        Mistake(
            "reversed",
            Text(
                zh="比较的方向反了：长的原样放过，短的却被拉长。应当是 `norm > max_norm` 时才缩短。",
                en="The comparison is the wrong way round: long gradients pass, short ones are stretched. "
                "Shorten when `norm > max_norm`.",
            ),
            fails="clips",
        ),
        Mistake(
            "always_scales",
            Text(
                zh="短的梯度被拉长到了 `max_norm`。裁剪只缩短，从不拉长：先比较，或者系数最大取 1。",
                en="A short gradient was stretched to `max_norm`. Clipping shortens and never stretches: compare first, "
                "or let the factor be 1 at most.",
            ),
            fails="leaves",
        ),
        Mistake(
            "zero_becomes_nan",
            Text(
                zh="梯度全是 0 时，结果成了 `nan`：0 除以 0。只在需要缩短时才做除法。",
                en="A gradient of all 0 turned into `nan`: 0 divided by 0. Divide only where there is something to shorten.",
            ),
            fails="zero",
        ),
        Mistake(
            "per_row",
            Text(
                zh="逐行（或逐列）算了范数。要的是整个张量的一个范数：`grad.norm()`，不带 `dim`。",
                en="You took a norm per row or column. One norm of the whole tensor is wanted: `grad.norm()` without `dim`.",
            ),
            fails="whole",
        ),
        Mistake(
            "other_norm",
            Text(
                zh="你用了另一种范数：绝对值之和，或者最大的绝对值。要的是平方和的平方根：`grad.norm()`。",
                en="You took another norm, the sum of the absolute values or the largest of them. "
                "Wanted is the root of the sum of squares: `grad.norm()`.",
            ),
            fails="clips",
        ),
        Mistake(
            "upside_down",
            Text(
                zh="分子和分母颠倒了：梯度变得更长。应当乘以 `max_norm / norm`，它小于 1。",
                en="The ratio is upside down, and the gradient grew. Multiply by `max_norm / norm`, which is below 1.",
            ),
            fails="clips",
        ),
        *(STILL_AT_WORK, IN_PLACE, RETURNS_NO_TENSOR, OTHER_SHAPE, *MISREGISTERED, NO_HANDLE),
    ),
    insight=Text(
        zh="不返回（`None`）就是「保持原样」，所以只有太长的梯度才需要写 `return`。",
        en="Returning nothing (`None`) means “leave it”, so only a gradient that is too long needs a `return`.",
    ),
)
