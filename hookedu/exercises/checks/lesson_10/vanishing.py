"""What decides about 10.4, `vanishing(model, x, target, ratio)`."""

import torch
import torch.nn.functional as F

from hookedu.exercises.checks.lesson_10.shared import RAISES, cleans_up, equals_rounded
from hookedu.exercises.criteria import Gives, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_10.vanishing import PROBE, Case


def _sizes(case: Case) -> tuple[dict[str, float], dict[str, float]]:
    """Return the mean absolute value and the norm of the gradient at every child's output, without hooks."""
    x, outputs = case.x, []
    for name in case.run:
        x = F.linear(x, case.weights[name].clone().requires_grad_()) if name in case.weights else x.relu()
        outputs.append(x)
    grads = dict(zip(case.run, torch.autograd.grad(F.cross_entropy(x, case.target), outputs), strict=True))
    means = {name: grad.abs().mean().item() for name, grad in grads.items()}
    return means, {name: grad.norm().item() for name, grad in grads.items()}


def _below(sizes: dict[str, float], limit: float) -> list[str]:
    """Return the names of the sizes below a limit."""
    return [name for name, size in sizes.items() if size < limit]


class _Key:
    """The names to be found, and those that other sizes and other thresholds give."""

    def __init__(self, case: Case) -> None:
        self.means, norms = _sizes(case)
        means = self.means
        self.last = case.run[-1]
        self.weak = _below(means, case.ratio * means[self.last])
        self.below_largest = _below(means, case.ratio * max(means.values()))
        self.by_norm = _below(norms, case.ratio * norms[self.last])
        self.sizes = ", ".join(f"{name} {mean:.2g}" for name, mean in means.items())


def _tells_mistakes_apart(case: Case) -> bool:
    """Check whether the first two children are clearly weak, and whether other measures find other children."""
    key, (stem, narrow, act, _, head) = _Key(case), case.run
    limit, found = case.ratio * key.means[head], [key.weak, key.below_largest, key.by_norm]
    clear = 0 < 1.2 * max(key.means[stem], key.means[narrow]) < limit < key.means[act] / 1.2
    return clear and key.weak == [stem, narrow] and all(found) and len({*map(tuple, found)}) == 3


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_tells_mistakes_apart,
    given=Say("sizes"),
    checks=[
        equals_rounded(
            "finds",
            lambda key: key.weak,
            {
                "returns_nothing": lambda saw, key: saw.found is None,
                "no_names": lambda saw, key: type(saw.found) is not list or {*map(type, saw.found)} - {str},
                "nothing_found": lambda saw, key: not saw.found,
                "parameter_names": lambda saw, key: any("." in name for name in saw.found),
                # In front of the ReLU, `retain_grad` sees the gradient behind it, which is not small.
                "retains": Gives(lambda key: key.weak[:1]),
                "against_largest": Gives(lambda key: key.below_largest),
                "by_norm": Gives(lambda key: key.by_norm),
                "comparison": lambda saw, key: key.last in saw.found,
            },
            observed="found",
            equal=lambda found, names: isinstance(found, list) and sorted(map(str, found)) == sorted(names),
            points=3,
            essential=True,
        ),
        equals_rounded("healthy", lambda key: [], {}, essential=True, given="ratio = 1e-9"),
        equals_rounded("order", lambda key: key.weak, {"other_order": True}, observed="found"),
        *cleans_up("vanishing({}, x, target, ratio)"),
    ],
    raises={"full_hook": r"is a view and is being modified inplace"} | RAISES,
)
