"""What is observed of 12.3, `count_recomputed(model, x)`: its counts, how it ran the model, and its hooks."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import GRAD, RNG
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import module_hooks
from hookedu.hooks.state import GLOBAL_HOOKS

_NAMES = ["fc", "act", "body", "neck", "head", "stem", "gate", "proj", "mix", "out"]


class Case(NamedTuple):
    """Kinds of the children by name, and the shape of the input."""

    kinds: dict[str, str]
    batch: int
    width: int


def make_case(rng: Draw) -> Case:
    """Return a case with at least two layers that save tensors, then 1 to 3 that save none, in turn 2 one unused.

    One of those that save has a layer inside.
    """
    saving = [rng.choice(["linear", "tanh"]) for _ in range(rng.randint(1, 3))]
    saving.insert(rng.randrange(len(saving) + 1), "block")
    idle = [rng.choice(["times 2", "flatten"]) for _ in range(rng.randint(1, 3))]
    kinds = [*saving, *(["unused"] if rng.turn == 2 else []), *idle]
    names = rng.sample(_NAMES, len(kinds))
    return Case(dict(zip(names, kinds, strict=True)), 1 + rng.turn, rng.randint(2, 5))


class Twice(nn.Module):
    """A layer that multiplies by 2, for which backward needs no saved tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


def _modes(model: nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


class EndsTwice(nn.Module):
    """A model that runs its first and its last child twice, and no nn.Identity, and has dropout in between.

    It notes the gradients of its output, and for each run the state of the random numbers before and after dropout.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gradients: list[torch.Tensor] = []
        self.states: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.modes: list[list[bool]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.modes.append(_modes(self))
        used = [child for child in self.children() if not isinstance(child, nn.Identity)]
        x, before = used[0](x), torch.get_rng_state()
        x = nn.functional.dropout(x, 0.5)
        self.states.append((before, torch.get_rng_state()))
        for child in (*used, used[-1]):
            x = child(x)
        if x.requires_grad:
            x.register_hook(self.gradients.append)
        return x


def _layer(kind: str, width: int) -> nn.Module:
    # The block and the flatten have children of their own, which are not to be counted.
    layers = {
        "linear": nn.Linear(width, width),
        "block": nn.Sequential(nn.Linear(width, width), nn.Tanh()),
        "tanh": nn.Tanh(),
        "times 2": Twice(),
        "unused": nn.Identity(),
        "flatten": nn.Sequential(nn.Flatten()),
    }
    return layers[kind]


def _is_hooked(module: nn.Module) -> bool:
    """Check whether a module has more hooks than ours, or another `forward`, or there are hooks for all modules."""
    tables = [table for name, table in vars(module).items() if name.endswith("_hooks") and table]
    return sum(map(len, tables)) > 1 or "forward" in vars(module) or any(GLOBAL_HOOKS.values())


def _looked_up(counts: dict[Any, Any], names: Iterable[str]) -> dict[Any, Any]:
    """Return a plain dictionary, with what looking up these names gives: a Counter gives 0 for those that it lacks."""
    lacks = isinstance(counts, Counter | defaultdict) and counts.keys() <= set(names)
    return dict(counts) | ({name: counts[name] for name in names} if lacks else {})


def observe(count_recomputed: Any, case: Case) -> dict[str, Any]:
    """Note the starts of all layers while the answer runs; one is in eval mode.

    A frozen parameter and, where it requires gradients (but in turn 1), the input have a gradient of before.
    """
    model, started, hooked, arriving, copied = EndsTwice(), [], [], [], []

    def note(name: str, module: nn.Module, args: Any) -> None:
        started.append(name)  # by a copy as well, which has these hooks, too
        copied.append(module is not model.get_submodule(name))
        if torch._C._current_graph_task_id() != -1:  # backward is running
            hooked.append(_is_hooked(module))

    model.register_forward_pre_hook(partial(note, ""))
    for name, kind in case.kinds.items():
        model.add_module(name, _layer(kind, case.width))
        model.get_submodule(name).register_forward_pre_hook(partial(note, name))
    model.get_submodule(next(iter(case.kinds))).eval()
    block = next(name for name, kind in case.kinds.items() if kind == "block")
    weight = model.get_parameter(f"{block}.0.weight")
    frozen = model.get_parameter(f"{block}.0.bias").requires_grad_(False)
    x = torch.ones(case.batch, case.width, requires_grad=case.batch != 2)
    old = {"model." + block + "[0].bias": frozen} | ({"x": x} if x.requires_grad else {})
    for tensor in old.values():
        tensor.grad = torch.full_like(tensor, 1e6)
    if "x" in old:
        x.register_hook(arriving.append)
    modes, before = _modes(model), torch.get_rng_state()
    counts = count_recomputed(model, x)
    around = before, torch.get_rng_state()
    runs = model.states if len(model.states) <= 2 else [around]  # another breach, with draws of its own
    missing = [] if weight.grad is not None else ["model." + block + "[0].weight"]
    return {
        "counts": _looked_up(counts, case.kinds) if isinstance(counts, dict) else counts,
        "starts": {name: started.count(name) for name in case.kinds},
        "whole": started.count(""),
        "hooked": any(hooked),
        "copied": any(copied),
        "missing": ", ".join([*missing, *(["x"] if "x" in old and not arriving else [])]),
        # Its gradients are small.
        "wiped": ", ".join(name for name, t in old.items() if t.grad is None or not (t.grad > 5e5).all()),
        "gradient": [gradient.unique() for gradient in model.gradients],
        "same_masks": all(torch.equal(start, runs[0][0]) for start, _ in runs),
        # But for what the first run draws; checkpointing puts back what recomputation draws.
        "draws": not all(map(torch.equal, around, runs[0] if runs else around)),
        # A mode that is not put back is a breach of conduct.
        "switched": any(one != modes for one in model.modes) and _modes(model) == modes,
        "left": max(0, module_hooks(model) - len(case.kinds) - 1),
    }


# The model runs two times: recomputation is the second.
PROBE = Probe("12.3", "count_recomputed", make_case, observe, cases=3, leaves=(GRAD, RNG), runs=2)
