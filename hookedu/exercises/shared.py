"""Criteria shared by exercises of several lessons, and mistakes that people make with any tensor hook."""

from typing import Any

from hookedu.exercises.exercise import Criterion, Mistake
from hookedu.exercises.observation import Opaque, show
from hookedu.language import Text

HANDLE = Opaque("RemovableHandle")


def hands_over(call: str, handle: Any, silent: bool, points: int = 1) -> Criterion:
    """Require that `call` returns a handle and that its remove() silences the hook.

    `handle` is the decoded return value; `silent` says whether the hook stayed silent after remove().
    """
    return Criterion(
        "handle",
        handle == HANDLE and silent,
        points=points,
        given=f"handle = {call}",
        expected=Text(zh="注册钩子时得到的句柄", en="the handle that registering the hook gave you"),
        got=show(handle).strip("<>")
        if handle != HANDLE
        else Text(zh="一个取不下这个钩子的句柄", en="a handle that does not take this hook off"),
        mistake=None if handle == HANDLE else "no_handle",
    )


_HOOKS = Text(zh="留下 {n} 个钩子", en="{n} hooks left on")


def none_left(id: str, given: str, left: int, mistake: str) -> Criterion:
    """Require that the answer removed every hook that it registered; `left` is how many remain."""
    return Criterion(
        id,
        left == 0,
        points=1,
        given=given,
        expected=_HOOKS.format(n=0),
        got=_HOOKS.format(n=left),
        mistake=mistake,
    )


def all_detached(given: str, attached: int) -> Criterion:
    """Require that what was kept holds no graph; `attached` counts the tensors that do."""
    says = Text(zh="{n} 个张量还连着计算图", en="{n} tensors still hold their graph")
    return Criterion(
        "detached",
        attached == 0,
        points=1,
        given=given,
        expected=says.format(n=0),
        got=says.format(n=attached),
        mistake="attached",
    )


def no_handle(call: str) -> Mistake:
    """Return the mistake of not passing the handle that `call` returned on to the caller."""
    return Mistake(
        "no_handle",
        Text(
            zh="没有把句柄交出来：`{call}` 会返回一个句柄，少了它，调用者就没有办法取下这个钩子。",
            en="The handle got lost: `{call}` gives one back, and without it your caller has no way to take the hook off.",
        ).format(call=call),
        fails="handle",
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
# Mistakes in registering a hook that returns a new gradient.
MISREGISTERED = (CALLS_NOW, PASSES_TENSOR, NO_ARGUMENT, TWO_ARGUMENTS)
NO_HANDLE = no_handle("y.register_hook(...)")
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
FROZEN = Mistake(
    "hooks_frozen",
    Text(
        zh="有一个参数被冻结了（`requires_grad` 是 `False`），它没有梯度，也不接受钩子。遇到这样的就跳过。",
        en="One parameter is frozen (its `requires_grad` is `False`): it gets no gradient and takes no hook. Skip such ones.",
    ),
    raises=r"cannot register a hook on a tensor that doesn't require gradient",
)
ATTACHED = Mistake(
    "attached",
    Text(
        zh="值都对，可是留下的张量还连着计算图，整张图都跟着留在内存里。请留下 `output.detach()`。",
        en="The values are right, but what you kept still holds its graph, and the whole graph stays in memory. "
        "Keep `output.detach()`.",
    ),
    fails="detached",
)
