"""02.4 `watching(tensors)`: a context manager that leaves nothing behind, even when something raises."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_02.shared import (
    CHANGES_GRADIENT,
    HOOKS_EVERYTHING,
    SKIPS_LEAVES,
    SWITCHES_ON,
    case,
    left_alone,
    unchanged,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on
from hookedu.exercises.shared import LATE_BINDING
from hookedu.exercises.tools import copies, is_manager, same
from hookedu.language import Text


class _Interruption(Exception):
    """Raised by the probe inside the block, as a failing training step would."""


def _tensors(x: torch.Tensor, k: float) -> dict[str, torch.Tensor]:
    """Return a leaf, two results computed from it, and a tensor that requires no gradient."""
    return {"x": x, "scaled": k * x, "fixed": torch.ones(2), "shifted": x + 1}


def _loss(tensors: dict[str, torch.Tensor], w: torch.Tensor) -> torch.Tensor:
    return (w * tensors["scaled"]).sum() + (3 * w * tensors["shifted"]).sum()


def _separate(watching: Any, x: torch.Tensor, k: float, w: torch.Tensor) -> list[Any]:
    """Return what two consecutive `with` blocks collect, each for its own tensor."""
    collected = []
    for name in ("first", "second"):
        y = k * x
        with watching({name: y}) as seen:
            (w * y).sum().backward()
        collected.append(seen)
    return copies(collected)


def _probe(watching: Any, rng: random.Random) -> dict[str, Any]:
    x, k, w = case(rng)
    tensors, stranger = _tensors(x, k), []
    tensors["scaled"].register_hook(lambda grad: stranger.append(1))  # a third party's, must keep working
    manager = watching(tensors)
    if not is_manager(manager):
        return {"manager": manager}
    with manager as seen:
        hooks = sum(map(hooks_on, tensors.values())) - 1
        _loss(tensors, w).backward(retain_graph=True)
    report = {"manager": True, "hooks": hooks, "seen": copies(seen), "x_grad": copies(x.grad)}
    _loss(tensors, 2 * w).backward()
    left = sum(map(hooks_on, tensors.values())) - (len(stranger) == 2)
    report |= {"after": copies(seen), "left": left, "stranger": len(stranger)}
    report["switched"] = tensors["fixed"].requires_grad

    again, escaped = _tensors(x, k), False
    try:
        with watching(again):
            raise _Interruption
    except _Interruption:
        escaped = True
    report |= {"escaped": escaped, "left_by_error": sum(map(hooks_on, again.values()))}
    return report | {"separate": _separate(watching, x, k, w)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, k, w = case(rng)
    call = (
        "with watching({'x': x, 'scaled': y, 'fixed': torch.ones(2), 'shifted': z}) as seen: loss.backward()"
    )
    if saw["manager"] is not True:
        got = show(saw["manager"]).strip("<>")
        return [
            Criterion(
                "is_manager",
                passed=False,
                essential=True,
                given="manager = watching(tensors)",
                expected="manager.__enter__, manager.__exit__",
                got=got,
                mistake="not_a_manager",
            )
        ]
    seen, expected = saw["seen"], {"x": (k + 3) * w, "scaled": w, "shifted": 3 * w}
    separate, own = saw["separate"], [{"first": w}, {"second": w}]
    clean = same(saw["after"], seen) and saw["left"] == 0
    if seen is None:
        mistake = "yields_nothing"
    elif not isinstance(seen, dict):
        mistake = "yields_something_else"
    elif not seen and not saw["hooks"]:
        mistake = "not_on_inside"
    elif seen.keys() == {"shifted"}:
        mistake = "late_binding"
    elif seen.keys() == {"scaled", "shifted"}:
        mistake = "skips_leaves"
    else:  # names of an earlier check mean that its dictionary is still in use
        mistake = "shared_dict" if seen.keys() > expected.keys() else None
    given = (
        f"x = {show(x)}; y = {k:g} * x; z = x + 1; loss = ({show(w)} * y).sum() + ({show(3 * w)} * z).sum()"
    )
    left = Text(zh="块之后留下 {n} 个钩子", en="{n} hooks left after the block")
    return [
        unchanged(given, saw["x_grad"], k * w + 3 * w),
        Criterion(
            "sees",
            same(seen, expected),
            points=2,
            essential=True,
            given=f"{given}; {call}",
            expected=f"seen == {show(expected)}",
            got=f"seen == {show(seen)}",
            mistake=mistake,
        ),
        left_alone("with watching(tensors) as seen: ...; tensors['fixed']", saw["switched"]),
        Criterion(
            "strangers",
            saw["stranger"] == 2,
            essential=True,
            given=Text(
                zh="`y` 上有别人的钩子；块里和块之后各做一次反向传播",
                en="somebody else's hook on `y`; one backward in the block and one after it",
            ),
            expected=Text(zh="它触发 {n} 次", en="it fires {n} times").format(n=2),
            got=Text(zh="{n} 次", en="{n} times").format(n=saw["stranger"]),
            mistake="clears_everybody",
        ),
        Criterion(
            "separate",
            same(separate, own),
            essential=True,
            given="with watching({'first': y}) as one: ...; with watching({'second': z}) as two: ...",
            expected=f"one, two == {show(own)}",
            got=f"one, two == {show(separate)}",
            mistake="shared_dict",
        ),
        Criterion(
            "clean",
            clean,
            points=1,
            given=call,
            expected=left.format(n=0),
            got=left.format(n=saw["left"]),
            mistake="never_removes",
        ),
        Criterion(
            "clean_after_error",
            saw["left_by_error"] == 0,
            points=1,
            given="with watching(tensors): raise ...",
            expected=left.format(n=0),
            got=left.format(n=saw["left_by_error"]),
            mistake="no_finally",
        ),
        Criterion(
            "error_escapes",
            saw["escaped"],
            points=1,
            given="with watching(tensors): raise ...",
            expected=Text(zh="异常传出来", en="the exception comes through"),
            got=Text(zh="异常不见了", en="the exception is gone"),
            mistake="swallows_error",
        ),
    ]


WATCHING = Exercise(
    id="02.4",
    title=Text(zh="用完不留痕迹", en="Leave nothing behind"),
    answer="watching",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`contextlib.contextmanager` 把带一个 `yield` 的函数变成上下文管理器：`yield` 之前挂上，之后取下。",
            en="`contextlib.contextmanager` turns a function with one `yield` into a context manager: "
            "attach before the `yield`, take off after it.",
        ),
        Text(
            zh="块里抛出的异常会从 `yield` 那一行冒出来。要让取下钩子的那几行无论如何都执行，需要 `try: ... finally: ...`。",
            en="An exception raised in the block comes out at the line of the `yield`. To have the hooks taken off "
            "whatever happens, you need `try: ... finally: ...`.",
        ),
        Text(
            zh="`seen = {}`，`handles = watch_many(tensors, seen)`，`try:` `yield seen`，`finally:` 逐个 `handle.remove()`。",
            en="`seen = {}`, `handles = watch_many(tensors, seen)`, `try:` `yield seen`, `finally:` each `handle.remove()`.",
        ),
    ),
    mistakes=(
        Mistake(
            "not_a_manager",
            Text(
                zh="`watching(tensors)` 给出的东西不能放进 `with`。如果你写的是带 `yield` 的函数，多半是忘了 `@contextmanager` 这一行。",
                en="What `watching(tensors)` gives does not work in a `with`. If you wrote a function with `yield`, "
                "the line `@contextmanager` is probably missing.",
            ),
            fails="is_manager",
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
                zh="`as seen` 应当得到那个装梯度的字典，得到的却是别的东西。",
                en="`as seen` should receive the dictionary that holds the gradients; it got something else.",
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
            "never_removes",
            Text(
                zh="块结束之后钩子还在，继续往 `seen` 里写。`yield` 之后要逐个 `handle.remove()`。",
                en="After the block the hooks are still on and go on writing into `seen`. After the `yield`, "
                "call `handle.remove()` for each.",
            ),
            fails="clean",
        ),
        Mistake(
            "no_finally",
            Text(
                zh="平时没有问题，可是块里一抛异常，`yield` 后面的代码就不执行了，钩子留了下来。把取下钩子的代码放进 `finally`。",
                en="All is well until the block raises: then the code after the `yield` never runs and the hooks stay. "
                "Put the removal into a `finally`.",
            ),
            fails="clean_after_error",
        ),
        Mistake(
            "swallows_error",
            Text(
                zh="块里的异常被你吞掉了，调用者不会知道出了错。不要用 `except` 接住它（写成类的话，`__exit__` 不要返回 `True`）。",
                en="You swallowed the exception of the block, so the caller never learns of it. "
                "No `except` here (in a class: `__exit__` must not return `True`).",
            ),
            fails="error_escapes",
        ),
        Mistake(
            "exit_signature",
            Text(
                zh="`__exit__` 除了 `self` 还会收到 3 个参数，用来说明异常：`def __exit__(self, kind, error, trace)`。",
                en="Besides `self`, `__exit__` gets 3 arguments that describe the exception: `def __exit__(self, kind, error, trace)`.",
            ),
            raises=r"__exit__\(\) takes",
        ),
        Mistake(
            "clears_everybody",
            Text(
                zh="别人挂在 `y` 上的钩子也不见了。只取下自己的：对每个句柄调用 `remove()`，不要清空 `_backward_hooks`。",
                en="Somebody else's hook on `y` is gone as well. Take off only your own: call `remove()` on each handle and do not "
                "empty `_backward_hooks`.",
            ),
            fails="strangers",
        ),
        Mistake(
            "shared_dict",
            Text(
                zh="几次 `with` 共用一个字典，梯度都混在一起了。每次进入都要新建一个：把 `seen = {}` 写在函数里面（不是外面，也不是默认参数）。",
                en="Several `with` share one dictionary, and their gradients are mixed. Make a new one each time: put `seen = {}` inside "
                "the function (not outside it, nor as a default argument).",
            ),
            fails="separate",
        ),
        *(LATE_BINDING, CHANGES_GRADIENT, HOOKS_EVERYTHING, SKIPS_LEAVES, SWITCHES_ON),
    ),
    insight=Text(
        zh="`finally` 保证了：块正常结束也好，半途出错也好，钩子都会取下。第 05 课的 `record()` 靠的就是同一招。",
        en="`finally` sees to it: whether the block ends well or fails half way, the hooks come off. "
        "`record()` in lesson 05 rests on the same idea.",
    ),
)
