"""What is observed of 04.2, `sgd_in_backward(model, lr)`: passes with the hooks, and one without."""

import copy
import warnings
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_04.shared import (
    Unusual,
    fill,
    hooked,
    remove_handles,
    tensor_hooks_on,
    use,
)
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import all_close, attempted, copies, same, whole


class Case(NamedTuple):
    """Model, learning rate, and inputs for two backward passes."""

    model: nn.Module
    lr: float
    inputs: list[torch.Tensor]


def make_case(rng: Draw) -> Case:
    """Return two linear layers, the first bias frozen, or more kinds of parameters, used before and in eval mode.

    Of those two have equal values, and are two parameters all the same. They are float64, of which float32 would lose digits.
    """
    if rng.turn:
        model = Unusual()
        fill(model, rng, 1 / 8)
        model.head.weight.data = copies(model.get_parameter("inner.0.0.weight"))
        use(model.double().eval())
    else:
        model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
        fill(model, rng)
        model[0].bias.requires_grad_(False)
    shape = (1, 1, 3) if rng.turn else (1, 3)
    dtype = (torch.float32, torch.float64)[rng.turn]
    inputs = [whole(rng, 3).reshape(shape).to(dtype) for _ in range(2)]
    return Case(model, (0.25, 0.5)[rng.turn], inputs)


def parameters(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return a copy of every parameter, by name."""
    return copies(dict(model.named_parameters()))


def _under_graph(model: nn.Module) -> str:
    """Run backward with `create_graph` for one parameter, whose gradient has a graph then; return what became of its step.

    "refused": a leaf was changed with grad mode on; "stays": it did not take the step; "keeps": its .grad is left; or "steps".
    """
    param = next(p for p in model.parameters() if p.requires_grad)
    before = copies(param)
    for p in model.parameters():
        p.grad = None if p is param else torch.full_like(p, 3.0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Using backward.* with create_graph=True")
        try:
            (param**2).sum().backward(create_graph=True)
        except RuntimeError as error:
            if "used in an in-place operation" not in str(error):
                raise
            return "refused"
    left, param.grad = param.grad is not None, None
    return "stays" if same(param.detach(), before) else "keeps" if left else "steps"


def _moves_when_asked(model: nn.Module) -> bool:
    """Ask `torch.autograd.grad`, which is no `backward()`, for the gradient of a parameter; check whether that moved it."""
    param = next(p for p in model.parameters() if p.requires_grad)
    before = copies(param)
    attempted(lambda: torch.autograd.grad((2 * param).sum(), param))  # a multi-grad hook makes it fail
    return not same(param.detach(), before)


def observe(sgd_in_backward: Any, case: Case) -> dict[str, Any]:
    """Run backward for both inputs and for one parameter alone, without the hooks, with two calls alive, and with lr 0.

    Once with `create_graph=True`, under which grad mode is on, once through `torch.autograd.grad`, and once in the other
    mode, training or evaluation.

    That parameter gets a gradient of 0 first. When it then gets another, all others have an older .grad.
    """
    model, lr, (x1, x2) = case
    first, second, third, switched = (copy.deepcopy(model) for _ in range(4))
    still = [p for p in model.parameters() if not p.requires_grad]
    learn = [p for p in model.parameters() if p.requires_grad]
    before = list(model.parameters())
    handles = sgd_in_backward(model, lr)
    report: dict[str, Any] = {"replaced": list(map(id, model.parameters())) != list(map(id, before))}
    report |= {"handles": copies(handles), "at_once": parameters(model), "hooks": hooked(model)}
    report["tensor_hooks"] = sum(map(tensor_hooks_on, model.parameters()))
    for p in learn:
        p.grad = None
    frozen = [copies(p.grad) for p in still]
    alive: list[int] = []  # number of .grad present each time after the answer's hook has run
    enabled: list[bool] = []  # the grad mode at these times

    def count(_: torch.Tensor) -> None:
        alive.append(sum(p.grad is not None for p in learn))
        enabled.append(torch.is_grad_enabled())

    ours = [p.register_post_accumulate_grad_hook(count) for p in learn]
    model(x1).sum().backward()
    report["first"] = parameters(model)
    model(x2).sum().backward()
    report["second"] = parameters(model)
    report["replaced"] |= list(map(id, model.parameters())) != list(map(id, before))
    report["left"] = [copies(p.grad) for p in learn if p.grad is not None]
    report["enabled"] = any(enabled)
    report["most"] = max([len(report["left"]), *alive])
    remove_handles(ours)
    report["kept"] = hooked(model)
    (0 * learn[0]).sum().backward()
    report["zero_left"] = copies(learn[0].grad)
    learn[0].grad = None
    for p in learn[1:]:
        p.grad = torch.full_like(p, 3.0)
    older = copies([p.grad for p in (*still, *learn[1:])])
    before = parameters(model)
    (1000 * learn[0]).sum().backward()
    report["alone"] = copies(learn[0])
    report["frozen_grads"] = [frozen, [copies(p.grad) for p in still]]
    report["older_grads"] = [older, copies([p.grad for p in (*still, *learn[1:])])]
    report["unreached"] = [before, parameters(model)]
    remove_handles(handles)
    before = parameters(model)
    model(x1).sum().backward()
    report["off"] = all_close(parameters(model), before)
    handles = sgd_in_backward(third, lr)
    report["under_graph"] = _under_graph(third)
    report["moves_when_asked"] = _moves_when_asked(third)
    remove_handles(handles)
    before = parameters(switched.train(not model.training))
    handles = sgd_in_backward(switched, lr)
    switched(x1).sum().backward()
    report["moves_in_other_mode"] = not all_close(parameters(switched), before)
    remove_handles(handles)
    both = [sgd_in_backward(first, lr), sgd_in_backward(second, 0.0)]
    first(x1).sum().backward()
    report["beside"] = parameters(first)
    second(x1).sum().backward()
    report["beside_with_zero_lr"] = parameters(second)
    zeroed = [p for p in second.parameters() if p.requires_grad]
    report["left_by_zero_lr"] = sum(p.grad is not None for p in zeroed)
    (torch.nan * zeroed[0]).sum().backward()
    report["left_by_nan"] = zeroed[0].grad is not None
    for handles in both:
        remove_handles(handles)
    return report


PROBE = Probe("04.2", "sgd_in_backward", make_case, observe, cases=2, leaves=(HANDLES,))
