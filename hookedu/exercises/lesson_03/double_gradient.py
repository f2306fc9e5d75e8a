"""03.1 `double_gradient(y)`: change a gradient by returning a new one."""

import random
from dataclasses import replace
from typing import Any

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_03.shared import (
    FORGOT_RETURN,
    IN_PLACE,
    NOT_REGISTERED,
    READS_DOT_GRAD,
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
from hookedu.exercises.tools import copies, same
from hookedu.language import Text


def _probe(double_gradient: Any, rng: random.Random) -> dict[str, Any]:
    paths = Paths.make(rng)
    skip, y = paths.run()
    handle = double_gradient(y)
    hooks, early = hooks_on(y), paths.x.grad is not None
    loss = (paths.w * (skip + y)).sum()
    loss.backward(retain_graph=True)
    report = {"hooks": hooks, "early": early, "x_grad": copies(paths.x.grad), "s_grad": copies(paths.s.grad)}
    paths.x.grad = None
    remove_handle(handle)
    loss.backward()
    return report | {"handle": handle, "after_removal": copies(paths.x.grad)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    paths = Paths.make(rng)
    given = paths.given + "; loss.backward()"
    plain, got = paths.k * paths.w, saw["x_grad"]
    if saw["early"]:
        mistake = "runs_backward"
    elif same(got, plain):
        wrong = "wrong_tensor" if saw["handle"] == HANDLE else "not_registered"
        mistake = "forgot_return" if saw["hooks"] else wrong
    elif same(got, paths.k * paths.w**2):
        mistake = "squares"
    else:
        mistake = "twice" if same(got, 4 * plain) else None
    return [
        Criterion(
            "doubles",
            same(got, 2 * plain),
            points=2,
            essential=True,
            given=given,
            expected=f"x.grad == {show(2 * plain)}",
            got=f"x.grad == {show(got)}",
            mistake=mistake,
        ),
        neighbour(given, saw["s_grad"], 2 * paths.w),
        hands_over_all("double_gradient(y)", saw["handle"], saw["after_removal"], plain),
    ]


DOUBLE_GRADIENT = Exercise(
    id="03.1",
    title=Text(zh="用返回值加倍", en="Double by returning"),
    answer="double_gradient",
    points=3,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="写一个只有 1 个参数 `grad` 的函数。它返回什么，什么就成为新的梯度。",
            en="Write a function of 1 argument, `grad`. Whatever it returns becomes the new gradient.",
        ),
        Text(
            zh="`grad * 2` 是一个新张量，旧的没有动；`grad *= 2` 改的就是旧的那个，别人也许正在用它。",
            en="`grad * 2` is a new tensor and leaves the old one alone; `grad *= 2` changes the old one, "
            "which somebody else may be using.",
        ),
        Text(
            zh="一行就够：`return y.register_hook(lambda grad: grad * 2)`。",
            en="One line will do: `return y.register_hook(lambda grad: grad * 2)`.",
        ),
    ),
    mistakes=(
        replace(FORGOT_RETURN, fails="doubles"),
        IN_PLACE,
        replace(NOT_REGISTERED, fails="doubles"),
        replace(WRONG_TENSOR, fails="doubles"),
        Mistake(
            "squares",
            Text(
                zh="得到的是梯度的平方：`grad * grad` 或 `grad**2`。要加倍，应当是 `grad * 2`。",
                en="That is the gradient squared: `grad * grad`, or `grad**2`. Doubling it is `grad * 2`.",
            ),
            fails="doubles",
        ),
        Mistake(
            "twice",
            Text(
                zh="梯度加倍了两次。就地改一次、再返回一次，或者挂上两个钩子，都会这样：改动会接着上一个继续。",
                en="The gradient was doubled twice. Changing it in place and then returning it doubled does that, and so do "
                "two hooks: each goes on from what came before.",
            ),
            fails="doubles",
        ),
        Mistake(
            "runs_backward",
            Text(
                zh="`double_gradient` 自己跑了一次反向传播。它只应当挂上钩子，由调用者去跑 `backward()`。",
                en="`double_gradient` ran a backward pass of its own. It should only register the hook; its caller runs `backward()`.",
            ),
            fails="doubles",
        ),
        *(STILL_AT_WORK, READS_DOT_GRAD, RETURNS_NO_TENSOR, *MISREGISTERED, NO_HANDLE),
    ),
    insight=Text(
        zh="你返回了一个新张量，旧的那个原封不动：不管还有谁拿着它，都不会受到影响。",
        en="You returned a new tensor and left the old one as it was: whoever else holds it, nothing happens to them.",
    ),
)
