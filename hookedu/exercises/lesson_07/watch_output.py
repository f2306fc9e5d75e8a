"""Exercise 07.4, `watch_output(layer, seen)`: the gradient of an output that an in-place ReLU overwrites."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_07.shared import NO_HANDLE, linear, quiet
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import hands_over
from hookedu.exercises.tools import copies, same, whole
from hookedu.language import Text


def _rows(rng: random.Random, n: int) -> torch.Tensor:
    return torch.stack([whole(rng, n), whole(rng, n)])


def _case(rng: random.Random) -> tuple[nn.Sequential, torch.Tensor, list[torch.Tensor]]:
    """Return (model, x, two w's) for loss = (w * model(x)).sum(); the ReLU blocks some positions, not all."""
    while True:
        first, last = linear(rng, 3, 4), linear(rng, 4, 2)
        model = nn.Sequential(first, nn.ReLU(inplace=True), last)
        x = _rows(rng, 3)
        if all(0 < n < 4 for n in (x @ first.weight.T > 0).sum(1).tolist()):
            return model, x.requires_grad_(), [_rows(rng, 2), _rows(rng, 2)]


def _probe(watch_output: Any, rng: random.Random) -> dict[str, Any]:
    model, x, ws = _case(rng)
    seen: list[Any] = []
    with quiet():
        handle = watch_output(model[0], seen)
        for w in ws:
            (w * model(x)).sum().backward()
        report = {"seen": copies(seen), "x_grad": copies(x.grad), "handle": handle}
        evaluated = "ok"
        try:
            with torch.no_grad():
                model(x)
        except RuntimeError as error:
            evaluated = str(error)[:200]
        length = len(seen)
        remove_handle(handle)
        (ws[0] * model(x)).sum().backward()
    return report | {"evaluated": evaluated, "after_removal": len(seen) - length}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    model, x, ws = _case(rng)
    x = x.detach()
    first, last = (m.weight.detach() for m in model.modules() if isinstance(m, nn.Linear))
    out = x @ first.T
    behind = [w @ last for w in ws]  # gradients of the ReLU's output
    wanted = [torch.where(out > 0, grad, 0.0) for grad in behind]
    seen = saw["seen"]
    named = {
        "after_relu": behind,
        "hooks_input": [grad @ first for grad in wanted],
        "hooks_weight": [grad.T @ x for grad in wanted],
        "keeps_output": [out.clamp(min=0)] * 2,
    }
    if not seen:
        mistake = "not_registered"
    elif all(isinstance(grad, torch.Tensor) for grad in seen):
        mistake = next((name for name, value in named.items() if same(seen[:1], value[:1])), None)
        mistake = mistake or ("not_each_pass" if len(seen) != len(ws) else None)
    else:
        mistake = "reads_dot_grad" if seen[0] is None else "keeps_tuple"
    given = f"model = Sequential(layer, ReLU(inplace=True), Linear); layer(x) == {show(out)}; loss = ({show(ws[0])} * model(x)).sum()"
    total = sum(wanted, torch.zeros(())) @ first
    sees = {"expected": f"seen[0] == {show(wanted[0])}"}
    if mistake == "not_each_pass":
        sees = {"expected": f"len(seen) == {len(ws)}", "got": f"len(seen) == {len(seen)}"}
    elif isinstance(seen, list) and seen:
        place = next((i for i in range(min(len(seen), len(ws))) if not same(seen[i], wanted[i])), 0)
        sees = {
            "expected": f"seen[{place}] == {show(wanted[place])}",
            "got": f"seen[{place}] == {show(seen[place])}",
        }
    return [
        Criterion(
            "unchanged",
            same(saw["x_grad"], total),
            essential=True,
            given=given,
            expected=f"x.grad == {show(total)}",
            got=f"x.grad == {show(saw['x_grad'])}",
            mistake="changes_gradient",
        ),
        Criterion(
            "sees",
            same(seen, wanted),
            points=3,
            essential=True,
            given=given,
            expected=sees["expected"],
            got=sees.get("got", f"seen == {show(seen)}"),
            mistake=mistake,
        ),
        Criterion(
            "evaluation",
            saw["evaluated"] == "ok",
            points=1,
            given="with torch.no_grad(): model(x)",
            expected="ok",
            got=str(saw["evaluated"]),
            mistake="no_grad_crash",
        ),
        hands_over("watch_output(layer, seen)", saw["handle"], saw["after_removal"] == 0),
    ]


WATCH_OUTPUT = Exercise(
    id="07.4",
    title=Text(zh="用张量钩子修好它", en="Mend it with a tensor hook"),
    answer="watch_output",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="两步：层上挂一个前向钩子，它拿到 `output`；在它里面，给 `output` 挂一个张量钩子。",
            en="Two steps: a forward hook on the layer receives `output`; inside it, register a tensor hook on `output`.",
        ),
        Text(
            zh="在 `torch.no_grad()` 里，`output` 不需要梯度，也就不接受钩子。先问 `output.requires_grad`。",
            en="Under `torch.no_grad()` the `output` needs no gradient and takes no hook. Ask `output.requires_grad` first.",
        ),
        Text(
            zh="`def catch(module, args, output):`，里面 `if output.requires_grad:` `output.register_hook(seen.append)`；最后 `return layer.register_forward_hook(catch)`。",
            en="`def catch(module, args, output):`, in it `if output.requires_grad:` `output.register_hook(seen.append)`; and last "
            "`return layer.register_forward_hook(catch)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "full_hook",
            Text(
                zh="这正是第 7.8 节的崩溃：完整反向钩子（前置的也一样）把输出变成一个视图，后面的 `ReLU(inplace=True)` 不许改它。改用前向钩子里的张量钩子。",
                en="The very crash of section 7.8: a full backward hook (a pre-hook too) turns the output into a view, which "
                "`ReLU(inplace=True)` may not change. Use a tensor hook set inside a forward hook.",
            ),
            raises=r"is a view and is being modified inplace",
        ),
        Mistake(
            "returns_handle",
            Text(
                zh="`lambda m, args, output: output.register_hook(...)` 返回了句柄，而前向钩子返回的东西会**替换输出**。请用 `def`，什么也不返回。",
                en="`lambda m, args, output: output.register_hook(...)` returns the handle, and what a forward hook returns "
                "**replaces the output**. Use `def` and return nothing.",
            ),
            raises=r"must be Tensor, not RemovableHandle",
        ),
        Mistake(
            "detached",
            Text(
                zh="这个张量不需要梯度，所以不接受钩子：`detach()` 之后的、`.data` 都是这样。钩子要挂在 `output` 本身上。",
                en="This tensor needs no gradient and so takes no hook: what `detach()` or `.data` gives is such. Hang the hook on "
                "`output` itself.",
            ),
            raises=r"cannot register a hook on a tensor that doesn't require gradient",
        ),
        Mistake(
            "after_relu",
            Text(
                zh="`seen` 里是 ReLU **之后**的梯度：`retain_grad` 会跟着就地操作走（第 04 课）。张量钩子留在原来的值上，用它收到的参数。",
                en="`seen` holds the gradient **behind** the ReLU: `retain_grad` moves along with an in-place operation (lesson 04). A "
                "tensor hook stays with the old value; use the argument it receives.",
            ),
            fails="sees",
        ),
        Mistake(
            "keeps_output",
            Text(
                zh="`seen` 里是输出本身，而且已经被 ReLU 改过；要的是它的梯度。",
                en="`seen` holds the output itself, already changed by the ReLU; wanted is its gradient.",
            ),
            fails="sees",
        ),
        Mistake(
            "reads_dot_grad",
            Text(
                zh="`seen` 里是 `None`：前向传播的时候还没有梯度，读 `output.grad` 太早了。在前向钩子里挂一个张量钩子，让它等着。",
                en="`seen` holds `None`: during forward there is no gradient, so `output.grad` comes too early. Hang a tensor hook in "
                "the forward hook and let it wait.",
            ),
            fails="sees",
        ),
        Mistake(
            "hooks_input",
            Text(
                zh="你看住的是层的输入。前向钩子的第 3 个参数才是输出。",
                en="You watch the layer's input. The output is argument 3 of a forward hook.",
            ),
            fails="sees",
        ),
        Mistake(
            "hooks_weight",
            Text(
                zh="你看住的是 `layer.weight`。要的是层的**输出**的梯度，它每次前向传播都是新的张量。",
                en="You watch `layer.weight`. Wanted is the gradient of the layer's **output**, a new tensor in each forward.",
            ),
            fails="sees",
        ),
        Mistake(
            "not_each_pass",
            Text(
                zh="做了 2 次反向传播，`seen` 就要有 2 项，每次一项。每次前向传播的输出都是新的张量，要给每一个挂上一个张量钩子。",
                en="There were 2 backward passes, so `seen` needs 2 entries, one from each. Every forward makes a new output: register one "
                "tensor hook on each of them.",
            ),
            fails="sees",
        ),
        Mistake(
            "not_registered",
            Text(
                zh="`seen` 一直是空的：没有张量钩子触发过。前向钩子挂上了吗？里面挂了张量钩子吗？是不是写了 `seen = ...`？",
                en="`seen` stayed empty: no tensor hook fired. Is the forward hook on? Does it register a tensor hook? Does it say `seen = ...`?",
            ),
            fails="sees",
        ),
        Mistake(
            "changes_gradient",
            Text(
                zh="你改动了流过去的梯度：张量钩子返回了东西，或者就地改了 `grad`，或者前向钩子换掉了输出。只看不改就什么也不返回。",
                en="You changed what flows on: the tensor hook returned something or modified `grad` in place, or the forward hook "
                "replaced the output. A hook that only watches returns nothing.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "no_grad_crash",
            Text(
                zh="训练时没有问题，一到 `torch.no_grad()` 里评估就出错：那时的 `output` 不接受钩子。先问 `output.requires_grad`。",
                en="All is well in training, but evaluation under `torch.no_grad()` fails: there `output` takes no hook. Ask "
                "`output.requires_grad` first.",
            ),
            fails="evaluation",
        ),
        NO_HANDLE,
    ),
    insight=Text(
        zh="前向钩子在 ReLU 动手之前就把张量钩子挂好了；张量钩子认的是改动之前的值，所以后面再怎么就地修改都不影响它。",
        en="The forward hook attaches the tensor hook before the ReLU gets to work; a tensor hook belongs to the value of that moment, "
        "so no later in-place change can mislead it.",
    ),
)
