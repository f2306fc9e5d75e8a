"""01.4 `choose_vector(x, y, wanted)`: find the vector v with which y.backward(v) leaves the wanted x.grad."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.tools import close, copies, whole
from hookedu.language import Text


def _case(rng: random.Random) -> tuple[torch.Tensor, float, int, torch.Tensor]:
    """Return (x, k, power, v) for y = k * x**power; the wanted gradient is v times the slope."""
    # Not 3, the length in the lesson's example: a torch.ones(3) copied from there must fail.
    n = rng.choice((2, 4))
    return whole(rng, n).requires_grad_(), float(rng.randint(2, 5)), rng.choice((2, 3)), whole(rng, n)


def _slope(x: torch.Tensor, k: float, power: int) -> torch.Tensor:
    return k * power * x.detach() ** (power - 1)


def _probe(choose_vector: Any, rng: random.Random) -> dict[str, Any]:
    x, k, power, v = _case(rng)
    y = k * x**power
    vector = choose_vector(x, y, v * _slope(x, k, power))
    report = {"vector": copies(vector), "before": copies(x.grad), "after": None}
    if isinstance(vector, torch.Tensor) and vector.shape == y.shape:
        y.backward(vector)
        report["after"] = copies(x.grad)
    return report


def _recognise(saw: dict[str, Any], x: torch.Tensor, slope: torch.Tensor, v: torch.Tensor) -> str | None:
    """Return the id of the mistake behind the vector or behind what was left in x.grad, or None."""
    vector, wanted = saw["vector"], v * slope
    if not isinstance(vector, torch.Tensor):
        return "returns_nothing" if vector is None else "not_a_tensor"
    if vector.shape != v.shape:
        return "wrong_shape"
    if torch.isinf(vector).all():
        return "divides_by_zero"
    if close(vector, v):  # the right vector, but x.grad was not empty
        return "runs_backward" if close(saw["before"], wanted) else "leaves_a_rest"
    likely = {
        "returns_wanted": wanted,
        "multiplies": wanted * slope,
        "only_ones": torch.ones_like(v),
        "returns_slope": slope,
        "upside_down": slope / wanted,
        "guesses_formula": wanted / (2 * x),
    }
    return next((name for name, value in likely.items() if close(vector, value)), None)


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, k, power, v = _case(rng)
    x, slope = x.detach(), _slope(x, k, power)
    wanted = v * slope
    clean = saw["before"] is None or close(saw["before"], torch.zeros_like(x))
    got = f"v == {show(saw['vector']).strip('<>')}"
    if saw["after"] is not None:
        got += f"; x.grad == {show(saw['after'])}"
    return [
        Criterion(
            "yields",
            clean and close(saw["after"], wanted),
            points=3,
            essential=True,
            given=f"x = {show(x)}; y = {k:g} * x**{power}; v = choose_vector(x, y, {show(wanted)}); y.backward(v)",
            expected=f"x.grad == {show(wanted)}",
            got=got,
            mistake=_recognise(saw, x, slope, v),
        ),
    ]


CHOOSE_VECTOR = Exercise(
    id="01.4",
    title=Text(zh="选一个向量", en="Choose the vector"),
    answer="choose_vector",
    points=3,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`y` 是逐元素算出来的，所以 `x.grad[i]` 就是 `v[i]` 乘以第 `i` 个斜率。怎样由想要的结果求出 `v[i]`？",
            en="`y` is computed element by element, so `x.grad[i]` is `v[i]` times slope `i`. How do you get `v[i]` from the "
            "result that is wanted?",
        ),
        Text(
            zh="斜率不用猜公式：用全 1 的向量去问，得到的就是斜率。只是别忘了 `retain_graph=True`，因为 `y` 还要再用一次。",
            en="No need to guess the formula of the slope: with a vector of 1s you get the slope itself. "
            "Remember `retain_graph=True`, for `y` is needed once more.",
        ),
        Text(
            zh="两行就够：`(slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)`，然后 `return wanted / slope`。",
            en="Two lines will do: `(slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)`, then `return wanted / slope`.",
        ),
    ),
    mistakes=(
        Mistake(
            "returns_wanted",
            Text(
                zh="你把想要的梯度直接当成了向量。它还要乘上斜率，所以得先除掉斜率。",
                en="You took the wanted gradient itself as the vector. It still gets multiplied by the slope, so divide by the slope first.",
            ),
            fails="yields",
        ),
        Mistake(
            "multiplies",
            Text(
                zh="你乘了斜率，反向传播又乘一次。应当除以斜率，好让两者抵消。",
                en="You multiplied by the slope, and backward does so again. Divide by it, so that the two cancel.",
            ),
            fails="yields",
        ),
        Mistake(
            "upside_down",
            Text(
                zh="除反了：是 `wanted / slope`，不是 `slope / wanted`。",
                en="The division is upside down: it is `wanted / slope`, not `slope / wanted`.",
            ),
            fails="yields",
        ),
        Mistake(
            "only_ones",
            Text(
                zh="全 1 的向量给出的是斜率本身，不是想要的梯度。那是第一步，还差一次除法。",
                en="A vector of 1s gives the slope itself, not the wanted gradient. That was step one; a division is missing.",
            ),
            fails="yields",
        ),
        Mistake(
            "returns_slope",
            Text(
                zh="你返回了斜率。它是答案的一半：用想要的梯度除以它。",
                en="You returned the slope. That is half of the answer: divide the wanted gradient by it.",
            ),
            fails="yields",
        ),
        Mistake(
            "guesses_formula",
            Text(
                zh="你用的是 `x**2` 的斜率 `2 * x`，可是这里的 `y` 是别的公式。不要猜，向 PyTorch 要。",
                en="You used `2 * x`, the slope of `x**2`, but this `y` has another formula. Do not guess it: ask PyTorch.",
            ),
            fails="yields",
        ),
        Mistake(
            "leaves_a_rest",
            Text(
                zh="向量是对的，但你求斜率时在 `x.grad` 里留下了东西，后来的梯度加在了上面。返回之前写 `x.grad = None`，或者改用 `torch.autograd.grad`。",
                en="The vector is right, but finding the slope left something in `x.grad`, and the later gradient was added "
                "to it. Set `x.grad = None` before you return, or use `torch.autograd.grad`.",
            ),
            fails="yields",
        ),
        Mistake(
            "runs_backward",
            Text(
                zh="你自己已经做了 `y.backward(v)`，调用者再做一次，梯度就成了两份。只返回向量就好。",
                en="You ran `y.backward(v)` yourself; when your caller runs it too, the gradient counts twice. Only return the vector.",
            ),
            fails="yields",
        ),
        Mistake(
            "frees_graph",
            Text(
                zh="你在 `y` 上做反向传播时释放了计算图，调用者就没法再用。求斜率时加上 `retain_graph=True`。",
                en="Your backward through `y` freed the graph, so your caller could not use it any more. "
                "Pass `retain_graph=True` when you ask for the slope.",
            ),
            raises=r"backward through the graph a second time",
        ),
        Mistake(
            "needs_a_vector",
            Text(
                zh="`y` 不止一个数，求斜率时也要给一个向量：`torch.ones_like(y)`。",
                en="`y` is more than one number, so asking for the slope takes a vector as well: `torch.ones_like(y)`.",
            ),
            raises=r"grad can be implicitly created only for scalar outputs",
        ),
        Mistake(
            "three_ones",
            Text(
                zh="`y` 不一定有 3 个数：用 `torch.ones_like(y)`。",
                en="`y` need not have 3 numbers: use `torch.ones_like(y)`.",
            ),
            raises=r"Mismatch in shape: grad_output\[0\] has a shape of torch\.Size\(\[3\]\)",
        ),
        Mistake(
            "divides_by_tuple",
            Text(
                zh="`torch.autograd.grad` 返回元组：写 `(slope,) = ...`，或取 `[0]`。",
                en="`torch.autograd.grad` returns a tuple: write `(slope,) = ...` or take `[0]`.",
            ),
            raises=r"unsupported operand type\(s\) for .*('Tensor' and 'tuple'|'tuple' and 'Tensor')",
        ),
        Mistake(
            "divides_by_zero",
            Text(
                zh="斜率成了 0：你存下的和 `x.grad` 是同一个张量，`zero_()` 把两者都清了；改写 `x.grad = None`。",
                en="The slope became 0: what you kept and `x.grad` are one tensor, and `zero_()` cleared both; use `x.grad = None`.",
            ),
            fails="yields",
        ),
        Mistake(
            "wrong_shape",
            Text(
                zh="向量的形状要和 `y` 一样：每个输出一个数。",
                en="The vector must have the shape of `y`: one number for each output.",
            ),
            fails="yields",
        ),
        Mistake(
            "not_a_tensor",
            Text(
                zh="返回的应当是张量。`torch.autograd.grad` 给出的是元组，取出其中的第一个：`(slope,) = ...`。",
                en="Return a tensor. What `torch.autograd.grad` gives is a tuple: take its first member, `(slope,) = ...`.",
            ),
            fails="yields",
        ),
        Mistake(
            "returns_nothing",
            Text(
                zh="`choose_vector` 返回了 `None`，也就是没有 `return`。把向量返回给调用者。",
                en="`choose_vector` returned `None`: a `return` is missing. Give the vector back to your caller.",
            ),
            fails="yields",
        ),
    ),
    insight=Text(
        zh="`backward(v)` 只会做一件事：$v$ 乘雅可比矩阵。想要什么结果，就得反着把 $v$ 解出来。",
        en="`backward(v)` does one thing only: $v$ times the Jacobian. For a wanted result, solve for $v$.",
    ),
)
