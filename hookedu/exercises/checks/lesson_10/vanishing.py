"""What decides about 10.4, `vanishing(model, x, target, ratio)`."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from hookedu.exercises.checks.chain import RAISES, cleans_up, equals_rounded, unchanged
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_10.vanishing import PROBE, TINY, Case, make_model
from hookedu.exercises.tools import close, gradients

_MEASURES: dict[str, Callable[[torch.Tensor], Any]] = {
    "mean": lambda grad: grad.abs().mean(),
    "sum": lambda grad: grad.abs().sum(),
    "norm": torch.Tensor.norm,
    "max": lambda grad: grad.abs().max(),
    "signed": torch.Tensor.mean,
    "abs of signed": lambda grad: grad.mean().abs(),
    "median": lambda grad: grad.abs().median(),
    "root of squares": lambda grad: grad.square().mean().sqrt(),
    "first row": lambda grad: grad[0].abs().mean(),
    "last row": lambda grad: grad[-1].abs().mean(),
}
_OTHERS = ("median", "root of squares", "first row", "last row")


class _Key:
    """The output, the sizes of the gradients, the names to be found, and those that other ways find."""

    def __init__(self, case: Case) -> None:
        self.case, model, x = case, make_model(case), case.x
        outputs = {}
        for name in case.run:
            # Not in place, so that the output in front of the ReLU stays in the graph.
            x = outputs[name] = x.relu() if isinstance(model[name], nn.ReLU) else model[name](x)
        x = x if case.trained else 2 * x  # as `Chain` does in eval mode
        self.out = x.detach()
        self.defined = [name for name, _ in model.named_children()]
        self._before = gradients(model)
        loss = F.cross_entropy(x, case.target)
        grads = torch.autograd.grad(loss, [*outputs.values()], retain_graph=True)
        model.zero_grad()
        loss.backward()
        self._alone = gradients(model)
        self._grads = dict(zip(case.run, grads, strict=True))
        self.means = self._sizes("mean")
        self._relu = next(n for n, name in enumerate(case.run) if isinstance(model[name], nn.ReLU))
        self.sizes = ", ".join(f"{name} {mean:.2g}" for name, mean in self.means.items())

    def _sizes(self, measure: str) -> dict[str, float]:
        return {name: _MEASURES[measure](grad).item() for name, grad in self._grads.items()}

    def weak(self, measure: str = "mean") -> list[str]:
        """Return the names to be found, or those that another measure finds."""
        sizes = self._sizes(measure)
        return [name for name, size in sizes.items() if size < self.case.ratio * sizes[self.case.run[-1]]]

    def in_half(self) -> list[str]:
        """Return the names to be found if half precision holds the sizes, and what they are compared with."""
        sizes = {name: grad.half().abs().mean() for name, grad in self._grads.items()}
        return [name for name, size in sizes.items() if size < self.case.ratio * sizes[self.case.run[-1]]]

    def behind_relu(self) -> list[str]:
        """Return the names to be found if the child before the ReLU in place has the size behind it."""
        before, relu = self.case.run[self._relu - 1 : self._relu + 1]
        sizes = self.means | {before: self.means[relu]}
        return [name for name, size in sizes.items() if size < self.case.ratio * self.last]

    def other_gradients(self, got: dict[str, Any]) -> list[str]:
        """Return the parameters whose .grad this pass did not leave alone, or write, or add to what was there."""

        def fits(name: str) -> bool:
            before, alone = self._before[name], self._alone[name]
            # An earlier pass has reached all that this one reaches.
            assert before is not None and alone is not None
            sums = (torch.zeros_like(before), before, before + alone, alone)
            return got[name] is None or any(close(got[name], one) for one in sums)

        return [name for name, grad in self._alone.items() if grad is not None and not fits(name)]

    def below(self, limit: float) -> list[str]:
        """Return the names with a size below a limit."""
        return [name for name, size in self.means.items() if size < limit]

    @property
    def last(self) -> float:
        return self.means[self.case.run[-1]]

    @property
    def turned_round(self) -> list[str]:
        return [name for name, size in self.means.items() if size > self.case.ratio * self.last]


def _signs_show(case: Case) -> bool:
    """Check, where sizes are tiny, whether signed means would list a name: their mean at the last output is rounding."""
    if case.ratio >= TINY:
        return True
    key = _Key(case)
    return bool(key.weak("signed") and key.weak("abs of signed"))


def _unordered(found: Any, names: list[str]) -> bool:
    return isinstance(found, list) and sorted(map(str, found)) == sorted(names)


def _one_name(saw: Any, key: _Key) -> bool:
    """Check whether every child was filed under one name, as that of the child that ran first: its gradient came last."""
    dead = not key.means[key.case.run[0]]  # a size of 0 is not below itself, whatever the ratio
    return not saw.all if dead else len(saw.all) > len({*saw.all}) == 1


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_signs_show,
    given=Say("sizes"),
    checks=[
        unchanged(lambda key: key.out),
        Check(
            "loss",
            # Several passes are another mistake.
            ok=lambda saw, key: saw.passes > 1 or not key.other_gradients(saw.grads),
            essential=True,
            expected=Say("gradient_of_the_loss", where=lambda saw, key: key.other_gradients(saw.grads)[0]),
            got=Say("other_gradient", where=lambda saw, key: key.other_gradients(saw.grads)[0]),
            mistakes={"other_loss": True},
        ),
        equals_rounded(
            "finds",
            lambda key: key.weak(),
            {
                "returns_nothing": lambda saw, key: saw.found is None,
                "no_names": lambda saw, key: (
                    not isinstance(saw.found, list) or {*map(type, saw.found)} - {str}
                ),
                "parameter_names": lambda saw, key: any(name.endswith(".weight") for name in saw.all),
                "all_modules": lambda saw, key: any("." in name or not name for name in saw.all),
                "late_binding": _one_name,
                "retains": lambda saw, key: saw.retains,
                # Some measures find the same, but from tensor hooks that were set in forward.
                "behind_relu": lambda saw, key: not saw.hooked and saw.found == key.behind_relu(),
                "other_measure": lambda saw, key: (
                    saw.hooked and saw.found in [*map(key.weak, _OTHERS), key.in_half()]
                ),
                "against_largest": Gives(lambda key: key.below(key.case.ratio * max(key.means.values()))),
                "or_equal": Gives(
                    lambda key: [n for n, size in key.means.items() if size <= key.case.ratio * key.last]
                ),
                "against_nothing": Gives(lambda key: key.below(key.case.ratio)),
                "against_last_defined": Gives(
                    lambda key: key.below(key.case.ratio * key.means[key.defined[-1]])
                ),
                "against_first": Gives(lambda key: key.below(key.case.ratio * key.means[key.case.run[0]])),
                "wrong_side": Gives(lambda key: key.below(key.last / key.case.ratio)),
                "by_norm": Gives(*(lambda key, m=m: key.weak(m) for m in ("norm", "sum", "max"))),
                "signed": Gives(*(lambda key, m=m: key.weak(m) for m in ("signed", "abs of signed"))),
                "turned_round": Gives(
                    lambda key: key.turned_round, lambda key: [n for n in key.means if n not in key.weak()]
                ),
            },
            observed="found",
            equal=_unordered,
            points=3,
            essential=True,
        ),
        equals_rounded("order", lambda key: key.weak(), {"other_order": True}, observed="found"),
        equals_rounded(
            "once",
            lambda key: 1,
            {"twice": True},
            observed="passes",
            ok=lambda saw, key: saw.passes <= 1,
            expected=Say("passes"),
            got=Say("passes"),
        ),
        *cleans_up("vanishing({}, x, target, ratio)"),
    ],
    raises={"full_hook": r"is a view and is being modified inplace"} | RAISES,
)
