"""What decides about 07.4, `watch_output(layer, seen)`."""

from types import SimpleNamespace

import torch

from hookedu.exercises.checks.common import handle_works
from hookedu.exercises.checks.lesson_07.shared import NO_GRAD, as_in_key
from hookedu.exercises.criteria import Gives, Say
from hookedu.exercises.exercise import Exercise
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
    mode = "" if layer.training else "; model.eval()"
    held = "; seen holds a tensor" * len(old)
    given = f"model = Sequential(layer, ReLU(inplace=True), {kinds}){mode}{held}"
    again = "; then backward() of the last loss once more" * (times - 1)
    return SimpleNamespace(
        seen=of["out"],
        x_grad=sum(of["x"]),
        ended="ok",
        of=of,
        out=out.detach(),
        ws=ws,
        given=given,
        again=again,
        layer=layer,
    )


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

EXERCISE = Exercise(
    PROBE,
    key=_key,
    given="{key.given}; layer(x) == {key.out}; for w in {key.ws}: (w * model(x)).sum().backward(){key.again}",
    checks=[
        as_in_key(
            "unchanged",
            "x_grad",
            0,
            {"changes_gradient": True},
            essential=True,
            ok=lambda saw, key: same(saw.x_grad.nan_to_num(), key.x_grad.nan_to_num()),  # inf - inf is nan
            label="x.grad",
        ),
        as_in_key(
            "sees",
            "seen",
            3,
            _MISTAKES,
            essential=True,
            ok=lambda saw, key: saw.kept and same(saw.seen, key.seen),
            got=[Say("old_gone", when=lambda saw, key: not saw.kept), "seen == {value}"],
            equal=lambda seen, wrong: same(seen[0], wrong[0]),  # the first entry tells a mistake
        ),
        as_in_key("evaluation", "ended", 1, **NO_GRAD),
        handle_works("watch_output(layer, seen)", silent=lambda saw, key: saw.after_removal == 0),
    ],
    raises={
        "full_hook": r"is a view and is being modified inplace",
        "returns_handle": r"must be Tensor, not RemovableHandle",
        "detached": r"cannot register a hook on a tensor that doesn't require gradient",
        "rebinds": r"UnboundLocalError.*'seen'",
    },
)
