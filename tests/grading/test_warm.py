"""What the warm process holds for its forks: nothing that a learner wrote, and ready what each of them needs."""

import contextlib
import ctypes
import json
import re
import subprocess
import sys
import threading

import pytest

from hookedu import catalog
from hookedu.exercises import of_lesson
from hookedu.grading.limits import Limits
from hookedu.grading.matching import Plan, Step
from hookedu.grading.rows import Status
from hookedu.grading.run.runner import run, seeds_for
from hookedu.grading.run.sandbox import Sandbox
from tests.answers import answers
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


# Prints what the rehearsals of a lesson leave behind, and what a fork then loads that probes right answers.
REHEARSE = """
import json, os, random, sys, threading
import torch
from hookedu.exercises import probes, probing
from hookedu.grading.run import worker
from hookedu.hooks.state import GLOBAL_HOOKS

def state():
    return {
        "names": sorted(worker._warm["shell"].user_ns),
        "random numbers": (random.getstate(), torch.get_rng_state().tolist()),
        "hooks": [len(table) for table in GLOBAL_HOOKS.values()],
        "settings": (torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()),
        "threads": (os.listdir("/proc/self/task"), threading.active_count()),
        "children": open(f"/proc/self/task/{os.getpid()}/children").read(),
    }

worker.warm_up()
before = state()
for lesson, sources in json.load(sys.stdin).items():
    worker.prepare({"setup": (), "probes": [[*sources]]})
    now = state()
    print(lesson, "leaves", [name for name in now if now[name] != before[name]], flush=True)
    if os.fork() == 0:
        modules = worker._warm.pop("modules")
        for exercise, source in reversed(sources.items()):  # compiled code that one leaves, another one clears
            names, probe = {}, probes.find(exercise)
            exec(source, names)
            loaded = set(sys.modules)
            probing.observe(probe, names[probe.answer], range(probe.cases))
            print(exercise, "loads", sorted(set(sys.modules) - loaded), "and changes", modules.put_back(), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_rehearsal_leaves_nothing_behind_and_loads_what_probes_load():
    right = {a.exercise: a.typed() for a in reversed(answers()) if a.mistake is None}
    lessons = {lesson.id: [e.id for e in of_lesson(lesson.id)] for lesson in catalog.lessons()}
    sources = {lesson: {id: right[id] for id in ids} for lesson, ids in lessons.items() if ids}
    command, given = [sys.executable, "-c", REHEARSE], json.dumps(sources)
    done = subprocess.run(command, cwd=catalog.ROOT, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = {f"{lesson} leaves []" for lesson in sources} | {
        f"{id} loads [] and changes []" for id in right
    }
    assert set(done.stdout.splitlines()) == expected


GAPS = """
import ctypes
from hookedu.grading.run import namespaces

libc = namespaces._libc()
kept = [ctypes.create_string_buffer(700 + 16 * (n % 50)) for n in range(20_000)]
del kept[::2]  # ten thousand gaps

def gaps():
    found = libc.mallinfo2()
    return found.fordblks - found.keepcost

libc.mallinfo2.restype = namespaces._Mallinfo
before = gaps()
namespaces.settle()
print(before, gaps())
"""


def test_forks_find_no_gaps_to_fill_one_page_each():
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("the C library does not tell")
    done = subprocess.run([sys.executable, "-c", GAPS], cwd=catalog.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after < before / 50 and before > 2**22
