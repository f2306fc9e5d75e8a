"""Monitor: statistics of every layer at every step of a training run, from hooks alone."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from hookedu.hooks.modules import modules_by_name, unwrap
from hookedu.hooks.stats import Stats
from hookedu.hooks.tensors import described, real, tensors_in
from hookedu.language import Text


@dataclass
class Reading:
    """What a layer did in one step.

    Attributes
    ----------
    step : int
        Number of the step, from 0.
    layer : str
        Name of the layer.
    mean, std : float
        Of the numbers that it put out; nan if one of them is nan or inf.
    dead : float or None
        Of a ReLU, the share of units (channels, or elements of the last dimension) that were positive for no sample;
        nan as above, None for any other layer.
    gradient : float or None
        Norm of the gradient of the loss with respect to its output; None if none arrived.
    ratio : float or None
        Norm of what the step added to its own parameters, divided by their norm before; None if it has no parameters, if
        they were 0, or if no step was made.
    """

    step: int
    layer: str
    mean: float
    std: float
    dead: float | None = None
    gradient: float | None = None
    ratio: float | None = None


@dataclass(frozen=True)
class Source:
    """Where the first nan or inf came out: the step, the layer (the first in the order of running), and the sample."""

    step: int
    layer: str
    sample: int


class Monitor:
    """Context manager that notes a `Reading` per layer and step while a model trains.

    Layers are the modules without children. A step ends with ``optimizer.step()``; of several calls of a layer in one
    step the last counts. Calls in which gradients are off, such as those of a validation, are not noted. Every number is
    fetched at once, which on a GPU makes each hook wait for it.

    Parameters
    ----------
    model : torch.nn.Module
        The model that is trained.
    optimizer : torch.optim.Optimizer
        The optimizer that trains it.

    Attributes
    ----------
    source : Source or None
        The first nan or inf.
    losses : dict of int to float
        The losses that were noted, by step.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._layers = {
            name: module for name, module in modules_by_name(unwrap(model)).items() if not module._modules
        }
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(str(NOT_AN_OPTIMIZER.format(got=type(optimizer).__name__)))
        self._optimizer = optimizer
        self._handles: list[Any] = []
        self._before: dict[str, list[torch.Tensor]] = {}
        self._clear()

    def __reduce__(self) -> tuple[Any, ...]:
        """Deepcopy and pickle of the model copy its hooks, too; those of the copy note nothing."""
        return _idle, ()

    def _clear(self) -> None:
        self.steps = 0
        self.source: Source | None = None
        self.losses: dict[int, float] = {}
        self._done: list[Reading] = []
        self._current: dict[str, Reading] = {}

    @property
    def rows(self) -> list[Reading]:
        """The readings so far, those of the current step included, by step and in the order of running."""
        return [*self._done, *self._current.values()]

    def note(self, loss: float | torch.Tensor) -> None:
        """Note the loss of the step whose layers ran last, before or after ``optimizer.step()``."""
        self.losses[self.steps if self._current else max(self.steps - 1, 0)] = _number(loss)

    def __enter__(self) -> "Monitor":
        if self._handles:
            raise RuntimeError(str(RUNS_ALREADY))
        self._clear()
        try:
            for name, module in self._layers.items():
                self._handles.append(module.register_forward_hook(partial(self._forward, name)))
            self._handles.append(self._optimizer.register_step_pre_hook(self._begin))
            self._handles.append(self._optimizer.register_step_post_hook(self._end))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        while self._handles:
            self._handles.pop().remove()
        self._before.clear()

    def _forward(self, name: str, module: nn.Module, args: Any, output: Any) -> None:
        if not self._handles:  # a copy
            return
        tensor = next(tensors_in(output), None)
        if not torch.is_grad_enabled() or tensor is None or not tensor.is_floating_point():
            return
        with torch.no_grad():
            stats, dead = Stats(tensor), None
            mean, std = stats.mean, stats.std
            if isinstance(module, nn.ReLU):
                dead = _dead_share(tensor)
            if stats.nan + stats.inf:
                mean, std, dead = torch.nan, torch.nan, None if dead is None else torch.nan
                self.source = self.source or Source(self.steps, name, _first_bad(tensor))
        reading = Reading(self.steps, name, mean, std, dead)
        self._current.pop(name, None)  # the last call counts, also for the order
        self._current[name] = reading
        if tensor.requires_grad:
            tensor.register_hook(partial(_note_gradient, reading))

    def _begin(self, *_: Any) -> None:
        self._before = {
            name: [param.detach().clone() for param in module.parameters(recurse=False)]
            for name, module in self._layers.items()
        }

    def _end(self, *_: Any) -> None:
        for name, reading in self._current.items():
            before = self._before.get(name, [])
            now = [param.detach() for param in self._layers[name].parameters(recurse=False)]
            size = _norm(before)
            if size:
                reading.ratio = _norm([real(new - old) for new, old in zip(now, before, strict=True)]) / size
        self._done += self._current.values()
        self._current = {}
        self.steps += 1


def _number(loss: Any) -> float:
    """Return a number of any kind (of PyTorch, NumPy, a fraction) as one of Python's."""
    try:
        value = loss.item() if hasattr(loss, "item") else loss
        if not isinstance(value, str | bytes):
            return float(value)  # refuses complex numbers
    except Exception:  # several numbers, none that could be read, ...
        pass
    raise TypeError(str(NO_NUMBER.format(got=described(loss))))


def _idle() -> Monitor:
    """Return a monitor of nothing, for the hooks of a copied model."""
    monitor = Monitor.__new__(Monitor)
    monitor._handles = []
    return monitor


def _note_gradient(reading: Reading, grad: torch.Tensor) -> None:
    reading.gradient = real(grad.detach()).norm().item()


def _norm(tensors: list[torch.Tensor]) -> float:
    """Return the norm of all tensors together."""
    return sum(real(tensor).norm().item() ** 2 for tensor in tensors) ** 0.5


def _dead_share(output: torch.Tensor) -> float:
    units = (
        output.transpose(0, 1 if output.dim() in (4, 5) else -1).flatten(1) if output.dim() > 1 else output
    )
    return 1 - (units > 0).any(-1).float().mean().item()


def _first_bad(output: torch.Tensor) -> int:
    bad = ~output.isfinite()
    return int(bad.nonzero()[0, 0]) if output.dim() else 0


NO_NUMBER = Text(
    zh="损失应当是一个实数，例如只有一个数的张量，得到的是 {got}；一批的损失请取平均：`loss.mean()`。",
    en="a loss to note is a single real number, such as a tensor of one number; got {got}. Of the losses of a batch give the "
    "mean: `loss.mean()`.",
)
NOT_AN_OPTIMIZER = Text(
    zh="第二个参数需要一个 `torch.optim.Optimizer`，得到的是 `{got}`",
    en="the second argument must be a `torch.optim.Optimizer`, got `{got}`",
)
RUNS_ALREADY = Text(
    zh="它已经在 `with` 里了；另一次训练请另建一个",
    en="it is in use in a `with` already; make another one for another run",
)
