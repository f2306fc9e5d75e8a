"""05.2 `prove(model, x, skip)`: compare what hooks saw with what forward itself returns."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import CALLS_NOW, LATE_BINDING, WRONG_ARGUMENTS
from hookedu.exercises.observation import show
from hookedu.exercises.shared import none_left
from hookedu.exercises.tools import linear, module_hooks, whole
from hookedu.language import Text

_SKIPPED = (nn.ReLU6, nn.Hardtanh, nn.Identity)  # exact on whole numbers
_CALLED = ["Linear", "Linear", "ReLU"]  # in the order of calls, without the skipped module
_NESTED = ["Sequential", "Linear", "ReLU"]  # the same if the first child contains a Linear and a ReLU


_RUNS = Text(zh="`forward` 运行了 {n} 次", en="runs of `forward`: {n}")


class _Net(nn.Module):
    """Network of example E4, which adds `lies[i]` to one value of the i-th intermediate result it reports."""

    def __init__(
        self, weights: list[torch.Tensor], skip: type[nn.Module], lies: list[float], nested: bool = False
    ) -> None:
        super().__init__()
        self.relu, self.fc2 = nn.ReLU(), linear(weights[1])  # deliberately not in the order of calls
        self.squash, self.fc1 = skip(), linear(weights[0])
        if nested:
            self.fc1 = nn.Sequential(self.fc1, nn.ReLU())
        self.lies, self.calls = lies, 0

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        self.calls += 1
        a = self.fc1(x)
        b = self.fc2(self.squash(a))
        c = self.relu(b)
        returned = [a.clone(), b.clone(), c.clone()]
        with torch.no_grad():
            for tensor, lie in zip(returned, self.lies, strict=True):
                tensor[0, 0] += lie
        return c, returned


def _case(rng: random.Random) -> tuple[torch.Tensor, list[torch.Tensor], type[nn.Module], list[float]]:
    """Return (x, weights, skip, lies); the lies are one positive, one negative and 0, in random order."""
    weights = [whole(rng, 4).reshape(2, 2), whole(rng, 2).reshape(1, 2)]
    lies = [float(rng.randint(2, 9)), -float(rng.randint(2, 9)), 0.0]
    rng.shuffle(lies)
    return whole(rng, 4).reshape(2, 2), weights, rng.choice(_SKIPPED), lies


def _probe(prove: Any, rng: random.Random) -> dict[str, Any]:
    x, weights, skip, lies = _case(rng)
    report = {}
    nets = {"honest": _Net(weights, skip, [0.0] * 3), "lying": _Net(weights, skip, lies)}
    for name, net in (nets | {"nested": _Net(weights, skip, [0.0] * 3, nested=True)}).items():
        report[name] = prove(net, x, skip)
        report |= {name + "_left": module_hooks(net), name + "_calls": net.calls}
    return report


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    x, _, skip, lies = _case(rng)
    given = f"x = {show(x)}; prove(model, x, nn.{skip.__name__})"
    honest, lying = saw["honest"], saw["lying"]
    expected = [[name, 0.0] for name in _CALLED]
    names, nested = _names(honest), _names(saw["nested"])
    calls = [saw[name + "_calls"] for name in ("honest", "lying", "nested")]
    wanted = [abs(lie) for lie in lies]
    told = Text(
        zh="{call}，其中 `forward` 谎报了 {lies}", en="{call}, where `forward` misreports by {lies}"
    ).format(call=given, lies=show(lies))
    return [
        Criterion(
            "names",
            names == _CALLED,
            points=1,
            essential=True,
            given=given,
            expected=show(expected),
            got=show(honest),
            mistake=_wrong_names(honest, names, skip),
        ),
        Criterion(
            "differences",
            _equal(honest, [0.0] * 3) and _equal(lying, wanted),
            points=1,
            essential=True,
            given=told,
            expected=show([[name, v] for name, v in zip(_CALLED, wanted, strict=True)]),
            got=show(lying),
            mistake=_wrong_differences(lying, lies),
        ),
        Criterion(
            "children",
            nested == _NESTED,
            essential=True,
            given="self.fc1 = nn.Sequential(nn.Linear(2, 2), nn.ReLU()); " + given,
            expected=show([[name, 0.0] for name in _NESTED]),
            got=show(saw["nested"]),
            mistake="not_only_children" if nested[:2] == ["Linear", "ReLU"] or "_Net" in nested else None,
        ),
        Criterion(
            "once",
            calls == [1, 1, 1],
            points=1,
            given=given,
            expected=_RUNS.format(n=1),
            got=_RUNS.format(n=max(calls)),
            mistake="runs_twice" if max(calls) > 1 else None,
        ),
        none_left("clean", given, max(saw["honest_left"], saw["lying_left"]), "leaves_hooks"),
    ]


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(value: Any) -> list[Any]:
    return [entry[0] if isinstance(entry, list) and entry else None for entry in _entries(value)]


def _numbers(value: Any) -> list[Any]:
    """Return the second item of each entry, or None; a tensor of one element becomes a number."""
    found = []
    for entry in _entries(value):
        number = entry[1] if isinstance(entry, list) and len(entry) == 2 else None
        if isinstance(number, torch.Tensor) and number.numel() == 1:
            number = number.item()
        found.append(number)
    return found


def _close(number: Any, wanted: float) -> bool:
    return type(number) in (int, float) and abs(number - wanted) < 1e-4


def _equal(value: Any, wanted: list[float]) -> bool:
    numbers = _numbers(value)
    return len(numbers) == len(wanted) and all(map(_close, numbers, wanted))


def _wrong_names(honest: Any, names: list[Any], skip: type[nn.Module]) -> str | None:
    if honest is None:
        return "returns_nothing"
    if "_Net" in names:
        return "not_only_children"
    if skip.__name__ in names:
        return "ignores_skip"
    if not names:
        return "no_entries" if honest == [] else None
    if len(names) == 3 and len(set(names)) == 1:
        return "late_binding"
    return "order_of_children" if sorted(map(str, names)) == _CALLED else None


def _wrong_differences(lying: Any, lies: list[float]) -> str | None:
    numbers = _numbers(lying)
    if any(isinstance(n, torch.Tensor) for n in numbers):
        return "not_a_number"
    if not all(type(n) in (int, float) for n in numbers):
        return None
    if not any(numbers):
        return "always_zero"
    places = [i for i, lie in enumerate(lies) if lie]
    if len(numbers) == 3 and sum(_close(numbers[i], abs(lies[i])) for i in places) == 1:
        return "signed"
    return "not_the_largest"


PROVE = Exercise(
    id="05.2",
    title=Text(zh="拿出证据", en="Prove it"),
    answer="prove",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="一个 `keep(module, args, output)` 就够所有子模块用：是谁在调用，`module` 会告诉你。",
            en="One `keep(module, args, output)` serves all children: `module` tells who is calling.",
        ),
        Text(
            zh="按调用次序收集：每次往同一个列表里添加 `(type(module).__name__, output)`。跑完 `model(x)` 再和 `returned` 逐个比较。",
            en="Collect in the order of calls: add `(type(module).__name__, output)` to one list each time. "
            "Once `model(x)` has run, compare with `returned` one by one.",
        ),
        Text(
            zh="最后返回 `[(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]`，在此之前取下所有钩子。",
            en="Return `[(name, (output - own).abs().max().item()) for (name, output), own in zip(seen, returned)]`, "
            "and before that take every hook off.",
        ),
    ),
    mistakes=(
        Mistake(
            "ignores_skip",
            Text(
                zh="你也记下了要跳过的那一种模块。挂钩子之前先问 `isinstance(child, skip)`。",
                en="You also recorded the kind of module that was to be skipped. Ask `isinstance(child, skip)` before attaching a hook.",
            ),
            fails="names",
        ),
        Mistake(
            "order_of_children",
            Text(
                zh="次序不对：`children()` 按**定义**的次序给出子模块，`returned` 却按**调用**的次序排。让钩子自己往列表里添加，次序自然就对了。",
                en="The order is wrong: `children()` goes by **definition**, `returned` by **calls**. "
                "Let the hooks themselves add to a list, and the order is right by itself.",
            ),
            fails="names",
        ),
        Mistake("late_binding", LATE_BINDING.says, fails="names"),
        Mistake(
            "no_entries",
            Text(
                zh="列表是空的：没有一个钩子触发过。先挂上钩子，再运行 `model(x)`，最后才取下。",
                en="The list is empty: no hook ever fired. First attach the hooks, then run `model(x)`, and only then take them off.",
            ),
            fails="names",
        ),
        Mistake(
            "returns_nothing",
            Text(
                zh="`prove` 返回了 `None`：打印出来还不够，要把列表返回。",
                en="`prove` returned `None`: printing is not enough, return the list.",
            ),
            fails="names",
        ),
        Mistake(
            "always_zero",
            Text(
                zh="这个模型谎报了中间值，你的差值却全是 0：你没有和 `returned` 里的值比较。永远不会失败的证据，什么也证明不了。",
                en="This model misreports its intermediate values, yet your differences are all 0: you did not compare "
                "with the values in `returned`. A proof that cannot fail proves nothing.",
            ),
            fails="differences",
        ),
        Mistake(
            "signed",
            Text(
                zh="一个方向的偏差被你漏掉了：负的差值再大，`max()` 也看不到。先取绝对值：`(output - own).abs().max()`。",
                en="You miss deviations in one direction: however large, a negative difference escapes `max()`. "
                "Take absolute values first: `(output - own).abs().max()`.",
            ),
            fails="differences",
        ),
        Mistake(
            "not_the_largest",
            Text(
                zh="要的是**最大**的绝对差。平均值或总和会把一个错误的数摊薄，或者和别的混在一起。",
                en="What is asked for is the **largest** absolute difference. A mean or a sum dilutes one wrong number or blends it with others.",
            ),
            fails="differences",
        ),
        Mistake(
            "not_a_number",
            Text(
                zh="差值应当是一个数，你给的是整个张量。再加上 `.abs().max().item()`。",
                en="The difference should be one number; you gave a whole tensor. Add `.abs().max().item()`.",
            ),
            fails="differences",
        ),
        Mistake(
            "leaves_hooks",
            Text(
                zh="值都对，可是 `prove` 返回之后钩子还挂在模型上。把句柄收进列表，最后逐个 `handle.remove()`。",
                en="The values are right, but the hooks are still on the model after `prove` returned. "
                "Collect the handles and call `handle.remove()` for each.",
            ),
            fails="clean",
        ),
        Mistake(
            "not_only_children",
            Text(
                zh="只给 `children()` 挂：`modules()` 连模型自己和更里面的层都给了。",
                en="Hook `children()` only: `modules()` also gives the model itself and everything further in.",
            ),
            fails="children",
        ),
        Mistake(
            "too_many",
            Text(
                zh="钩子记下的输出比 `returned` 里的值多：跳过 `skip` 类型的，只给 `children()` 挂，`model(x)` 只运行一次。",
                en="Your hooks recorded more outputs than `returned` has values: leave out the type `skip`, "
                "hook `children()` only, and run `model(x)` once.",
            ),
            raises=r"zip\(\) argument 2 is shorter",
        ),
        Mistake(
            "runs_twice",
            Text(
                zh="你让模型运行了不止一次：钩子看到的和 `returned` 要来自**同一次** `model(x)`，否则证明不了什么。",
                en="You ran the model more than once: what the hooks see and `returned` must come from **one** `model(x)`, "
                "or nothing is proved.",
            ),
            fails="once",
        ),
        Mistake(
            "output_and_list",
            Text(
                zh="这个模型返回 2 样东西：`out, returned = model(x)`。你把它们当成了一样。",
                en="This model returns 2 things: `out, returned = model(x)`. You took them for one.",
            ),
            raises=r"unsupported operand type\(s\) for -: 'Tensor' and 'list'",
        ),
        *(CALLS_NOW, WRONG_ARGUMENTS),
    ),
    insight=Text(
        zh="差值为 0，说明钩子看到的就是 `forward` 里算出的值；换上谎报的模型，差值就不再是 0，可见这个证据经得起检验。",
        en="A difference of 0 shows that hooks see what `forward` computed; with the misreporting model it is not 0, "
        "which shows that the proof can fail.",
    ),
)
