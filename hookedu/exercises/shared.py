"""What the exercises of several lessons share: the handle, and mistakes that people make with any tensor hook."""

from typing import Any

from hookedu.exercises.model import Criterion, Mistake
from hookedu.exercises.observation import Opaque, show
from hookedu.language import Text

HANDLE = Opaque("RemovableHandle")


def hands_over(call: str, handle: Any, silent: bool, points: int = 1) -> Criterion:
    """`call` must return a handle, and its remove() must leave the hook silent."""
    return Criterion(
        *("handle", handle == HANDLE and silent, points),
        given=f"handle = {call}",
        expected=Text(zh="注册钩子时得到的句柄", en="the handle that registering the hook gave you"),
        got=show(handle).strip("<>")
        if handle != HANDLE
        else Text(zh="一个取不下这个钩子的句柄", en="a handle that does not take this hook off"),
        mistake=None if handle == HANDLE else "no_handle",
    )


CALLS_NOW = Mistake(
    "calls_now",
    Text(
        zh="`register_hook(...)` 收到的是 `None`：你在注册时就把函数调用掉了。要传的是函数本身，反向传播时由 PyTorch 去调用它。",
        en="`register_hook(...)` was handed `None`: you called your function while registering it. "
        "Pass the function itself; PyTorch calls it during backward.",
    ),
    raises=r"'NoneType' object is not callable",
)
NO_ARGUMENT = Mistake(
    "no_argument",
    Text(
        zh="PyTorch 调用钩子时会传入 1 个参数，就是梯度。请把钩子写成 `def keep(grad): ...`。",
        en="PyTorch calls a hook with 1 argument, the gradient. Write it as `def keep(grad): ...`.",
    ),
    raises=r"takes 0 positional arguments but 1 was given",
)
TWO_ARGUMENTS = Mistake(
    "two_arguments",
    Text(
        zh="参数的个数不对。PyTorch 调用张量的钩子时只传入 1 个参数，就是梯度；还要带上别的，就给它默认值："
        "`def keep(grad, name=name): ...`。注册时传的是函数本身，不带括号：`register_hook(keep)`。",
        en="The number of arguments is wrong. PyTorch calls a tensor's hook with 1 argument, the gradient; whatever else "
        "it needs gets a default: `def keep(grad, name=name): ...`. Register the function itself, without calling it: "
        "`register_hook(keep)`.",
    ),
    raises=r"missing \d+ required positional argument",
)
PASSES_TENSOR = Mistake(
    "passes_tensor",
    Text(
        zh="`register_hook(...)` 收到的是一个张量：你在注册时就把函数调用掉了。要传的是函数本身，不带括号和参数，"
        "例如 `y.register_hook(double)`。",
        en="`register_hook(...)` was handed a tensor: you called your function while registering it. "
        "Pass the function itself, without calling it, such as `y.register_hook(double)`.",
    ),
    raises=r"'Tensor' object is not callable",
)
# What goes wrong between a function and `register_hook`, where the function returns a new gradient.
MISREGISTERED = (CALLS_NOW, PASSES_TENSOR, NO_ARGUMENT, TWO_ARGUMENTS)
NO_HANDLE = Mistake(
    "no_handle",
    Text(
        zh="没有把句柄交出来：`y.register_hook(...)` 会返回一个句柄，少了它，调用者就没有办法取下这个钩子。",
        en="The handle got lost: `y.register_hook(...)` gives one back, and without it your caller "
        "has no way to take the hook off.",
    ),
    fails="handle",
)
