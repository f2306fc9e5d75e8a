"""00.1 `double(grad)`: mend a one-line function that forgets to return."""

import random
from typing import Any

import torch

from hookedu.exercises.model import Criterion, Exercise, Mistake
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
    else:
        mistake = next((name for name, value in mistakes.items() if same(result, value)), None)
    return [
        Criterion(
            *("doubles", same(result, 2 * grad) and not changed, 2),
            given=f"grad = {show(grad)}; result = double(grad)",
            expected=f"result == {show(2 * grad)}; grad == {show(grad)}",
            got=f"result == {show(result)}; grad == {show(saw['grad'])}",
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
            zh="运行 `print(broken(torch.ones(2)))` 看看：函数算出了结果，却没有交出来。",
            en="Run `print(broken(torch.ones(2)))`: the function computes its result and then keeps it to itself.",
        ),
        Text(zh="在那一行的开头加上 `return`。", en="Put `return` at the front of that line."),
    ),
    mistakes=(
        Mistake(
            "no_return",
            Text(
                zh="函数什么也没有返回，所以得到 `None`。算出来还不够，要用 `return` 交出来。",
                en="Nothing is returned, so the result is `None`. Computing it is not enough: hand it out with `return`.",
            ),
            fails="doubles",
        ),
        Mistake(
            "in_place",
            Text(
                zh="`grad` 本身被改了（`mul_`、`*=` 这类就地操作）。第 03 课会讲这为什么危险；这里请返回一个新的张量。",
                en="`grad` itself was changed (`mul_`, `*=` and the like work in place). Lesson 03 shows why that is "
                "dangerous; return a new tensor instead.",
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
