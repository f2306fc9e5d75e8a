"""The training loop of the ward: the one that everybody writes, with nothing to look through."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Iterable[tuple[Tensor, Tensor]],
    after_step: Callable[[int], object] | None = None,
) -> list[float]:
    """Train for one step per batch and return the losses.

    Parameters
    ----------
    model : torch.nn.Module
        Trained in the mode in which it comes; the loop does not call `model.train()`.
    optimizer : torch.optim.Optimizer
        Makes the steps.
    data : iterable of (torch.Tensor, torch.Tensor)
        Batches of inputs and labels.
    after_step : callable, optional
        Called with the number of the step after each one, when the gradients are still there.

    Returns
    -------
    list of float
        The cross-entropy on each batch, before the step on it.
    """
    losses = []
    for step, (inputs, labels) in enumerate(data):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if after_step is not None:
            after_step(step)
    return losses
