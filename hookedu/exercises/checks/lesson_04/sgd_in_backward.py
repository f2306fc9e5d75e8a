"""What decides about 04.2, `sgd_in_backward(model, lr)`."""

from functools import cached_property
from typing import Any

import torch

from hookedu.exercises.checks.lesson_04.shared import (
    REGISTERING,
    handles_given,
    misses_parameters,
    never_ran,
    one_memory,
    removes_itself,
)
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show
from hookedu.exercises.probes.lesson_04.sgd_in_backward import PROBE, Case, parameters
from hookedu.exercises.tools import all_close, close, same

_Values = dict[str, torch.Tensor]


class _Key:
    """The parameters before (`start`) and after each of two steps, right and wrong, and the names of those that learn."""

    def __init__(self, case: Case) -> None:
        self._case, self.lr, self.start = case, case.lr, parameters(case.model)
        self.tolerance = 1e-4 if case.inputs[0].dtype == torch.float32 else 1e-9
        self.trained = [name for name, p in case.model.named_parameters() if p.requires_grad]
        self.mode = "" if case.model.training else "model.eval(); "
        self.any_zero = False  # whether a gradient is 0 altogether
        self.right = self._steps(case.lr)
        self.before_alone = self.right[1][self.trained[0]]

    @cached_property
    def wrong_sign(self) -> _Values:
        """After one step in the wrong direction."""
        return self._steps(-self.lr)[0]

    @cached_property
    def added_up(self) -> _Values:
        """After the second step if gradients accumulate."""
        return self._steps(self.lr, keep=1)[1]

    def _steps(self, lr: float, keep: int = 0) -> list[_Values]:
        """Return the parameters after each step; `keep` times the previous gradient is added to the next."""
        model, after = self._case.model, []
        learn = [p for p in model.parameters() if p.requires_grad]
        kept = [torch.zeros_like(p) for p in learn]
        for x in self._case.inputs:
            grads = torch.autograd.grad(model(x).sum(), learn)
            self.any_zero |= lr == self.lr and not all(grad.any() for grad in grads)
            kept = [grad + keep * before for grad, before in zip(grads, kept, strict=True)]
            with torch.no_grad():
                for parameter, grad in zip(learn, kept, strict=True):
                    parameter -= lr * grad
            after.append(parameters(model))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(self.start[name])
        return after


def _none_is_zero(case: Case) -> bool:
    """Check whether no parameter gets a gradient of 0 in the first two passes: that would be a mistake of its own."""
    return not _Key(case).any_zero


def _wrong(key: _Key, got: _Values, step: int) -> str:
    """Return the name of the last parameter that is wrong after a step, or of the last of all."""
    wrong = [name for name, value in key.right[step].items() if not close(got[name], value, key.tolerance)]
    return [key.trained[-1], *wrong][-1]


def _after(saw: Any, step: int) -> _Values:
    return (saw.first, saw.second)[step]


def _line(values: Any, step: int, sign: str = "==") -> Any:
    """Return a function that writes the value of that parameter, among the `values` of (saw, key)."""

    def line(saw: Any, key: _Key) -> str:
        name = _wrong(key, _after(saw, step), step)
        got, wanted = values(saw, key)[name], key.right[step][name]
        differs = show(got) == show(wanted) and not same(got, wanted)
        off = f" ± {(got - wanted).abs().max():.1g}" if differs else ""
        return f"model.{name} {sign} {show(got)}{off}"

    return line


def _moved(saw: Any) -> list[str]:
    """Return the names of the parameters that the first pass changed."""
    return [name for name, value in saw.first.items() if not close(value, saw.at_once[name])]


_CALL = "{key.mode}sgd_in_backward(model, lr={key.lr}); model(x1).sum().backward()"

_UNDER_GRAPH = (
    "{key.mode}sgd_in_backward(model, lr={key.lr}); "
    "(model.{key.trained[0]} ** 2).sum().backward(create_graph=True)"
)
_ALONE = _CALL + "; model(x2).sum().backward(); (1000 * model.{key.trained[0]}).sum().backward()"


def _steps_alone(saw: Any, key: _Key) -> bool:
    return not same(saw.alone, saw.second[key.trained[0]])


def _steps_under_graph(saw: Any) -> bool:
    # A .grad that is always left is told elsewhere.
    return saw.under_graph == "steps" or (saw.under_graph == "keeps" and bool(_left(saw)))


def _left(saw: Any) -> list[torch.Tensor]:
    """Return the .grad that are left after two passes or, if there are none at any time, after one with a gradient of 0."""
    return saw.left if saw.most else [saw.zero_left] if saw.zero_left is not None else []


def _given_left(saw: Any, key: _Key) -> str:
    if saw.most:
        return _CALL.format(key=key)
    if saw.zero_left is not None:
        return f"{_CALL.format(key=key)}; (0 * model.{key.trained[0]}).sum().backward()"
    if saw.left_by_zero_lr:
        return "sgd_in_backward(model, lr=0); model(x1).sum().backward()"
    return f"sgd_in_backward(model, lr=0); (nan * model.{key.trained[0]}).sum().backward()"


def _changed(saw: Any, key: _Key) -> list[str]:
    """Return what changed, value or .grad, of the parameters that the pass through the first one does not reach."""
    before, after = saw.unreached
    changed = [f"model.{n}" for n in before if n != key.trained[0] and not same(after[n], before[n])]
    names = [n for n in before if n not in key.trained] + key.trained[1:]
    return changed + [
        f"model.{n}.grad" for n, *grads in zip(names, *saw.older_grads, strict=True) if not same(*grads)
    ]


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_none_is_zero,
    given=_CALL,
    checks=[
        Check(
            "parameters",
            ok=lambda saw, key: not saw.replaced,
            essential=True,
            expected=Say("same_parameters"),
            got=Say("other_parameters"),
            mistakes={"replaces_parameters": True},
        ),
        Check(
            "first_step",
            ok=lambda saw, key: all_close(saw.first, key.right[0], key.tolerance),
            points=1,
            essential=True,
            given=lambda saw, key: (
                f"{_CALL.format(key=key)}; {_line(lambda saw, key: key.start, 0, '=')(saw, key)}"
            ),
            expected=_line(lambda saw, key: key.right[0], 0),
            got=_line(lambda saw, key: saw.first, 0),
            mistakes={
                "steps_at_once": lambda saw, key: not all_close(saw.at_once, key.start),
                "never_ran": never_ran,
                "not_registered": lambda saw, key: not _moved(saw) and not any(saw.hooks.values()),
                "frozen_learns": lambda saw, key: not set(_moved(saw)) <= set(key.trained),
                "misses_parameters": misses_parameters,
                "one_mode": lambda saw, key: not _moved(saw) and saw.moves_in_other_mode,
                "rebinds_param": lambda saw, key: not _moved(saw),
                "wrong_sign": lambda saw, key: all_close(saw.first, key.wrong_sign),
                "float32": lambda saw, key: all_close(saw.first, key.right[0]),
                "removes_itself": removes_itself,
                "late_binding": lambda saw, key: _moved(saw) == key.trained[-1:],
                "takes_param_for_gradient": lambda saw, key: all(
                    close(saw.first[name], (1 - key.lr) * saw.at_once[name]) for name in _moved(saw)
                ),
            },
        ),
        Check(
            "second_step",
            "second",
            want=lambda key: key.right[1],
            equal=all_close,
            points=1,
            given=_CALL + "; model(x2).sum().backward()",
            expected=_line(lambda saw, key: key.right[1], 1),
            got=_line(lambda saw, key: saw.second, 1),
            mistakes={"removes_itself": removes_itself, "keeps_grad": Gives(lambda key: key.added_up)},
        ),
        Check(
            "freed",
            ok=lambda saw, key: (
                not saw.most and saw.zero_left is None and not saw.left_by_zero_lr and not saw.left_by_nan
            ),
            points=1,
            given=_given_left,
            expected=Say("no_grad_left"),
            got=Say("grads_left", n=lambda saw, key: saw.most or saw.left_by_zero_lr or 1),
            mistakes={
                "removes_itself": removes_itself,
                "multi_grad_hook": lambda saw, key: Opaque("_MultiHandle") in [saw.handles, *saw.handles],
                "tensor_hook": lambda saw, key: saw.tensor_hooks and saw.left,
                "zeroes_grad": lambda saw, key: _left(saw) and not any(grad.any() for grad in _left(saw)),
                "frees_at_the_end": lambda saw, key: saw.most and not saw.left,
            },
        ),
        Check(
            "alone",
            ok=lambda saw, key: _steps_alone(saw, key) and _steps_under_graph(saw),
            points=1,
            given=lambda saw, key: (_UNDER_GRAPH if _steps_alone(saw, key) else _ALONE).format(key=key),
            expected=[
                Say("steps_under_graph", when=_steps_alone),
                lambda saw, key: f"model.{key.trained[0]} == {show(key.before_alone - 1000 * key.lr)}",
            ],
            got=[
                *(
                    Say(
                        f"{what}_under_graph",
                        when=lambda saw, key, what=what: _steps_alone(saw, key) and saw.under_graph == what,
                    )
                    for what in ("refused", "stays", "keeps")
                ),
                lambda saw, key: f"model.{key.trained[0]} == {show(saw.alone)}",
            ],
            mistakes={
                "removes_itself": removes_itself,
                "needs_no_grad": lambda saw, key: _steps_alone(saw, key) and saw.under_graph == "refused",
                "not_under_graph": _steps_alone,
                "waits_for_all": True,
            },
        ),
        Check(
            "frozen",
            ok=lambda saw, key: same(*saw.frozen_grads),
            essential=True,
            expected=Say("frozen_grads_stay"),
            got=Say("frozen_grads_gone"),
            mistakes={"clears_others": True},
        ),
        Check(
            "unreached",
            ok=lambda saw, key: not _changed(saw, key),
            essential=True,
            given=_ALONE,
            expected=Say("unreached_stay"),
            got=Say("unreached_changed", names=lambda saw, key: ", ".join(_changed(saw, key))),
            mistakes={"touches_unreached": True},
        ),
        Check(
            "asked",
            "moves_when_asked",
            want=lambda key: False,
            given="sgd_in_backward(model, lr={key.lr}); "
            "torch.autograd.grad((2 * model.{key.trained[0]}).sum(), model.{key.trained[0]})",
            expected=Say("stays_when_asked"),
            got=Say("moves_when_asked"),
            mistakes={"steps_when_asked": True},
        ),
        Check(
            "grad_mode",
            "enabled",
            want=lambda key: False,
            essential=True,
            label="torch.is_grad_enabled()",
            mistakes={"turns_on": True},
        ),
        one_memory(
            "sgd_in_backward(model, lr); sgd_in_backward(model2, 0)",
            ok=lambda saw, key: (
                all_close(saw.beside, key.right[0]) and all_close(saw.beside_with_zero_lr, key.start)
            ),
        ),
        handles_given("sgd_in_backward(model, lr)"),
    ],
    raises={
        **REGISTERING,
        "changes_others": r"has been modified by an inplace operation",
        "returns_from_hook": r"post accumulate grad hooks should return None|expected Variable, but hook returned",
        "grad_is_none": r"operand.*NoneType|not NoneType|NoneType' object has no attribute '(?!requires|register|append|extend|remove')",
    },
)
