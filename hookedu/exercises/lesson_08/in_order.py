"""Exercise 08.1, `in_order(events)`: the order in which the hooks of a chain of layers fire."""

import functools
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.observation import show
from hookedu.hooks.state import restored
from hookedu.hooks.timeline import timeline
from hookedu.language import Text

_Event = tuple[str, int]  # (kind, index of the layer)
_FORWARD = ["forward_pre", "forward"]
_BACKWARD = ["output_grad", "backward_pre", "param_grad", "post_accumulate", "backward", "input_grad"]


@functools.cache
def _truth(layers: int) -> tuple[_Event, ...]:
    """Return the events of a chain of layers in the order in which PyTorch fires them.

    A layer's input is the output of the layer before it, so only the first layer has an input event of its own.
    """
    with restored():  # creating layers draws random numbers
        chain = nn.Sequential(*(nn.Linear(2, 2, bias=False) for _ in range(layers)))
        events = timeline(chain, torch.ones(1, 2, requires_grad=True), layers=nn.Linear)
    return tuple((e.kind, int(e.path)) for e in events if e.kind != "input_grad" or e.path == "0")


def _cases(rng: random.Random) -> list[list[_Event]]:
    """Return three shuffled lists: all events of two chains, then some events of the second."""
    small, large = rng.sample([2, 3, 4], 2)
    everything = [_truth(small), _truth(large)]
    some = rng.sample(everything[1], rng.randint(6, 9))
    return [rng.sample(events, len(events)) for events in (*everything, some)]


def _sorted(events: list[_Event]) -> list[_Event]:
    truth = _truth(1 + max(layer for _, layer in events))
    return [event for event in truth if event in events]


def _by(
    backward: list[str] = _BACKWARD, layers: Callable[[int], int] = lambda layer: -layer
) -> Callable[[_Event], Any]:
    """Return a sort key: forward, layer by layer, then backward in the given order of kinds and layers."""
    kinds = [*_FORWARD, *backward]
    return lambda e: (e[0] not in _FORWARD, e[1] if e[0] in _FORWARD else layers(e[1]), kinds.index(e[0]))


def _kind(event: _Event) -> int:
    return [*_FORWARD, *_BACKWARD].index(event[0])


def _moved(*kinds: str, before: str | None) -> list[str]:
    """Return the kinds of backward events with some moved before another, or to the end."""
    rest = [kind for kind in _BACKWARD if kind not in kinds]
    at = rest.index(before) if before else len(rest)
    return [*rest[:at], *kinds, *rest[at:]]


_OF_PARAMETERS = ("param_grad", "post_accumulate")

# Known wrong orders: mistake id -> sort keys
_WRONG: dict[str, list[Callable[[_Event], Any]]] = {
    "first_layer_first": [_by(layers=lambda layer: layer)],
    "kind_by_kind": [
        _kind,  # layers in the given order
        lambda e: (_kind(e), e[1]),
        lambda e: (_kind(e), e[1] if e[0] in _FORWARD else -e[1]),
    ],
    "layer_by_layer": [lambda e: (e[1], _kind(e))],
    "pre_hook_first": [_by(_moved("backward_pre", before="output_grad"))],
    "parameters_after_backward": [
        _by(_moved(*_OF_PARAMETERS, before="input_grad")),
        _by(_moved(*_OF_PARAMETERS, before=None)),
    ],
    "parameters_last": [
        lambda e: (e[0] in _OF_PARAMETERS, *_by()(e)),
        lambda e: (e[0] in _OF_PARAMETERS, *_by(layers=lambda layer: layer)(e)),
    ],
    "accumulated_first": [_by(_moved("post_accumulate", before="param_grad"))],
    "input_before_backward": [
        _by(_moved("input_grad", before="backward")),
        _by(_moved("input_grad", before="output_grad")),
    ],
}


def _probe(in_order: Any, rng: random.Random) -> dict[str, Any]:
    return {"found": [in_order(list(events)) for events in _cases(rng)]}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    cases = _cases(rng)
    expected = [_plain(_sorted(events)) for events in cases]
    if len(saw["found"]) != len(cases):
        raise ValueError("one answer a list")
    found = [events if events is None or _are_events(events) else show(events) for events in saw["found"]]
    wrong = next((i for i in (0, 1) if found[i] != expected[i]), 0)
    return [
        Criterion(
            "order",
            found[:2] == expected[:2],
            points=3,
            essential=True,
            given=f"in_order({_short(cases[wrong])})",
            expected=_short(expected[wrong]),
            got=_short(found[wrong]),
            mistake=_recognised(cases[:2], found[:2]),
        ),
        Criterion(
            "only_given",
            found[2] == expected[2],
            points=1,
            given=f"in_order({_short(cases[2])})",
            expected=_short(expected[2]),
            got=_short(found[2]),
            mistake="invents_events"
            if isinstance(found[2], list) and len(found[2]) > len(cases[2])
            else None,
        ),
    ]


def _recognised(cases: list[list[_Event]], found: list[Any]) -> str | None:
    if found == [None, None]:
        return "returns_nothing"
    if found == [_plain(events) for events in cases]:
        return "as_given"
    for mistake, keys in _WRONG.items():
        if any(found == [_plain(sorted(events, key=key)) for events in cases] for key in keys):
            return mistake
    return None


def _are_events(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(e, list) and len(e) == 2 and type(e[0]) is str and type(e[1]) is int for e in value
    )


def _plain(events: list[_Event]) -> list[list[Any]]:
    return [list(event) for event in events]


def _short(events: Any) -> str:
    """Format a list of events for a message, at most 40 of them: no case has more."""
    if not isinstance(events, list):
        return str(events)
    return ", ".join(f"{kind[:20]} {layer}" for kind, layer in events[:40])


IN_ORDER = Exercise(
    id="08.1",
    title=Text(zh="把事件排好", en="Put events in order"),
    answer="in_order",
    points=4,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="先分两半：`forward_pre` 和 `forward` 全在前面，层号从小到大；其余的在后面，层号从大到小。",
            en="Two halves first: `forward_pre` and `forward` all come first, layer numbers rising; the rest comes after, "
            "layer numbers falling.",
        ),
        Text(
            zh="一层之内的先后在 8.1 节的输出里。把后半的种类按那个次序写成一个列表 `down`，用 `down.index(kind)` 当序号。",
            en="The order inside one layer stands in the output of section 8.1. Write the kinds of the second half into a list "
            "`down` in that order and take `down.index(kind)` as the number.",
        ),
        Text(
            zh="`sorted` 的 `key` 可以返回元组：前半是 `(0, layer, up.index(kind))`，后半是 `(1, -layer, down.index(kind))`。",
            en="The `key` of `sorted` may return a tuple: `(0, layer, up.index(kind))` for the first half, "
            "`(1, -layer, down.index(kind))` for the second.",
        ),
    ),
    mistakes=(
        Mistake(
            "returns_nothing",
            Text(
                zh="`in_order` 返回了 `None`。`events.sort(...)` 就地排序，什么也不返回；用 `return sorted(...)`。",
                en="`in_order` returned `None`. `events.sort(...)` sorts in place and returns nothing; use `return sorted(...)`.",
            ),
            fails="order",
        ),
        Mistake(
            "as_given",
            Text(
                zh="列表原样返回了。`sorted` 返回**新的**列表，原来的不动：要返回那个新的。",
                en="The list came back as it was. `sorted` returns a **new** list and leaves the old one alone: return the new one.",
            ),
            fails="order",
        ),
        Mistake(
            "first_layer_first",
            Text(
                zh="反向传播从最后一层开始：后半部分的层号要从大到小，例如用 `-layer` 排序。",
                en="Backward begins at the last layer: in the second half layer numbers fall. Sort by `-layer`, say.",
            ),
            fails="order",
        ),
        Mistake(
            "kind_by_kind",
            Text(
                zh="你把同一种事件排在了一起。实际上每一半里，都是一层走完才轮到下一层：先按层，再按种类。",
                en="You put all events of one kind together. In truth one layer is done before the next begins, forward as well as "
                "backward: inside each half, sort by layer first, then by kind.",
            ),
            fails="order",
        ),
        Mistake(
            "layer_by_layer",
            Text(
                zh="你让第 0 层先走完前向和反向。实际上所有层先走完前向传播，反向传播才开始。",
                en="You let layer 0 finish forward and backward before layer 1 begins. In truth all layers go forward before "
                "backward begins.",
            ),
            fails="order",
        ),
        Mistake(
            "pre_hook_first",
            Text(
                zh="`output_grad` 在 `backward_pre` 之前：输出上的张量钩子挂在模块外面，梯度先经过它，再进入模块。"
                "（在前向钩子里挂上的则在模块里面。）",
                en="`output_grad` comes before `backward_pre`: the tensor hook on the output sits outside the module, and the gradient passes "
                "it on its way in. (One that is set inside a forward hook sits inside.)",
            ),
            fails="order",
        ),
        Mistake(
            "parameters_after_backward",
            Text(
                zh="输入需要梯度时，`backward` 要等 `grad_input`，那时参数的两个事件都已经过去了：它们排在 `backward` 之前。",
                en="Where the input needs a gradient, `backward` waits for `grad_input`; by then both events of the parameter "
                "are over. They come before `backward`.",
            ),
            fails="order",
        ),
        Mistake(
            "parameters_last",
            Text(
                zh="参数的梯度不是等到最后一起写的：每一层的反向传播途中就算好、写好。",
                en="Parameters do not get their gradients all together at the end: each layer's are computed and written while "
                "backward goes through it.",
            ),
            fails="order",
        ),
        Mistake(
            "accumulated_first",
            Text(
                zh="`param_grad` 在前：张量钩子先看到（或换掉）梯度，然后它才加进 `.grad`，`post_accumulate` 最后。",
                en="`param_grad` comes first: the tensor hook sees (or replaces) the gradient before it is added to `.grad`, and "
                "`post_accumulate` follows.",
            ),
            fails="order",
        ),
        Mistake(
            "input_before_backward",
            Text(
                zh="`input_grad` 是最后一个：梯度先离开模块（`backward`），再到达输入张量。",
                en="`input_grad` is the last: the gradient leaves the module (`backward`) and then arrives at the input tensor.",
            ),
            fails="order",
        ),
        Mistake(
            "invents_events",
            Text(
                zh="有一个列表只含一部分事件，你却返回了全部。只排 `events` 里有的。",
                en="One of the lists held only some events, and you returned all of them. Sort just what is in `events`.",
            ),
            fails="only_given",
        ),
    ),
    insight=Text(
        zh="上去时层号升、下来时层号降；每一层都是从外到里再到外：输出、模块、参数、模块、输入。",
        en="Layers rise on the way up and fall on the way down; in each one it goes from outside in and out again: output, module, "
        "parameter, module, input.",
    ),
)
