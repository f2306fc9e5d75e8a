"""What a submission can reach from inside: each tells what an expression is worth there, by raising it."""

import os
import socket
import sys
from pathlib import Path

import pytest

from hookedu import course
from hookedu.course import CourseError
from hookedu.grading.batch import grade
from hookedu.grading.model import Row, Status
from tests import grading_notebooks as nb

pytestmark = [
    pytest.mark.xdist_group("sandbox"),  # the class below is shared: one process grades it
    pytest.mark.skipif(sys.platform != "linux", reason="isolation is Linux's"),
]

FILE = "02_tensor_hooks.ipynb"
# As paths are inside the sandbox: where one submission tries to leave something for the next.
SHARED = ("/x", "/tmp/x", "/dev/shm/x", "/dev/x", "/home/learner/x")
TELL = "def tried(action):\n    try:\n        return action()\n    except BaseException as error:\n        return type(error).__name__\nimport os, socket, sys, glob, signal\nraise ValueError(repr({expression}))"
BOMB = """
import os
children = 0
try:
    while children < 10_000:
        if os.fork() == 0:
            import time
            time.sleep(600)
            os._exit(0)
        children += 1
except OSError:
    pass
raise ValueError(repr(children))
"""
HOGS = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        hog = bytearray(os.urandom(2**20)) * 250
        time.sleep(600)
time.sleep(600)
"""
FILL = """
written = 0
try:
    for n in range(100):
        with open(f"{n}", "wb") as file:
            for _ in range(8):
                written += file.write(bytes(2**22))
except OSError as error:
    raise ValueError(repr((written // 2**20, error.errno)))
"""


@pytest.fixture(scope="module")
def inside(tmp_path_factory):
    """What the expressions of EXPECTED are worth inside the sandbox, as Python prints them."""
    root = tmp_path_factory.mktemp("inside")
    with socket.create_server(("127.0.0.1", 0)) as server:
        places = {
            "port": server.getsockname()[1],
            "root": str(root),
            "course": str(course.ROOT),
            "pid": os.getpid(),
        }
        for name, (expression, _) in EXPECTED.items():
            hand_in(root, name, TELL.format(expression=expression.format(**places)))
        hand_in(root, "fork-bomb", BOMB)
        hand_in(root, "fills-disk", FILL)
        hand_in(root, "stops-itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)")
        hand_in(root, "kills-itself", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
        hand_in(
            root,
            "writes-shared",
            f"import os\nfor p in {SHARED}:\n  try: open(p, 'w').write('x')\n  except OSError: pass",
        )
        hand_in(
            root,
            "z-finds-shared",
            TELL.format(expression=f"[p for p in {SHARED} if os.path.exists(p)]"),
        )
        done = grade(root / "class", root / "out", jobs=1, time_limit=8, memory_limit=512)
    return {row.student: row for row in done.rows}


def hand_in(root: Path, student: str, source: str) -> None:
    """A submission whose first answer is `source` and whose others are right."""
    nb.hand_in(root / "class" / student / FILE, nb.answered(nb.reference() | {"02.1": source}))


def told(row: Row) -> str:
    """What a submission raised."""
    return row.results[0].error.removeprefix("ValueError: ")


# name -> (expression, what it is worth inside)
EXPECTED = {
    "sees-solutions": ("tried(lambda: os.listdir('{course}/solutions'))", "'FileNotFoundError'"),
    "sees-course": ("tried(lambda: open('{course}/course/02_tensor_hooks.py').read())", "'FileNotFoundError'"),
    "sees-the-gradebook": ("tried(lambda: open('{root}/out/grades.db').read())", "'FileNotFoundError'"),
    "sees-others": ("tried(lambda: os.listdir('{root}/class'))", "'FileNotFoundError'"),
    "sees-passwords": ("tried(lambda: open('/etc/passwd').read())", "'FileNotFoundError'"),
    "sees-homes": ("os.listdir('/home')", "['learner']"),
    "sees-its-own-home": ("(os.getcwd(), os.listdir('.'))", "('/home/learner', [])"),
    "sees-processes": ("os.listdir('/proc')", "[]"),
    "is-nobody": ("(os.getuid(), tried(lambda: os.setuid(0)))", "(1000, 'OSError')"),
    "calls-out": ("tried(lambda: socket.create_connection(('127.0.0.1', {port}), 2))", "'OSError'"),
    "listens-where-others-do": ("socket.create_server(('0.0.0.0', {port})).getsockname()[1] == {port}", "True"),
    "shares-descriptors": ("len([fd for fd in range(256) if tried(lambda: os.fstat(fd).st_rdev == 0) is True])", "1"),
    "has-no-network": ("socket.if_nameindex()", "[(1, 'lo')]"),
    "kills-the-grader": ("tried(lambda: os.kill({pid}, 0))", "'ProcessLookupError'"),
    "kills-everybody": ("(tried(lambda: os.kill(1, 9)), tried(lambda: os.kill(1, 2)), tried(lambda: os.kill(-1, 0)))", "(None, None, 'ProcessLookupError')"),
    "writes-python": ("tried(lambda: open(os.__file__, 'a'))", "'OSError'"),
    "writes-hookedu": ("tried(lambda: open(sys.modules['hookedu'].__file__, 'a'))", "'OSError'"),
    "writes-root": ("tried(lambda: open('/here', 'w'))", "'OSError'"),
    "mounts": ("__import__('ctypes').CDLL(None).mount(b't', b'/home/learner', b'tmpfs', 0, None)", "-1"),
    "leaves-again": ("__import__('ctypes').CDLL(None).unshare(0x10000000)", "-1"),
    "traces-process-1": ("__import__('ctypes').CDLL(None).ptrace(16, 1, 0, 0)", "-1"),
    "becomes-root-by-sudo": ("os.system('su -c true root 2>/dev/null') == 0", "False"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_submission_reaches(inside, name):
    assert told(inside[name]) == EXPECTED[name][1]
    assert inside[name].points == sum(r.max_points for r in inside[name].results[1:]), (
        "its right answers count"
    )


def test_a_fork_bomb_stays_small_and_ends(inside):
    row = inside["fork-bomb"]
    assert row.status is Status.TIMEOUT or int(told(row)) < 400


def test_many_processes_share_one_memory_limit(tmp_path):
    """With the usual minute: on a busy machine it takes long to write to two gigabytes, and to notice."""
    hand_in(tmp_path, "hogs-together", HOGS)
    (row,) = grade(tmp_path / "class", tmp_path / "out", jobs=1, memory_limit=512).rows
    assert row.status is Status.OUT_OF_MEMORY


def test_a_disk_is_full_for_who_fills_it(inside):
    written, error = eval(told(inside["fills-disk"]))
    assert written <= 128 and error == 28, "ENOSPC, at its own limit"


@pytest.mark.parametrize(
    ("student", "status"), [("stops-itself", Status.TIMEOUT), ("kills-itself", Status.KILLED)]
)
def test_signals_to_itself_end_itself(inside, student, status):
    assert inside[student].status is status


def test_nothing_is_left_for_the_next_submission(inside):
    assert told(inside["z-finds-shared"]) == "[]"


def test_the_same_seed_gives_the_same_rows(tmp_path):
    for name, source in (("wrong", "def watch(y, seen): y.register_hook(seen.append)"), ("raises", "1 / 0")):
        hand_in(tmp_path, name, source)
    runs = [grade(tmp_path / "class", tmp_path / f"out{n}", jobs=1 + n % 2, seed=7).rows for n in range(2)]
    first, second = ([(row.source, row.status, row.results) for row in rows] for rows in runs)
    assert first == second
    other = grade(tmp_path / "class", tmp_path / "other", seed=8).rows
    assert [r.results[0].seed for r in other] != [r.results[0].seed for r in runs[0]]


def test_without_a_sandbox_it_stops_and_says_what_to_do(tmp_path, monkeypatch):
    hand_in(tmp_path, "ann", "1 / 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CourseError, match="--no-isolation"):
        grade(tmp_path / "class", tmp_path / "out")


def test_no_isolation_is_written_into_every_row(tmp_path):
    hand_in(tmp_path, "ann", "1 / 0")
    done = grade(tmp_path / "class", tmp_path / "out", isolated=False)
    assert [note.en for note in done.rows[0].notes] == ["run without isolation"]
    assert (done.rows[0].status, done.rows[0].points) == (Status.GRADED, 12)
