"""What is observed of 06.4, `standardise(conv)`: a convolution before and after one step of training."""

from collections import namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import ATTRIBUTES, HANDLES
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import copies

RATE = 0.5  # of the step of training
LOADED = -2  # times the weight is what is loaded into a frozen layer

# Of a convolution with 3 output channels, without a bias in turn 1; g weights its loss; whether the weight is frozen, and
# loaded anew instead of trained; "eval" or "no_grad", in which the layer is called after training, and its second backward
# pass runs in evaluation mode too.
Case = namedtuple("Case", "weight bias padding x g frozen setting")


def make_case(rng: Draw) -> Case:
    """Return a case of which only channel 0 is ordinary.

    Channel 1 is constant and the weights of channel 2 are tiny, so that the 1e-5 of the formula matters: without it
    channel 1 becomes nan, and in another position it changes channel 2. In turn 1 the weights of channel 2 differ in
    digits that only float64 holds.
    """

    def numbers(*shape: int, low: int = -9) -> torch.Tensor:
        values = [float(rng.randint(low, 9)) for _ in range(torch.Size(shape).numel())]
        return torch.tensor(values).reshape(shape)

    kernel, padding = ((1, 4), (0, 1)) if rng.turn == 2 else ((2, 2), 0)
    weight = numbers(3, 2, *kernel, low=1)
    weight[:, 0, 0, 0], weight[:, 0, 0, 1] = 11.0, -12.0  # neither variance nor mean is 0
    # Small: with a variance of 0, rounding counts for 300 times as much.
    weight[1] = weight[1, 1, 0, 1] / 2**6
    weight[2] /= 2**12
    # With padding the output has 3 rows.
    x, g = (
        numbers(1, 2, 3, 3),
        numbers(1, 3, 3 if rng.turn == 2 else 2, 2),
    )
    if rng.turn == 1:
        weight, x, g = weight.double(), x.double(), g.double()
        weight[2] = 2**24 + 1 + 2**13 * weight[2]  # odd
    bias, setting = None if rng.turn == 1 else numbers(3), ["", "eval", "no_grad", ""][rng.turn]
    return Case(weight, bias, padding, x, g, rng.turn == 3, setting)


def _conv(case: Case, weight: torch.Tensor) -> nn.Conv2d:
    """Return a convolution of this case with these weights."""
    has_bias, kernel = case.bias is not None, (weight.shape[2], weight.shape[3])
    conv = nn.Conv2d(2, 3, kernel, padding=case.padding, bias=has_bias, dtype=weight.dtype)
    conv.load_state_dict({"weight": weight} | ({"bias": case.bias} if has_bias else {}))
    conv.weight.requires_grad_(not case.frozen)
    return conv


def _raw(conv: nn.Conv2d) -> nn.Parameter | None:
    return dict(conv.named_parameters()).get("weight_raw")


def _again(conv: nn.Conv2d, case: Case) -> Any:
    """Return the gradient of a second forward and backward pass, after a call without gradients, or what is raised."""
    before = {parameter: parameter.grad for parameter in conv.parameters()}
    conv.train(case.setting != "eval").zero_grad()
    with torch.no_grad():
        conv(case.x)
    try:
        (conv(case.x) * case.g).sum().backward()
        raw = _raw(conv)
        return copies(raw.grad) if raw is not None else None
    except RuntimeError as error:
        return f"RuntimeError: {error}"
    finally:
        conv.train()
        for parameter, grad in before.items():
            parameter.grad = grad


def observe(standardise: Any, case: Case) -> dict[str, Any]:
    """Call the layer, train it for one step, call it again, also in training mode, and without the hook."""
    conv, other = _conv(case, case.weight), _conv(case, case.weight.flip(0))
    if conv.bias is not None:
        conv.bias.grad = torch.ones_like(conv.bias)
    conv.register_forward_pre_hook(lambda module, args: None)  # of somebody else
    weight, bias = conv.weight, conv.bias
    handle, handle_of_other = standardise(conv), standardise(other)
    named = dict(conv.named_parameters())
    raw = named.get("weight_raw")
    saw = {
        "handle": handle,
        "parameters": {name: parameter.requires_grad for name, parameter in sorted(named.items())},
        "start": copies(raw),
        "kept": raw is weight,
        "kept_bias": conv.bias is bias,
        "after": bool(conv._forward_hooks),
    }
    output = conv(case.x)
    new = dict(conv.named_parameters()).keys() - named.keys()
    saw["saved"] = sorted(conv.state_dict().keys() - new)
    saw |= {"output": copies(output), "new_parameter": bool(new), "raw": copies(raw)}
    saw |= dict.fromkeys(("gradient", "gradient_later", "again", "in_training", "after_removal"))
    if not isinstance(output, torch.Tensor) or output.shape != case.g.shape or not output.requires_grad:
        return saw
    conv.zero_grad()
    (output * case.g).sum().backward()
    saw["gradient"] = copies(raw.grad) if raw is not None else None
    saw["gradient_later"] = _again(conv, case)
    if case.setting == "no_grad":
        with torch.no_grad():  # what a hook keeps from this call is old after the step
            conv(case.x)
    with torch.no_grad():  # one step of an optimizer that was created after standardise()
        for parameter in named.values():
            if parameter.grad is not None:  # through `.data` a tensor's _version stays what it was
                (parameter.data if case.setting == "no_grad" else parameter).sub_(RATE * parameter.grad)
    if case.frozen:
        conv.load_state_dict({"weight_raw": LOADED * case.weight}, strict=False, assign=True)
    conv.train(case.setting != "eval")
    with torch.set_grad_enabled(case.setting != "no_grad"):
        saw["again"] = copies(conv(case.x))
    saw["in_training"] = copies(conv.train()(case.x))
    with torch.no_grad():
        for one in (handle, handle_of_other):
            remove_handle(one)
        if (raw := _raw(conv)) is not None:
            raw.mul_(-1)  # without the hook the weights are not recomputed: same output
        saw["after_removal"] = copies(conv(case.x))
    return saw


PROBE = Probe(
    "06.4",
    "standardise",
    make_case,
    observe,
    cases=4,
    leaves=(HANDLES, ATTRIBUTES),  # the parameter gets another name
)
