"""What is observed of 15.1, `instruments(model)`: its rows after each of several runs of a model."""

from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import GRAD, HANDLES
from hookedu.exercises.probes.chain import _ignore
from hookedu.exercises.probes.lesson_15.shared import (
    Names,
    Net,
    as_before,
    entered,
    entries,
    grad_modes,
    hooks_left,
    raised,
)
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, gradients, linear, whole

_WORDS: tuple[str, ...] = ("lift", "mix", "tap", "fold", "join", "turn", "spread", "pick", "sum_up", "bend")
_NAMES = (
    "manager",
    "early",
    "on",
    "forward",
    "first",
    "rows",
    "out",
    "grads",
    "other",
    "branches",
    "resumed",
    "at_once",
    "unusual",
    "spoilt",
    "late",
    "left",
    "raised",
    "modes",
    "own",
)


SMALL = 2.0**-10  # what the loss of the unusual model is multiplied by: its gradients are no round numbers


class Case(NamedTuple):
    """Names, weights of the layers by name, two inputs; whether the side branch is cut, and the stem is frozen."""

    names: Names
    weights: dict[str, torch.Tensor]
    x: torch.Tensor
    other_x: torch.Tensor
    cut: bool
    frozen: bool


def make_case(rng: Draw) -> Case:
    """Return a case; the branch is cut in turn 1, the stem is frozen in turn 2."""
    names = Names(*rng.sample(_WORDS, 8))
    inner = f"{names.body}.{names.inner}"
    weights = {name: whole(rng, 9).reshape(3, 3) / 8 for name in (names.stem, names.side, inner, names.head)}
    while True:
        x, other = whole(rng, 6).reshape(2, 3), whole(rng, 9).reshape(3, 3)
        stem = [value @ weights[names.stem].T for value in (x, other)]
        # Each ReLU lets some numbers through and stops others, so that its output is not its input.
        hidden = [(value.relu() @ weights[inner].T) for value in stem]
        if all(0 < (value > 0).sum() < value.numel() for value in (*stem, *hidden)):
            return Case(names, weights, x, other, rng.turn == 1, rng.turn == 2)
        weights = {name: whole(rng, 9).reshape(3, 3) / 8 for name in weights}


def make_model(case: Case) -> Net:
    """Build the model, with hooks of others on it."""
    names, weights = case.names, case.weights
    body = nn.Sequential()
    body.add_module(names.inner, linear(weights[f"{names.body}.{names.inner}"]))
    body.add_module(names.gate, nn.ReLU())
    layers: dict[str, nn.Module] = {
        name: linear(weights[name]) for name in (names.stem, names.side, names.head)
    }
    layers |= {names.body: body, names.act: nn.ReLU(inplace=True), names.spare: nn.Linear(3, 3)}
    model = Net(names, layers, case.cut)
    for module in model.modules():
        module.register_forward_hook(_ignore)
    model.get_parameter(f"{names.head}.weight").register_hook(_ignore)
    for param in model.get_submodule(names.stem).parameters():
        param.requires_grad_(not case.frozen)
    return model


class Refused(Exception):
    """Raised by a model in the middle of a call."""


class Fork(nn.Module):
    """A model that runs one of two layers in a call, or raises; `look` is called when a layer has run before that."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 3)
        self.look: Any = None

    def forward(self, x: torch.Tensor, branch: str) -> torch.Tensor:
        if branch == "neither":
            self.right(x)
            self.look()
            raise Refused
        return self.get_submodule(branch)(x)


class Swish(nn.Module):
    """An activation function of one's own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.sigmoid()


class Block(nn.Module):
    """A container with a forward of its own; its convolution is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.swish, self.norm = nn.Conv2d(2, 2, 1), Swish(), nn.LayerNorm(3)
        self.conv.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.norm(self.swish(self.conv(x)))


def make_unusual(case: Case) -> tuple[nn.Module, torch.Tensor]:
    """Build a model in evaluation mode whose layers are of many types, and its input; outputs have four dimensions."""
    model = nn.Sequential(nn.Conv2d(1, 2, 1), Block(), nn.Dropout(), nn.Conv2d(2, 1, 1))
    for parameter in model.parameters():
        parameter.data = torch.linspace(-1, 2, parameter.numel()).reshape(parameter.shape)
    return model.eval(), case.x.reshape(1, 1, 2, 3)


def loss_of(out: torch.Tensor) -> torch.Tensor:
    """Return the loss of one run."""
    return out.square().sum() / 4


def observe(instruments: Any, case: Case) -> dict[str, Any]:
    """Train for a step; run in evaluation mode without gradients; go back once through two runs, then through one of two.

    The loss of that one is multiplied by 0. Another model runs in the block as well. Then a run after the block, and blocks
    that end by an exception. A model of its own runs different layers in each call, and raises in one. Another has
    layers of many types, and small gradients; the last, a number that is nan.
    """
    saw: dict[str, Any] = dict.fromkeys(_NAMES)
    model, another = make_model(case), nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    return saw | _observed(instruments, case, model, another, hooks_left(model))


def _observed(instruments: Any, case: Case, model: Net, another: nn.Module, before: int) -> dict[str, Any]:
    manager = instruments(model)
    is_manager, rows = entered(manager)
    if not is_manager:
        return {"manager": False}
    saw: dict[str, Any] = {"manager": True, "early": entries(rows), "on": hooks_left(model) - before}
    try:
        out = model(case.x.clone())
        saw |= {"out": copies(out), "forward": entries(rows)}
        loss_of(out).backward()
        saw |= {"first": entries(rows), "grads": copies(gradients(model))}
        loss_of(another(case.x)).backward()
        saw["other"] = entries(rows)
        model.eval()
        with torch.no_grad():
            model(case.other_x.clone())
        model.train()
        one, two = model(case.x.clone()), model(case.other_x.clone())
        (loss_of(one) + 3 * loss_of(two)).backward()
        one, _ = model(2 * case.x), model(case.x.clone())
        (0 * loss_of(one)).backward()
        saw["rows"] = entries(rows)
    except BaseException as error:
        manager.__exit__(type(error), error, error.__traceback__)
        raise
    manager.__exit__(None, None, None)
    saw["left"] = hooks_left(model) - before
    loss_of(model(case.x.clone())).backward()
    saw["late"] = len(rows) if isinstance(rows, list) else None
    fresh = make_model(case)
    saw["raised"] = raised(lambda: instruments(fresh), lambda: hooks_left(fresh))
    saw["modes"], kept = grad_modes(lambda: instruments(fresh)), entries(rows)
    saw |= _forked(instruments, case.x) | {"unusual": _unusual(instruments, case)}
    return saw | {"spoilt": _spoilt(instruments, case.x), "own": as_before(rows, kept)}


def _unusual(instruments: Any, case: Case) -> Any:
    """Return the rows of a step of the unusual model."""
    model, x = make_unusual(case)
    with instruments(model) as rows:
        (SMALL * loss_of(model(x))).backward()
        return entries(rows)


def _spoilt(instruments: Any, x: torch.Tensor) -> dict[str, Any]:
    """Return the pair of a layer whose input holds a nan and whose loss is multiplied by it, and a gradient of its weight."""
    layer, bad = nn.Linear(3, 1), x.detach().clone()
    model, bad[0, 0] = nn.Sequential(layer), torch.nan
    with instruments(model) as rows:
        (model(bad) * torch.nan).sum().backward()
        pairs = rows[-1].values() if isinstance(rows, list) and rows and isinstance(rows[-1], dict) else []
        reading = entries([pair for pair in pairs if isinstance(pair, list | tuple)][:1])
    grad = layer.weight.grad
    return {"reading": reading, "grad": "None" if grad is None else f"{grad[0, 1].item()}"}


def _forked(instruments: Any, x: torch.Tensor) -> dict[str, Any]:
    """Return the layers in each row of two calls, and in the last row when a call has raised and another has followed."""
    fork, held, at_once = Fork(), [], []
    fork.look = lambda: at_once.extend(_readings(held[0]))
    with instruments(fork) as rows:
        held.append(rows)
        for branch in ("left", "right"):
            fork(x, branch)
        branches = _layers(rows)
        try:
            fork(x, "neither")
        except Refused:
            fork(x, "left")
        # What the call that raised has added is left open.
        resumed = _layers(rows)[len(branches) :][-1:]
        return {"branches": branches, "resumed": resumed, "at_once": at_once}


def _readings(rows: Any) -> list[Any]:
    """Return for each layer in the row of the third call its name and whether the norm of its activation is there."""
    last = rows[-1] if isinstance(rows, list) and len(rows) > 2 and isinstance(rows[-1], dict) else {}
    return [[str(name), isinstance(pair, list | tuple) and pair[:1] != [None]] for name, pair in last.items()]


def _layers(rows: Any) -> list[Any]:
    """Return the layers in each row."""
    return [[*row] for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


PROBE = Probe("15.1", "instruments", make_case, observe, cases=3, leaves=(HANDLES, GRAD), yields=True)
