"""Each submission runs in a control group of its own, where the machine lets the grader create one.

The tests use the real kernel. Where the controllers for memory and processes belong to cgroup v1, as in some virtual
machines, those that v2 has take their place: then everything but the limits themselves is tested.
"""

import contextlib
import os
import subprocess
import sys
import threading

import pytest

from hookedu.grading.batch import grade
from hookedu.grading.rows import Status
from hookedu.grading.run import cgroups
from hookedu.grading.run.sandbox import Sandbox
from tests.grading import notebooks as nb

pytestmark = [pytest.mark.xdist_group("grading-cgroups"), pytest.mark.isolated]
FILE = "02_tensor_hooks.ipynb"
CHILDREN = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
time.sleep(600)
"""


@pytest.fixture
def base(monkeypatch):
    """Create a group with only a sleeping process in it, as a scope of systemd has; yield it and the process."""
    try:
        here = cgroups._group_of(os.getpid())
        assert here
        controllers = (here / "cgroup.controllers").read_text().split()
        if not {*cgroups._NEEDED} <= {*controllers}:
            monkeypatch.setattr(cgroups, "_NEEDED", tuple(controllers))
        before = cgroups._lines(here / "cgroup.subtree_control")
        cgroups._hand_on(here)
        base = here / f"test-{os.getpid()}"
        base.mkdir()
    except (OSError, AssertionError) as error:
        pytest.skip(f"no cgroup v2 here in which groups can be made: {error}")
    sleeping = subprocess.Popen(["sleep", "600"])
    (base / "cgroup.procs").write_text(str(sleeping.pid))
    yield base, sleeping
    sleeping.kill()
    sleeping.wait()
    for group in (*base.glob("*/*/"), *base.glob("*/"), base):
        cgroups.Group(group).remove()
    for name in {*controllers} - {*" ".join(before).split()}:
        cgroups._write(here / "cgroup.subtree_control", f"-{name}")


def own_groups():
    """Return the groups of this process's graders, and for each group within them the processes in it."""
    here = cgroups._group_of(os.getpid())
    found = {}
    for group in here.glob(f"{cgroups._OURS}{os.getpid()}-*"):
        found[group] = {path: cgroups._lines(path / "cgroup.procs") for path in group.glob("*/")}
    return found


def eventually(condition):
    """Wait until a condition holds, and return its value."""
    for _ in range(600):
        with contextlib.suppress(OSError):  # a group that went while it was read
            if value := condition():
                return value
        threading.Event().wait(0.05)
    pytest.fail("it never came to that")


def test_a_scope_is_divided_and_a_process_let_in_is_ended_with_its_group(base):
    base, sleeping = base
    groups = cgroups.below(sleeping.pid, delegated=True)
    assert groups
    assert cgroups._lines(base / "warm" / "cgroup.procs") == [str(sleeping.pid)]
    group = groups.new(2**30, 50)
    entrance = group.entrance()
    enters = f"import os, time; os.write({entrance}, b'0'); os.fork(); time.sleep(600)"
    inside = subprocess.Popen([sys.executable, "-S", "-c", enters], pass_fds=[entrance])
    os.close(entrance)
    pids = eventually(
        lambda: (found := cgroups._lines(group.path / "cgroup.procs")) and len(found) > 1 and found
    )
    assert str(inside.pid) in pids
    assert not group.out_of_memory
    group.remove()
    assert inside.wait(10) == -9
    assert not group.path.exists()
    groups.close()
    assert [path.name for path in base.glob("*/")] == ["warm"]
    assert sleeping.poll() is None


def test_what_a_killed_grader_left_behind_goes_and_what_is_in_use_stays(base):
    base, sleeping = base
    for name in ("left/0", "used/0"):
        (base / f"{cgroups._OURS}{name}").mkdir(parents=True)
    used = base / f"{cgroups._OURS}used" / "0"
    busy = subprocess.Popen(["sleep", "600"])
    (used / "cgroup.procs").write_text(str(busy.pid))
    groups = cgroups.below(sleeping.pid, delegated=True)
    assert groups
    assert not (base / f"{cgroups._OURS}left").exists()
    assert cgroups._lines(used / "cgroup.procs") == [str(busy.pid)]
    busy.kill()
    busy.wait()
    groups.close()


@pytest.mark.usefixtures("base")
def test_a_grader_that_begins_leaves_the_groups_of_another():
    first = cgroups.below(os.getpid(), delegated=False)
    second = cgroups.below(os.getpid(), delegated=False)
    for groups in (first, second):
        assert groups
        group = groups.new(2**30, 50)
        assert group.path.exists()
        group.remove()
        groups.close()
        assert not groups.path.exists()


def test_everything_that_a_submission_starts_is_in_its_group_which_ends_with_it(base, tmp_path):
    for student in ("ann", "bob"):
        nb.hand_in(tmp_path / "class" / student / FILE, nb.answered({"02.1": CHILDREN}))
    done = []
    grading = threading.Thread(
        target=lambda: done.append(grade(tmp_path / "class", tmp_path / "out", jobs=2, time_limit=6))
    )
    grading.start()
    inside = {}  # on a busy machine the two need not be there at the same time

    def both_were_there():
        for groups in own_groups().values():
            inside.update((path, pids) for path, pids in groups.items() if len(pids) == 4)
        return len(inside) == 2

    try:
        eventually(both_were_there)
    finally:
        grading.join()
    assert len({pid for pids in inside.values() for pid in pids}) == 8
    assert [row.status for row in done[0].rows] == [Status.TIMEOUT] * 2
    assert not own_groups()


def test_without_a_controller_that_is_needed_there_are_no_groups(base, monkeypatch):
    base, sleeping = base
    monkeypatch.setattr(cgroups, "_NEEDED", (*cgroups._NEEDED, "no-such-controller"))
    assert cgroups.below(sleeping.pid, delegated=False) is None
    assert not list(base.glob("*/"))


def test_the_kernel_ends_what_needs_more_memory_than_its_group_may_have(tmp_path, monkeypatch):
    with contextlib.closing(Sandbox(isolated=True, startup=60)) as sandbox:
        if not sandbox.rehearse()[1]:
            pytest.skip("no control groups here that limit memory")
    monkeypatch.setattr("hookedu.grading.run.warm._LOOK", float("inf"))  # no watcher
    hog = "import os, mmap\nfor _ in range(30):\n    if not os.fork(): break\nx = b'1' * 2**28\nwhile True: pass"
    nb.hand_in(tmp_path / "class" / "ann" / FILE, nb.answered({"02.1": hog}))
    (row,) = grade(tmp_path / "class", tmp_path / "out", jobs=1, time_limit=20).rows
    assert row.status == Status.OUT_OF_MEMORY
