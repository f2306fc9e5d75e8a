"""What is observed of 05.3, `extracting(model, names)`: a block that ends well, two that fail, a misspelt name."""

from collections import OrderedDict, namedtuple
from typing import Any

import torch
from torch import nn

from hookedu.exercises.conduct import Stopped
from hookedu.exercises.probes.lesson_05.shared import (
    ERRORS,
    Failing,
    count_attached,
    instead_of,
    make_body,
    watch_graph,
)
from hookedu.exercises.probes.onlooker import Onlooker
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies, is_manager, whole

# What is observed only if the answer gives a context manager.
_IN_BLOCK = ("at_start", "hooks", "out", "again", "graph", "seen", "seen_no_grad", "seen_again", "attached")
_CAUSES = ("modes", "grad_inside", "frozen", "detached")
_AFTER = ("at_end", "after", "left", "lost", "late_lost", "names", "grad_enabled", "cleared")
_ON_FAILURE = ("left_by_error", "left_by_stop", "escaped", "raised", "instead", "left_by_name", "refused")
_ON_NAME = ("name_error", "name_instead", "kept", "nested")

# `stem`: dotted name of the part that holds `fc` and `act`, as `neck` after it does; `names`: those handed in, four of
# these layers and `head`; `misspelt`: the same and one that no module has.
Case = namedtuple("Case", "x weight second stem names misspelt")


TWIN = "head.twin"  # another name of a module


class Head(nn.Module):
    """Last layer of the model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1)


class Model(nn.Sequential):
    """A model that remembers what its `get_submodule` raised."""

    def __init__(self, parts: OrderedDict) -> None:
        super().__init__(parts)
        self.failures: list[AttributeError] = []

    def get_submodule(self, target: str) -> nn.Module:
        try:
            return super().get_submodule(target)
        except AttributeError as error:
            self.failures.append(error)
            raise


def make_case(rng: Draw) -> Case:
    """Return a case; the name of the part that holds `fc` and `act` varies.

    The second time it is longer, the part begins with another `head`, and the numbers are of float64. Its `act` has
    another name, `head.twin`, which nobody asks for.
    """
    stem, plain = rng.choice(("body", "trunk", "block")), rng.turn == 0
    stem += "" if plain else ".0"
    names = ["neck.fc", "neck.act"]
    names = [f"{stem}.fc", f"{stem}.act", *names] if plain else [f"{stem}.act", *names, "head"]
    misspelt = [*names, "head.nope"] if plain else ["head.nope", *names]
    while True:
        x, weight = whole(rng, 6).reshape(3, 2) if plain else whole(rng, 2), whole(rng, 4).reshape(2, 2)
        second = whole(rng, 4).reshape(2, 2)
        fc, neck = x @ weight.T, (x @ weight.T).relu() @ second.T
        # Where ReLU changes nothing, or lets nothing through, a layer could not be told from its parent.
        if all((out > 0).any() and (out < 0).any() for out in (fc, neck)):
            x, weight, second = (t if plain else t.double() for t in (x, weight, second))
            return Case(x, weight, second, stem, names, misspelt)


def _make(case: Case) -> nn.Module:
    part, head = make_body(case.weight), Head()
    if "head" in case.names:
        part = nn.Sequential(OrderedDict([("head", nn.Identity()), *part.named_children()]))
        head.twin = part.act
    for name in case.stem.split(".")[:0:-1]:
        part = nn.Sequential(OrderedDict([(name, part)]))
    parts = [(case.stem.split(".")[0], part), ("neck", make_body(case.second)), ("head", head)]
    model = Model(OrderedDict(parts))
    for parameter in model.to(case.weight.dtype).parameters():
        parameter.grad = torch.ones_like(parameter)
    model.get_parameter("neck.fc.bias").requires_grad_(False)
    return model


def observe(extracting: Any, case: Case) -> dict[str, Any]:
    """Run a model three times in a block and once after it; then two broken models; then pass a misspelt name."""
    x, names = case.x, list(case.names)
    models = [_make(case) for _ in range(4)]
    model, broken, stopped, other = models
    failing = broken.get_submodule("head").forward = stopped.get_submodule("head").forward = Failing()
    onlookers = [Onlooker(m) for m in models]
    inside = (part for name in (case.stem, "neck") for part in model.get_submodule(name).children())
    detached, modes = watch_graph(*inside), [m.training for m in model.modules()]
    learns = [p.requires_grad for p in model.parameters()]
    manager = extracting(model, names)
    saw = dict.fromkeys(_IN_BLOCK + _CAUSES + _AFTER + _ON_FAILURE + _ON_NAME) | {
        "manager": manager,
        "is_manager": is_manager(manager),
    }
    if not saw["is_manager"]:
        return saw
    with manager as seen:
        saw |= {"at_start": copies(seen), "hooks": onlookers[0].others()}
        out = model(x)
        saw["seen"] = copies(seen)
        with torch.no_grad():
            model(4 * x)
        saw["seen_no_grad"] = copies(seen)
        # Somebody else's hooks, registered after those of the answer.
        late = {m: m.register_forward_hook(lambda *of: None) for m in map(model.get_submodule, case.names)}
        again = model(2 * x)
        saw |= {
            "graph": out.requires_grad and again.requires_grad,
            "seen_again": copies(seen),
            "attached": count_attached(seen),
            "modes": [m.training for m in model.modules()] == modes,
            "grad_inside": torch.is_grad_enabled(),
            "frozen": [p.requires_grad for p in model.parameters()] != learns,
            "detached": detached(),
        }
    saw |= {"out": copies(out), "again": copies(again), "names": names}
    saw |= {"grad_enabled": torch.is_grad_enabled(), "at_end": copies(seen)}
    late_lost = saw["late_lost"] = sum(hook.id not in m._forward_hooks for m, hook in late.items())
    for hook in late.values():
        hook.remove()
    model(3 * x)
    saw |= {"after": copies(seen), "left": onlookers[0].others()}
    saw["cleared"] = any(p.grad is None or not p.grad.all() for p in model.parameters())

    left = []
    saw |= {"escaped": True, "refused": True}  # until a block ends without an exception
    for kind in (*ERRORS, Stopped):
        failed = stopped if kind is Stopped else broken
        failing.error, before = kind, onlookers[1].others()
        name, instead = "KeyboardInterrupt" if kind is Stopped else kind.__name__, None
        try:
            with extracting(failed, list(case.names)):
                failed(x)
            saw["escaped"], instead = False, ""
        except (Exception, Stopped) as error:
            instead = instead_of(failing, error)
        if instead is not None and saw["raised"] is None:
            saw |= {"raised": name, "instead": instead}
        left.append(onlookers[1].others() - before)
    saw |= {"left_by_error": max(left), "left_by_stop": onlookers[2].others()}
    try:
        with extracting(other, list(case.misspelt)):
            pass
        saw["refused"] = False
    except Exception as error:
        # An answer may look the name up in another way; what it asked of the model must come through.
        failures: Any = other.failures
        instead, *own = (f"{type(e).__name__}: {e}" for e in (error, *failures))
        if own and instead not in own:
            saw |= {"name_error": own[0], "name_instead": instead}
    saw["kept"] = copies(seen)
    saw["lost"] = sum(o.lost() for o in onlookers) + late_lost
    saw |= {"left_by_name": onlookers[3].others()}
    return saw | {"nested": _nested(extracting, case)}


def _nested(extracting: Any, case: Case) -> list[Any]:
    """Return what two blocks hold in the end, one inside the other, after a run in the inner one and one in the outer alone.

    A later block of the same names, with a run of its own, has nothing to do with them.
    """
    model = _make(case)
    with extracting(model, list(case.names)) as one:
        with extracting(model, list(case.names[:1])) as two:
            model(case.x)
        model(2 * case.x)
    with extracting(model, list(case.names)):
        model(3 * case.x)
    return [copies(one), copies(two)]


PROBE = Probe("05.3", "extracting", make_case, observe, cases=2, yields=True)
