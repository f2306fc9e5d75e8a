"""Mistakes that fit hooks of every lesson, and what a handle looks like to a judge."""

from hookedu.exercises.model import Mistake
from hookedu.exercises.observation import Opaque
from hookedu.language import Text

HANDLE = Opaque("RemovableHandle")

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
LATE_BINDING = Mistake(
    "late_binding",
    Text(
        zh="所有梯度都记到了最后一个名字下。钩子等到反向传播时才去读 `name`，那时循环早已走完。"
        "要在循环的当下把它固定住，例如 `lambda grad, name=name: ...`。",
        en="Every gradient was filed under the last name. The hook looks `name` up when it runs, "
        "and by then the loop is over. Fix its value inside the loop, for example `lambda grad, name=name: ...`.",
    ),
    fails="sees",
)
