"""What is observed of 02.2, `watch_many(tensors, seen)`: two backward passes, a third without the hooks, two dictionaries."""

import contextlib
from typing import Any, NamedTuple

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probing import Draw, Probe, hooks_on, remove_handle
from hookedu.exercises.tools import copies, noted, rebuilt, same, whole

_NAMES: tuple[str, ...] = ("trunk", "conv", "gate", "pool", "skip", "head", "norm", "proj")
# Names of tensors that require a gradient, and alike: none may be shortened or changed.
_ALIKE = ("stem", "Stem", "layer.0", "layer.0.conv")


OLD = 0.5  # what `seen` holds under names that it has already


class Case(NamedTuple):
    """Named tensors, some of which require no gradient, the gradient of each of the others, and what `seen` holds before."""

    x: torch.Tensor
    tensors: dict[str, torch.Tensor]
    gradients: dict[str, torch.Tensor]
    before: dict[str, torch.Tensor]


def make_case(rng: Draw) -> Case:
    """Return tensors in a random order of names: five; seven, one of them under two names, and a gradient of 0; one.

    The second time the names are alike, one gradient is infinite, and one has more digits than float16 holds. The last
    time `seen` is in use already.
    """
    x, leaf, frozen = whole(rng, 2).requires_grad_(), whole(rng, 2).requires_grad_(), torch.ones(2)
    if rng.turn == 0:
        made = [2 * x, 3 * x, frozen, leaf, x + 1]
    elif rng.turn == 1:
        twice = x[:, None] * x
        made = [leaf, twice, x.sum(), twice, frozen, torch.ones(1), x / 16]
    else:
        made = [x.prod()]
    names = rng.sample(_NAMES, len(made))
    if rng.turn == 1:
        alike = rng.sample(_ALIKE, len(_ALIKE))
        names = [*alike[:2], "layer.1", alike[2], *names[:2], alike[3]]
    tensors = dict(zip(names, made, strict=True))
    weights = {id(t): whole(rng, t.numel()).reshape(t.shape) for t in made if t.requires_grad}
    if rng.turn == 1:
        weights[id(made[2])].zero_()
        weights[id(made[-1])][0] = torch.inf
        weights[id(leaf)] += 2**-12
    before = {"earlier": whole(rng, 2)} if rng.turn == 2 else {}
    return Case(x, tensors, {name: weights[id(t)] for name, t in tensors.items() if t.requires_grad}, before)


def loss(case: Case) -> torch.Tensor:
    """Return a loss that gives the tensors their gradients."""
    once = {id(case.tensors[name]): name for name in case.gradients}.values()
    return torch.stack([(case.gradients[name] * case.tensors[name]).sum() for name in once]).sum()


def _remove(handles: Any) -> None:
    for handle in handles if isinstance(handles, (list, tuple)) else ():
        remove_handle(handle)


def observe(watch_many: Any, case: Case) -> dict[str, Any]:
    """Watch the tensors beside a hook of a third party; run backward twice, remove the hooks, and run it once more.

    Then watch them twice at a time; and at the end with a `seen` that holds all names already.
    """
    x, tensors, _, already = case
    names, seen, kept = [*tensors], dict(already), []
    tensors[names[0]].register_hook(kept.append)
    before = {name: hooks_on(tensors[name]) for name in names}
    handles = watch_many(dict(tensors), seen)
    # Of two names of one tensor, the first hook counts for the first name.
    earlier = {name: sum(tensors[n] is tensors[name] for n in names[:i]) for i, name in enumerate(names)}
    hooked = [name for name in names if hooks_on(tensors[name]) - before[name] > earlier[name]]
    gave = noted(tensors[names[0]])
    loss(case).backward(retain_graph=True)
    report = {"hooked": hooked, "seen": copies(seen), "is_list": isinstance(handles, list)}
    report["handles"] = rebuilt(handles, handles) if isinstance(handles, (list, tuple)) else handles
    first = [*kept, seen.get(names[0])]  # of one gradient, what the hook of others got and what `seen` holds
    before_second = copies(first)
    (2 * loss(case)).backward(retain_graph=True)
    report["written_over"] = None if same(copies(first), before_second) else copies(first)
    report |= {"gave": any(gave), "second": copies(seen), "x_grad": copies(x.grad)}
    report["switched"] = any(t.requires_grad for name, t in tensors.items() if name not in case.gradients)
    _remove(handles)
    seen.clear()
    loss(case).backward(retain_graph=True)
    report["after_removal"] = len(seen)
    one, two = {}, {}
    given = dict(tensors)
    handles = watch_many(given, one)
    given.clear()
    given.update(tensors)  # whatever the answer has done to it
    hooks = sum(map(hooks_on, given.values()))
    second = watch_many(given, two)
    report["no_more"] = sum(map(hooks_on, given.values())) <= hooks
    loss(case).backward(retain_graph=True)
    _remove(handles)
    _remove(second)
    known = {name: torch.full_like(grad, OLD) for name, grad in case.gradients.items()}
    handles = watch_many(dict(tensors), known)
    with contextlib.suppress(Exception):  # of an answer that is at odds with such entries
        loss(case).backward()
    _remove(handles)
    return report | {"two": [copies(one), copies(two)], "known": copies(known)}


PROBE = Probe("02.2", "watch_many", make_case, observe, cases=3, changes=(1,), leaves=(HANDLES,), yields=True)
