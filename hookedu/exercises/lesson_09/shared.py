"""Convolutions of small whole numbers, and a criterion and mistakes shared by exercises of lesson 09."""

import random

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Mistake
from hookedu.language import Text


class Interruption(Exception):
    """Raised by a model in its forward, as running out of memory would."""


def conv(rng: random.Random, n_in: int, n_out: int, size: int, padding: int = 0) -> nn.Conv2d:
    """Return a Conv2d without bias whose weights are ±1 and ±2: a few in sequence still give exact sums."""
    layer = nn.Conv2d(n_in, n_out, size, padding=padding, bias=False)
    values = [float(rng.choice((-2, -1, 1, 2))) for _ in range(layer.weight.numel())]
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(values).reshape(layer.weight.shape))
    return layer


def picture(rng: random.Random, *shape: int) -> torch.Tensor:
    """Return a float32 tensor of the given shape with whole numbers from -9 to 9."""
    n = torch.Size(shape).numel()
    return torch.tensor([float(rng.randint(-9, 9)) for _ in range(n)]).reshape(shape)


def unchanged(given: str, same: bool) -> Criterion:
    """Require that `training` and `inplace` of all modules are unchanged."""
    return Criterion(
        "unchanged",
        same,
        points=1,
        given=given,
        expected=Text(zh="模型和原来一样", en="the model as it was"),
        got=Text(
            zh="`training` 或 `inplace` 变了" if not same else "模型和原来一样",
            en="another `training` or `inplace`" if not same else "the model as it was",
        ),
        mistake="changes_model",
    )


def settings(model: nn.Module) -> list[tuple[bool, bool | None]]:
    """Return `training` and `inplace` of every module, to detect whether an answer changed them."""
    return [(module.training, getattr(module, "inplace", None)) for module in model.modules()]


LEAVES_HOOKS = Mistake(
    "leaves_hooks",
    Text(
        zh="模型上还挂着你的钩子：运行之后，对每个句柄调用 `remove()`。",
        en="Your hooks are still on the model: after the run, call `remove()` on each handle.",
    ),
    fails="clean",
)
NO_FINALLY = Mistake(
    "no_finally",
    Text(
        zh="模型一抛异常，你的钩子就留下了：把 `model(x)` 放进 `try:`，在 `finally:` 里取下（第 05 课）。",
        en="When the model raises, your hooks stay on: put `model(x)` in a `try:` and take them off in its `finally:` (lesson 05).",
    ),
    fails="clean_after_error",
)
CHANGES_MODEL = Mistake(
    "changes_model",
    Text(
        zh="你改动了模型：`inplace` 或 `training` 和原来不同了。别人的模型只看不改，`clone()` 就够了。",
        en="You changed the model: some `inplace` or `training` is not what it was. Look at other people's models, don't change "
        "them; `clone()` is enough.",
    ),
    fails="unchanged",
)
RETURNS_NOTHING = Mistake(
    "returns_nothing",
    Text(
        zh="函数什么也没有返回：结果要用 `return` 交出来。",
        en="The function returned nothing: hand the result over with `return`.",
    ),
)
