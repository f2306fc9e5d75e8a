"""04.1 `predict(k, m, s)`: what four observers of two backward passes report."""

import random
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.language import Text

_N_SETTINGS = 3
_WHAT = ("look", "y.grad", "look_w", "look_after: param.grad")

# Known wrong formulas for each of the four values, by the id of the mistake.
_WRONG = (
    {"hook_sees_later_change": lambda k, m, s: m + s, "hook_adds_up": lambda k, m, s: 2 * m},
    {
        "retain_before_hooks": lambda k, m, s: 2 * m,
        "retain_one_pass": lambda k, m, s: m + s,
        "adds_s_once": lambda k, m, s: 2 * m + s,
    },
    {
        "change_stays_on_y": lambda k, m, s: k * m,
        "leaf_hook_adds_up": lambda k, m, s: 2 * k * (m + s),
        "forgets_chain_rule": lambda k, m, s: m + s,
    },
    {"post_one_pass": lambda k, m, s: k * (m + s), "adds_s_once": lambda k, m, s: k * (2 * m + s)},
)


def _settings(rng: random.Random) -> list[tuple[int, int, int]]:
    """Return triples (k, m, s) for which no wrong formula gives the right value by coincidence."""
    found: list[tuple[int, int, int]] = []
    while len(found) < _N_SETTINGS:
        k, m, s = rng.randint(2, 6), rng.randint(2, 9), rng.choice([-4, -3, -2, 2, 3, 4, 5])
        right = (m, 2 * (m + s), k * (m + s), 2 * k * (m + s))
        wrong = [[formula(k, m, s) for formula in ways.values()] for ways in _WRONG]
        told_apart = all(len({r, *w}) == 1 + len(w) for r, w in zip(right, wrong, strict=True))
        if told_apart and m + s and (k, m, s) not in found:
            found.append((k, m, s))
    return found


def _truth(k: int, m: int, s: int) -> list[float]:
    """Run the program of the task and return the four values that PyTorch reports."""
    looks: list[torch.Tensor] = []
    looks_w: list[torch.Tensor] = []
    after: list[torch.Tensor] = []
    w = torch.tensor(1.0, requires_grad=True)
    y = k * w
    y.register_hook(looks.append)
    y.retain_grad()
    y.register_hook(lambda grad: grad + s)
    w.register_hook(looks_w.append)
    w.register_post_accumulate_grad_hook(lambda param: after.append(param.grad.clone()))
    (m * y).backward(retain_graph=True)
    (m * y).backward()
    assert y.grad is not None  # retain_grad() was called
    return [value.item() for value in (looks[1], y.grad, looks_w[1], after[1])]


def _probe(predict: Any, rng: random.Random) -> dict[str, Any]:
    return {"predicted": [predict(k, m, s) for k, m, s in _settings(rng)]}


def _numbers(values: Any) -> list[float] | None:
    """Return the four numbers, or None if there are none; one-element tensors count as numbers."""
    if isinstance(values, torch.Tensor) and values.dim() == 1:
        values = values.tolist()
    if not isinstance(values, list) or len(values) != len(_WHAT):
        return None
    plain: list[Any] = [v.item() if isinstance(v, torch.Tensor) and v.numel() == 1 else v for v in values]
    return plain if all(type(v) in (int, float) for v in plain) else None


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    settings = _settings(rng)
    predicted = saw["predicted"]
    if len(predicted) != len(settings):
        raise ValueError("one prediction a setting")
    calls = [f"predict(k={k}, m={m}, s={s})" for k, m, s in settings]
    numbers = [_numbers(values) for values in predicted]
    readable = [values for values in numbers if values is not None]
    if len(readable) < len(numbers):
        bad = numbers.index(None)
        return [
            Criterion(
                "four_numbers",
                passed=False,
                essential=True,
                given=calls[bad],
                expected=Text(zh="4 个数", en="4 numbers"),
                got=show(predicted[bad]),
                mistake="returns_nothing" if predicted[bad] is None else "not_four_numbers",
            )
        ]
    truths = [_truth(*setting) for setting in settings]
    return [_one_value(place, settings, calls, readable, truths) for place in range(len(_WHAT))]


def _one_value(
    place: int,
    settings: list[tuple[int, int, int]],
    calls: list[str],
    numbers: list[list[float]],
    truths: list[list[float]],
) -> Criterion:
    """Require one of the four values in every setting; the message shows the first setting that is wrong."""
    got, expected = [n[place] for n in numbers], [t[place] for t in truths]
    shown = next((i for i, pair in enumerate(zip(got, expected, strict=True)) if pair[0] != pair[1]), 0)
    recognised = [
        mistake
        for mistake, formula in _WRONG[place].items()
        if got == [formula(*setting) for setting in settings]
    ]
    return Criterion(
        f"value_{place + 1}",
        got == expected,
        points=1,
        given=calls[shown],
        expected=f"{_WHAT[place]} == {expected[shown]:g}",
        got=f"{_WHAT[place]} == {got[shown]:g}",
        mistake=recognised[0] if recognised else None,
    )


PREDICT = Exercise(
    id="04.1",
    title=Text(zh="预测 4 个数", en="Predict four values"),
    answer="predict",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="先只想第 1 次反向传播：到达 `y` 的梯度是 `m`。谁先看到它，谁在它被改过以后才看到？",
            en="Think of the first pass alone: the gradient that reaches `y` is `m`. Who sees it first, and who only after the change?",
        ),
        Text(
            zh="再想第 2 次：张量钩子只看**这一次**的梯度，两个 `.grad` 里是两次之和。",
            en="Now the second pass: tensor hooks see the gradient of **this** pass, both `.grad` hold the sum of the two.",
        ),
        Text(
            zh="离开 `y` 的是 `m + s`，到达 `w` 的是 `k * (m + s)`。于是 4 个数是：`m`，`2 * (m + s)`，`k * (m + s)`，最后一个是第三个的两倍。",
            en="`m + s` leaves `y`, and `k * (m + s)` reaches `w`. So the 4 values are `m`, `2 * (m + s)`, `k * (m + s)`, "
            "and for the last twice the third.",
        ),
    ),
    mistakes=(
        Mistake(
            "returns_nothing",
            Text(
                zh="`predict` 返回了 `None`：只 `print` 出来不算，要 `return` 这 4 个数。",
                en="`predict` returned `None`: printing is not enough, `return` the 4 numbers.",
            ),
            fails="four_numbers",
        ),
        Mistake(
            "not_four_numbers",
            Text(
                zh="要返回 4 个数，按题目的次序排好：`return look, y_grad, look_w, w_grad`。",
                en="Return 4 numbers, in the order of the task: `return look, y_grad, look_w, w_grad`.",
            ),
            fails="four_numbers",
        ),
        Mistake(
            "hook_sees_later_change",
            Text(
                zh="`look` 排在改梯度的那个钩子**前面**。同一个张量上的钩子按注册的次序运行，所以它看到的还是原来的梯度。",
                en="`look` stands **before** the hook that changes the gradient. Hooks of one tensor run in the order "
                "they were registered, so it still sees the gradient as it came.",
            ),
            fails="value_1",
        ),
        Mistake(
            "hook_adds_up",
            Text(
                zh="张量钩子看到的是**这一次**反向传播的梯度，不会把上一次的加进来。累加的只有 `.grad`。",
                en="A tensor hook sees the gradient of **this** backward pass and never adds the one before. Only `.grad` adds up.",
            ),
            fails="value_1",
        ),
        Mistake(
            "retain_before_hooks",
            Text(
                zh="`y.retain_grad()` 写在改梯度的钩子之前，但它不排那个队：所有张量钩子都运行完，它才把结果存进 `y.grad`（第 4.2 节）。",
                en="`y.retain_grad()` is written before the changing hook, but it does not stand in that queue: it stores "
                "what is left after all tensor hooks have run (section 4.2).",
            ),
            fails="value_2",
        ),
        Mistake(
            "retain_one_pass",
            Text(
                zh="`y.grad` 也是 `.grad`：两次反向传播的梯度会在里面相加，和叶子一样（第 4.3 节）。",
                en="`y.grad` is a `.grad` too: the gradients of both passes add up in it, just as in a leaf (section 4.3).",
            ),
            fails="value_2",
        ),
        Mistake(
            "adds_s_once",
            Text(
                zh="`s` 只加了一次：每次反向传播，那个钩子都会加一遍 `s`，两次就是两遍。",
                en="`s` was added only once: the hook adds `s` in each backward pass, so twice in all.",
            ),
            fails="value_2",
        ),
        Mistake(
            "change_stays_on_y",
            Text(
                zh="`y` 上的钩子返回了新的梯度，继续往 `w` 流的就是**新的**那个：`m + s`，而不是 `m`。",
                en="The hook on `y` returned a new gradient, and it is the **new** one that flows on to `w`: `m + s`, not `m`.",
            ),
            fails="value_3",
        ),
        Mistake(
            "leaf_hook_adds_up",
            Text(
                zh="叶子上的张量钩子在写 `.grad` **之前**运行，手里只有这一次的梯度；两次之和要到 post-accumulate 钩子才看得到。",
                en="A tensor hook on a leaf runs **before** `.grad` is written and holds this pass only; "
                "the sum of both is what a post-accumulate hook gets to see.",
            ),
            fails="value_3",
        ),
        Mistake(
            "forgets_chain_rule",
            Text(
                zh="从 `y` 到 `w` 还要乘上 `k`：`y = k * w`。",
                en="On the way from `y` to `w` the gradient is multiplied by `k`: `y = k * w`.",
            ),
            fails="value_3",
        ),
        Mistake(
            "post_one_pass",
            Text(
                zh="post-accumulate 钩子读的是 `param.grad`：这时第 2 次的梯度已经加到第 1 次的上面了。",
                en="A post-accumulate hook reads `param.grad`, and by then the second pass has been added to the first.",
            ),
            fails="value_4",
        ),
    ),
    insight=Text(
        zh="张量钩子看路过的，`retain_grad` 存离开时的，post-accumulate 钩子读加好的：同一个梯度，4 个答案。",
        en="A tensor hook sees what passes, `retain_grad` stores what leaves, a post-accumulate hook reads the sum: "
        "one gradient, 4 answers.",
    ),
)
