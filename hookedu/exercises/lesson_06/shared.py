"""Mistakes shared by several exercises of lesson 06."""

from hookedu.exercises.exercise import Mistake
from hookedu.exercises.shared import no_handle
from hookedu.language import Text

NO_HANDLE = no_handle("register_forward_pre_hook(...)")
NOT_REGISTERED = Text(
    zh="层上没有你的钩子：函数写好了，却没有挂上去。用 `layer.register_forward_pre_hook(...)`。",
    en="Your hook is not on the layer: the function is there, but nobody registered it. "
    "Use `layer.register_forward_pre_hook(...)`.",
)
CALLS_NOW = Mistake(
    "calls_now",
    Text(
        zh="你把钩子函数的返回值（`None`）挂了上去，而不是函数本身：注册时不要写括号。每次前向传播时由 PyTorch 去调用它。",
        en="You registered what your hook returned (`None`), not the hook itself: no parentheses when registering. "
        "PyTorch calls it in each forward pass.",
    ),
    raises=r"'NoneType' object is not callable",
)
ONE_ARGUMENT = Mistake(
    "one_argument",
    Text(
        zh="PyTorch 调用前置钩子时传入 2 个参数：模块和位置参数的元组。请写成 `def hook(module, args): ...`。",
        en="PyTorch calls a pre-hook with 2 arguments: the module, and the tuple of positional arguments. "
        "Write it as `def hook(module, args): ...`.",
    ),
    raises=r"takes 1 positional argument but 2 were given",
)
