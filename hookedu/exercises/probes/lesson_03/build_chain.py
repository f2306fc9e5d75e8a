"""What is observed of 03.3, `build_chain(y, factors, seen)`: what all hooks see in two passes, and without the last."""

from typing import Any

import torch

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probes.lesson_03.shared import Paths, Run
from hookedu.exercises.probing import Draw, Probe
from hookedu.exercises.tools import copies

# Powers of two, so that every ratio is exact. No three of them form a geometric progression, so no mistake gives the
# right result by coincidence.
_FACTORS = (2.0, -2.0, 4.0, -4.0, 0.5, -0.5)
Case = tuple[Paths, list[float]]


def make_case(rng: Draw) -> Case:
    """Return (paths, factors): three factors, one, or four with a ratio below 1 and the same twice in a row."""
    paths, some = Paths.make(rng), rng.sample(_FACTORS, 3)
    factors = [some, [-8], [4, 0.5, some[0], some[0]]][rng.turn]
    return paths, factors


def observe(build_chain: Any, case: Case) -> dict[str, Any]:
    """Run backward twice with all hooks, then without those of the last factor, then without any."""
    paths, factors = case
    seen: list[Any] = []
    early: list[Any] = []

    def register(y: torch.Tensor) -> Any:
        handles = build_chain(y, list(factors), seen)
        early.extend(copies(seen))
        return handles

    run = Run(paths, register)
    x_grad, s_grad = run.backward(paths.w)
    saw = {"early": early, "x_grad": x_grad, "s_grad": s_grad, "seen": copies(seen)}
    x_again, _ = run.backward(paths.other)
    saw |= run.seen() | {"x_again": x_again, "seen_again": copies(seen), "without_last": []}
    handles = run.returned if isinstance(run.returned, (list, tuple)) else [run.returned]
    ids = [getattr(handle, "id", 0) for handle in handles]
    saw["in_order"] = ids == sorted(ids)
    # The hooks of the last factor: the last hook alone, or as many hooks as each factor has.
    for n in dict.fromkeys((1, max(1, len(handles) // len(factors)))):
        run.remove(slice(-n, None))
        seen.clear()
        run.backward(paths.w)
        saw["without_last"].append(copies(seen))
    run.remove()
    return saw | {"after_removal": run.backward(paths.w)[0], "left": run.seen()["kept"]}


PROBE = Probe("03.3", "build_chain", make_case, observe, cases=3, changes=(2,), leaves=(HANDLES,))
