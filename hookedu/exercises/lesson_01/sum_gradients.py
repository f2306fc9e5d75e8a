"""01.2 `sum_gradients(w, losses)`: accumulate the gradients of several losses, without what was there before."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.exercises.tools import close, copies, whole
from hookedu.language import Text


def _case(rng: random.Random) -> tuple[torch.Tensor, list[torch.Tensor], torch.Tensor]:
    """Return (w, factors, old): loss i is (factors[i] * w**2).sum(); old is w.grad before the second call."""
    n = rng.randint(2, 3)
    # Ascending factors, so that the losses differ and neither the first nor the last equals their average.
    columns = [sorted(rng.sample(range(2, 10), 3)) for _ in range(n)]
    factors = list(torch.tensor(columns, dtype=torch.float32).T)
    return whole(rng, n).requires_grad_(), factors, whole(rng, n)


def _losses(w: torch.Tensor, factors: list[torch.Tensor]) -> list[torch.Tensor]:
    h = w**2  # shared by all losses: the first backward frees what the others need
    return [(factor * h).sum() for factor in factors]


def _probe(sum_gradients: Any, rng: random.Random) -> dict[str, Any]:
    w, factors, old = _case(rng)
    result = sum_gradients(w, _losses(w, factors))
    if isinstance(result, (list, tuple)) and len(result) == 1:
        result = result[0]  # torch.autograd.grad returns a tuple
    report = {"returned": result, "first": copies(w.grad)}
    w.grad = old.clone()
    sum_gradients(w, _losses(w, factors))
    return report | {"second": copies(w.grad)}


def _recognise(got: Any, parts: list[torch.Tensor], returned: Any) -> str | None:
    """Return the id of the mistake behind a w.grad that is not the sum of the parts, or None."""
    total = sum(parts, start=torch.zeros(()))
    if got is None:
        return "returns_instead" if close(returned, total) else "no_backward"
    if close(got, torch.zeros_like(total)):
        return "zeroes_after"
    if close(got, parts[-1]):
        return "zeroes_each"
    if close(got, parts[0]):
        return "only_first"
    # Summed by hand over the passes: the values of w.grad after each pass (p0, p0 + p1, ...), or w.grad itself, which
    # is the same tensor every time.
    running = sum((part * (len(parts) - i) for i, part in enumerate(parts)), start=torch.zeros(()))
    if close(got, running) or close(got, total * len(parts)):
        return "adds_twice"
    return "averages" if close(got, total / len(parts)) else None


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    w, factors, old = _case(rng)
    w = w.detach()
    parts = [2 * factor * w for factor in factors]
    total = sum(parts, start=torch.zeros(()))
    given = f"w = {show(w)}; h = w**2; losses = " + ", ".join(f"({show(f)} * h).sum()" for f in factors)
    return [
        Criterion(
            "adds",
            close(saw["first"], total),
            points=2,
            essential=True,
            given=given,
            expected=f"w.grad == {show(total)}",
            got=f"w.grad == {show(saw['first'])}",
            mistake=_recognise(saw["first"], parts, saw["returned"]),
        ),
        Criterion(
            "starts_clean",
            close(saw["second"], total),
            points=1,
            given=f"w.grad = {show(old)}; {given}",
            expected=f"w.grad == {show(total)}",
            got=f"w.grad == {show(saw['second'])}",
            mistake="keeps_old" if close(saw["second"], total + old) else None,
        ),
    ]


SUM_GRADIENTS = Exercise(
    id="01.2",
    title=Text(zh="累加与清零", en="Add up and zero"),
    answer="sum_gradients",
    points=3,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="累加不用自己写：每次 `backward()` 都会往 `w.grad` 里加。要做的是，开始之前把旧的清掉，而且只清一次。",
            en="You need not add yourself: each `backward()` adds to `w.grad`. What is left to do: clear the old gradient "
            "before you begin, and only once.",
        ),
        Text(
            zh="这些损失共用一段计算图，第一次 `backward()` 之后它就被释放了。哪个参数能把它留住？",
            en="The losses share a part of the graph, and the first `backward()` frees it. Which argument keeps it?",
        ),
        Text(
            zh="三行就够：`w.grad = None`；然后 `for loss in losses:`，循环里 `loss.backward(retain_graph=True)`。",
            en="Three lines will do: `w.grad = None`; then `for loss in losses:` and in the loop `loss.backward(retain_graph=True)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "keeps_old",
            Text(
                zh="`w.grad` 里原有的梯度也被算进去了：`backward()` 只会往上加。开始之前先写 `w.grad = None`。",
                en="What `w.grad` held before was counted in: `backward()` only ever adds. Begin with `w.grad = None`.",
            ),
            fails="starts_clean",
        ),
        Mistake(
            "zeroes_each",
            Text(
                zh="只剩下最后一个损失的梯度：清零写在了循环里，前面累加的全被擦掉。把它移到循环之前。",
                en="Only the last loss's gradient is left: you clear inside the loop, which wipes out what was added before. "
                "Move it in front of the loop.",
            ),
            fails="adds",
        ),
        Mistake(
            "zeroes_after",
            Text(
                zh="清零放在了最后，结果一起被擦掉了。清零应当在累加之前。",
                en="You clear at the end, and the result goes with it. Clear before you add up.",
            ),
            fails="adds",
        ),
        Mistake(
            "only_first",
            Text(
                zh="只有第一个损失做了反向传播。是不是 `return` 写进了循环？",
                en="Backward ran for the first loss only. Does a `return` stand inside the loop?",
            ),
            fails="adds",
        ),
        Mistake(
            "adds_twice",
            Text(
                zh="`w.grad` 自己已在累加，你又加了一遍。",
                en="`w.grad` adds up by itself, and you added it again.",
            ),
            fails="adds",
        ),
        Mistake(
            "averages",
            Text(
                zh="得到的是平均值。要的是总和：不要除以损失的个数。",
                en="That is the average. What is wanted is the sum: do not divide by the number of losses.",
            ),
            fails="adds",
        ),
        Mistake(
            "returns_instead",
            Text(
                zh="数算对了，却只是返回出来：`torch.autograd.grad` 不写 `.grad`。结果要留在 `w.grad` 里。",
                en="The numbers are right, but you only returned them: `torch.autograd.grad` writes no `.grad`. "
                "Leave the result in `w.grad`.",
            ),
            fails="adds",
        ),
        Mistake(
            "no_backward",
            Text(
                zh="`w.grad` 还是 `None`：没有哪个损失做过反向传播，或者最后把它设成了 `None`。",
                en="`w.grad` is still `None`: no loss ran backward, or you set it to `None` at the end.",
            ),
            fails="adds",
        ),
        Mistake(
            "frees_graph",
            Text(
                zh="这些损失共用一段计算图，第一次 `backward()` 之后它就被释放了。写成 `backward(retain_graph=True)`，或者只对总和做一次。",
                en="The losses share a part of the graph, and the first `backward()` frees it. "
                "Write `backward(retain_graph=True)`, or run it once on the sum.",
            ),
            raises=r"backward through the graph a second time",
        ),
        Mistake(
            "zeroes_none",
            Text(
                zh="第一次反向传播之前，`w.grad` 是 `None`，没有 `zero_()` 可用。写 `w.grad = None`，两种情况都行。",
                en="Before the first backward `w.grad` is `None`, which has no `zero_()`. `w.grad = None` works in both cases.",
            ),
            raises=r"'NoneType' object has no attribute '(zero_|fill_|mul_|data|detach_?)'",
        ),
        Mistake(
            "assigns_number",
            Text(
                zh="`.grad` 只能是张量或 `None`，不能是数字。要清零就写 `w.grad = None`。",
                en="A `.grad` is a tensor or `None`, never a number. To clear it, write `w.grad = None`.",
            ),
            raises=r"assigned grad expected to be a Tensor or None",
        ),
    ),
    insight=Text(
        zh="清一次，加多次：显存不够时把一个大批次拆成小批次，用的就是这一招，叫梯度累积。",
        en="Clear once, add many times: that is how a large batch is split into small ones when memory is short: "
        "gradient accumulation.",
    ),
)
