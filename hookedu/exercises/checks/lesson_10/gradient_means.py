"""What decides about 10.2, `gradient_means(model, loss)`."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from hookedu.exercises.checks.chain import are_close, clean, equals_rounded, means
from hookedu.exercises.checks.common import CALLS_NOW, HOOKS_FROZEN
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_10.gradient_means import PROBE
from hookedu.exercises.tools import copies, gradients


class _Key:
    """The means of the gradients in order of arrival, which only hooks tell, and what may be taken for them.

    `grads` is every .grad as it should be, `before` as it was, and `once` that of this pass alone.
    """

    def __init__(self, case: tuple) -> None:
        model, loss, x = case
        self.fresh = [name for name, p in model.named_parameters() if p.grad is None]
        self.means: dict[str, float] = {}
        self.before = copies(gradients(model))
        self.once: dict[str, torch.Tensor] = {}
        self.frozen = {name for name, p in model.named_parameters() if not p.requires_grad}

        def note(name: str, grad: Any) -> None:
            self.means[name], self.once[name] = grad.mean().item(), grad

        for name, p in model.named_parameters():
            if p.requires_grad:
                p.register_hook(lambda grad, name=name: note(name, grad))
        loss.backward()
        self.grads = gradients(model)
        # Parameters with a gradient of an earlier time, which none reaches in this pass.
        self.old = {
            name
            for name, grad in self.grads.items()
            if grad is not None and name not in self.means and name not in self.frozen
        }
        assert x.grad is not None
        self.x_grad = x.grad
        self.of_parameters = {n: p.mean().item() for n, p in model.named_parameters() if n in self.means}


def _one_parameter(saw: Any, key: _Key) -> bool:
    return len(saw.names) == 1 and are_close(saw.means, {name: key.means[name] for name in saw.names})


def _alike(found: Any, wanted: Mapping[str, torch.Tensor | None]) -> bool:
    """Check what `tools.all_close` does, but a nan equals a nan."""

    def near(grad: Any, wanted: torch.Tensor | None) -> bool:
        if wanted is None or grad is None:
            return grad is wanted
        alike = (grad.dtype, grad.shape) == (wanted.dtype, wanted.shape)
        return alike and torch.allclose(grad, wanted, rtol=1e-4, atol=1e-6, equal_nan=True)

    return found.keys() == wanted.keys() and all(near(found[name], grad) for name, grad in wanted.items())


def _rounded(found: float, mean: float) -> bool:
    return math.isclose(found, mean, rel_tol=0, abs_tol=0.051) or (found != found and mean != mean)


def _first_other(saw: Any, key: _Key) -> str:
    return next(name for name, grad in key.grads.items() if not _alike({name: saw.grads[name]}, {name: grad}))


def _zeroed(saw: Any, key: _Key) -> bool:
    grads = {name: saw.grads[name] for name in key.means}
    # No gradient reaches them in this pass; frozen ones are among them.
    old = [saw.grads[name] for name, grad in key.grads.items() if grad is not None and name not in key.means]
    return (
        _alike(grads, key.once)
        or not any(grad is not None and grad.any() for grad in grads.values())
        or any(grad is None or not grad.any() for grad in old)
    )


def _fills_none(saw: Any, key: _Key) -> bool:
    """Check whether only a .grad that is None, as no gradient arrives, has become a tensor."""
    filled = {name for name, grad in key.grads.items() if grad is None and saw.grads[name] is not None}
    rest = {name: grad for name, grad in key.grads.items() if name not in filled}
    return bool(filled) and _alike({name: saw.grads[name] for name in rest}, rest)


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    given="loss = (w * model(x)).sum(); gradient_means(model, loss)",
    checks=[
        equals_rounded(
            "names",
            lambda key: list(key.means),
            {
                "returns_nothing": lambda saw, key: saw.found is None,
                "no_backward": lambda saw, key: saw.passes == 0,
                "twice": lambda saw, key: saw.passes > 1,
                "module_hooks": lambda saw, key: saw.found == [] and saw.on_modules > 0,
                "too_late": lambda saw, key: saw.found == [] and saw.on_parameters == 0,
                "no_pairs": lambda saw, key: not saw.names,
                "one_parameter": _one_parameter,
                "skips_fresh": lambda saw, key: {*saw.names} == {*key.means} - {*key.fresh},
                "lists_frozen": lambda saw, key: (
                    {*saw.names} - {*key.means} in (key.frozen, key.frozen | key.old)
                ),
                "lists_old": lambda saw, key: {*saw.names} - {*key.means} == key.old,
                "late_binding": lambda saw, key: len(saw.names) == len(key.means) and len(saw.means) == 1,
            },
            observed="found",
            ok=lambda saw, key: sorted(saw.names) == sorted(key.means),
            points=2,
            essential=True,
            expected="[name for name, mean in ...] == {want}",
        ),
        Check(
            "unchanged",
            ok=lambda saw, key: _alike(saw.grads, key.grads) and not saw.attached,
            essential=True,
            expected=Say("same_gradients"),
            got=[
                Say("one_attached", when=lambda saw, key: saw.attached),
                Say("one_differs", where=_first_other),
            ],
            mistakes={
                "twice": lambda saw, key: saw.passes > 1,
                "not_written": lambda saw, key: saw.passes == 1 and not saw.written,
                "put_back": lambda saw, key: saw.written and _alike(saw.grads, key.before),
                "zeroes": _zeroed,
                "keeps_graph": lambda saw, key: saw.attached and _alike(saw.grads, key.grads),
                "fills_none": _fills_none,
                "changes_gradient": True,
            },
        ),
        Check(
            "x_grad",
            "x_grad",
            # Several passes are another mistake, and what a hook returned shows in the gradients of the parameters, too.
            ok=lambda saw, key: _alike({"x": saw.x_grad}, {"x": key.x_grad}),
            want=lambda key: key.x_grad,
            essential=True,
            label="x.grad",
        ),
        equals_rounded(
            "order",
            lambda key: list(key.means),
            {
                "model_order": Gives(lambda key: list(key.of_parameters)),
                "upside_down": Gives(lambda key: [*key.of_parameters][::-1], lambda key: [*key.means][::-1]),
            },
            observed="names",
            essential=True,
        ),
        means(
            {
                "mean_of_the_sum": Gives(
                    lambda key: {name: key.grads[name].mean().item() for name in key.means},
                    lambda key: {
                        name: key.grads[name].mean().item() - mean for name, mean in key.means.items()
                    },
                ),
                "mean_of_the_parameter": Gives(lambda key: key.of_parameters),
                "rounds": lambda saw, key: all(
                    _rounded(saw.means[name], mean) for name, mean in key.means.items()
                ),
                "not_the_mean": lambda saw, key: {type(mean) for mean in saw.means.values()} <= {int, float},
            },
        ),
        clean("gradient_means(model, loss)"),
    ],
    raises={"no_gradient_yet": r"'NoneType' object has no attribute '(?!append|extend|remove|register)"}
    | HOOKS_FROZEN
    | CALLS_NOW,
)
