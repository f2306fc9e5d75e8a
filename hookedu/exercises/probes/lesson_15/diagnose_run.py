"""What is observed of 15.4, `diagnose_run(build, data)`: what it says of each patient of a ward, and what it leaves behind."""

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookedu.exercises.observation import type_name
from hookedu.exercises.probes.lesson_15.shared import hooks_left
from hookedu.exercises.probing import Draw, Probe, hooks_on
from hookedu.models.ward import FAULTS, HEALTHY, admit
from hookedu.models.ward.patient import fault_of

OF_EACH_KIND = 3
Built = tuple[nn.Module, torch.optim.Optimizer]


def make_case(rng: Draw) -> list[int]:
    """Return the seeds of patients in random order, as many of each kind; what a patient has follows from its seed alone.

    The first explodes: an answer that compares patients with those before it has nothing yet to compare this one with, and
    says something else when it comes again.
    """
    missing: Counter[str] = Counter(dict.fromkeys((HEALTHY, *FAULTS), OF_EACH_KIND))
    seeds = []
    while missing.total():
        seed = rng.getrandbits(32)
        if missing[fault_of(seed)]:
            missing[fault_of(seed)] -= 1
            seeds.append(seed)
    rng.shuffle(seeds)
    first = next(seed for seed in seeds if fault_of(seed) == "exploding")
    return sorted(seeds, key=lambda seed: seed != first)


def observe(diagnose_run: Any, seeds: list[int]) -> dict[str, Any]:
    """Show all patients, and the first of each kind again; then look at the models that were built.

    Hooks that are left count, be they on these models or on all modules of the program. All data come in one and the same
    list: the `id` of a list does not tell patients apart, as a new one may get that of one that is gone.
    """
    batches: list[Any] = []
    said, built, left, modes = [], 0, 0, 0
    for seed in [*seeds, *firsts(seeds)]:
        build, data, before, made = _prepared(seed)
        of_all = hooks_left()
        batches[:] = data
        said.append(_plain(diagnose_run(build, batches)))
        left += max(0, hooks_left() - of_all)
        built += len(made)
        left += sum(max(0, _hooks(*one) - _hooks(*before)) for one in made)
        modes += any(_modes(one[0]) != _modes(before[0]) for one in made)
    return {
        "said": said[: len(seeds)],
        "again": said[len(seeds) :],
        "built": built,
        "left": left,
        "modes": modes,
    }


def firsts(seeds: list[int]) -> list[int]:
    """Return the first patient of each kind, in the order in which they are shown a second time.

    An answer that compares a patient with those before it is at its weakest with these.
    """
    return [*{fault_of(seed): seed for seed in reversed(seeds)}.values()]


def _plain(said: Any) -> str | None:
    """Return what was said if it may be a name; of anything else, which may be as large as the data, only its type."""
    return said if said is None or type(said) is str else f"<{type_name(said)}>"


def _prepared(seed: int) -> tuple[Callable[[], Built], list[Any], Built, list[Built]]:
    """Return `build`, the data, a model with its optimizer as they come, and the list of those that `build` will make.

    The answer can ask `build` for nothing but copies of these: the patient, who knows what it has, is not among them.
    """
    patient = admit(seed)
    first, made = patient.build(), []

    def build() -> Built:
        made.append(copy.deepcopy(first))
        return made[-1]

    return build, patient.data, first, made


def _hooks(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Count the hooks on a model, its parameters and its optimizer."""
    holders = [*map(vars, model.modules()), vars(optimizer)]
    tables = [
        table for holder in holders for name, table in holder.items() if name.endswith("_hooks") and table
    ]
    after = sum(len(p._post_accumulate_grad_hooks or ()) for p in model.parameters())
    return sum(map(len, tables)) + sum(map(hooks_on, model.parameters())) + after


def _modes(model: nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


# It trains 33 models and more, so there is one case; what is kept between calls shows when patients come again.
PROBE = Probe("15.4", "diagnose_run", make_case, observe, cases=1, repeats=False)
