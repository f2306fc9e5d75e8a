"""Exercise 10.2, `gradient_means(model, loss)`: the means of parameter gradients, in order of arrival."""

import itertools
import random
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_10.shared import (
    LEAVES_HOOKS,
    RETURNS_NOTHING,
    Chain,
    backward_hooks,
    number_close,
    rounded,
)
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.shared import CALLS_NOW, FROZEN, LATE_BINDING, none_left
from hookedu.exercises.tools import all_close, gradients, linear, whole
from hookedu.language import Text

_RUN = ("stem", "body", "head")
_FROZEN = "body.bias"
_ORDERS = [o for o in itertools.permutations(_RUN) if o not in (_RUN, _RUN[::-1])]


def _case(rng: random.Random) -> tuple[Chain, torch.Tensor]:
    """Return (model, loss), after an earlier backward that left twice the gradient of `loss` in every .grad."""
    layers = {name: linear(whole(rng, 9).reshape(3, 3), whole(rng, 3)) for name in rng.choice(_ORDERS)}
    model = Chain(layers | {"spare": nn.Linear(2, 2)}, _RUN)
    model.get_parameter(_FROZEN).requires_grad_(False)
    x, w = whole(rng, 6).reshape(2, 3), whole(rng, 3)
    (2 * w * model(x)).sum().backward()
    return model, (w * model(x)).sum()


def _probe(gradient_means: Any, rng: random.Random) -> dict[str, Any]:
    model, loss = _case(rng)
    found = gradient_means(model, loss)
    return {"found": found, "grads": gradients(model), "left": backward_hooks(model)}


def _truth(rng: random.Random) -> tuple[list[tuple[str, float]], dict[str, Any], Chain]:
    """Return ((name, mean) in order of arrival, every .grad afterwards, the model)."""
    model, loss = _case(rng)
    pairs: list[tuple[str, float]] = []
    for name, p in model.named_parameters():
        if p.requires_grad:
            p.register_hook(lambda grad, name=name: pairs.append((name, grad.mean().item())))
    loss.backward()
    return pairs, gradients(model), model


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    pairs, grads, model = _truth(rng)
    names = [name for name, _ in pairs]
    found = saw["found"]
    well_formed = isinstance(found, list) and all(
        isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) for entry in found
    )
    got = [name for name, _ in found] if well_formed else []
    complete = sorted(got) == sorted(names)
    noted = dict(map(tuple, found)) if complete else {}
    right = complete and all(number_close(noted[name], mean) for name, mean in pairs)
    model_order = [name for name, _ in model.named_parameters() if name in names]
    given = "loss = (w * model(x)).sum(); gradient_means(model, loss)"
    place = next((n for n, mean in pairs if complete and not number_close(noted[n], mean)), names[0])
    return [
        Criterion(
            "names",
            complete,
            points=2,
            essential=True,
            given=given,
            expected=f"[name for name, mean in ...] == {show(names)}",
            got=show(rounded(found)),
            mistake=_wrong_names(found, well_formed, got, names),
        ),
        Criterion(
            "unchanged",
            all_close(saw["grads"], grads),
            essential=True,
            given=given,
            expected=Text(zh="每个 `.grad` 都和没有钩子时一样", en="every `.grad` as it is without hooks"),
            got=Text(zh="有的不一样", en="some differ"),
            mistake="changes_gradient",
        ),
        Criterion(
            "order",
            got == names,
            points=1,
            essential=True,
            given=given,
            expected=show(names),
            got=show(got),
            mistake="model_order"
            if got == model_order
            else "upside_down"
            if got in (model_order[::-1], names[::-1])
            else None,
        ),
        Criterion(
            "means",
            right,
            points=2,
            given=given,
            expected=f"{place}: {dict(pairs)[place]:g}",
            got=f"{place}: {show(rounded(noted.get(place)))}",
            mistake=_wrong_means(noted, dict(pairs), model) if complete else None,
        ),
        none_left("clean", given, saw["left"], "leaves_hooks"),
    ]


def _wrong_names(found: Any, well_formed: bool, got: list[str], names: list[str]) -> str | None:
    if found is None:
        return "returns_nothing"
    if found == []:
        return "no_backward"
    if not well_formed:
        return "no_pairs"
    return "late_binding" if len(got) == len(names) and len(set(got)) == 1 else None


def _wrong_means(noted: dict[str, Any], expected: dict[str, float], model: nn.Module) -> str | None:
    if any(isinstance(v, (torch.Tensor, Opaque)) for v in noted.values()):
        return "keeps_tensors"
    if all(number_close(noted[name], 3 * mean) for name, mean in expected.items()):
        return "mean_of_the_sum"
    if all(number_close(noted[name], model.get_parameter(name).mean().item()) for name in expected):
        return "mean_of_the_parameter"
    return "not_the_mean" if all(type(v) in (int, float) for v in noted.values()) else None


GRADIENT_MEANS = Exercise(
    id="10.2",
    title=Text(zh="按次序记下梯度", en="Gradients in order"),
    answer="gradient_means",
    points=6,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="一个参数一个张量钩子，谁先触发谁先进列表：次序自己就对了。",
            en="One tensor hook a parameter: whoever fires first enters the list first, and the order takes care of itself.",
        ),
        Text(
            zh="钩子收到的 `grad` 才是这一次的梯度；`param.grad` 里是累加的和。冻结的参数用 `if param.requires_grad` 跳过。",
            en="The `grad` that the hook receives is this pass's; `param.grad` holds a sum. Skip frozen parameters with `if param.requires_grad`.",
        ),
        Text(
            zh="循环里：`handles.append(param.register_hook(partial(note, name)))`；`note(name, grad)` 里：`arrived.append((name, grad.mean().item()))`；"
            "然后 `loss.backward()`，取下所有钩子，`return arrived`。",
            en="In the loop: `handles.append(param.register_hook(partial(note, name)))`; in `note(name, grad)`: `arrived.append((name, grad.mean().item()))`; "
            "then `loss.backward()`, take all hooks off, `return arrived`.",
        ),
    ),
    mistakes=(
        replace(LATE_BINDING, fails="names"),
        replace(RETURNS_NOTHING, fails="names"),
        Mistake(
            "no_backward",
            Text(
                zh="列表是空的：钩子挂上了，却没有人调用 `loss.backward()`；或者钩子在它之后才挂上。",
                en="The list is empty: nobody called `loss.backward()` after the hooks were on.",
            ),
            fails="names",
        ),
        Mistake(
            "no_pairs",
            Text(
                zh="要返回一个列表，每一项是一对：`(name, mean)`。",
                en="Return a list in which each entry is a pair, `(name, mean)`.",
            ),
            fails="names",
        ),
        Mistake(
            "changes_gradient",
            Text(
                zh="`.grad` 变了：你的钩子返回了东西，取代了梯度；或者 `backward()` 走了不止一次；或者你清零了。",
                en="A `.grad` changed: your hook returned something that replaced the gradient, or backward ran more than once, or you zeroed it.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "model_order",
            Text(
                zh="这是参数表的次序：反向传播之后才逐个读 `.grad`，就看不到先后了。让钩子在梯度到达时自己写进列表。",
                en="That is the order of the list of parameters: read after backward, `.grad` tells nothing about who came first. Let each hook "
                "write to the list as its gradient arrives.",
            ),
            fails="order",
        ),
        Mistake(
            "upside_down",
            Text(
                zh="把列表倒过来并不等于反向传播的次序：层可以不按定义的次序运行，层内的 `weight` 和 `bias` 也不一定倒过来。",
                en="A list upside down is not the order of backward: layers may run in another order than they are defined, and `weight` and "
                "`bias` of a layer need not swap.",
            ),
            fails="order",
        ),
        Mistake(
            "mean_of_the_sum",
            Text(
                zh="你记下的是 `param.grad`，里面还有上一次的梯度。这一次的，是张量钩子收到的 `grad`。",
                en="You noted `param.grad`, which still holds the gradient of an earlier pass. This pass's is the `grad` that a tensor hook receives.",
            ),
            fails="means",
        ),
        Mistake(
            "mean_of_the_parameter",
            Text(
                zh="这是参数自己的均值，不是它的梯度的。",
                en="That is the mean of the parameter itself, not of its gradient.",
            ),
            fails="means",
        ),
        Mistake(
            "not_the_mean",
            Text(
                zh="名字和次序都对，数不是均值：这里要 `grad.mean()`，带正负号。",
                en="Names and order are right, but the numbers are not means: `grad.mean()` is wanted here, with its sign.",
            ),
            fails="means",
        ),
        Mistake(
            "keeps_tensors",
            Text(
                zh="均值要记成 Python 的数：`grad.mean().item()`。",
                en="Note Python numbers: `grad.mean().item()`.",
            ),
            fails="means",
        ),
        Mistake(
            "no_gradient_yet",
            Text(
                zh="某个 `.grad` 还是 `None`：有的参数这次根本没有用到，张量钩子运行时 `.grad` 也还没写好。用钩子收到的 `grad`。",
                en="Some `.grad` is still `None`: one parameter is not used at all, and while a tensor hook runs `.grad` is not written yet. "
                "Use the `grad` that the hook receives.",
            ),
            raises=r"'NoneType' object has no attribute",
        ),
        *(LEAVES_HOOKS, FROZEN, CALLS_NOW),
    ),
    insight=Text(
        zh="你看到的是引擎真正的次序：靠近损失的先到。只要挂上钩子，不用懂模型的结构。",
        en="You saw the engine's true order, what is close to the loss first, and needed to know nothing of the model's structure.",
    ),
)
