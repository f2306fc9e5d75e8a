"""Exercise 10.3, `first_nan(model, x)`: the first module to run that turns clean input into nan."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import CALLS_NOW, RETURNS_TUPLE, WRONG_ARGUMENTS
from hookedu.exercises.lesson_10.shared import (
    LEAVES_HOOKS,
    NO_FINALLY,
    SWALLOWS,
    Chain,
    backward_hooks,
    clean_after_error,
    interrupted,
)
from hookedu.exercises.observation import show
from hookedu.exercises.shared import none_left
from hookedu.exercises.tools import same, whole
from hookedu.language import Text


class _Divide(nn.Module):
    """x / by: 0 / 0 is nan, any other number / 0 is inf."""

    def __init__(self, by: torch.Tensor) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / self.by


class _Subtract(nn.Module):
    """x - x[0]: inf - inf is nan."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x[..., :1]


class _Clean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.nan_to_num(nan=1.0, posinf=2.0, neginf=-2.0)


_RUN = ("stem", "scale", "body", "clean", "again", "tail")


def _case(rng: random.Random) -> tuple[list[str], torch.Tensor, torch.Tensor]:
    """Return (names of the three modules in the body, x, divisor of the stem)."""
    inner = rng.sample(["centre", "shift", "norm", "mix", "gate"], 3)
    return inner, whole(rng, 3).reshape(1, 3), whole(rng, 3)


def _model(inner: list[str], by: torch.Tensor, *, ill: bool, broken: bool = False) -> Chain:
    """Build the model, which produces nan where it is `ill`.

    `scale` then makes inf of clean numbers, the middle module of the body makes nan of that, `clean` removes it, and
    `again` produces nan anew.
    """
    before, maker, after = inner
    zero = torch.where(torch.arange(3) == 0, 0.0, by) if ill else by
    body = Chain(
        {after: nn.Identity(), maker: _Subtract(), before: nn.Identity()}, run=(before, maker, after)
    )
    children = {
        "tail": nn.Identity(),
        "again": _Divide(zero),
        "body": body,
        "clean": _Clean(),
        "scale": _Divide(zero),
        "stem": _Divide(by),
        "spare": nn.Tanh(),
    }
    model = Chain(children, _RUN, broken)
    if ill:  # `again` then computes 0 / 0: what _Clean leaves becomes 0 here
        model.clean = nn.Sequential(_Clean(), nn.Hardshrink(100.0))
    return model


def _probe(first_nan: Any, rng: random.Random) -> dict[str, Any]:
    inner, x, by = _case(rng)
    spoilt = torch.where(torch.arange(3) == 1, torch.nan, x)
    report: dict[str, Any] = {"left": 0}
    for case, ill, value in (("ill", True, x), ("healthy", False, x), ("spoilt", False, spoilt)):
        model = _model(inner, by, ill=ill)
        report[case] = first_nan(model, value.clone())
        report["left"] += backward_hooks(model)
        report[f"{case}_out"] = model.out
    broken = _model(inner, by, ill=False, broken=True)  # healthy: an answer may stop the run at the first nan
    return report | interrupted(first_nan, broken, x)


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    inner, x, by = _case(rng)
    expected, found = f"body.{inner[1]}", saw["ill"]
    runs = f"stem, scale, body.{inner[0]}, {expected}, body.{inner[2]}, clean, again, tail"
    given = Text(zh="`{x}`；依次运行：{runs}", en="`{x}`; in the order of running: {runs}").format(
        x=f"x = {show(x)}", runs=runs
    )
    spoilt = torch.where(torch.arange(3) == 1, torch.nan, x)
    out = x / by / by
    out = (out - out[..., :1]) / by
    return [
        Criterion(
            "finds",
            found == expected,
            points=2,
            essential=True,
            given=given,
            expected=repr(expected),
            got=show(found),
            mistake=_wrong(found, inner),
        ),
        Criterion(
            "healthy",
            saw["healthy"] is None,
            points=1,
            essential=True,
            given=Text(zh="一个不会造出 `nan` 的模型", en="a model that makes no `nan`"),
            expected="None",
            got=show(saw["healthy"]),
            mistake="not_none",
        ),
        Criterion(
            "unchanged",
            saw["healthy_out"] is None or _near(saw["healthy_out"], out),
            essential=True,
            given=Text(zh="一个不会造出 `nan` 的模型", en="a model that makes no `nan`"),
            expected=f"model(x) == {show(out)}",
            got=f"model(x) == {show(saw['healthy_out'])}",
            mistake="changes_output",
        ),
        Criterion(
            "input",
            saw["spoilt"] is None,
            points=1,
            given=f"x = {show(spoilt)}",
            expected="None",
            got=show(saw["spoilt"]),
            mistake="ignores_input",
        ),
        none_left("clean", "first_nan(model, x)", saw["left"], "leaves_hooks"),
        clean_after_error("first_nan(broken, x)", saw),
    ]


def _near(got: Any, expected: torch.Tensor) -> bool:
    return same(got, expected) or (isinstance(got, torch.Tensor) and torch.allclose(got, expected))


def _wrong(found: Any, inner: list[str]) -> str | None:
    _, maker, after = inner
    names = {
        "body": "only_children",
        "": "only_children",
        "scale": "counts_infinity",
        "again": "later_one",
        "tail": "last_one",
        f"body.{after}": "last_one",
        "spare": "late_binding",
        maker: "short_name",
        None: "never_true",
    }
    if isinstance(found, list):
        return "returns_list"
    if isinstance(found, (str, type(None))):
        return names.get(found)
    return "returns_module"


FIRST_NAN = Exercise(
    id="10.3",
    title=Text(zh="谁造出了第一个 nan", en="Who makes the first nan"),
    answer="first_nan",
    points=6,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="前向钩子同时看得到输入和输出：`args[0]` 和 `output`。`output.isnan().any()` 说出里面有没有 `nan`。",
            en="A forward hook sees both input and output: `args[0]` and `output`. `output.isnan().any()` says whether there is a `nan`.",
        ),
        Text(
            zh="输出有而输入没有时，把名字 `append` 进列表；钩子按运行的次序触发，所以第一项就是答案。",
            en="Where the output has some and the input none, `append` the name to a list. Hooks fire in the order of running, so the first entry "
            "is the answer.",
        ),
        Text(
            zh="钩子里：`if output.isnan().any() and not args[0].isnan().any(): found.append(name)`。"
            "循环 `model.named_modules()`，只挂 `not list(module.children())` 的；最后 `return found[0] if found else None`。",
            en="In the hook: `if output.isnan().any() and not args[0].isnan().any(): found.append(name)`. Loop over `model.named_modules()`, only those with "
            "`not list(module.children())`; last, `return found[0] if found else None`.",
        ),
    ),
    mistakes=(
        Mistake(
            "only_children",
            Text(
                zh="你说的是容器，里面还有几层。用 `named_modules()`，只挂没有子模块的。",
                en="You named a container with more layers inside. Use `named_modules()`, and hook only those without children.",
            ),
            fails="finds",
        ),
        Mistake(
            "short_name",
            Text(
                zh="名字只说了一半：在整个模型里它带着路径，例如 `body.norm`。`model.named_modules()` 给出完整的名字。",
                en="That is half of its name: within the model it comes with its path, such as `body.norm`. `model.named_modules()` gives it in full.",
            ),
            fails="finds",
        ),
        Mistake(
            "counts_infinity",
            Text(
                zh="`scale` 造出的是 `inf`，不是 `nan`：用 `isnan`，不用 `isfinite`。",
                en="`scale` makes `inf`, not `nan`: use `isnan`, not `isfinite`.",
            ),
            fails="finds",
        ),
        Mistake(
            "later_one",
            Text(
                zh="`again` 也从干净的输入造出了 `nan`，但它运行得晚。要么你按 `named_modules()` 的次序找了，要么后一次赋值盖掉了前一次：按钩子触发的次序，取第一个。",
                en="`again` makes a `nan` of clean input too, but it runs later. Either you searched in the order of `named_modules()`, or a later "
                "assignment overwrote the first: go by the order in which hooks fire, and take the first.",
            ),
            fails="finds",
        ),
        Mistake(
            "last_one",
            Text(
                zh="这是最后一个有 `nan` 的：每次赋值都盖掉了前面的。要的是第一个。",
                en="That is the last one with a `nan`: every assignment overwrote the one before. The first is wanted.",
            ),
            fails="finds",
        ),
        Mistake(
            "late_binding",
            Text(
                zh="`spare` 从没运行过：钩子运行时才去读循环里的 `name`，读到的总是最后一个。用 `partial(look, name)`。",
                en="`spare` never ran: the hook looks up the loop's `name` when it runs, and always reads the last. Use `partial(look, name)`.",
            ),
            fails="finds",
        ),
        Mistake(
            "never_true",
            Text(
                zh="什么也没找到。`x == float('nan')` 永远是假，`nan` 跟自己也不相等：用 `isnan()`。有一个就算：用 `any()`，不用 `all()`。也别忘了 `return`。",
                en="Nothing was found. `x == float('nan')` is never true, `nan` is not even equal to itself: use `isnan()`. A single one counts: `any()`, not `all()`. And mind the `return`.",
            ),
            fails="finds",
        ),
        Mistake(
            "returns_list",
            Text(
                zh="要的是一个名字，不是列表：`found[0]`。", en="One name is wanted, not a list: `found[0]`."
            ),
            fails="finds",
        ),
        Mistake(
            "returns_module",
            Text(
                zh="要返回名字（字符串），不是模块本身。",
                en="Return its name, a string, not the module itself.",
            ),
            fails="finds",
        ),
        Mistake(
            "not_none",
            Text(
                zh="模型没有造出 `nan`，这时要返回 `None`。",
                en="Where the model makes no `nan`, return `None`.",
            ),
            fails="healthy",
        ),
        Mistake(
            "changes_output",
            Text(
                zh="模型的输出变了：你的钩子返回了东西，取代了它。只看的钩子什么也不返回。",
                en="The model's output changed: what your hook returns replaced it. A hook that only looks returns nothing.",
            ),
            fails="unchanged",
        ),
        Mistake(
            "ignores_input",
            Text(
                zh="`nan` 本来就在 `x` 里，没有哪一层造出它：还要看输入，`not args[0].isnan().any()`。",
                en="The `nan` was in `x` already, no layer made it. Look at the input too: `not args[0].isnan().any()`.",
            ),
            fails="input",
        ),
        Mistake(
            "nothing_to_take",
            Text(
                zh="没有 `nan` 的模型让列表空着，`found[0]` 就出错了：`found[0] if found else None`。",
                en="A model without `nan` leaves the list empty, and `found[0]` fails: `found[0] if found else None`.",
            ),
            raises=r"list index out of range",
        ),
        *(LEAVES_HOOKS, NO_FINALLY, SWALLOWS, RETURNS_TUPLE, CALLS_NOW, WRONG_ARGUMENTS),
    ),
    insight=Text(
        zh="输入干净、输出不干净：凶手的定义就这一句，前向钩子刚好两样都看得到。",
        en="Clean input, unclean output: that is the culprit's whole description, and a forward hook sees both.",
    ),
)
