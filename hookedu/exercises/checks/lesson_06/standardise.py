"""What decides about 06.4, `standardise(conv)`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.functional import conv2d

from hookedu.exercises.checks.common import equals, handle_works
from hookedu.exercises.checks.lesson_06.shared import MISREGISTERED
from hookedu.exercises.criteria import Check, Of, Saw
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_06.standardise import LOADED, PROBE, RATE, Case
from hookedu.exercises.tools import same

_ROUNDING = 1e-3  # tolerance: the formula can be written in many ways
_CHANNEL = (1, 2, 3)  # dims of the weights of one output channel
_SETTING = {"": "", "eval": "conv.eval(); ", "no_grad": "with torch.no_grad(): "}


def _made(case: Case) -> str:
    """Return the making of the layer as code."""
    dtype = f", dtype={case.weight.dtype}" * (case.weight.dtype != torch.float32)
    return f"conv = nn.Conv2d(2, 3, ...{dtype}); {'conv.weight.requires_grad_(False); ' * case.frozen}"


def _called(case: Case) -> str:
    """Return the first call as code."""
    return f"{_made(case)}standardise(conv); conv(x)"


def _repeated(saw: Saw, key: "Key") -> str:
    """Return the calls after the first as code: those without a step of training, if these went wrong."""
    first = _called(key.case) + "; loss.backward()"
    if _gradient_differs(saw, key):
        without = "torch.set_grad_enabled(False); conv(x); torch.set_grad_enabled(True)"
        mode = "conv.eval(); " * (key.case.setting == "eval")
        return f"{first}; {mode}{without}; conv.zero_grad(); conv(x); loss.backward()"
    loaded = f"conv.load_state_dict({{'weight_raw': {LOADED} * conv.weight_raw, ...}}, assign=True)"
    step = loaded if key.case.frozen else "optimizer.step()"
    return f"{first}; {step}; {_SETTING[key.case.setting]}conv(x)"


def _root(weight: torch.Tensor, dims: tuple[int, ...] = _CHANNEL, correction: int = 0) -> torch.Tensor:
    return (weight.var(dims, keepdim=True, correction=correction) + 1e-5).sqrt()


def _formula(weight: torch.Tensor, dims: tuple[int, ...] = _CHANNEL, correction: int = 0) -> torch.Tensor:
    return (weight - weight.mean(dims, keepdim=True)) / _root(weight, dims, correction)


class Key:
    """Output and gradient of the standardised convolution, and its output after the step of training.

    `partial` holds the gradients without the share of the mean, of the variance, and of both; `stale` is the output
    after the step with the weights from before it. A frozen weight has no gradient; another one is loaded instead.
    """

    def __init__(self, case: Case) -> None:
        self.case, g = case, case.g
        raw = case.weight.clone().requires_grad_()
        output = self.conv(_formula(raw))
        loss = (output * g).sum()
        (gradient,) = torch.autograd.grad(loss, raw)
        self.gradient = None if case.frozen else gradient
        self.output, self.partial = output.detach(), []
        for mean, root in ((raw.detach(), raw), (raw, raw.detach()), (raw.detach(), raw.detach())):
            weight = (raw - mean.mean(_CHANNEL, keepdim=True)) / _root(root)
            self.partial += torch.autograd.grad((self.conv(weight) * g).sum(), raw)
        trained = LOADED * case.weight if case.frozen else case.weight - RATE * gradient
        bias = None if case.bias is None else -RATE * g.sum((0, 2, 3))
        self.again = self.conv(_formula(trained), bias)
        self.stale = self.conv(_formula(case.weight), bias)

    def conv(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Return the output with this weight; `bias` is added to that of the case."""
        both = self.case.bias if bias is None else self.case.bias + bias
        return conv2d(self.case.x, weight, both, padding=self.case.padding)

    def ordinary(self, formula: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """Return channel 0, in which 1e-5 does not matter, of the output with the weights that a formula gives."""
        return self.conv(formula(self.case.weight))[:, :1]


def _close(got: Any, expected: torch.Tensor, channels: int = 0) -> bool:
    """Check closeness relative to each channel's largest value: channels differ by orders of magnitude."""
    if not isinstance(got, torch.Tensor) or (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return False
    both = zip(got.unbind(channels), expected.unbind(channels), strict=True)
    return all(torch.allclose(a, b, rtol=0, atol=_ROUNDING * max(float(abs(b).max()), 1.0)) for a, b in both)


def _gives(formula: Callable[[torch.Tensor], torch.Tensor]) -> Of:
    return lambda saw, key: _close(saw.output[:, :1], key.ordinary(formula), channels=1)


def _same_gradient(got: Any, want: torch.Tensor | None) -> bool:
    return got is None if want is None else _close(got, want)


def _gradient_differs(saw: Saw, key: Key) -> bool:
    """Check whether only the gradient of the second backward pass differs, which comes before the step of training."""
    return _close(saw.again, key.again, channels=1) and not _same_gradient(saw.gradient_later, key.gradient)


def _shown_gradient(got: Any) -> str:
    return got if isinstance(got, str) else f"conv.weight_raw.grad == {show(got)}"


def _parameters(key: Key) -> dict[str, bool]:
    """Return which parameters there should be, and whether each is trained."""
    return ({} if key.case.bias is None else {"bias": True}) | {"weight_raw": not key.case.frozen}


def _stale(saw: Saw, key: Key) -> bool:
    return _close(saw.again, key.stale, channels=1)


_of_output = partial(equals, equal=partial(_close, channels=1))

EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=lambda saw, key: _called(key.case),
    checks=[
        _of_output(
            "output",
            lambda key: key.output,
            {
                "returns_weight": lambda saw, key: saw.output.shape != key.output.shape,
                "other_start": lambda saw, key: (
                    saw.start is not None and not same(saw.start, key.case.weight)
                ),
                "changes_nothing": _gives(lambda w: w),
                "whole_tensor": _gives(partial(_formula, dims=(0, *_CHANNEL))),
                "wrong_dims": _gives(partial(_formula, dims=(0,))),
                "sample_variance": _gives(partial(_formula, correction=1)),
                "no_root": _gives(lambda w: _formula(w) / _root(w)),
                "only_centres": _gives(lambda w: w - w.mean(_CHANNEL, keepdim=True)),
                "keeps_mean": _gives(lambda w: w / _root(w)),
                "no_eps": lambda saw, key: saw.output.isnan().any() and _gives(_formula)(saw, key),
                "misplaces_eps": lambda saw, key: (
                    key.case.weight.dtype == torch.float32 and _gives(_formula)(saw, key)
                ),
            },
            points=2,
            essential=True,
        ),
        Check(
            "parameters",
            want=_parameters,
            ok=lambda saw, key: (
                same(saw.parameters, _parameters(key))
                and saw.kept
                and saw.kept_bias
                and saw.saved == sorted(_parameters(key))
            ),
            points=1,
            given=lambda saw, key: (
                f"{_made(key.case)}weight, bias = conv.weight, conv.bias; standardise(conv); conv(x); "
                "conv.weight_raw is weight, conv.bias is bias, {name: p.requires_grad for name, p in conv.named_parameters()}, "
                "sorted(conv.state_dict())"
            ),
            expected=lambda saw, key: (
                f"True, True, {show(_parameters(key))}, {show(sorted(_parameters(key)))}"
            ),
            got=lambda saw, key: f"{saw.kept}, {saw.kept_bias}, {show(saw.parameters)}, {show(saw.saved)}",
            mistakes={
                "overwrites_weight": lambda saw, key: "weight" in saw.parameters,
                "raw_not_parameter": lambda saw, key: "weight_raw" not in saw.parameters,
                "unfreezes": lambda saw, key: saw.kept and key.case.frozen and saw.parameters["weight_raw"],
                "freezes": lambda saw, key: any(
                    trained and not saw.parameters[name] for name, trained in _parameters(key).items()
                ),
                "another_parameter": lambda saw, key: not saw.kept,
                "another_bias": lambda saw, key: not saw.kept_bias,
                "saves_weight": lambda saw, key: "weight" in saw.saved,
            },
        ),
        equals(
            "gradient",
            lambda key: key.gradient,
            {
                "changes_raw": lambda saw, key: not same(saw.raw, saw.start),
                "new_parameter": lambda saw, key: saw.new_parameter,
                "detached": lambda saw, key: saw.gradient is None,
                "half_detached": lambda saw, key: any(_close(saw.gradient, g) for g in key.partial),
            },
            given=lambda saw, key: _called(key.case) + "; loss.backward()",
            expected="conv.weight_raw.grad == {want}",
            got="conv.weight_raw.grad == {value}",
            equal=_same_gradient,
        ),
        Check(
            "rebuilt",
            ok=lambda saw, key: (
                _close(saw.again, key.again, channels=1) and _same_gradient(saw.gradient_later, key.gradient)
            ),
            points=1,
            given=_repeated,
            expected=lambda saw, key: (
                f"conv.weight_raw.grad == {show(key.gradient)}"
                if _gradient_differs(saw, key)
                else show(key.again)
            ),
            got=lambda saw, key: (
                _shown_gradient(saw.gradient_later) if _gradient_differs(saw, key) else show(saw.again)
            ),
            mistakes={
                "one_step_late": lambda saw, key: saw.after and _stale(saw, key),
                # Then another Parameter is loaded, and the turns before saw the weights follow a change in place.
                "keeps_parameter": lambda saw, key: key.case.frozen and _stale(saw, key),
                "once_only": lambda saw, key: _stale(saw, key) and same(saw.in_training, saw.again),
                "sometimes_not": _stale,
            },
        ),
        handle_works("standardise(conv)", silent=lambda saw, key: same(saw.after_removal, saw.in_training)),
    ],
    raises={
        "assigns_to_parameter": r"cannot assign '.*' as parameter 'weight'",
        "leaf_in_place": r"leaf Variable that requires grad",
        "no_weight_yet": r"has no attribute 'weight'",
    }
    | MISREGISTERED,
)
