"""Exercise 11.4, `channel_effect(model, layer, channel, images, labels)`: switch a channel off."""

import copy
import random
from functools import partial
from typing import Any

import torch

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.lesson_11.shared import LEAVES_HOOK, NEEDS_INDEX, Case, make_case, recognise
from hookedu.exercises.observation import show
from hookedu.exercises.shared import none_left
from hookedu.exercises.tools import close, copies, module_hooks
from hookedu.language import Text

_LAYERS = ("conv2", "relu1")
_PICTURES = 3  # as many as candidate channels: switching off a picture instead raises no IndexError


def _case(rng: random.Random) -> tuple[Case, list[int]]:
    """Return (case, a channel for each layer that raises some labels' logits and lowers others)."""
    while True:
        case = make_case(rng, _PICTURES)
        fit = [[c for c in range(3) if _is_mixed(_effect(case, layer, c))] for layer in _LAYERS]
        if all(fit):
            return case, [rng.choice(channels) for channels in fit]


def _is_mixed(effects: torch.Tensor) -> bool:
    return bool(effects.abs().min() > 0.01 and effects.min() < 0 < effects.max())


def _run(case: Case, layer: str, change: Any) -> torch.Tensor:
    """Compute the logits, (N, classes), with a layer's output replaced by `change(output)`."""
    module = case.model.get_submodule(layer)
    with torch.no_grad(), module.register_forward_hook(lambda module, args, output: change(output)):
        return case.model(case.images)


def _without(channel: int) -> Any:
    """Return a function that sets one channel of an output to 0."""

    def change(output: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(output.shape[1])
        mask[channel] = 0
        return output * mask[:, None, None]

    return change


def _effect(case: Case, layer: str, channel: int) -> torch.Tensor:
    """Compute how much the labels' logits fall, (N,)."""
    return _drop(case, _run(case, layer, _without(channel)))


def _drop(case: Case, after: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return (case.model(case.images) - after).gather(1, case.labels[:, None])[:, 0]


def _probe(channel_effect: Any, rng: random.Random) -> dict[str, Any]:
    case, channels = _case(rng)
    effects, spoilt, changed, left = [], 0, 0, 0
    for name, channel in zip(_LAYERS, channels, strict=True):
        model = copy.deepcopy(case.model)  # one per layer: what an answer leaves on it has no further effect
        module, kept = model.get_submodule(name), []

        def keep(module: Any, args: Any, output: torch.Tensor, kept: list[Any] = kept) -> None:
            """Keep an output and a copy of it, as a hook of someone else's that runs first."""
            kept.append((output.detach(), output.detach().clone()))

        with module.register_forward_hook(keep):
            effects.append(channel_effect(model, module, channel, case.images.clone(), case.labels.clone()))
        spoilt += sum(not torch.equal(*pair) for pair in kept)
        left += module_hooks(model)
        changed += sum(
            not torch.equal(*pair) for pair in zip(model.parameters(), case.model.parameters(), strict=True)
        )
    return {"effects": copies(effects), "spoilt": spoilt, "changed": changed, "left": left}


def _likely(case: Case, layer: str, channel: int) -> dict[str, list[torch.Tensor]]:
    """Return the values that known mistakes give, by name."""
    right, off = _effect(case, layer, channel), _run(case, layer, _without(channel))

    def picture(output: torch.Tensor) -> torch.Tensor:
        output = output.clone()
        output[channel] = 0
        return output

    def only(output: torch.Tensor) -> torch.Tensor:
        return output - _without(channel)(output)

    def mean(output: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
        output = output.clone()
        output[:, channel] = output[:, channel].mean(dim=dims, keepdim=True)
        return output

    def one_place(output: torch.Tensor) -> torch.Tensor:
        output = output.clone()
        output[0, channel] = 0
        return output

    with torch.no_grad():
        on = case.model(case.images)
    maps, grads = (t[:, channel] for t in case.truth(layer))
    rows, likeliest = torch.arange(_PICTURES), on.argmax(dim=1)
    after = off.gather(1, case.labels[:, None])[:, 0]
    before = _run(case, "pool" if layer == "conv2" else "conv1", _without(channel))
    return {
        "wrong_sign": [-right],
        "absolute": [right.abs()],
        "no_return": [torch.zeros(_PICTURES)],
        "picture_off": [_drop(case, _run(case, layer, picture))],
        "only_this_one": [_drop(case, _run(case, layer, only))],
        "first_picture": [_drop(case, _run(case, layer, one_place)), right[0]],
        "mean_for_zero": [
            _drop(case, _run(case, layer, partial(mean, dims=dims))) for dims in ((1, 2), (0, 1, 2), (0,))
        ],
        "everything_off": [_drop(case, _run(case, layer, torch.zeros_like))],
        "wrong_class": [(on - off)[rows, likeliest], on.amax(dim=1) - off.amax(dim=1)],
        "probabilities": [(on.softmax(1) - off.softmax(1)).gather(1, case.labels[:, None])[:, 0]],
        "after_only": [after],
        "one_number": [right.mean(), right.sum()],
        "ratio": [right / (after + right), after / (after + right), right / (after + right).abs()],
        "forecast": [grads.mean(dim=(1, 2)) * maps.sum(dim=(1, 2)), (grads * maps).sum(dim=(1, 2))],
        "all_logits": [on - off],
        "keeps_dim": [right[:, None]],
        "every_pair": [
            (after + right)[:, None] - after,
            (after + right) - after[:, None],
        ],
        "crossed": [(on - off)[:, case.labels]],
        "channel_of_input": [_drop(case, before)] if layer == "conv2" else [],
    }


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    case, channels = _case(rng)
    at = list(zip(_LAYERS, channels, strict=True))
    wanted = [_effect(case, *a) for a in at]
    wrong = [i for i, got in enumerate(saw["effects"]) if not close(got, wanted[i])]
    place = wrong[0] if wrong else 0
    got = saw["effects"][place]
    mistake = None
    if wrong:
        mistake = _mistake(got, case, *at[place])
    call = "channel_effect(model, layer, channel, images, labels)"
    count = Text(zh="{n} 个张量变了", en="{n} tensors have changed")
    return [
        Criterion(
            "weights",
            saw["changed"] == 0,
            essential=True,
            given=Text(zh="模型的参数，运行之后", en="the model's parameters, after the run"),
            expected=count.format(n=0),
            got=count.format(n=saw["changed"]),
            mistake="changes_weights",
        ),
        Criterion(
            "effect",
            not wrong,
            points=3,
            essential=True,
            given=f"{case.given(_LAYERS[place])}; channel = {channels[place]}",
            expected=show(wanted[place]),
            got=show(got),
            mistake=mistake,
        ),
        Criterion(
            "others",
            saw["spoilt"] == 0,
            points=1,
            given=Text(zh="别的钩子留下的 `output`", en="the `output` that another hook had kept"),
            expected=count.format(n=0),
            got=count.format(n=saw["spoilt"]),
            mistake="in_place",
        ),
        none_left("left", call, saw["left"], "leaves_hook"),
    ]


def _mistake(got: Any, case: Case, layer: str, channel: int) -> str | None:
    """Return the known mistake behind a wrong answer, or None."""
    if got is None:
        return "returns_nothing"
    return "returns_list" if isinstance(got, list) else recognise(got, _likely(case, layer, channel))


def _says(id: str, zh: str, en: str, fails: str = "effect") -> Mistake:
    return Mistake(id, Text(zh=zh, en=en), fails=fails)


CHANNEL_EFFECT = Exercise(
    id="11.4",
    title=Text(zh="关掉一个通道", en="Switch a channel off"),
    answer="channel_effect",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="前向钩子返回的张量会取代输出（第 05 课）。先 `clone()`，再把那个通道设为 0。",
            en="What a forward hook returns replaces the output (lesson 05). First `clone()`, then set that channel to 0.",
        ),
        Text(
            zh="运行两次：一次照旧，一次在 `with layer.register_forward_hook(...):` 里；每张图取 `labels` 的 logit，再相减。",
            en="Run twice: once as it is, once inside `with layer.register_forward_hook(...):`. Take each picture's logit of `labels`, then subtract.",
        ),
        Text(
            zh="钩子里：`output = output.clone()`，`output[:, channel] = 0`，`return output`；最后 `(before - after).gather(1, labels[:, None])[:, 0]`。",
            en="In the hook: `output = output.clone()`, `output[:, channel] = 0`, `return output`; at the end "
            "`(before - after).gather(1, labels[:, None])[:, 0]`.",
        ),
    ),
    mistakes=(
        _says(
            "wrong_sign",
            "减反了：要的是下降多少，也就是「开着」减「关掉」。",
            "The difference is the wrong way round: how much the logit falls is on minus off.",
        ),
        _says(
            "no_return",
            "两次的 logit 一样，下降全是 0。要么钩子没有 `return` 新的输出，要么它没有挂在 `layer` 上，"
            "要么两次都在 `with` 里运行，都关着。",
            "Both runs gave the same logits, so nothing fell. Either your hook does not `return` the new output, or it is not on "
            "`layer`, or both runs stand inside the `with`, and the channel is off in both.",
        ),
        _says(
            "picture_off",
            "你关掉的是一张图，不是一个通道：第一维是图，通道是第二维，写 `output[:, channel] = 0`。",
            "You switched off a picture, not a channel: pictures come first, channels second. Write `output[:, channel] = 0`.",
        ),
        _says(
            "absolute",
            "你取了绝对值：logit 也会上升，那时下降是负数。符号要留着。",
            "You took the absolute value. A logit can rise as well, and then the fall is negative: keep the sign.",
        ),
        _says(
            "first_picture",
            "只算了第 0 张图。每张图都要：写 `output[:, channel] = 0`，返回 `N` 个数。",
            "Only picture 0 counts. All pictures do: write `output[:, channel] = 0`, and return `N` numbers.",
        ),
        _says(
            "mean_for_zero",
            "你把通道换成了它的平均值，不是 0。",
            "You set the channel to its mean, not to 0.",
        ),
        _says(
            "ratio",
            "你除以了原来的 logit。要的是差，不是比例：logit 可以是 0 或负数，比例没有意义。",
            "You divided by the logit. The difference is wanted, not a ratio: a logit may be 0 or negative, and a ratio then means nothing.",
        ),
        _says(
            "forecast",
            "这是用梯度算出来的预言。这里要做实验：真的关掉通道，再运行一次。",
            "This is the forecast that the gradient makes. Do the experiment here: switch the channel off and run again.",
        ),
        _says(
            "crossed",
            "`[:, labels]` 是 `N×N`：每张图都取了**所有图**的类。逐图各取一个：`gather(1, labels[:, None])[:, 0]`。",
            "`[:, labels]` is `N×N`: from each picture it takes the classes of **all** pictures. Take one of each: "
            "`gather(1, labels[:, None])[:, 0]`.",
        ),
        _says(
            "only_this_one",
            "你只留下了这个通道，关掉了其余的。",
            "You kept this channel alone, and switched the others off.",
        ),
        _says(
            "everything_off",
            "你把所有通道都关掉了。",
            "You switched every channel off.",
        ),
        _says(
            "wrong_class",
            "你比较的是网络最看好的类。请比较 `labels` 里的类。",
            "You compared the class that the net likes best. Compare the one in `labels`.",
        ),
        _says(
            "probabilities",
            "你比较的是 `softmax` 之后的概率。请比较 logit。",
            "You compared the probabilities after `softmax`. Compare the logits.",
        ),
        _says(
            "after_only",
            "这是关掉之后的 logit，还没有和原来的相减。",
            "This is the logit with the channel off. Subtract it from the one before.",
        ),
        _says(
            "one_number",
            "每张图要一个数，不要对图取平均或求和。",
            "One number for each picture is wanted: do not average or add up over them.",
        ),
        _says(
            "all_logits",
            "每个类都给了：每张图只取 `labels` 里的那一个，`gather(1, labels[:, None])[:, 0]`。",
            "You returned every class. Take one for each picture, that of `labels`: `gather(1, labels[:, None])[:, 0]`.",
        ),
        _says(
            "keeps_dim",
            "数都对，形状多了一维：`gather(1, labels[:, None])` 是 `N×1`。再取 `[:, 0]`，就是 `N` 个数。",
            "The numbers are right, with one dimension too many: `gather(1, labels[:, None])` is `N×1`. Take `[:, 0]` of it for `N` numbers.",
        ),
        _says(
            "every_pair",
            "`N` 个数减 `N×1`，成了 `N×N`：每张图都和每张图相减了。两边形状要一样：都取 `gather(1, labels[:, None])[:, 0]`。",
            "`N` numbers and `N×1` make `N×N`: every picture was subtracted from every picture. Give both the same shape: "
            "`gather(1, labels[:, None])[:, 0]`.",
        ),
        _says(
            "returns_list",
            "你返回的是一个列表。要一个有 `N` 个数的张量。",
            "You returned a list. One tensor of `N` numbers is wanted.",
        ),
        _says(
            "channel_of_input",
            "你关掉的是**输入**的通道：前置钩子在这一层之前运行。要改的是输出。",
            "You switched off a channel of the **input**: a pre-hook runs before the layer. Change the output.",
        ),
        _says(
            "returns_nothing",
            "`channel_effect` 返回了 `None`，也就是没有 `return`。",
            "`channel_effect` returned `None`: a `return` is missing.",
        ),
        _says(
            "changes_weights",
            "你改动了模型的参数，而且没有复原。参数不要碰，只在钩子里换掉输出。",
            "You changed the model's parameters and left them so. Leave them alone, and replace the output in a hook.",
            fails="weights",
        ),
        _says(
            "in_place",
            "数是对的，可是 `output` 被你就地改了，别的钩子留下的值也跟着变了。先 `clone()`。",
            "The numbers are right, but you changed `output` in place, and what another hook had kept changed with it. `clone()` first.",
            fails="others",
        ),
        *(LEAVES_HOOK, NEEDS_INDEX, CALLS_NOW, WRONG_ARGUMENTS),
    ),
    insight=Text(
        zh="梯度是预言，关掉是实验：实验不用相信任何公式。",
        en="A gradient is a forecast, switching off is the experiment: it needs no formula to be believed.",
    ),
)
