"""What is observed of 08.4, `register_once(handles, name, module, hook)`: which hooks fire after each registration."""

import contextlib
from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES, OTHERS
from hookedu.exercises.probes.lesson_08.shared import SomeonesHook, is_on
from hookedu.exercises.probing import Draw, Probe, remove_handle


class Case(NamedTuple):
    """Two names, the numbers that hooks note, which differ unless one hook is registered again, and a mode.

    Hooks of someone else's are on the modules: `other` on the first, `elsewhere` on the second.
    """

    name: str
    second_name: str
    runs: list[int]
    other: int
    second: int
    moved: int
    elsewhere: int
    training: bool


def make_case(rng: Draw) -> Case:
    """Return a case of three to five runs, of names that begin alike.

    In turn 1 the first name is empty, the first module in eval mode, and one hook is registered each time: also under the
    second name and on the second module, where it is someone else's, too. Hooks return tuples then, else tensors.
    """
    numbers = rng.sample(range(100, 1000), 9)
    name = "" if rng.turn == 1 else rng.choice(["count", "keep", "shapes", "norms"])
    second_name = f"{name}2"
    n = rng.randint(3, 5)
    if rng.turn == 1:
        one = numbers[0]
        return Case(name, second_name, [one] * n, numbers[5], one, one, one, False)
    return Case(name, second_name, numbers[:n], *numbers[5:], training=True)


def observe(register_once: Any, case: Case) -> dict[str, Any]:
    """Register under one name several times, under a second name, and on a second module; then remove all.

    From the second time on, the first module runs under no_grad, and once more at the end. Modules in training mode are
    empty containers, which count as false. Last, register a hook that is kept nowhere else, and one on a module that raises.
    """
    kind = nn.Sequential if case.training else nn.Identity
    a, b, x = kind(), kind(), torch.ones(2)
    handles: dict[Any, Any] = {}
    seen: list[int] = []
    results: dict[nn.Module, Any] = {}  # what the latest hook of each module returned
    grad_on: list[bool] = []  # for each time that a hook fires

    def noting(n: int) -> SomeonesHook:
        def hook(module: nn.Module, args: Any, output: Any) -> Any:
            fit = isinstance(args, tuple) and args[0] is x and output is results.get(module, x)
            grad_on.append(torch.is_grad_enabled())
            seen.append(n if fit else -n)  # -n for arguments that no forward hook is called with here
            results[module] = x + len(seen) if case.training else (x, x + len(seen))
            return results[module]

        return SomeonesHook(hook)

    hooks = {n: noting(n) for n in {*case.runs, *case[3:7]}}

    def register(name: str, module: nn.Module, number: int) -> tuple[Any, Any]:
        return register_once(handles, name, module, hooks[number]), handles.get(name)

    def fired(*modules: nn.Module) -> list[int]:
        seen.clear()
        grad_on.clear()
        results.update(dict.fromkeys(modules, x))
        for module in modules:
            module(x)
        return list(seen)

    # Someone else's hooks, one of them under the same name in a dictionary of theirs.
    a.register_forward_hook(hooks[case.other])
    theirs: dict[Any, Any] = {}
    register_once(theirs, case.name, b, hooks[case.elsewhere])
    a.train(case.training)
    runs = []
    for number in case.runs:
        handle = register(case.name, a, number)
        with torch.set_grad_enabled(not runs):
            runs.append((*handle, fired(a), grad_on.copy()))
    returned, stored, again, _ = runs[-1]
    saw: dict[str, Any] = {"grad_on": [all(runs[0][3]), any(runs[1][3])], "later": fired(a)}
    saw |= {"first": runs[0][2], "again": again, "stored": stored, "on": is_on(stored)}
    saw["forward"] = is_on(stored) and stored.hooks_dict_ref() is a._forward_hooks
    pairs = [run[:2] for run in runs] + [register(case.second_name, a, case.second)]
    saw["two_names"] = fired(a)
    saw["kept"], saw["shared"] = is_on(stored), stored is handles.get(case.second_name)
    pairs.append(register(case.name, b, case.moved))
    saw["moved"] = [fired(a), fired(b)]
    # The first value returned that is not the handle stored, if there is one.
    saw["handle"] = next((returned for returned, stored in pairs if returned is not stored), returned)
    saw["same"] = all(returned is stored for returned, stored in pairs)
    # A hook that is registered once more may as well be left where it is, and its handle with it.
    saw["renewed"] = len({id(stored) for _, stored, *_ in runs}) >= len({*case.runs})
    saw["names"] = sorted(map(str, handles))
    for handle in handles.values():
        remove_handle(handle)
    saw["after"] = fired(a, b)
    alone = nn.Identity()
    last: dict[Any, Any] = {}
    register_once(last, case.name, alone, noting(case.moved))
    saw["alone"] = fired(alone)
    failing = nn.Linear(3, 2)
    register_once(last, case.second_name, failing, noting(case.moved))
    seen.clear()
    with contextlib.suppress(RuntimeError):
        failing(x)  # 2 numbers instead of 3
    saw["failed"] = list(seen)
    for handle in (*theirs.values(), *last.values()):
        remove_handle(handle)
    return saw


# A hook that it registered in an earlier call is one of the others in the next.
PROBE = Probe("08.4", "register_once", make_case, observe, cases=2, changes=(0,), leaves=(HANDLES, OTHERS))
