"""Benchmark of the startup of `hookedu lab` against `jupyter lab`.

Each start has an empty home; starts are interleaved, and the fastest of each counts. Bound: 5 s.
"""

import sys
import tempfile
import time
from pathlib import Path

from hookedu import catalog
from tests.browser.lab import newcomer, running

ROUNDS = 5
MODULES = {"jupyter lab": ["jupyterlab", "--allow-root"], "hookedu lab": ["hookedu", "lab"]}


def seconds(module: list[str]) -> float:
    """Return the time of one start, until the first page is served."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "lessons")
        folder.mkdir()
        where = {"jupyterlab": "--ServerApp.root_dir", "hookedu": "--folder"}[module[0]]
        env = newcomer(Path(home)) | {"PYTHONPATH": str(catalog.ROOT)}
        begin = time.perf_counter()
        with running([sys.executable, "-m", *module, f"{where}={folder}"], folder, env):
            return time.perf_counter() - begin


best = dict.fromkeys(MODULES, float("inf"))
for _ in range(ROUNDS):
    for name, module in MODULES.items():
        best[name] = min(best[name], seconds(module))
for name, time_ in best.items():
    print(f"{name:12} {time_:5.2f} s   {time_ / best['jupyter lab']:.2f} of jupyter lab")
