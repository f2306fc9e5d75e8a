"""Benchmark of the time that `import hookedu` adds to `import torch`.

Each import runs in a new interpreter; runs are interleaved, and the fastest of each counts. Bound: 50 ms.
"""

import subprocess
import sys

ROUNDS = 7
PROGRAMS = {
    "torch": "import torch",
    "torch + hookedu": "import torch, hookedu",
    "torch + hookedu.check": "import torch, hookedu; hookedu.check",
}
TIMED = "import time; t = time.perf_counter(); {program}; print(time.perf_counter() - t)"


def seconds(program: str) -> float:
    """Return the time of the program in a new interpreter."""
    run = subprocess.run(
        [sys.executable, "-c", TIMED.format(program=program)], capture_output=True, text=True, check=True
    )
    return float(run.stdout)


best = dict.fromkeys(PROGRAMS, float("inf"))
for _ in range(ROUNDS):
    for name, program in PROGRAMS.items():
        best[name] = min(best[name], seconds(program))
for name, time in best.items():
    print(
        f"import {name:22} {1000 * time:8.1f} ms   + {1000 * (time - best['torch']):6.1f} ms   {time / best['torch']:.3f} of torch"
    )
