"""What is observed of 03.3, `build_chain(y, factors, seen)`: what all hooks see in two passes, and without the last."""

from typing import Any

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_03.shared import Paths, Run, asked, first_of_two
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies

# Powers of two, so that every ratio is exact. No three of them form a geometric progression, so no mistake gives the
# right result by coincidence.
_FACTORS = (2.0, -2.0, 4.0, -4.0, 0.5, -0.5)
Case = tuple[Paths, list[float], list[str]]


def make_case(rng: Draw) -> Case:
    """Return (paths, factors, what lies in `seen` before the call).

    The factors are three, one, four with a ratio below 1 and the same twice in a row, or three whole numbers, one
    of them with a ratio that is close to 1.
    """
    paths, some = Paths.make(rng), rng.sample(_FACTORS, 3)
    factors = [some, [-8], [4, 0.5, some[0], some[0]], [32, 33, 66]][rng.turn]
    return paths, factors, ["before"] * (rng.turn > 0)


def observe(build_chain: Any, case: Case) -> dict[str, Any]:
    """Run backward twice with all hooks, then without those of the last factor, without any, with two calls alive, and on a leaf.

    One gradient of the leaf is 0.
    """
    paths, factors, before = case
    seen: list[Any] = [*before]
    n_before = len(before)
    early: list[Any] = []

    def register(y: torch.Tensor) -> Any:
        handles = build_chain(y, list(factors), seen)
        early.extend(copies(seen[n_before:]))
        return handles

    run = Run(paths, register)
    x_grad, s_grad = run.backward(paths.w)
    saw = {"early": early, "x_grad": x_grad, "s_grad": s_grad, "seen": copies(seen[n_before:])}
    noted = [one for one in seen[n_before:] if isinstance(one, torch.Tensor)]
    saw["one_tensor"] = len({one.data_ptr() for one in noted}) < len(noted)
    x_again, _ = run.backward(paths.other)
    saw |= run.seen() | {"x_again": x_again, "without_last": []}
    saw |= {"seen_again": copies(seen[n_before:]), "before": copies(seen[:n_before])}
    handles = run.returned if isinstance(run.returned, (list, tuple)) else [run.returned]
    ids = [getattr(handle, "id", 0) for handle in handles]
    saw["in_order"] = ids == sorted(ids)
    # The hooks of the last factor: the last hook alone, or as many hooks as each factor has.
    for n in dict.fromkeys((1, max(1, len(handles) // len(factors)))):
        run.remove(slice(-n, None))
        seen.clear()
        run.backward(paths.w)
        run.backward(paths.other)
        saw["without_last"].append(copies(seen))
    run.remove()
    saw |= {"after_removal": run.backward(paths.w)[0], "left": run.seen()["kept"], "beside": []}
    calls = [(factors, saw["beside"]), ([3 * factor for factor in factors], [])]
    first_of_two(paths, *(lambda y, call=call: build_chain(y, list(call[0]), call[1]) for call in calls))
    on_leaf: list[Any] = []
    calls = [(factors, on_leaf), (factors, [])]
    zero = paths._replace(other=0 * paths.w)
    saw |= asked(zero, *(lambda y, call=call: build_chain(y, list(call[0]), call[1]) for call in calls))
    return saw | {"on_leaf": copies(on_leaf)}


PROBE = Probe("03.3", "build_chain", make_case, observe, cases=4, changes=(2,), leaves=(HANDLES,))
