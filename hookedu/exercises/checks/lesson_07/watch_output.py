"""What decides about 07.4, `watch_output(layer, seen)`."""

from types import SimpleNamespace

import torch

from hookedu.exercises.checks.common import handle_works
from hookedu.exercises.checks.lesson_07.shared import as_in_key
from hookedu.exercises.criteria import Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_07.watch_output import PROBE, Case
from hookedu.exercises.tools import same


def _key(case: Case) -> SimpleNamespace:
    """Return what is wanted, and gradients of other tensors, computed by hand; a list has one for each loss."""
    model, x, ws = case
    x, weight, last = (tensor.detach() for tensor in (x, *model.parameters()))
    out, behind = x @ weight.T, [w @ last for w in ws]
    seen = [torch.where(out > 0, grad, 0.0) for grad in behind]
    of = {"relu": behind, "x": [grad @ weight for grad in seen], "weight": [grad.T @ x for grad in seen]}
    return SimpleNamespace(seen=seen, x_grad=sum(of["x"]), ended="ok", of=of, out=out, ws=ws)


_MISTAKES = {
    "not_registered": lambda saw, key: not saw.seen,
    "reads_dot_grad": lambda saw, key: saw.seen[0] is None,
    "after_relu": Gives(lambda key: key.of["relu"]),
    "hooks_input": Gives(lambda key: key.of["x"]),
    "hooks_weight": Gives(lambda key: key.of["weight"]),
    "keeps_output": Gives(lambda key: [key.out.relu()]),
    "not_each_pass": lambda saw, key: len(saw.seen) != 2 and {*map(type, saw.seen)} == {torch.Tensor},
}
_EVALUATION = {"given": "with torch.no_grad(): model(x)", "expected": "{value}", "got": "{value}"}

EXERCISE = Exercise(
    PROBE,
    key=_key,
    given="model = Sequential(layer, ReLU(inplace=True), Linear); layer(x) == {key.out}; "
    "for w in {key.ws}: (w * model(x)).sum().backward()",
    checks=[
        as_in_key("unchanged", "x_grad", 0, {"changes_gradient": True}, essential=True, label="x.grad"),
        as_in_key(
            "sees",
            "seen",
            3,
            _MISTAKES,
            essential=True,
            ok=lambda saw, key: same(saw.seen, key.seen),
            equal=lambda seen, wrong: same(seen[0], wrong[0]),  # the first entry tells a mistake
        ),
        as_in_key("evaluation", "ended", 1, {"no_grad_crash": True}, **_EVALUATION),
        handle_works("watch_output(layer, seen)", silent=lambda saw, key: saw.after_removal == 0),
    ],
    raises={
        "full_hook": r"is a view and is being modified inplace",
        "returns_handle": r"must be Tensor, not RemovableHandle",
        "detached": r"cannot register a hook on a tensor that doesn't require gradient",
    },
)
