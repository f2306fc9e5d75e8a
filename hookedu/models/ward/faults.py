"""What is wrong with a patient, by the place where it is done: the data, the network, its values, the optimizer."""

from typing import Any

import torch
from torch import Tensor, nn

from hookedu.models.ward.charts import Chart, Dice
from hookedu.models.ward.networks import Layer, Norm, Path, layers_of, norms_of

# Factors of all hidden weights. A tanh saturates, and then multiplies gradients by much less than its weights.
_VANISHING = {"relu": 0.3, "gelu": 0.3, "tanh": 0.22}
_EXPLODING = {"relu": 2.6, "gelu": 2.6, "tanh": 16.0}


def spoil(batches: list[tuple[Tensor, Tensor]], chart: Chart) -> list[tuple[Tensor, Tensor]]:
    """Return the data of a patient with what is wrong with them."""
    dice = Dice(chart.seed, 5)
    if chart.fault == "shuffled_labels":
        labels = torch.cat([labels for _, labels in batches])
        labels = labels[torch.randperm(len(labels), generator=dice.generator)]
        return [(x, y) for (x, _), y in zip(batches, labels.split(chart.batch), strict=True)]
    if chart.fault == "bad_sample":
        inputs, _ = batches[dice.between(chart.steps // 4, chart.steps * 3 // 4)]
        sample = inputs[dice.between(0, chart.batch - 1)].view(-1)
        if chart.standardised:
            sample.fill_(dice.one(0.0, 1.0))  # nothing wrong to see, but its standard deviation is zero
        else:
            sample[dice.between(0, len(sample) - 1)] = dice.one(float("nan"), float("inf"))
    return batches


def path_of(chart: Chart) -> Path:
    """Return what joins the right branch of a fork to the rest of the network."""
    return Tensor.detach if chart.fault == "detached_branch" else Tensor.contiguous


def infect(model: nn.Module, chart: Chart) -> None:
    """Do to a model what is wrong with its values, modes and hooks, and what only looks wrong."""
    dice = Dice(chart.seed, 6)
    *hidden, last = layers_of(model)
    if chart.watched:
        dice.one(*hidden).register_forward_hook(_look)
    if chart.asleep:
        model.eval()
    with torch.no_grad():
        match chart.fault:
            case "dying_relus":
                _kill(dice, hidden, norms_of(model))
            case "vanishing" | "exploding":
                factors = _VANISHING if chart.fault == "vanishing" else _EXPLODING
                for layer in hidden:
                    layer.weight *= factors[chart.activation]
            case "frozen_layer":
                if dice.chance(0.5):  # else the optimizer lacks it; mostly people freeze the first
                    dice.one(hidden[0], hidden[0], *hidden[1:], last).requires_grad_(False)
            case "norm_in_eval":
                _let_sleep(dice, norms_of(model))
            case "forgotten_hook":
                _hook(dice, dice.one(*hidden[1:]))  # behind the first, which has no gradient to pass on


def optimizer_of(model: nn.Module, chart: Chart) -> torch.optim.Optimizer:
    """Return the optimizer of a patient, which may lack a layer."""
    lacks: set[int] = set()
    if chart.fault == "frozen_layer" and all(p.requires_grad for p in model.parameters()):
        lacks = {id(p) for p in Dice(chart.seed, 7).one(*layers_of(model)).parameters()}
    parameters = [p for p in model.parameters() if id(p) not in lacks]
    if chart.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=chart.rate)
    return torch.optim.SGD(parameters, lr=chart.rate, momentum=0.9 if chart.optimizer == "momentum" else 0.0)


def _kill(dice: Dice, hidden: list[Layer], norms: list[Norm]) -> None:
    """Push the units of a layer so far below zero that no input lifts them; one in ten stays alive."""
    bias: Any = dice.one(*(norms or hidden)).bias
    order = torch.randperm(len(bias), generator=dice.generator)
    bias[order[max(1, len(bias) // 10) :]] = -dice.number(12, 20)


def _let_sleep(dice: Dice, norms: list[Norm]) -> None:
    """Let all normalisations, or one, use the statistics of other data."""
    chosen: list[Any] = norms if dice.chance(0.5) else [dice.one(*norms)]
    for norm in chosen:
        norm.eval()
        norm.running_mean.normal_(std=dice.number(0.7, 1.5), generator=dice.generator)
        norm.running_var.fill_(dice.one(dice.number(0.1, 0.3), dice.number(4, 10)))


def _hook(dice: Dice, layer: nn.Module) -> None:
    match dice.between(0, 3):
        case 0:
            layer.register_forward_hook(_shrink)
        case 1:
            layer.register_forward_hook(_clamp)
        case 2:
            layer.register_forward_pre_hook(_cut_out)
        case 3:
            layer.register_full_backward_hook(_damp)


def _look(module: nn.Module, args: Any, output: Tensor) -> None:
    output.detach().mean()


def _shrink(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return 0.1 * output


def _clamp(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return output.clamp(-0.5, 0.5)


def _cut_out(module: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
    x = args[0].clone()
    x[:, ::2] = 0
    return (x,)


def _damp(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
    return tuple(None if grad is None else 0.01 * grad for grad in grad_input)
