"""What the warm process holds: nothing that a learner wrote, because every later fork would inherit it."""

import contextlib
import re
import threading

import pytest

from hookedu.grading.matching import Plan, Step
from hookedu.grading.rows import Limits, Status
from hookedu.grading.run.runner import run, seeds_for
from hookedu.grading.run.sandbox import Sandbox
from tests.grading import notebooks as nb
from tests.grading.processes import descendants

MARK = "secret_of_ann_" + "7f3a9c"
ENDS = {
    Status.GRADED: "",
    Status.KILLED: "import ctypes\nctypes.string_at(0)",
    Status.TIMEOUT: "while True: pass",
}


def holds(pid: int, text: bytes) -> bool:
    """Check whether the writable memory of a process contains some bytes."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(FileNotFoundError, ProcessLookupError))  # it has ended
        maps = stack.enter_context(open(f"/proc/{pid}/maps"))
        memory = stack.enter_context(open(f"/proc/{pid}/mem", "rb", buffering=0))
        for line in maps:
            begin, end = (int(n, 16) for n in re.match(r"(\w+)-(\w+)", line).groups())
            if "rw" in line.split()[1] and "[v" not in line:
                with contextlib.suppress(OSError, OverflowError):
                    memory.seek(begin)
                    if text in memory.read(end - begin):
                        return True
    return False
    return False


@pytest.mark.isolated
@pytest.mark.parametrize("isolated", [True, False])
def test_the_warm_process_never_holds_what_a_learner_wrote(isolated):
    answer = nb.right()["02.1"]
    limits = Limits(seconds=4)
    with contextlib.closing(Sandbox(isolated, limits.startup)) as sandbox:
        for status, ending in [*ENDS.items(), (Status.GRADED, "")]:
            source = f"{MARK} = '{MARK}'\n# {MARK}\n{answer}\n"
            plan = Plan((Step(source, ("02.1",)), Step(ending)), ())
            ran = run(plan, (), seeds_for(plan, "ann", "0"), limits, sandbox, threading.Event())
            assert ran.status is status and "02.1" in ran.records
        assert sandbox._process
        warm = [sandbox._process.pid, *descendants(sandbox._process.pid)]
        try:
            assert any(holds(pid, b"hookedu") for pid in warm)
        except PermissionError:
            pytest.skip("only root may read the memory of another process")
        assert not [pid for pid in warm if holds(pid, MARK.encode())]
