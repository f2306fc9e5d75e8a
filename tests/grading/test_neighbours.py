"""A submission does not lose its result because of what its neighbours do to the machine."""

import io

import pytest
from rich.console import Console

from hookedu.grading.batch import grade
from hookedu.grading.rows import Status
from tests.grading import notebooks as nb

pytestmark = [pytest.mark.xdist_group("grading-neighbours"), pytest.mark.isolated]
FILE = "02_tensor_hooks.ipynb"
SWARM = """
import os
for _ in range(40):
    if os.fork() == 0:
        while True:
            pass
while True:
    pass
"""
WORK = """
import time
while time.process_time() < {seconds}:  # of its own, however long it waits for a processor
    pass
"""


def test_a_swarm_of_processes_does_not_starve_an_honest_submission(tmp_path):
    honest = nb.before(nb.answered(nb.reference()), "02.1", [nb.code(WORK.format(seconds=1))])
    nb.hand_in(tmp_path / "class" / "honest" / FILE, honest)
    for name in ("swarm-1", "swarm-2"):
        nb.hand_in(tmp_path / "class" / name / FILE, nb.answered({"02.1": SWARM}))
    console = Console(file=io.StringIO())
    done = grade(tmp_path / "class", tmp_path / "out", jobs=3, time_limit=6, console=console)
    rows = {row.student: row for row in done.rows}
    assert [rows[name].status for name in ("swarm-1", "swarm-2")] == [Status.TIMEOUT] * 2
    assert (rows["honest"].status, rows["honest"].points) == (Status.GRADED, 15), rows["honest"].notes
    assert max(row.seconds for row in rows.values()) < 6 * 6 + 30, "waiting for a processor is limited too"
