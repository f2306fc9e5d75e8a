"""What decides about 07.4, `watch_output(layer, seen)`."""

from types import SimpleNamespace
from typing import Any

import torch

from hookedu.exercises.checks.common import handle_works
from hookedu.exercises.checks.lesson_07.shared import NO_GRAD, as_in_key
from hookedu.exercises.criteria import Check, Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_07.watch_output import PROBE, Case
from hookedu.exercises.tools import same


def _key(case: Case) -> SimpleNamespace:
    """Return what is wanted, and gradients of other tensors, from a model without hooks and without in-place steps."""
    model, x, ws, old, times = case
    ws = ws + ws[-1:] * (times - 1)
    layer, _, *behind = model
    out = layer(x)
    relu = out.relu()
    y = torch.nn.Sequential(*behind)(relu)
    of = {"out": out, "relu": relu, "x": x, "weight": layer.weight}
    grads = [torch.autograd.grad(y, list(of.values()), w, retain_graph=True) for w in ws]
    of = dict(zip(of, map(list, zip(*grads, strict=True)), strict=True))
    kinds = ", ".join(type(module).__name__ for module in behind)
    mode = "" if layer.training else "; model.eval(); float64"
    held = "; seen holds a tensor" * len(old)
    given = f"model = Sequential(layer, ReLU(inplace=True), {kinds}){mode}{held}"
    runs = f"for w in {show(case.ws)}: (w * model(x)).sum().backward()"
    if len(case.ws) > 2:  # all forward passes but the first before the next backward
        runs = f"first, *others = {show(case.ws)}; (first * model(x)).sum().backward(); "
        runs += "losses = [(w * model(x)).sum() for w in others]; for loss in losses: loss.backward()"
    runs += "; then backward() of the last loss once more" * (times - 1)
    return SimpleNamespace(
        seen=of["out"],
        x_grad=sum(of["x"]),
        ended="ok",
        of=of,
        out=out.detach(),
        ws=ws,
        given=given,
        runs=runs,
        layer=layer,
    )


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Check whether two gradients are equal, nan included: inf - inf is nan."""
    return same(one.isnan(), other.isnan()) and same(*(grad.where(~grad.isnan(), 0) for grad in (one, other)))


def _dtypes(holder: Any) -> str:
    return ", ".join(dict.fromkeys(str(grad.dtype) for grad in holder.seen))


def _apart(saw: Any, key: Any) -> float:
    """Return the largest relative difference of two lists of gradients, or inf if they differ in more than numbers."""
    pairs = list(zip(saw.seen, key.seen, strict=False))
    if len(saw.seen) != len(key.seen) or any(getattr(s, "shape", None) != k.shape for s, k in pairs):
        return float("inf")
    return max(((s - k).abs() / k.abs()).where(k != 0, (s - k).abs()).max().item() for s, k in pairs)


# Gradients that an answer keeps which skips some for their values.
_KEEPS = (
    lambda grad: grad.any(),
    lambda grad: grad.isfinite().all(),
    lambda grad: grad.any() and grad.isfinite().all(),
)
_MISTAKES = {
    "latest_list": lambda saw, key: not saw.seen and len(saw.others) > len(key.ws),
    "clears": lambda saw, key: not saw.kept and same(saw.seen, key.seen),
    "asks_training": lambda saw, key: not saw.seen and not key.layer.training,
    "not_registered": lambda saw, key: not saw.seen,
    "reads_dot_grad": lambda saw, key: saw.seen[0] is None,
    "not_the_gradient": lambda saw, key: any(not isinstance(grad, torch.Tensor) for grad in saw.seen),
    "after_relu": Gives(lambda key: key.of["relu"]),
    "hooks_input": Gives(lambda key: key.of["x"]),
    "hooks_weight": Gives(lambda key: key.of["weight"]),
    "keeps_output": Gives(lambda key: [key.out.relu()]),
    "in_front": lambda saw, key: same(saw.seen[::-1], key.seen),
    "skips_some": lambda saw, key: any(same(saw.seen, list(filter(keeps, key.seen))) for keeps in _KEEPS),
    "not_each_pass": lambda saw, key: len(saw.seen) != len(key.ws),
}

# Of the check that the layer runs under torch.no_grad() and frozen, and that the output of a frozen one still needs no
# gradient.
_NO_GRADIENT = {
    "ok": lambda saw, key: saw.ended == "ok" and saw.frozen is False,
    "given": lambda saw, key: NO_GRAD["given"] if saw.ended != "ok" else _FROZEN,
    "expected": lambda saw, key: (
        "ok" if saw.ended != "ok" else "layer(x).requires_grad == False and x.requires_grad == False"
    ),
    "got": lambda saw, key: (
        saw.ended
        if saw.ended != "ok"
        else saw.frozen
        if isinstance(saw.frozen, str)
        else "layer(x).requires_grad == True or x.requires_grad == True"
    ),
    "mistakes": NO_GRAD["mistakes"]
    | {
        "frozen_crash": lambda saw, key: saw.ended == "ok" and isinstance(saw.frozen, str),
        "makes_need": lambda saw, key: saw.ended == "ok",
    },
}
_FROZEN = "layer.requires_grad_(False); layer(x), where x.requires_grad == False"

EXERCISE = Exercise(
    PROBE,
    key=_key,
    given="{key.given}; layer(x) == {key.out}; {key.runs}",
    checks=[
        as_in_key(
            "unchanged",
            "x_grad",
            0,
            {"changes_gradient": True},
            essential=True,
            ok=lambda saw, key: _alike(saw.x_grad, key.x_grad),
            label="x.grad",
        ),
        as_in_key(
            "sees",
            "seen",
            3,
            _MISTAKES,
            essential=True,
            ok=lambda saw, key: saw.kept and same(saw.seen, key.seen),
            got=[
                Say("old_gone", when=lambda saw, key: not saw.kept),
                Say(
                    "dtypes",
                    when=lambda saw, key: saw.seen and _dtypes(saw) != _dtypes(key),
                    dtypes=lambda saw, key: _dtypes(saw),
                ),
                Say(
                    "rounded",  # where both would print alike
                    when=lambda saw, key: 0 < _apart(saw, key) < 0.001,
                    apart=lambda saw, key: f"{_apart(saw, key):.0e}",
                ),
                "seen == {value}",
            ],
            equal=lambda seen, wrong: same(seen[0], wrong[0]),  # the first entry tells a mistake
        ),
        Check(
            "two_lists",
            ok=lambda saw, key: (
                sum(saw.both) < 2 or saw.both == [1, 1]
            ),  # fewer, if others' hooks are removed
            essential=True,
            given="watch_output(layer, a); watch_output(layer, b); loss.backward(); [len(a), len(b)]",
            expected="[1, 1]",
            got="{saw.both}",
            mistakes={"latest_list": lambda saw, key: saw.both[0] < 1},
        ),
        as_in_key("evaluation", "ended", 1, **NO_GRAD | _NO_GRADIENT),
        Check(
            "frozen",
            ok=lambda saw, key: saw.behind_trained != 0,
            essential=True,
            given="layer.requires_grad_(False); loss.backward(), where x.requires_grad == True",
            expected="len(seen) == 1",
            got="len(seen) == {saw.behind_trained}",
            mistakes={"asks_parameters": True},
        ),
        handle_works("watch_output(layer, seen)", silent=lambda saw, key: saw.after_removal == 0),
    ],
    raises={
        "full_hook": r"is a view and is being modified inplace",
        "returns_handle": r"must be Tensor, not RemovableHandle",
        "detached": r"cannot register a hook on a tensor that doesn't require gradient",
        "rebinds": r"UnboundLocalError.*'seen'",
    },
)
