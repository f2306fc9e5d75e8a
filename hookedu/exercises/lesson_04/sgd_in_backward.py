"""04.2 `sgd_in_backward(model, lr)`: update every parameter as soon as its gradient is ready."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_04.shared import NO_HANDLES, handles_given, parameters, remove_handles
from hookedu.exercises.observation import show
from hookedu.exercises.probing import hooks_on
from hookedu.exercises.shared import FROZEN
from hookedu.exercises.tools import all_close, close, gradients, whole
from hookedu.language import Text

_LR = 0.25
_NAMES = ("0.weight", "0.bias", "1.weight", "1.bias")
_FROZEN = "0.bias"


def _case(rng: random.Random) -> tuple[torch.nn.Sequential, list[torch.Tensor]]:
    """Return (model, two inputs): two linear layers of whole numbers, with the first bias frozen."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    for name, parameter in model.named_parameters():
        parameter.data = whole(rng, parameter.numel()).reshape(parameter.shape)
        parameter.requires_grad_(name != _FROZEN)
    return model, [whole(rng, 3).reshape(1, 3) for _ in range(2)]


def _after_sgd(rng: random.Random, lr: float = _LR, zero: bool = True) -> list[dict[str, torch.Tensor]]:
    """Return the parameters after each of two torch.optim.SGD steps; with zero=False gradients accumulate."""
    model, inputs = _case(rng)
    optimizer = torch.optim.SGD(
        [p for p in model.parameters() if p.requires_grad], lr=abs(lr), maximize=lr < 0
    )
    after = []
    for x in inputs:
        model(x).sum().backward()
        optimizer.step()
        if zero:
            optimizer.zero_grad()
        after.append(parameters(model))
    return after


def _probe(sgd_in_backward: Any, rng: random.Random) -> dict[str, Any]:
    model, inputs = _case(rng)
    handles = sgd_in_backward(model, _LR)
    hooks = {
        "tensor": sum(map(hooks_on, model.parameters())),
        "post": sum(len(p._post_accumulate_grad_hooks or ()) for p in model.parameters()),
    }
    report = {"hooks": hooks, "at_once": parameters(model), "handles": handles, "after": [], "grads": []}
    alive: list[int] = []  # number of .grad present each time after the answer's hook has run
    ours = [
        p.register_post_accumulate_grad_hook(
            lambda _: alive.append(sum(q.grad is not None for q in model.parameters()))
        )
        for p in model.parameters()
        if p.requires_grad
    ]
    for x in inputs:
        model(x).sum().backward()
        report["after"].append(parameters(model))
        report["grads"].append(gradients(model))
    for handle in ours:
        handle.remove()
    report["alive"] = alive
    remove_handles(handles)
    before = parameters(model)
    model(inputs[0]).sum().backward()
    return report | {"off": all_close(parameters(model), before)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    state = rng.getstate()

    def again() -> random.Random:  # every simulation starts from the same case
        rng.setstate(state)
        return rng

    start = parameters(_case(again())[0])
    expected = _after_sgd(again())
    after, grads = saw["after"], saw["grads"]
    first, second = after
    call = f"sgd_in_backward(model, lr={_LR}); model(x1).sum().backward()"
    moved = {name for name in _NAMES if not close(first[name], start[name])}
    shown = next((n for n in reversed(_NAMES) if not close(first[n], expected[0][n])), _NAMES[-1])
    if not all_close(saw["at_once"], start):
        mistake = "steps_at_once"
    elif not moved:
        mistake = "rebinds_param" if saw["hooks"]["tensor"] + saw["hooks"]["post"] else "not_registered"
    elif all_close(first, _after_sgd(again(), lr=-_LR)[0]):
        mistake = "wrong_sign"
    elif moved == {_NAMES[-1]}:
        mistake = "late_binding"
    else:
        itself = all(close(first[n], (1 - _LR) * start[n]) for n in moved)
        mistake = "takes_param_for_gradient" if itself else None
    left = [name for name in _NAMES if grads[1][name] is not None]
    zeroed = left and all(not grads[1][name].any() for name in left)
    most = max(saw["alive"], default=0)
    if saw["hooks"]["tensor"]:
        kept = "tensor_hook"
    elif zeroed:
        kept = "zeroes_grad"
    else:
        kept = None if left else "frees_at_the_end"
    return [
        Criterion(
            "first_step",
            all_close(first, expected[0]),
            points=2,
            essential=True,
            given=f"{call}; model.{shown} = {show(start[shown])}",
            expected=f"model.{shown} == {show(expected[0][shown])}",
            got=f"model.{shown} == {show(first[shown])}",
            mistake=mistake,
        ),
        Criterion(
            "second_step",
            all_close(second, expected[1]),
            points=1,
            given=f"{call}; model(x2).sum().backward()",
            expected=f"model.{_NAMES[-1]} == {show(expected[1][_NAMES[-1]])}",
            got=f"model.{_NAMES[-1]} == {show(second[_NAMES[-1]])}",
            mistake="keeps_grad" if all_close(second, _after_sgd(again(), zero=False)[1]) else None,
        ),
        Criterion(
            "freed",
            not left and not most,
            points=1,
            given=call,
            expected=Text(
                zh="每个钩子运行完，没有一个 `.grad` 还留着",
                en="whenever a hook is done, no `.grad` is left",
            ),
            got=Text(zh="最多留着 {n} 个 `.grad`", en="up to {n} `.grad` are left").format(
                n=max(most, len(left))
            ),
            mistake=kept,
        ),
        handles_given(saw["handles"], saw["off"], "handles = sgd_in_backward(model, lr)"),
    ]


SGD_IN_BACKWARD = Exercise(
    id="04.2",
    title=Text(zh="反向传播里的 SGD", en="SGD inside backward"),
    answer="sgd_in_backward",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="哪种钩子在 `.grad` 写好以后才运行？给每个 `requires_grad` 为 `True` 的参数挂一个，收好句柄。",
            en="Which hook runs once `.grad` is written? Attach one to every parameter whose `requires_grad` is `True` "
            "and collect the handles.",
        ),
        Text(
            zh="钩子收到的是参数：就地减去 `lr * param.grad`（梯度模式已经关着），然后把 `param.grad` 设为 `None`。",
            en="The hook receives the parameter: subtract `lr * param.grad` from it in place (grad mode is off already), "
            "then set `param.grad` to `None`.",
        ),
        Text(
            zh="`def step(param):`，里面 `param -= lr * param.grad`，接着 `param.grad = None`；"
            "循环里 `handles.append(param.register_post_accumulate_grad_hook(step))`。",
            en="`def step(param):`, in it `param -= lr * param.grad`, then `param.grad = None`; "
            "in the loop `handles.append(param.register_post_accumulate_grad_hook(step))`.",
        ),
    ),
    mistakes=(
        Mistake(
            "not_registered",
            Text(
                zh="反向传播之后参数没有变，也没有钩子挂在上面：写好 `step` 还不够，要用 `register_post_accumulate_grad_hook` 挂上去。",
                en="After backward no parameter has moved, and none carries a hook: writing `step` is not enough, "
                "attach it with `register_post_accumulate_grad_hook`.",
            ),
            fails="first_step",
        ),
        Mistake(
            "rebinds_param",
            Text(
                zh="钩子触发了，参数却没有变：`param = param - ...` 算出一个新张量，只换了局部名字。要就地修改：`param -= lr * param.grad`。",
                en="The hook fired, yet the parameter is as before: `param = param - ...` makes a new tensor and only "
                "gives a local name another value. Change it in place: `param -= lr * param.grad`.",
            ),
            fails="first_step",
        ),
        Mistake(
            "takes_param_for_gradient",
            Text(
                zh="你减去的是 `lr` 乘参数自己：post-accumulate 钩子收到的是**参数**，梯度在 `param.grad` 里。",
                en="What you subtracted is `lr` times the parameter itself: a post-accumulate hook receives the "
                "**parameter**, and the gradient is in `param.grad`.",
            ),
            fails="first_step",
        ),
        Mistake(
            "wrong_sign",
            Text(
                zh="方向反了：梯度指向损失**上升**的方向，所以要减去 `lr * param.grad`。",
                en="The wrong way: the gradient points to where the loss **grows**, so subtract `lr * param.grad`.",
            ),
            fails="first_step",
        ),
        Mistake(
            "late_binding",
            Text(
                zh="只有最后一个参数动了，而且动了好几次：钩子里用的是循环的变量，而循环早已走完。请用钩子收到的那个 `param`。",
                en="Only the last parameter moved, and several times: the hook uses the loop's variable, and the loop "
                "is long over. Use the `param` that the hook receives.",
            ),
            fails="first_step",
        ),
        Mistake(
            "steps_at_once",
            Text(
                zh="参数在 `sgd_in_backward` 里就被改动了。这时还没有梯度；这个函数只挂钩子，更新交给钩子去做。",
                en="The parameters changed inside `sgd_in_backward` itself. There is no gradient yet: this function only "
                "attaches hooks, and the hooks make the step.",
            ),
            fails="first_step",
        ),
        Mistake(
            "keeps_grad",
            Text(
                zh="第 1 步对，第 2 步用的却是两次梯度之和：用完之后没有清掉 `.grad`。在钩子末尾写 `param.grad = None`。",
                en="Step 1 is right, but step 2 used the sum of both gradients: `.grad` was not cleared after use. "
                "End the hook with `param.grad = None`.",
            ),
            fails="second_step",
        ),
        Mistake(
            "tensor_hook",
            Text(
                zh="步子都走对了，`.grad` 却留了下来：张量钩子在写 `.grad` **之前**运行，清掉也会再写上。要用 post-accumulate 钩子。",
                en="Every step is right, but the `.grad` stay: a tensor hook runs **before** `.grad` is written, so "
                "whatever it clears is written afterwards. Use a post-accumulate hook.",
            ),
            fails="freed",
        ),
        Mistake(
            "zeroes_grad",
            Text(
                zh="`.grad` 里全是零，但还占着内存。要放掉它，写 `param.grad = None`。",
                en="The `.grad` are all zeros, but still take up memory. To let go of them, write `param.grad = None`.",
            ),
            fails="freed",
        ),
        Mistake(
            "frees_at_the_end",
            Text(
                zh="每个参数的 `.grad` 要在它自己的钩子里放掉，不要攒到最后。",
                en="Let each `.grad` go in its own hook, not all at the end.",
            ),
            fails="freed",
        ),
        Mistake(
            "calls_now",
            Text(
                zh="`register_post_accumulate_grad_hook(...)` 收到的是 `None`：你在注册时就把 `step` 调用掉了。要传函数本身，不带括号。",
                en="`register_post_accumulate_grad_hook(...)` was handed `None`: you called `step` while registering it. "
                "Pass the function itself, without parentheses.",
            ),
            raises=r"'NoneType' object is not callable",
        ),
        Mistake(
            "no_argument",
            Text(
                zh="PyTorch 调用 post-accumulate 钩子时会传入 1 个参数，就是那个参数张量。请写成 `def step(param): ...`。",
                en="PyTorch calls a post-accumulate hook with 1 argument: the parameter. Write it as `def step(param): ...`.",
            ),
            raises=r"takes 0 positional arguments but 1 was given",
        ),
        *(FROZEN, NO_HANDLES),
        Mistake(
            "returns_from_hook",
            Text(
                zh="post-accumulate 钩子应当返回 `None`。`lambda` 会把算出来的东西（张量、元组）返回，请改用 `def`，什么也不返回。",
                en="A post-accumulate hook should return `None`. A `lambda` returns what it computed (a tensor, a tuple): "
                "write a `def` that returns nothing.",
            ),
            raises=r"post accumulate grad hooks should return None|expected Variable, but hook returned",
        ),
        Mistake(
            "grad_is_none",
            Text(
                zh="读 `.grad` 的时候它还是 `None`。要么钩子运行得太早（张量钩子在写 `.grad` 之前），要么读的不是钩子收到的那个参数。",
                en="`.grad` is still `None` where you read it. Either it is too early (a tensor hook runs before `.grad` "
                "is written), or it belongs to another parameter than the one the hook received.",
            ),
            raises=r"NoneType",
        ),
    ),
    insight=Text(
        zh="每个参数的梯度一写好就用掉、放掉，所以同一时刻只有 1 个梯度占着内存；这正是大模型微调省显存的办法。",
        en="Each gradient is used and let go the moment it is written, so only 1 takes up memory at a time: "
        "this is how large models are fine-tuned in less memory.",
    ),
)
