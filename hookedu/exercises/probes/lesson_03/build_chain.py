"""What is observed of 03.3, `build_chain(y, factors, seen)`: the looks of all hooks, of none, and without the last."""

import random
from typing import Any

import torch

from hookedu.exercises.probes.lesson_03.shared import ALL, NONE, Paths
from hookedu.exercises.probing import Probe
from hookedu.exercises.tools import copies

# Powers of two, so that every ratio is exact. No three of them form a geometric progression, so no mistake gives the
# right result by coincidence.
_FACTORS = (2.0, -2.0, 4.0, -4.0, 0.5, -0.5)
Case = tuple[Paths, list[float]]


def make_case(rng: random.Random) -> Case:
    """Return (paths, factors)."""
    return Paths.make(rng), rng.sample(_FACTORS, 3)


def observe(build_chain: Any, case: Case) -> dict[str, Any]:
    """Run backward with all hooks, without any, and twice without those of the last factor."""
    paths, factors = case

    def run(off: slice = NONE) -> dict[str, Any]:
        seen, early = [], []

        def register(y: torch.Tensor) -> Any:
            handles = build_chain(y, list(factors), seen)
            early.extend(copies(seen))
            return handles

        return paths.observe(register, off) | {"seen": copies(seen), "early": early}

    saw = run()
    handles = saw["returned"]
    # The hooks of the last factor: the last hook alone, or as many hooks as each factor has.
    several = len(handles) // len(factors) if isinstance(handles, (list, tuple)) else 1
    without_last = [run(slice(-n, None))["seen"] for n in (1, max(1, several))]
    return saw | {"after_removal": run(ALL)["x_grad"], "without_last": without_last}


PROBE = Probe("03.3", "build_chain", make_case, observe)
