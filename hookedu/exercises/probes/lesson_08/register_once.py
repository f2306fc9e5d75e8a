"""What is observed of 08.4, `register_once(handles, name, module, hook)`: which hooks fire after each registration."""

import random
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.lesson_08.shared import SomeonesHook, is_on
from hookedu.exercises.probing import Probe, remove_handle


class Case(NamedTuple):
    """Two names, and the numbers that hooks note, which all differ."""

    name: str
    second_name: str
    runs: list[int]
    other: int
    second: int
    moved: int


def make_case(rng: random.Random) -> Case:
    """Return a case of three to five runs."""
    numbers = rng.sample(range(100, 1000), 8)
    name, second_name = rng.sample(["count", "keep", "shapes", "norms"], 2)
    return Case(name, second_name, numbers[: rng.randint(3, 5)], *numbers[5:])


def observe(register_once: Any, case: Case) -> dict[str, Any]:
    """Register under one name several times, under a second name, and on a second module; then remove all."""
    a, b, x = nn.Identity(), nn.Identity(), torch.ones(1)
    handles: dict[Any, Any] = {}
    seen: list[int] = []

    def noting(number: int) -> SomeonesHook:  # a new hook each time, as in a cell that runs again
        return SomeonesHook(lambda module, args, output: seen.append(number))

    def fired(*modules: nn.Module) -> list[int]:
        seen.clear()
        for module in modules:
            module(x)
        return list(seen)

    a.register_forward_hook(noting(case.other))  # someone else's hook
    runs = [(register_once(handles, case.name, a, noting(number)), fired(a)) for number in case.runs]
    stored = handles.get(case.name)
    saw = {
        "first": runs[0][1],
        "again": runs[-1][1],
        "handle": runs[-1][0],
        "stored": stored,
        "on": is_on(stored),
    }
    register_once(handles, case.second_name, a, noting(case.second))
    saw["two_names"] = fired(a)
    register_once(handles, case.name, b, noting(case.moved))
    saw["moved"] = fired(a, b)
    saw["removable"] = remove_handle(handles.get(case.name)) and remove_handle(handles.get(case.second_name))
    return saw | {"after": fired(a, b)}


PROBE = Probe("08.4", "register_once", make_case, observe)
