"""What is observed of 12.4, `forecast(build, shape)`: its number, and how it built and ran the model."""

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode
from torch.utils import _device

from hookedu.exercises.conduct import Interruption, Stopped
from hookedu.exercises.probes.lesson_12.shared import hooks_on, taken_off
from hookedu.exercises.probing import Draw, Probe


class Case(NamedTuple):
    """Which model, and its sizes."""

    kind: str
    batch: int
    width: int
    hidden: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the input."""
        shapes = {
            "attention": (self.batch, 3, self.width),
            "pictures": (self.batch, self.width, 4, 4),
        }
        return shapes.get(self.kind, (self.batch, self.width))

    @property
    def lasting(self) -> bool:
        """Whether the default device is that of the whole program."""
        return self.kind in ("pictures", "scaled")

    def build(self) -> nn.Module:
        """Build the model, on whatever device is the default."""
        return _BUILD[self.kind](self.width, self.hidden)


def make_case(rng: Draw) -> Case:
    """Return a case; in turn 0, batch and width are equal, so that outputs have the shape of a weight.

    The places that a `MaxPool2d` saves never have as many bytes as the input.
    """
    batch, width, hidden = rng.sample(range(4, 10, 2), 3)
    if hidden == 2 * width:
        width, hidden = hidden, width
    return Case(list(_BUILD)[rng.turn], width if rng.turn == 0 else batch, width, hidden)


def _stack(width: int, hidden: int) -> nn.Module:
    """Return layers that save each other's outputs again, also one that changes them in place, and dropout in eval mode."""
    return nn.Sequential(
        nn.Linear(width, hidden),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(hidden, width),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5).eval(),
        nn.Linear(width, width, bias=False),
        nn.Tanh(),
    )


def _pictures(width: int, hidden: int) -> nn.Module:
    """Return layers that save buffers and indices, the first two in a block of their own."""
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(width, hidden, 3, padding=1), nn.BatchNorm2d(hidden)),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * hidden, 3),
    )


class _Attention(nn.Module):
    """Queries, keys and values are slices of one tensor; returns a tuple."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.project, self.norm = nn.Linear(width, 3 * hidden), nn.LayerNorm(hidden)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        query, key, value = self.project(x).chunk(3, dim=-1)
        weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
        return self.norm(weights @ value), weights


class _Scaled(nn.Module):
    """Does something to the input for which autograd would save it, if it required gradients; its buffer is not in the state_dict."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.layer, self.frozen = nn.Linear(width, hidden), nn.Linear(hidden, hidden)
        self.frozen.requires_grad_(False)
        self.scale: torch.Tensor
        self.register_buffer("scale", torch.ones(hidden), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x.sin())
        return self.frozen(x * self.scale)[:, :2].sigmoid()


def _squared(module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
    return output * output


class _Shared(nn.Module):
    """Weights are views of one parameter, of which a third part is never used; what is detached has no `_base`.

    A hook squares the output.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.flat = nn.Parameter(torch.ones(3 * width * width))
        self.register_forward_hook(_squared)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second, _ = self.flat.view(3, x.shape[1], x.shape[1])
        wide = 2 * (x @ first)
        return (wide.relu() @ second.t()) * wide[:, :1].detach() * first[0].detach()


_BUILD: dict[str, Callable[[int, int], nn.Module]] = {
    "stack": _stack,
    "pictures": _pictures,
    "attention": _Attention,
    "scaled": _Scaled,
    "shared": _Shared,
}


DEFAULT = (
    "cpu:0"  # the default device of before; nobody who puts back a device of their own comes upon this name
)


class _Watched:
    """Builds the model of a case and notes how it is built and run; may raise an exception in either."""

    def __init__(self, case: Case, error: type[BaseException] | None = None, where: str = "") -> None:
        self.case, self.error, self.where = case, error, where
        self.built, self.ran, self.made = [], [], []

    def build(self) -> nn.Module:
        model = self.case.build()
        self.built.append(sorted({str(p.device) for p in model.parameters()}))
        self.made.append(weakref.ref(next(model.parameters())))
        if self.where == "build" and self.error:
            raise self.error("in build")
        modes = [module.training for module in model.modules()]
        model.register_forward_pre_hook(partial(self._note, modes))
        return model

    def _note(self, modes: list[bool], model: nn.Module, args: tuple[Any, ...]) -> None:
        x, *more = args
        device = {str(t.device) for t in (x, *model.parameters())}
        self.ran.append(
            {
                "devices": sorted(device),
                "input": [str(x.dtype).removeprefix("torch."), list(x.shape), len(more)],
                "requires_grad": x.requires_grad,
                "modes": modes == [module.training for module in model.modules()],
                "grad": torch.is_grad_enabled() and not torch.is_inference_mode_enabled(),
            }
        )
        if self.where == "model" and self.error:
            raise self.error("in the model")


def _alive(made: list[Any]) -> int:
    """Return how many models are still held by something, also after Python has looked for rings."""
    if any(parameter() is not None for parameter in made):
        gc.collect()
    return sum(parameter() is not None for parameter in made)


def _state() -> tuple[str, bool]:
    """Return what every later line of the notebook would notice: the default device, and hooks in force."""
    return str(torch.get_default_device()), hooks_on() is not None


@contextlib.contextmanager
def _default(lasting: bool) -> Iterator[None]:
    """Make DEFAULT the default device, as a `with` does, or, `lasting`, for the whole program.

    Only the lasting one is lost to whoever ends with `set_default_device(None)`. At the end all is as it was: PyTorch
    would mix up the two kinds if an answer sets another device inside a `with` and does not take it off.
    """
    program, current = torch._GLOBAL_DEVICE_CONTEXT, _device.CURRENT_DEVICE
    older, modes = getattr(program, "device_context", None), _get_current_function_mode_stack()
    torch.set_default_device(DEFAULT) if lasting else torch.device(DEFAULT).__enter__()
    try:
        yield
    finally:
        for _ in _get_current_function_mode_stack():
            _pop_mode()
        for mode in modes:
            _push_mode(mode)
        program.device_context, _device.CURRENT_DEVICE = older, current


def observe(forecast: Any, case: Case) -> dict[str, Any]:
    """Ask for the forecast, then raise exceptions in `build` and in the model."""
    watched, states = _Watched(case), []
    if not (frozen := gc.get_freeze_count()):  # the grader has frozen what it brings
        gc.freeze()  # what was there before, or a collection would take long
    with taken_off(), _default(case.lasting):
        number = forecast(watched.build, case.shape)
        after, alive = _state(), _alive(watched.made)
    if not frozen:
        gc.unfreeze()
    for error, where in ((Stopped, "build"), (Interruption, "model")):
        with taken_off(), _default(case.lasting):
            try:
                forecast(_Watched(case, error, where).build, case.shape)
                states.append("swallowed")
            except error:
                states.append(_state())
    seen = {"number": number, "built": watched.built, "ran": watched.ran, "alive": alive}
    return seen | {"after": after, "raised": states}


PROBE = Probe("12.4", "forecast", make_case, observe)
