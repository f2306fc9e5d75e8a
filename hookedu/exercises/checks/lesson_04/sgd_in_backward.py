"""What decides about 04.2, `sgd_in_backward(model, lr)`."""

import copy
from typing import Any

import torch

from hookedu.exercises.checks.lesson_04.shared import REGISTERING, handles_given
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_04.sgd_in_backward import LR, PROBE, Case, parameters
from hookedu.exercises.tools import all_close, close

_CALL = f"sgd_in_backward(model, lr={LR}); model(x1).sum().backward()"


def _after_sgd(case: Case, lr: float = LR, zero: bool = True) -> list[dict[str, torch.Tensor]]:
    """Return the parameters after each of two steps of torch.optim.SGD; with zero=False gradients accumulate."""
    model, inputs = copy.deepcopy(case)
    optimizer = torch.optim.SGD(model.parameters(), lr=abs(lr), maximize=lr < 0)
    after = []
    for x in inputs:
        model(x).sum().backward()
        optimizer.step()
        if zero:
            optimizer.zero_grad()
        after.append(parameters(model))
    return after


def _shown(saw: Any, case: Case, values: dict[str, Any], sign: str = "==") -> str:
    """Write the value of one parameter: the last that is wrong after the first pass, or the last of all."""
    right = _after_sgd(case)[0]
    name = ["1.bias", *(name for name in right if not close(saw.first[name], right[name]))][-1]
    return f"model.{name} {sign} {show(values[name])}"


def _moved(saw: Any) -> list[str]:
    """Return the names of the parameters that the first pass changed."""
    return [name for name, value in saw.first.items() if not close(value, saw.at_once[name])]


EXERCISE = Exercise(
    PROBE,
    given=_CALL,
    checks=[
        Check(
            "first_step",
            ok=lambda saw, case: all_close(saw.first, _after_sgd(case)[0]),
            points=2,
            essential=True,
            given=lambda saw, case: f"{_CALL}; {_shown(saw, case, parameters(case[0]), '=')}",
            expected=lambda saw, case: _shown(saw, case, _after_sgd(case)[0]),
            got=lambda saw, case: _shown(saw, case, saw.first),
            mistakes={
                "steps_at_once": lambda saw, case: not all_close(saw.at_once, parameters(case[0])),
                "rebinds_param": lambda saw, case: not _moved(saw) and saw.hooks,
                "not_registered": lambda saw, case: not _moved(saw),
                "wrong_sign": lambda saw, case: all_close(saw.first, _after_sgd(case, lr=-LR)[0]),
                "late_binding": lambda saw, case: _moved(saw) == ["1.bias"],
                "takes_param_for_gradient": lambda saw, case: all(
                    close(saw.first[name], (1 - LR) * saw.at_once[name]) for name in _moved(saw)
                ),
            },
        ),
        Check(
            "second_step",
            "second",
            want=lambda case: _after_sgd(case)[1],
            equal=all_close,
            points=1,
            given=_CALL + "; model(x2).sum().backward()",
            expected="model.1.bias == {value[1.bias]}",
            got="model.1.bias == {value[1.bias]}",
            mistakes={"keeps_grad": Gives(lambda case: _after_sgd(case, zero=False)[1])},
        ),
        Check(
            "freed",
            ok=lambda saw, case: not saw.most,
            points=1,
            expected=Say("no_grad_left"),
            got=Say("grads_left"),
            mistakes={
                "tensor_hook": lambda saw, case: saw.tensor_hooks,
                "zeroes_grad": lambda saw, case: saw.left and not any(grad.any() for grad in saw.left),
                "frees_at_the_end": lambda saw, case: not saw.left,
            },
        ),
        handles_given("sgd_in_backward(model, lr)"),
    ],
    raises={
        **REGISTERING,
        "returns_from_hook": r"post accumulate grad hooks should return None|expected Variable, but hook returned",
        "grad_is_none": r"NoneType",
    },
)
