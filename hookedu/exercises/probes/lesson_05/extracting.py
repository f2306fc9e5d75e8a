"""What is observed of 05.3, `extracting(model, names)`: a block that ends well, one that fails, a misspelt name."""

import random
from collections import OrderedDict, namedtuple
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from hookedu.exercises.probes.lesson_05.shared import count_attached, make_body, out_of_memory
from hookedu.exercises.probes.onlooker import Onlooker, is_cut
from hookedu.exercises.probing import Interruption, Probe
from hookedu.exercises.tools import copies, is_manager, whole

# What is observed only if the answer gives a context manager.
_IN_BLOCK = ("hooks", "out", "again", "graph", "seen", "at_end", "after", "attached", "left", "lost")
_ON_FAILURE = ("left_by_error", "escaped", "left_by_name", "refused")

# `names`: those of `fc` and `act` in the model; `misspelt`: the same and one that no module has.
Case = namedtuple("Case", "x weight names misspelt")


class Head(nn.Module):
    """Last layer of the model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1)


def make_case(rng: random.Random) -> Case:
    """Return a case; the name of the part that holds `fc` and `act` varies."""
    stem = rng.choice(("body", "trunk", "block"))
    names = [f"{stem}.fc", f"{stem}.act"]
    while True:
        x, weight = whole(rng, 2).reshape(1, 2), whole(rng, 4).reshape(2, 2)
        # If ReLU let nothing through, it would be impossible to tell what a hook changed.
        if (x @ weight.T > 0).any():
            return Case(x, weight, names, [*names, "head.nope"])


def observe(extracting: Any, case: Case) -> dict[str, Any]:
    """Run a model twice in a block and once after it; then a broken model; then pass a misspelt name."""
    x, weight, names, misspelt = case
    stem = names[0].split(".")[0]
    models = [nn.Sequential(OrderedDict([(stem, make_body(weight)), ("head", Head())])) for _ in range(3)]
    model, broken, other = models
    broken.get_submodule("head").forward = out_of_memory
    onlookers = [Onlooker(m) for m in models]
    manager = extracting(model, list(names))
    saw = dict.fromkeys(_IN_BLOCK + _ON_FAILURE) | {"manager": manager, "is_manager": is_manager(manager)}
    if not saw["is_manager"]:
        return saw
    with manager as seen:
        saw["hooks"], out = onlookers[0].others(), model(x)
        saw["seen"] = copies(seen)
        again = model(2 * x)
        saw["graph"] = not (is_cut(out) or is_cut(again))
    saw |= {"out": copies(out), "again": copies(again), "attached": count_attached(seen)}
    saw["at_end"] = copies(seen)
    model(3 * x)
    saw |= {"after": copies(seen), "left": onlookers[0].others()}

    saw |= {"escaped": True, "refused": True}  # until a block ends without an exception
    with suppress(Interruption):
        with extracting(broken, list(names)):
            broken(x)
        saw["escaped"] = False
    saw["left_by_error"] = onlookers[1].others()
    with suppress(Exception):
        with extracting(other, list(misspelt)):
            pass
        saw["refused"] = False
    return saw | {"left_by_name": onlookers[2].others(), "lost": sum(o.lost() for o in onlookers)}


PROBE = Probe("05.3", "extracting", make_case, observe)
