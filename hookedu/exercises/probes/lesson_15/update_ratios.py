"""What is observed of 15.2, `update_ratios(model, optimizer)`: its entries after each of several steps."""

import contextlib
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import GRAD, HANDLES, VALUES
from hookedu.exercises.observation import type_name
from hookedu.exercises.probes.chain import _ignore
from hookedu.exercises.probes.lesson_15.shared import (
    as_before,
    entered,
    entries,
    grad_modes,
    hooks_left,
    raised,
)
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, whole

_WORDS: tuple[str, ...] = ("lift", "mix", "tap", "fold", "join", "turn", "spread", "pick")
_NAMES = (
    "manager",
    "early",
    "on",
    "steps",
    "other",
    "values",
    "returned",
    "given",
    "late",
    "left",
    "raised",
    "resumed",
    "added",
    "modes",
    "own",
)
STEPS = 4
TINY = 2.0**-30  # a gradient whose move is small, but not 0
LOSS = 7.0  # what the closure of the last step returns


class Case(NamedTuple):
    """Names of the five parameters, their values, the gradients of each step, and the kind of the optimizer.

    The second parameter is 0 at first, the third has no gradient at the second step, the fourth is not among those of the
    optimizer until the last step, and the fifth is frozen, and 0 in one turn.
    """

    names: list[str]
    values: list[torch.Tensor]
    grads: list[list[torch.Tensor | None]]
    kind: str


class Plain(torch.optim.Optimizer):
    """Plain gradient descent, which notes whether it was handed a closure: some optimizers call theirs several times."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})
        self.given = False

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        self.given = closure is not None
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    param.sub_(group["lr"] * param.grad)
        return loss


def make_case(rng: Draw) -> Case:
    """Return a case: SGD with momentum and weight decay, Adam, or plain SGD."""
    names = rng.sample(_WORDS, 5)
    shapes = ((2, 3), (3,), (2, 2), (3,), (2,))

    def tensors() -> list[torch.Tensor]:
        return [whole(rng, torch.Size(shape).numel()).reshape(shape) for shape in shapes]

    values = tensors()
    values[0][0, 0] = 0.0  # a parameter may hold zeros
    values[0][1, 2] -= values[0].sum()  # and its numbers may cancel
    values[1] = torch.zeros(3)
    if rng.turn == 2:
        values[2] *= 2.0**-60  # small, but not 0, as its square is not either
    if rng.turn == 1:
        values[4] *= 0.0
    grads: list[list[torch.Tensor | None]] = [list(tensors()) for _ in range(STEPS)]
    grads[1][2] = None
    for grad in grads:
        grad[4] = None
    return Case(names, values, grads, ("momentum", "adam", "plain")[rng.turn])


def make(case: Case) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Build the model, defined in another order than its parameters are handed over, and the optimizer."""
    model = nn.Module()
    for place in (3, 1, 0, 4, 2):
        param = nn.Parameter(case.values[place].clone(), requires_grad=place != 4)
        model.register_parameter(case.names[place], param)
    # It has no name of its own in named_parameters().
    model.register_parameter("tied", getattr(model, case.names[0]))
    model.register_buffer("count", torch.ones(()))
    groups = [
        {"params": [getattr(model, case.names[2])]},
        {"params": [getattr(model, case.names[0]), getattr(model, case.names[1])], "lr": 0.02},
    ]
    if case.kind == "adam":
        return model, torch.optim.Adam(groups, lr=0.05)
    if case.kind == "momentum":
        return model, torch.optim.SGD(groups, lr=0.05, momentum=0.9, weight_decay=0.5)
    return model, Plain(groups, lr=0.05)


def between(case: Case, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    """Do what somebody does to the weights before a step: set the gradients; and in the third, grow the weights."""
    for place, name in enumerate(case.names):
        grad = case.grads[step][place]
        getattr(model, name).grad = None if grad is None else grad.clone()
    if step == 2:
        with torch.no_grad():
            getattr(model, case.names[0]).mul_(2)
    if step == STEPS - 1:
        optimizer.add_param_group({"params": [getattr(model, case.names[3])]})


def _loss() -> float:
    return LOSS


class Refused(Exception):
    """Raised by a closure, before its optimizer has changed anything."""


def _refuse() -> float:
    raise Refused


def state_of(model: nn.Module) -> dict[str, torch.Tensor | None]:
    """Return copies of the parameters and of their gradients."""
    params = dict(model.named_parameters())
    return copies(params) | {f"{name}.grad": copies(param.grad) for name, param in params.items()}


def observe(update_ratios: Any, case: Case) -> dict[str, Any]:
    """Take some steps, the last with a closure, and one of another optimizer in between; then one after the block; and raise in other blocks."""
    return dict.fromkeys(_NAMES) | _observed(update_ratios, case)


def _observed(update_ratios: Any, case: Case) -> dict[str, Any]:
    model, optimizer = make(case)
    theirs = [optimizer.register_step_pre_hook(_ignore), optimizer.register_step_post_hook(_ignore)]
    stranger = nn.Parameter(torch.ones(2))
    another = torch.optim.SGD([stranger], lr=1.0)
    stranger.grad = torch.ones(2)
    before = hooks_left(model, optimizer)
    manager = update_ratios(model, optimizer)
    is_manager, steps = entered(manager)
    if not is_manager:
        return {"manager": False}
    saw: dict[str, Any] = {
        "manager": True,
        "early": entries(steps),
        "on": hooks_left(model, optimizer) - before,
    }
    snapshots, values = [], []
    try:
        for step in range(STEPS):
            between(case, model, optimizer, step)
            if step < STEPS - 1:
                optimizer.step()
            else:
                returned = optimizer.step(_loss) if case.kind == "plain" else optimizer.step(closure=_loss)
                saw |= {"returned": returned, "given": getattr(optimizer, "given", True)}
            snapshots.append(entries(steps))
            values.append(state_of(model))
            if step == 0:
                another.step()
                saw["other"] = entries(steps)
    except BaseException as error:
        manager.__exit__(type(error), error, error.__traceback__)
        raise
    manager.__exit__(None, None, None)
    gone = sum(handle.id not in (handle.hooks_dict_ref() or ()) for handle in theirs)
    saw |= {"steps": snapshots, "values": values, "left": hooks_left(model, optimizer) + gone - before}
    optimizer.step()
    saw["late"] = len(steps) if isinstance(steps, list) else None
    fresh, kept = make(case), entries(steps)
    saw["raised"] = raised(lambda: update_ratios(*fresh), lambda: hooks_left(*fresh))
    saw["modes"] = grad_modes(lambda: update_ratios(*fresh))
    try:
        added = _added(update_ratios)
    except Exception as error:
        added = type_name(error)
    saw |= {"resumed": _resumed(update_ratios, case), "added": added}
    return saw | {"own": as_before(steps, kept)}


def _resumed(update_ratios: Any, case: Case) -> Any:
    """Return the last entry, when a step has raised, weights have grown, and another step has followed."""
    model, optimizer = make(case)
    with update_ratios(model, optimizer) as steps:
        between(case, model, optimizer, 0)
        with contextlib.suppress(Refused):
            optimizer.step(_refuse)
        between(case, model, optimizer, 2)
        optimizer.step()
        # Whether the step that raised has added anything is left open.
        return entries(steps[-1:]) if isinstance(steps, list) else None


def _added(update_ratios: Any) -> Any:
    """Return the last entry when the model has got another parameter in the block, and a gradient is nan."""
    model = nn.Module()
    model.register_parameter("first", nn.Parameter(torch.tensor([3.0, 4.0])))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with update_ratios(model, optimizer) as steps:
        for grad in (1.0, torch.nan):
            model.first.grad = torch.full((2,), grad)
            if grad != 1:
                model.register_parameter("late", nn.Parameter(torch.tensor([1.0, 0.0])))
                optimizer.add_param_group({"params": [model.late]})
                model.late.grad = torch.tensor([0.0, TINY])
            optimizer.step()
        found = entries(steps[-1:]) if isinstance(steps, list) else ""
    del model.late  # else the answer would seem to have added it
    return found


PROBE = Probe(
    "15.2",
    "update_ratios",
    make_case,
    observe,
    cases=3,
    leaves=(HANDLES, GRAD, VALUES),
    changes=(0, 1),
    yields=True,
)
