"""What a patient is like: the network, the optimizer, the data and the fault, drawn from a seed."""

from dataclasses import dataclass
from typing import Any

import torch

HEALTHY = "healthy"
FAULTS: tuple[str, ...] = (
    "dying_relus",
    "vanishing",
    "exploding",
    "bad_sample",
    "frozen_layer",
    "detached_branch",
    "norm_in_eval",
    "forgotten_hook",
    "rate_too_high",
    "shuffled_labels",
)
# Learning rates from which these networks learn, and those that throw the weights about, by optimizer.
_RATES = {"sgd": (0.05, 0.12), "momentum": (0.015, 0.03), "adam": (3e-3, 7e-3)}
_TOO_HIGH = {"sgd": (3.0, 9.0), "momentum": (2.0, 5.0), "adam": (0.25, 0.6)}


class Dice:
    """Random choices from numbers that are mixed to a seed, apart from the global random number generator."""

    def __init__(self, *numbers: int) -> None:
        mixed = 0
        for number in numbers:
            mixed = (mixed * 1_000_003 + number + 0x9E3779B9) % 2**62
        self.generator = torch.Generator().manual_seed(mixed)

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def number(self, low: float, high: float) -> float:
        """Return a number from `low` to `high`, its logarithm uniform."""
        return low * (high / low) ** float(torch.rand((), generator=self.generator))

    def one(self, *options: Any) -> Any:
        """Return one of the options."""
        return options[self.between(0, len(options) - 1)]

    def chance(self, share: float) -> bool:
        """Return True in this share of all cases."""
        return float(torch.rand((), generator=self.generator)) < share


@dataclass(frozen=True)
class Chart:
    """All that determines a patient; its initial values, its batches and details of its fault follow from `seed`."""

    seed: int
    fault: str
    images: bool  # a CNN on images, else an MLP on vectors
    features: int  # of a vector, or channels of an image
    classes: int
    width: int
    depth: int  # hidden layers
    activation: str
    norm: str  # "batch", "layer" or "none"
    residual: bool
    fork: bool  # the last hidden layer has two branches
    standardised: bool  # the model first standardises each sample
    watched: bool  # somebody left a hook that changes nothing
    asleep: bool  # comes in eval mode, though nothing in it knows modes
    names: int
    optimizer: str
    rate: float
    steps: int
    batch: int


def draw(seed: int, fault: str) -> Chart:
    """Return the chart of a patient with this fault.

    Faults leave to chance what they can, so that no kind of network, size or optimizer betrays one: every kind of
    patient is found among the healthy ones, too.
    """
    dice = Dice(seed, 1)
    by_depth = fault in (
        "vanishing",
        "exploding",
    )  # they need many layers, with nothing between that mends it
    deep = dice.chance(0.15) or by_depth
    images = dice.chance(0.3) and not deep
    norm = dice.one("batch", "batch", "none") if images else dice.one("batch", "layer", "none")
    activation = dice.one("relu", "relu", "gelu", "tanh")
    optimizer = dice.one(*_RATES)
    match fault:
        case "dying_relus":
            activation = "relu"
        case "norm_in_eval":
            norm = "batch"
        case "vanishing":  # Adam scales small gradients up, and the loss may fall all the same
            norm, optimizer = "none", dice.one(*_RATES, "adam", "adam")
        case "rate_too_high":  # a batch norm behind each layer makes up for Adam's long steps
            optimizer = "momentum" if (norm, optimizer) == ("batch", "adam") else optimizer
        case "exploding":  # a saturated tanh hides it from the loss
            norm, activation = "none", dice.one("relu", "gelu", "tanh", "tanh", "tanh")
    rate = dice.number(*(_TOO_HIGH if fault == "rate_too_high" else _RATES)[optimizer])
    if images and optimizer != "adam" and fault != "rate_too_high":
        rate *= 0.4  # the head of a CNN has many inputs, none of them negative: steps in it reach further
    depth = dice.between(7, 9) if deep else dice.between(2, 3) if images else dice.between(2, 4)
    if (fault, activation) == ("exploding", "tanh"):
        depth += 1  # each saturated layer adds less than another would
    return Chart(
        seed=seed,
        fault=fault,
        images=images,
        features=dice.between(1, 2) if images else dice.between(10, 24),
        classes=dice.between(3, 5),
        width=dice.one(6, 8, 10) if images else dice.one(24, 32, 40),
        depth=depth,
        activation=activation,
        norm=norm,
        residual=dice.chance(0.3) and not by_depth,
        fork=fault == "detached_branch" or (dice.chance(0.3) and not by_depth),
        standardised=dice.chance(0.3),
        watched=dice.chance(0.5 if fault == HEALTHY else 0.3),
        asleep=norm == "none" and dice.chance(0.2),
        names=dice.between(0, 3),
        optimizer=optimizer,
        rate=rate,
        steps=dice.between(30, 40),
        batch=dice.one(16, 24, 32),
    )
