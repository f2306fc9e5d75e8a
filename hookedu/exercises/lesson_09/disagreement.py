"""Exercise 09.5, `disagreement(model, x, names)`: hooks against torchvision's create_feature_extractor."""

import random
from collections import OrderedDict
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import CALLS_NOW, REMOVES_OTHERS, Onlooker, none_lost
from hookedu.exercises.lesson_09.shared import (
    CHANGES_MODEL,
    LEAVES_HOOKS,
    RETURNS_NOTHING,
    conv,
    picture,
    settings,
    unchanged,
)
from hookedu.exercises.observation import show
from hookedu.exercises.shared import none_left
from hookedu.language import Text

_CALL = "disagreement(model, x, names)"
_NAMES = ["stem", "body.second", "body.third", "last"]


class _Watch(Onlooker):
    """An Onlooker that also counts the runs of `stem`, which one extractor per name runs more often."""

    def __init__(self, model: nn.Module) -> None:
        self.stem_runs = 0
        super().__init__(model)

    def _count(self, module: nn.Module, args: Any, output: Any) -> None:
        super()._count(module, args, output)
        self.stem_runs += module is self._model.stem


def _case(rng: random.Random) -> tuple[nn.Sequential, torch.Tensor]:
    """Return (model, x).

    In-place ReLUs overwrite `stem`, `body.third` and `last`; an extractor drops the ReLU after `last`.
    """
    while True:
        body: OrderedDict[str, nn.Module] = OrderedDict(
            second=conv(rng, 2, 2, 1), third=conv(rng, 2, 2, 1), act=nn.ReLU(inplace=True)
        )
        model = nn.Sequential(
            OrderedDict(
                stem=conv(rng, 1, 2, 2),
                act=nn.ReLU(inplace=True),
                body=nn.Sequential(body),
                last=conv(rng, 2, 1, 1),
                end=nn.ReLU(inplace=True),
            )
        )
        x = picture(rng, 1, 1, 3, 3)
        seen = _outputs(model, x)
        hit = all(seen[name].min() < 0 < seen[name].max() for name in ("stem", "body.third"))
        if hit and seen["last"].min() < 0:
            return model, x


def _outputs(model: nn.Sequential, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the output of each of the four layers, before it is overwritten."""
    with torch.no_grad():
        stem = model.get_submodule("stem")(x)
        second = model.get_submodule("body.second")(stem.relu())
        third = model.get_submodule("body.third")(second)
        last = model.get_submodule("last")(third.relu())
    return dict(zip(_NAMES, (stem, second, third, last), strict=True))


def _expected(model: nn.Sequential, x: torch.Tensor) -> dict[str, float]:
    seen = _outputs(model, x)
    return dict.fromkeys(_NAMES, 0.0) | {name: -seen[name].min().item() for name in ("stem", "body.third")}


def _means(model: nn.Sequential, x: torch.Tensor) -> dict[str, float]:
    seen = _outputs(model, x)
    lost = {name: (seen[name] - seen[name].relu()).abs().mean().item() for name in ("stem", "body.third")}
    return dict.fromkeys(_NAMES, 0.0) | lost


def _probe(disagreement: Any, rng: random.Random) -> dict[str, Any]:
    model, x = _case(rng)
    onlooker, before = _Watch(model), settings(model)
    found = disagreement(model, x.clone(), list(_NAMES))
    return {
        "found": found,
        "runs": onlooker.stem_runs,
        "unchanged": settings(model) == before,
        "left": onlooker.others(),
        "lost": onlooker.lost(),
    }


def _plain(found: Any) -> Any:
    """Convert differences that are one-element tensors to numbers."""
    if not isinstance(found, dict):
        return found
    return {k: v.item() if isinstance(v, torch.Tensor) and v.numel() == 1 else v for k, v in found.items()}


def _near(found: Any, expected: dict[str, float]) -> bool:
    return (
        isinstance(found, dict)
        and found.keys() == expected.keys()
        and all(type(v) in (int, float) and abs(v - expected[k]) < 1e-4 for k, v in found.items())
    )


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    model, x = _case(rng)
    expected, found = _expected(model, x), _plain(saw["found"])
    return [
        Criterion(
            "differences",
            _near(found, expected),
            points=4,
            essential=True,
            given=f"x = {show(x)}; model: stem, relu_, [second, third, relu_], last, relu_; names = {show(_NAMES)}",
            expected=show(expected),
            got=show(found),
            mistake=_mistake(saw, found, model, x),
        ),
        unchanged(_CALL, saw["unchanged"]),
        none_left("clean", _CALL, saw["left"], "leaves_hooks"),
        none_lost(_CALL, saw["lost"]),
    ]


def _mistake(saw: dict[str, Any], found: Any, model: nn.Sequential, x: torch.Tensor) -> str | None:
    if found is None:
        return "returns_nothing"
    nothing = dict.fromkeys(_NAMES, 0.0)
    # The ReLU after `last` overwrites what a hook kept; the extractor drops that ReLU.
    if _near(found, nothing | {"last": -_outputs(model, x)["last"].min().item()}):
        return "overwritten"
    if _near(found, nothing):
        if not saw["unchanged"]:
            return "changes_model"
        return "one_at_a_time" if saw["runs"] > 2 else "all_zero"
    if _near(found, {name: -value for name, value in _expected(model, x).items()}):
        return "signed"
    if _near(found, _means(model, x)):
        return "mean"
    if isinstance(found, dict) and any(isinstance(v, torch.Tensor) for v in found.values()):
        return "not_a_number"
    if isinstance(found, dict) and found and all(type(v) is bool for v in found.values()):
        return "only_says_whether"
    return "not_by_name" if isinstance(found, list | int | float) else None


DISAGREEMENT = Exercise(
    id="09.5",
    title=Text(zh="与提取器对账", en="Compare with the extractor"),
    answer="disagreement",
    points=7,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="两本账：钩子记的（`output.detach().clone()`，按名字放进 `seen`），和 `found = create_feature_extractor(model, names)(x)`，它也是按名字的字典。",
            en="Two accounts: what hooks kept (`output.detach().clone()`, by name in `seen`), and `found = create_feature_extractor(model, names)(x)`, "
            "which is a dictionary by name too.",
        ),
        Text(
            zh="按名字找模块：`model.get_submodule(name)`；当场固定名字：`partial(keep, name)`。最大的绝对差：`(a - b).abs().max().item()`。",
            en="A module by name: `model.get_submodule(name)`; fix the name on the spot: `partial(keep, name)`. The largest absolute difference: "
            "`(a - b).abs().max().item()`.",
        ),
        Text(
            zh="先 `model(x)`，取下钩子，再 `found = create_feature_extractor(model, names)(x)`，最后 "
            "`return {name: (seen[name] - found[name]).abs().max().item() for name in names}`。",
            en="First `model(x)`, then take the hooks off, then `found = create_feature_extractor(model, names)(x)`, and "
            "`return {name: (seen[name] - found[name]).abs().max().item() for name in names}`.",
        ),
    ),
    mistakes=(
        Mistake(
            "overwritten",
            Text(
                zh="你的钩子没有 `clone()`，留下的也被改写了：前几层两边一致，却是一致地错；最后一层提取器给的反倒是对的。",
                en="Your hook did not `clone()`, so what it kept was overwritten too: the first layers agree, and both are wrong; for the last one "
                "it is the extractor that is right.",
            ),
            fails="differences",
        ),
        Mistake(
            "one_at_a_time",
            Text(
                zh="你给每个名字各造了一个提取器：后面的层被删掉，就地 ReLU 也不在了，所以全是 0。要用**一个**提取器取所有名字。",
                en="You made an extractor for each name: what comes later is dropped, in-place ReLUs too, so all is 0. Use **one** extractor for all names.",
            ),
            fails="differences",
        ),
        Mistake(
            "all_zero",
            Text(
                zh="全是 0，可是提取器里有两层被改写过。多半是没有 `abs()`：被改写的是负数，`钩子 - 提取器` 从不大于 0。或者提取器来自关掉了 `inplace` 的"
                "副本：要用 `model` 本身。",
                en="All is 0, yet two layers were overwritten in the extractor. Probably `abs()` is missing: it is negatives that get overwritten, so what "
                "hooks kept is never above the extractor's. Or your extractor is made of a copy with `inplace` off: use `model` itself.",
            ),
            fails="differences",
        ),
        Mistake(
            "signed",
            Text(
                zh="有负的差：被改写的是负数，`钩子 - 提取器` 就是负的。先 `abs()`，再取最大。",
                en="Some of your differences are negative: it is negatives that get overwritten. Take `abs()` first, then the largest.",
            ),
            fails="differences",
        ),
        Mistake(
            "mean",
            Text(
                zh="你取的是平均。要的是最大的绝对差：一个位置不同，就是不同。",
                en="You took the mean. Wanted is the largest absolute difference: one place that differs is enough.",
            ),
            fails="differences",
        ),
        Mistake(
            "not_a_number",
            Text(
                zh="每个名字应当对应一个数，你给的是整个张量：`.abs().max().item()`。",
                en="Each name should have one number, yours has a whole tensor: `.abs().max().item()`.",
            ),
            fails="differences",
        ),
        Mistake(
            "only_says_whether",
            Text(
                zh="你只说了同不同。要的是差多少：`.abs().max().item()`。",
                en="You only said whether they agree. Wanted is by how much: `.abs().max().item()`.",
            ),
            fails="differences",
        ),
        Mistake(
            "not_by_name",
            Text(
                zh="要的是字典：每个名字各有一个差。",
                en="Wanted is a dictionary: a difference for each name.",
            ),
            fails="differences",
        ),
        Mistake(
            "late_binding",
            Text(
                zh="`seen` 里没有第一个名字：多半是钩子运行时循环已经走完，全记到了最后一个名字下（第 02 课），或者 `model(x)` 还没有运行。",
                en="The first name is not in `seen`: probably the loop was over when the hooks ran, and all went under the last name (lesson 02); "
                "or `model(x)` has not run.",
            ),
            raises=r"KeyError: 'stem'",
        ),
        Mistake("returns_nothing", RETURNS_NOTHING.says, fails="differences"),
        Mistake("changes_model", CHANGES_MODEL.says),
        *(LEAVES_HOOKS, REMOVES_OTHERS, CALLS_NOW),
    ),
    insight=Text(
        zh="提取器和钩子看的是同一份内存，`clone()` 才让两者分开。提取器要的是张量，还能训练；钩子要的是那一刻。",
        en="Extractor and hook look at the same memory, and only `clone()` parts them. An extractor gives tensors to train on; a hook, the moment.",
    ),
)
