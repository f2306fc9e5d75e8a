"""Exercise 07.5, `stop_gradient(layer)`: stop the gradient at a layer that itself goes on learning."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.lesson_07.shared import (
    NO_HANDLE,
    RETURNS_TENSOR,
    THREE_ARGUMENTS,
    WRONG_SIZE,
    linear,
    quiet,
)
from hookedu.exercises.observation import show
from hookedu.exercises.probing import remove_handle
from hookedu.exercises.shared import hands_over
from hookedu.exercises.tools import copies, same, whole
from hookedu.language import Text


class _Shift(nn.Module):
    """x + bias, whose backward passes on the very tensor it receives, as that of a residual sum does."""

    def __init__(self, bias: torch.Tensor):
        super().__init__()
        self.bias = nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.bias


def _case(rng: random.Random) -> tuple[nn.Linear, nn.Linear, _Shift, torch.Tensor, torch.Tensor]:
    """Return (front, layer, shift, x, w); x and w have one row per sample, two in all."""
    front, layer, shift = linear(rng, 3, 4), linear(rng, 4, 4), _Shift(whole(rng, 4).repeat(2, 1))
    x, w = (torch.stack([whole(rng, n), whole(rng, n)]) for n in (3, 4))
    return front, layer, shift, x, w


def _probe(stop_gradient: Any, rng: random.Random) -> dict[str, Any]:
    front, layer, shift, x, w = _case(rng)

    def run(loss: torch.Tensor, *weights: torch.Tensor) -> list[torch.Tensor | None]:
        loss.backward()
        grads = [copies(weight.grad) for weight in weights]
        for weight in weights:
            weight.grad = None
        return grads

    with quiet():
        handle = stop_gradient(layer)
        inner, own = run((w * layer(front(x))).sum(), front.weight, layer.weight)
        remove_handle(handle)
        after = run((w * layer(front(x))).sum(), front.weight, layer.weight)

        stop_gradient(shift)
        hidden = front(x)
        skip = run((w * (shift(hidden) + hidden)).sum(), front.weight, shift.bias)

        first = linear(random.Random(0), 3, 4)
        with torch.no_grad():
            first.weight.copy_(front.weight)
        stop_gradient(first)
        try:
            # x does not require grad: grad_input is (None,)
            alone = run((w * first(x)).sum(), first.weight)[0]
        except (TypeError, AttributeError, RuntimeError) as error:
            alone = f"{type(error).__name__}: {error}"[:120]
    return {"inner": inner, "own": own, "after": after, "skip": skip, "alone": alone, "handle": handle}


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    front, layer, _, x, w = _case(rng)
    hidden = x @ front.weight.detach().T
    own, through = w.T @ hidden, (w @ layer.weight.detach()).T @ x
    inner, nothing = saw["inner"], torch.zeros_like(front.weight)
    stopped = inner is None or same(inner, nothing)
    frozen = saw["own"] is None and not stopped
    given = f"h = front(x) == {show(hidden)}; y = layer(h); loss = ({show(w)} * y).sum()"
    return [
        Criterion(
            "own",
            same(saw["own"], own),
            points=1,
            essential=True,
            given=given,
            expected=f"layer.weight.grad == {show(own)}",
            got=f"layer.weight.grad == {show(saw['own'])}",
            mistake="freezes_layer" if frozen else "weights_too",
        ),
        Criterion(
            "stopped",
            stopped,
            points=1,
            essential=True,
            given=given,
            expected=f"front.weight.grad == {show(nothing)}",
            got=f"front.weight.grad == {show(inner)}",
            mistake="nothing_stops",
        ),
        Criterion(
            "skip",
            same(saw["skip"], [w.T @ x, w]),
            points=1,
            given=f"h = front(x) == {show(hidden)}; y = layer(h) + h; loss = ({show(w)} * y).sum()",
            expected=f"front.weight.grad == {show(w.T @ x)}",
            got=f"front.weight.grad == {show(saw['skip'][0])}",
            mistake="in_place",
        ),
        Criterion(
            "first",
            same(saw["alone"], w.T @ x),
            points=1,
            given=f"x = {show(x)} (requires_grad=False); y = layer(x); loss = ({show(w)} * y).sum()",
            expected=f"layer.weight.grad == {show(w.T @ x)}",
            got=show(saw["alone"]),
            mistake="first_layer",
        ),
        hands_over("stop_gradient(layer)", saw["handle"], same(saw["after"], [through, own])),
    ]


STOP_GRADIENT = Exercise(
    id="07.5",
    title=Text(zh="让梯度停在一层", en="Stop the gradient at a layer"),
    answer="stop_gradient",
    points=5,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="改 `grad_input` 只影响继续往回流的，不影响这一层自己的权重：第 7.6 节演示过。用哪一种钩子能改它？",
            en="Changing `grad_input` touches only what flows on, not the layer's own weights: see section 7.6. Which hook can change it?",
        ),
        Text(
            zh="返回一个元组，每一项换成新的零张量 `torch.zeros_like(grad)`；是 `None` 的一项留作 `None`。不要就地改：别人可能共用同一个张量。",
            en="Return a tuple with a new `torch.zeros_like(grad)` for each entry; a `None` stays `None`. Not in place: others may share "
            "the same tensor.",
        ),
        Text(
            zh="钩子里一行：`return tuple(None if grad is None else torch.zeros_like(grad) for grad in grad_input)`；外面 `return layer.register_full_backward_hook(stop)`。",
            en="One line in the hook: `return tuple(None if grad is None else torch.zeros_like(grad) for grad in grad_input)`; outside, "
            "`return layer.register_full_backward_hook(stop)`.",
        ),
    ),
    mistakes=(
        Mistake(
            "weights_too",
            Text(
                zh="这一层自己的权重也没有梯度了：你改的是 `grad_output`（反向前置钩子，或输出上的张量钩子），它还没有经过这一层。要改 `grad_input`。",
                en="The layer's own weights lost their gradient too: you changed `grad_output` (a backward pre-hook, or a tensor hook on "
                "the output) before it went through the layer. Change `grad_input`.",
            ),
            fails="own",
        ),
        Mistake(
            "freezes_layer",
            Text(
                zh="`requires_grad_(False)` 冻结的是这一层自己，梯度照样从它中间流过去：恰好反了。",
                en="`requires_grad_(False)` freezes the layer itself, and the gradient still flows through it: just the opposite.",
            ),
            fails="own",
        ),
        Mistake(
            "nothing_stops",
            Text(
                zh="前面的层照样收到了梯度。钩子里算出了零，却忘了 `return`？或者钩子没有挂上？",
                en="The layers before it still get their gradient. Did the hook make zeros and forget the `return`? Or was it never hung up?",
            ),
            fails="stopped",
        ),
        Mistake(
            "in_place",
            Text(
                zh="`y = layer(h) + h` 时，捷径上的梯度也没了：要么就地清零改掉了别人共用的张量（第 03 课），要么你的张量钩子挂在输入本身上，而捷径用的也是它。在完整反向钩子里返回一个新的零张量。",
                en="With `y = layer(h) + h` the gradient of the shortcut is gone as well: either zeroing in place changed a tensor that "
                "others share (lesson 03), or your tensor hook sits on the input itself, which the shortcut shares. Return a new "
                "tensor of zeros from a full backward hook.",
            ),
            fails="skip",
        ),
        Mistake(
            "first_layer",
            Text(
                zh="这一层的输入不需要梯度时出了错：那时 `grad_input` 是 `(None,)`，没有什么可以清零，`None` 就留作 `None`。",
                en="It fails where the layer's input needs no gradient: there `grad_input` is `(None,)`, with nothing to zero; leave the "
                "`None` as it is.",
            ),
            fails="first",
        ),
        Mistake(
            "cuts_output",
            Text(
                zh="你把层的**输出**从图上剪掉了，这一层自己也学不到东西，`backward()` 甚至无路可走。要停的是它的输入那一边。",
                en="You cut the layer's **output** out of the graph: now the layer itself cannot learn, and `backward()` has no way to go. "
                "What should stop is the side of its input.",
            ),
            raises=r"does not require grad and does not have a grad_fn",
        ),
        *(RETURNS_TENSOR, WRONG_SIZE, THREE_ARGUMENTS, NO_HANDLE),
    ),
    insight=Text(
        zh="你停在了层的入口：权重的梯度由 `grad_output` 和层的输入算出，用不着 `grad_input`，所以换掉或剪断这一边，权重照常学习。",
        en="You stopped it at the layer's entrance: a weight's gradient is made of `grad_output` and the layer's input, it needs no "
        "`grad_input`, so whatever replaces or cuts that side leaves the weights learning.",
    ),
)
