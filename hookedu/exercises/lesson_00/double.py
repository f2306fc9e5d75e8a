"""00.1 `double(grad)`: fix a one-line function that does not return its result."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.tools import copies, same, whole
from hookedu.language import Text


def _probe(double: Any, rng: random.Random) -> dict[str, Any]:
    grad = whole(rng, 3)
    return {"result": copies(double(grad)), "grad": copies(grad)}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    grad = whole(rng, 3)
    result, changed = saw["result"], not same(saw["grad"], grad)
    mistakes = {"adds_two": grad + 2, "squares": grad**2, "halves": grad / 2, "changes_nothing": grad}
    if changed:
        mistake = "in_place"
    elif result is None:
        mistake = "no_return"
    elif not isinstance(result, torch.Tensor):
        mistake = "not_a_tensor"
    elif result.numel() and bool((result == 2).all()):
        mistake = "always_two"
    else:
        mistake = next((name for name, value in mistakes.items() if same(result, value)), None)
    # show() prints a list of the right numbers exactly like the right tensor.
    kind = "; isinstance(result, torch.Tensor) == False" if mistake == "not_a_tensor" else ""
    return [
        Criterion(
            "doubles",
            same(result, 2 * grad) and not changed,
            points=2,
            given=f"grad = {show(grad)}; result = double(grad)",
            expected=f"result == {show(2 * grad)}; grad == {show(grad)}",
            got=f"result == {show(result)}; grad == {show(saw['grad'])}{kind}",
            mistake=mistake,
        )
    ]


DOUBLE = Exercise(
    id="00.1",
    title=Text(zh="修好一行", en="Mend one line"),
    answer="double",
    points=2,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="`broken` 里的 `2 * grad` 没有算错，可是算出来的新张量没有交给调用者，所以打印出 `None`。",
            en="`2 * grad` in `broken` is not wrong, but the new tensor is never handed to the caller: hence the `None`.",
        ),
        Text(
            zh="`double` 里写一行就够：先写 `return`，后面跟 `broken` 里的那个算式。",
            en="One line in `double` is enough: `return`, followed by the expression that stands in `broken`.",
        ),
    ),
    mistakes=(
        Mistake(
            "no_return",
            Text(
                zh="得到的是 `None`：要么少了 `return`，要么 `return` 后面的调用（如 `print`、`broken`）自己给出的就是 `None`。请返回算出来的那个张量。",
                en="The result is `None`: either there is no `return`, or what follows it is a call that gives `None` "
                "itself, such as `print` or `broken`. Return the tensor that you computed.",
            ),
            fails="doubles",
        ),
        Mistake(
            "in_place",
            Text(
                zh="`grad` 本身被改了：`mul_`、`*=` 这类就地操作不新建张量，直接改写原来的。第 03 课会讲这为什么危险；"
                "`2 * grad` 才给出一个新张量。",
                en="`grad` itself was changed: `mul_`, `*=` and the like work in place, they make no new tensor and overwrite "
                "the old one. Lesson 03 shows why that is dangerous; `2 * grad` gives a new tensor.",
            ),
            fails="doubles",
        ),
        Mistake(
            "adds_two",
            Text(zh="这里加上了 2；翻倍是乘以 2。", en="This adds 2; to double is to multiply by 2."),
            fails="doubles",
        ),
        Mistake(
            "squares",
            Text(
                zh="这里是平方：`**` 是乘方，`*` 才是乘法。",
                en="This squares: `**` is a power, `*` is multiplication.",
            ),
            fails="doubles",
        ),
        Mistake(
            "halves",
            Text(
                zh="这里减半了：请乘以 2，不是除以 2。", en="This halves: multiply by 2 instead of dividing."
            ),
            fails="doubles",
        ),
        Mistake(
            "changes_nothing",
            Text(
                zh="返回的就是原来的 `grad`：`return` 有了，翻倍还没有。",
                en="What comes back is `grad` as it was: the `return` is there, the doubling is not.",
            ),
            fails="doubles",
        ),
        Mistake(
            "always_two",
            Text(
                zh="得到的全是 2，和 `grad` 是多少无关：这只适合 `torch.ones(2)`。请用 `grad` 来算。",
                en="The result is all 2, whatever `grad` holds: that fits `torch.ones(2)` only. Compute it from `grad`.",
            ),
            fails="doubles",
        ),
        Mistake(
            "calls_broken",
            Text(
                zh="`broken(grad)` 给出的是 `None`，不能再拿来算。请把它里面的算式直接写进 `double`。",
                en="`broken(grad)` gives `None`, and there is no computing with that. Write its expression into `double` itself.",
            ),
            raises=r"unsupported operand type.*NoneType",
        ),
        Mistake(
            "no_argument",
            Text(
                zh="`double` 要收下 1 个参数：第一行仍然写 `def double(grad):`。",
                en="`double` must take 1 argument: leave its first line as it was, `def double(grad):`.",
            ),
            raises=r"takes 0 positional arguments but 1 was given",
        ),
        Mistake(
            "not_a_tensor",
            Text(
                zh="返回的不是张量。请让 `2 * grad` 原样返回，不要取 `.item()`、`.tolist()`，也不要放进元组。",
                en="What comes back is not a tensor. Return `2 * grad` as it is: no `.item()`, no `.tolist()`, no tuple.",
            ),
            fails="doubles",
        ),
    ),
    insight=Text(
        zh="这样的函数就能当钩子用：收到一个梯度，返回一个新的梯度。",
        en="A function like this can be a hook: it receives a gradient and returns a new one.",
    ),
)
