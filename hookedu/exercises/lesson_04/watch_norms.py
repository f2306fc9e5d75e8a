"""04.4 `watch_norms(model, seen)`: norms of the parameters' gradients, in backward order."""

import itertools
import math
import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_04.shared import NO_HANDLES, handles_given, remove_handles
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probing import hooks_on
from hookedu.exercises.shared import CALLS_NOW, FROZEN, LATE_BINDING, NO_ARGUMENT, TWO_ARGUMENTS
from hookedu.exercises.tools import all_close, gradients, whole
from hookedu.language import Text

_USED = ("stem", "body", "head")  # in the order of calls in forward
_FROZEN = "body.bias"


class _Net(torch.nn.Module):
    """Three linear layers, defined in another order than forward calls them."""

    def __init__(self, defined: tuple[str, ...], rng: random.Random):
        super().__init__()
        for name in defined:
            layer = torch.nn.Linear(3, 3)
            for parameter in layer.parameters():
                parameter.data = whole(rng, parameter.numel()).reshape(parameter.shape)
            self.add_module(name, layer)
        self.get_parameter(_FROZEN).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in _USED:
            x = self.get_submodule(name)(x)
        return x


def _case(rng: random.Random) -> tuple[_Net, torch.Tensor, torch.Tensor]:
    """Return (model, x, w) for loss = (w * model(x)).sum()."""
    orders = [order for order in itertools.permutations(_USED) if order != _USED]
    model = _Net(rng.choice(orders), rng)
    return model, whole(rng, 6).reshape(2, 3), whole(rng, 3)


def _two_passes(model: _Net, x: torch.Tensor, w: torch.Tensor) -> None:
    """Run two backward passes without zero_grad(); the second gradient is three times the first."""
    for scale in (1, 3):
        (scale * w * model(x)).sum().backward()


def _probe(watch_norms: Any, rng: random.Random) -> dict[str, Any]:
    model, x, w = _case(rng)
    seen: list[Any] = []
    handles = watch_norms(model, seen)
    early = len(seen)
    hooks = sum(hooks_on(p) + len(p._post_accumulate_grad_hooks or ()) for p in model.parameters())
    _two_passes(model, x, w)
    report = {"seen": list(seen[:40]), "early": early, "hooks": hooks}
    report |= {"grads": gradients(model), "handles": handles}
    remove_handles(handles)
    before = len(seen)
    _two_passes(model, x, w)
    return report | {"off": len(seen) == before}


def _truth(rng: random.Random) -> tuple[list[tuple[str, float]], _Net]:
    """Return (name, norm) of the gradients of both passes, in backward order, and the model after the passes."""
    model, x, w = _case(rng)
    pairs: list[tuple[str, float]] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            parameter.register_hook(lambda grad, name=name: pairs.append((name, grad.norm().item())))
    _two_passes(model, x, w)
    return pairs, model


def _pairs(seen: Any) -> list[tuple[str, Any]] | None:
    """Return what was noted as (name, value) pairs, or None if it has another form."""
    if not isinstance(seen, list) or not all(isinstance(entry, list) and len(entry) == 2 for entry in seen):
        return None
    if not all(isinstance(name, str) for name, _ in seen):
        return None
    return [(name, value) for name, value in seen]


def _wrong_pairs(saw: dict[str, Any], pairs: list[tuple[str, Any]] | None) -> str | None:
    """Return the id of the mistake if not every name was noted exactly once per pass, or None."""
    if saw["early"]:
        return "asks_too_early"
    if not saw["seen"]:
        return "rebinds_list" if saw["hooks"] else "not_registered"
    if pairs is None:
        return "no_pairs"
    return "late_binding" if len({name for name, _ in pairs}) == 1 else None


def _by_name(pairs: list[tuple[str, Any]]) -> list[Any]:
    """Return the values of the two passes, one after the other, each sorted by name."""
    half = len(pairs) // 2
    return [value for one in (pairs[:half], pairs[half:]) for _, value in sorted(one, key=lambda p: p[0])]


def _close(value: Any, expected: float) -> bool:
    return type(value) in (int, float) and math.isclose(value, expected, rel_tol=1e-4)


def _all_close(values: list[Any], expected: list[float]) -> bool:
    return all(_close(value, e) for value, e in zip(values, expected, strict=True))


def _wrong_norms(values: list[Any], expected: list[float], of_parameters: list[float]) -> str | None:
    """Return the id of the mistake behind wrong norms, or None.

    The second half of `expected`, the norms of the second pass, is three times the first half.
    """
    if any(isinstance(v, torch.Tensor) and v.numel() > 1 for v in values):
        return "keeps_gradients"
    if any(isinstance(v, (torch.Tensor, Opaque)) for v in values):
        return "keeps_tensors"
    if _all_close(values, of_parameters):
        return "norm_of_the_parameter"
    half = len(expected) // 2
    summed = expected[:half] + [4 / 3 * e for e in expected[half:]]
    if _all_close(values, summed):
        return "norm_of_the_sum"
    return "not_the_norm" if all(type(v) in (int, float) for v in values) else None


def _rounded(value: Any) -> Any:
    """Return the value with floats rounded as a message shows them."""
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    if isinstance(value, torch.Tensor) and value.dim() == 0:
        return Opaque(f"tensor({value.item():g})")
    return float(f"{value:g}") if isinstance(value, float) else value


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    expected, model = _truth(rng)
    names = [name for name, _ in expected]
    half = len(names) // 2
    model_order = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    pairs = _pairs(saw["seen"])
    got = [name for name, _ in pairs or ()]
    complete = sorted(got[:half]) == sorted(got[half:]) == sorted(model_order)
    upside_down = got == names[::-1]
    in_time = pairs[::-1] if pairs and upside_down else pairs
    given = "watch_norms(model, seen); loss.backward(); (3 * loss).backward()"
    return [
        Criterion(
            "unchanged",
            all_close(saw["grads"], gradients(model)),
            essential=True,
            given=given,
            expected=Text(zh="每个 `.grad` 都和没有钩子时一样", en="every `.grad` as it is without hooks"),
            got=Text(zh="有的不一样", en="some differ"),
            mistake="changes_gradient",
        ),
        Criterion(
            "sees",
            complete,
            points=2,
            essential=True,
            given=given,
            expected=f"[name for name, norm in seen] == {show(names)}",
            got=f"seen == {show(_rounded(saw['seen']))}",
            mistake=_wrong_pairs(saw, pairs),
        ),
        Criterion(
            "order",
            complete and got == names,
            points=1,
            given=given,
            expected=f"[name for name, norm in seen] == {show(names[:half])} × 2",
            got=f"[name for name, norm in seen] == {show(got)}",
            mistake="upside_down" if upside_down else "model_order" if got == model_order * 2 else None,
        ),
        _norms(given, in_time if complete else None, expected, model),
        handles_given(saw["handles"], saw["off"], "handles = watch_norms(model, seen)"),
    ]


def _norms(
    given: str, pairs: list[tuple[str, Any]] | None, expected: list[tuple[str, float]], model: _Net
) -> Criterion:
    """Require the right norms; `pairs` is in backward order, or None if a pass lacks or repeats a name."""
    half = len(expected) // 2
    names = sorted(name for name, _ in expected[:half])
    wanted = _by_name(expected)
    if pairs is None:
        return Criterion(
            "norms",
            passed=False,
            points=1,
            given=given,
            expected=f"{names[0]}: {wanted[0]:g}",
            got=f"{names[0]}: ",
        )
    noted = _by_name(pairs)
    wrong = [i for i, value in enumerate(noted) if not _close(value, wanted[i])]
    shown = wrong[0] if wrong else 0
    name = names[shown % half]
    of_parameters = [model.get_parameter(name).norm().item() for name in names] * 2
    return Criterion(
        "norms",
        not wrong,
        points=1,
        given=given,
        expected=f"{name}: {wanted[shown]:g}",
        got=f"{name}: {show(_rounded(noted[shown]))}",
        mistake=_wrong_norms(noted, wanted, of_parameters),
    )


WATCH_NORMS = Exercise(
    id="04.4",
    title=Text(zh="按反向传播的次序记下范数", en="Norms in backward order"),
    answer="watch_norms",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="谁先触发，谁先写进 `seen`：每个参数一个钩子，次序自然就是反向传播的次序。",
            en="Whoever fires first writes to `seen` first: with one hook a parameter, the order takes care of itself.",
        ),
        Text(
            zh="要的是**这一次**的梯度，所以用张量钩子。名字要在循环的当下固定住（第 02 课的 F9），冻结的参数要跳过。",
            en="What counts is the gradient of **this** pass, so take tensor hooks. Fix the name inside the loop "
            "(F9 of lesson 02) and skip frozen parameters.",
        ),
        Text(
            zh="循环 `model.named_parameters()`，里面 `def note(grad, name=name): seen.append((name, grad.norm().item()))`，"
            "再把 `param.register_hook(note)` 收进列表。",
            en="Loop over `model.named_parameters()`, in it `def note(grad, name=name): "
            "seen.append((name, grad.norm().item()))`, and collect `param.register_hook(note)` in a list.",
        ),
    ),
    mistakes=(
        Mistake(
            "asks_too_early",
            Text(
                zh="`watch_norms` 运行时还没有反向传播，`seen` 里却已经有东西了。这个函数只挂钩子，由钩子往 `seen` 里写。",
                en="There was no backward yet while `watch_norms` ran, but `seen` already holds something. "
                "It should only attach hooks; they write to `seen`.",
            ),
            fails="sees",
        ),
        Mistake(
            "not_registered",
            Text(
                zh="没有钩子挂在参数上。循环 `model.named_parameters()`，给每个参数 `register_hook`。",
                en="No parameter carries a hook. Loop over `model.named_parameters()` and call `register_hook` for each.",
            ),
            fails="sees",
        ),
        Mistake(
            "rebinds_list",
            Text(
                zh="钩子挂上了，`seen` 却是空的：`seen = ...` 只是新建了一个局部名字。请写 `seen.append(...)`。",
                en="Hooks are on, yet `seen` is empty: `seen = ...` only makes a new local name. Write `seen.append(...)`.",
            ),
            fails="sees",
        ),
        Mistake(
            "no_pairs",
            Text(
                zh="`seen` 里每一项应当是一对：`(name, norm)`。名字来自 `model.named_parameters()`。",
                en="Each entry of `seen` should be a pair, `(name, norm)`. The names come from `model.named_parameters()`.",
            ),
            fails="sees",
        ),
        Mistake(
            "model_order",
            Text(
                zh="这是参数在模型里的次序，不是反向传播的次序。`register_multi_grad_hook` 等齐了才运行，按你给的次序交出梯度；要看到先后，得每个参数一个钩子。",
                en="That is the order of the parameters in the model, not of backward. `register_multi_grad_hook` waits "
                "for all and hands them over in the order you named them; to see who came first, use one hook a parameter.",
            ),
            fails="order",
        ),
        Mistake(
            "upside_down",
            Text(
                zh="次序正好倒了过来：`insert(0, ...)` 把后到的放到最前面。用 `seen.append(...)`。",
                en="Upside down: `insert(0, ...)` puts the one that came last first. Use `seen.append(...)`.",
            ),
            fails="order",
        ),
        Mistake(
            "norm_of_the_sum",
            Text(
                zh="第 2 次反向传播的数不对：`param.grad` 里是两次之和。**这一次**的梯度是张量钩子的参数。",
                en="The numbers of pass 2 are wrong: `param.grad` holds the sum of both. The gradient of **this** pass "
                "is what a tensor hook receives.",
            ),
            fails="norms",
        ),
        Mistake(
            "keeps_gradients",
            Text(
                zh="`seen` 里放的是整个梯度，它们会一直占着内存。只记一个数：`grad.norm().item()`。",
                en="`seen` holds whole gradients, which keep their memory. Note one number: `grad.norm().item()`.",
            ),
            fails="norms",
        ),
        Mistake(
            "keeps_tensors",
            Text(
                zh="范数要记成 Python 的数：`grad.norm().item()`。",
                en="Store a Python number: `grad.norm().item()`.",
            ),
            fails="norms",
        ),
        Mistake(
            "norm_of_the_parameter",
            Text(
                zh="这是参数自己的范数，不是它的梯度的：要用钩子收到的 `grad`。",
                en="That is the norm of the parameter itself, not of its gradient: use the `grad` that the hook receives.",
            ),
            fails="norms",
        ),
        Mistake(
            "not_the_norm",
            Text(
                zh="次序对，名字也对，数却不是范数（各元素平方和的平方根）：用 `grad.norm()`。",
                en="Order and names are right, but the numbers are not the norm (the root of the sum of squares): use `grad.norm()`.",
            ),
            fails="norms",
        ),
        Mistake(
            "changes_gradient",
            Text(
                zh="你的钩子改动了梯度：它返回了一个张量，或者就地修改了 `grad`。只看不改的钩子什么也不返回。",
                en="Your hook changed the gradient: it returned a tensor, or modified `grad` in place. "
                "A hook that only watches returns nothing.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "returns_norm",
            Text(
                zh="钩子把范数返回了，PyTorch 想拿它顶替梯度，当然不行。把它写进 `seen`，什么也不要返回。",
                en="Your hook returned the norm, and PyTorch tried to put it in the gradient's place, which cannot work. "
                "Write it to `seen` and return nothing.",
            ),
            raises=r"has changed the size of value|expected Variable, but hook returned",
        ),
        *(LATE_BINDING, FROZEN, CALLS_NOW, NO_ARGUMENT, TWO_ARGUMENTS, NO_HANDLES),
    ),
    insight=Text(
        zh="离损失最近的参数最先到，最远的最后到。训练出了问题时，先看这张表（第 10 课）。",
        en="The parameter nearest to the loss comes first, the farthest last. When training goes wrong, "
        "look at this list first (lesson 10).",
    ),
)
