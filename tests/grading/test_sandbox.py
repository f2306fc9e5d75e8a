"""What a submission can reach inside the sandbox: each evaluates an expression and reports the value by raising it."""

import contextlib
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hookedu import catalog
from hookedu.catalog import CourseError
from hookedu.grading.batch import grade
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.rows import Row, Status
from hookedu.grading.run import namespaces, seccomp
from tests import isolation
from tests.grading import notebooks as nb

pytestmark = [
    pytest.mark.xdist_group("sandbox"),  # the fixture below is shared: one process grades the class
    pytest.mark.isolated,
]

FILE = "02_tensor_hooks.ipynb"
# Paths inside the sandbox where one submission tries to leave something for the next.
SHARED = ("/x", "/tmp/x", "/dev/shm/x", "/dev/x", "/learner/x")
TELL = """
import ctypes, errno, fcntl, glob, os, socket, sys

def tried(action):
    try:
        return action()
    except BaseException as error:
        return type(error).__name__

def refusal(number):
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(number, 0, 0, 0, 0, 0) == -1 and errno.errorcode[ctypes.get_errno()]

raise ValueError(repr({expression}))
"""
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
HOG = """
import ctypes, mmap, os, socket, time
from threading import Thread
def fork():
    if os.fork() == 0:
        hog = bytearray(os.urandom(2**20)) * 250
        time.sleep(600)
def stay():
    fork()
    time.sleep(600)
def split(pages):
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = libc.mmap(None, ctypes.c_size_t(pages * 4096), 0, 0x22, -1, 0)
    for page in range(0, pages, 2):
        libc.mprotect(start + page * 4096, 4096, 1)
def fill():
    if os.fork() == 0:
        kept = [end for _ in range(100) for end in socket.socketpair()]
        for end in kept:
            end.setblocking(False)
            try:
                while end.send(bytes(2**16)):
                    pass
            except OSError:
                pass
        time.sleep(600)
"""
HOGS = {
    "hogs-in-children": "for _ in range(8): fork()",
    "hogs-in-orphans": "for _ in range(8):\n  if os.fork() == 0: fork(); os._exit(0)",
    "hogs-in-children-of-threads": "for _ in range(8): Thread(target=stay).start()",
    "hogs-out-of-sight": "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nfor _ in range(8): fork()",
    "hogs-in-sockets": "for _ in range(50): fill()",
    # Records of mappings, which every fork copies: 256 bytes each or so, none of them in a page of the process.
    "hogs-in-mappings": "split(58_000)\nfor _ in range(120):\n  if os.fork() == 0: time.sleep(600)",
    "hogs-page-tables": "m = mmap.mmap(-1, 2**39, 0x4022, mmap.PROT_READ)\nfor i in range(0, 2**39, 2**21): m[i]",
}
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
WITHOUT_A_WORD = {
    **{name: f"{HOG}{source}\ntime.sleep(600)" for name, source in HOGS.items()},
    "fork-bomb": BOMB,
    "fills-disk": FILL,
    "stops-itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "kills-itself": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "writes-shared": f"for p in {SHARED}:\n  try: open(p, 'w').write('x')\n  except OSError: pass",
}


# Instructors are usually not root, and some calls that work for root fail for other users.
AS_AN_ORDINARY_USER = ["--dev-bind", "/", "/", "--unshare-user", "--uid", "1000", "--gid", "1000"]


@pytest.fixture(scope="module", params=["root", "an-ordinary-user"])
def inside(request, tmp_path_factory):
    """Grade a class that reports the values of the EXPECTED expressions; return the rows by student."""
    if request.param == "root" and os.getuid():
        pytest.skip("not run by root")
    root = tmp_path_factory.mktemp("inside")
    with socket.create_server(("127.0.0.1", 0)) as server:
        places = {
            "port": server.getsockname()[1],
            "root": str(root),
            "course": str(catalog.ROOT),
            "pid": os.getpid(),
            "host": os.uname().nodename,
        }
        for name, (expression, _) in EXPECTED.items():
            hand_in(root, name, TELL.format(expression=expression.format(**places)))
        for name, source in WITHOUT_A_WORD.items():
            hand_in(root, name, source)
        finds = TELL.format(expression=f"[p for p in {SHARED} if os.path.exists(p)]")
        hand_in(root, "z-finds-shared", finds)
        command = [sys.executable, "-m", "hookedu", "grade", root / "class", "--out", root / "out"]
        options = ["--jobs", "1", "--memory-limit", "512"]
        other = request.param == "an-ordinary-user" and not os.getuid()
        user = [isolation.bwrap(), *AS_AN_ORDINARY_USER] if other else []
        subprocess.run([*user, *command, *options], check=True, env=os.environ | {"HOME": str(root)})
    with contextlib.closing(Gradebook(root / "out", create=False)) as gradebook:
        return {grade.row.student: grade.row for grade in gradebook.grades()}


def hand_in(root: Path, student: str, source: str) -> None:
    """Write a submission whose first answer is `source` and whose other answers are right."""
    nb.hand_in(root / "class" / student / FILE, nb.answered(nb.reference() | {"02.1": source}))


def told(row: Row) -> str:
    """Return what a submission reported."""
    return row.results[0].error.removeprefix("ValueError: ")


# name -> (expression, repr of its value inside the sandbox)
EXPECTED = {
    "sees-solutions": ("tried(lambda: os.listdir('{course}/solutions'))", "'FileNotFoundError'"),
    "sees-course": ("tried(lambda: open('{course}/course/02_tensor_hooks.py').read())", "'FileNotFoundError'"),
    "sees-the-checks": ("(os.listdir(os.path.dirname(sys.modules['hookedu'].__file__) + '/exercises/checks'), sorted(n for n in sys.modules if '.checks' in n and 'hookedu' in n))", "([], [])"),
    "asks-the-checks": ("(__import__('hookedu.exercises').exercises.lessons(), type(sys.modules['hookedu'].check('02.1', abs)).__name__)", "((), 'Notice')"),
    "sees-the-words": ("__import__('hookedu.exercises.words').exercises.words._load.cache_info().currsize", "0"),
    "sees-the-gradebook": ("tried(lambda: open('{root}/out/grades.db').read())", "'FileNotFoundError'"),
    "sees-others": ("tried(lambda: os.listdir('{root}/class'))", "'FileNotFoundError'"),
    "sees-passwords": ("tried(lambda: open('/etc/passwd').read())", "'FileNotFoundError'"),
    "sees-homes": ("[h for h in glob.glob('/home/*') if not any(p.startswith(h) for p in sys.path)]", "[]"),
    "sees-its-own-home": ("(os.getcwd(), os.listdir('.'))", "('/learner', [])"),
    "sees-processes": ("os.listdir('/proc')", "[]"),
    "is-nobody": ("(os.getuid(), tried(lambda: os.setuid(0)))", "(1000, 'OSError')"),
    "calls-out": ("tried(lambda: socket.create_connection(('127.0.0.1', {port}), 2))", "'OSError'"),
    "listens-where-others-do": ("socket.create_server(('0.0.0.0', {port})).getsockname()[1] == {port}", "True"),
    "shares-descriptors": ("len([fd for fd in range(256) if tried(lambda: os.fstat(fd).st_rdev == 0) is True])", "1"),
    "has-no-network": ("socket.if_nameindex()", "[(1, 'lo')]"),
    "kills-the-grader": ("tried(lambda: os.kill({pid}, 0))", "'ProcessLookupError'"),
    "kills-everybody": ("(tried(lambda: os.kill(1, 9)), tried(lambda: os.kill(1, 2)), tried(lambda: os.kill(-1, 0)))", "(None, 'KeyboardInterrupt', 'ProcessLookupError')"),
    "writes-python": ("tried(lambda: open(os.__file__, 'a')) in ('OSError', 'PermissionError')", "True"),
    "writes-hookedu": ("tried(lambda: open(sys.modules['hookedu'].__file__, 'a'))", "'OSError'"),
    "writes-root": ("tried(lambda: open('/here', 'w'))", "'OSError'"),
    "mounts": ("__import__('ctypes').CDLL(None).mount(b't', b'/learner', b'tmpfs', 0, None)", "-1"),
    "leaves-again": ("__import__('ctypes').CDLL(None).unshare(0x10000000)", "-1"),
    "traces-process-1": ("__import__('ctypes').CDLL(None).ptrace(16, 1, 0, 0)", "-1"),
    **{f"refuses-{name}": (f"refusal({number})", "'ENOSYS'") for name, number in seccomp.refused().items()},
    "locks-ranges-of-files": ("[tried(lambda: fcntl.lockf(open('locked', 'w'), fcntl.LOCK_EX)), tried(lambda: fcntl.flock(open('locked', 'w'), fcntl.LOCK_EX)), tried(lambda: fcntl.fcntl(0, fcntl.F_GETFD) >= 0)]", "['OSError', None, True]"),
    "reaches-the-host-by-vsock": ("[tried(lambda f=f: socket.socket(f)) for f in (40, 38, 17)]", "['OSError', 'OSError', 'OSError']"),
    "makes-ordinary-sockets": ("[tried(lambda f=f: socket.socket(f, socket.SOCK_STREAM)).fileno() > 0 for f in (1, 2, 10)]", "[True, True, True]"),
    "changes-devices": ("[tried(lambda d=d: os.chmod('/dev/' + d, 0)) for d in ('null', 'zero', 'urandom')]", "['OSError', 'OSError', 'OSError']"),
    "uses-devices": ("(open('/dev/null', 'wb').write(b'x'), len(open('/dev/urandom', 'rb').read(4)), open('/dev/zero', 'rb').read(1))", "(1, 4, b'\\x00')"),
    "sees-what-the-school-installed": ("sorted({{*os.listdir('/usr/local')}} - {{'bin', 'lib'}}) if os.path.exists('/usr/local') else []", "[]"),
    "runs-programs": ("__import__('subprocess').check_output(['ls', '-d', '/usr/bin']).decode().strip()", "'/usr/bin'"),
    "opens-a-terminal": ("tried(os.openpty)", "'FileNotFoundError'"),
    "knows-the-machine": ("os.uname().nodename == '{host}'", "False"),
    "watches-files": ("ctypes.CDLL(None).inotify_init()", "-1"),
    "becomes-root-by-sudo": ("os.system('su -c true root 2>/dev/null') == 0", "False"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_submission_reaches(inside, name):
    assert told(inside[name]) == EXPECTED[name][1]
    assert inside[name].points == sum(r.max_points for r in inside[name].results[1:]), (
        "its right answers count"
    )


def test_a_fork_bomb_stays_small_and_ends(inside):
    """It ends by the number of processes or, if the watcher measures while hundreds are alive, by their memory."""
    row = inside["fork-bomb"]
    assert row.status in (Status.TIMEOUT, Status.OUT_OF_MEMORY) or int(told(row)) < 400


@pytest.mark.parametrize("how", HOGS)
def test_all_that_belongs_to_it_shares_one_memory_limit(inside, how):
    assert inside[how].status is Status.OUT_OF_MEMORY


def test_a_disk_is_full_for_who_fills_it(inside):
    written, error = eval(told(inside["fills-disk"]))
    assert written <= 128 and error == 28, "ENOSPC, at its own limit"


@pytest.mark.parametrize("student", ["stops-itself", "kills-itself"])
def test_a_signal_from_inside_ends_and_stops_nothing(inside, student):
    row = inside[student]
    assert (row.status, row.results[0].points) == (Status.GRADED, 0)
    assert row.points == sum(r.max_points for r in row.results[1:]), "what came after it counts"


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


def test_an_environment_that_is_a_link_is_seen_where_python_looks_for_it(tmp_path):
    link = tmp_path / "environment"
    link.symlink_to(sys.prefix)
    code = "from hookedu.grading.run.sandbox import Sandbox; print(bool(Sandbox(True, 60.0).rehearse()))"
    python = link / Path(sys.executable).relative_to(sys.prefix)
    done = subprocess.run(
        [python, "-c", code],
        env=os.environ | {"PYTHONPATH": str(catalog.ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n", done.stderr


def test_without_a_sandbox_it_stops_and_says_what_to_do(tmp_path, monkeypatch):
    hand_in(tmp_path, "ann", "1 / 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")  # for which no bubblewrap is bundled
    with pytest.raises(CourseError, match=r"bwrap: not found.*--no-isolation"):
        grade(tmp_path / "class", tmp_path / "out")


LIMIT = "open('/proc/sys/user/max_user_namespaces', 'w').write('1'); from hookedu.cli import main; main()"
MACHINES = {
    "without user namespaces": ["--disable-userns", "--", sys.executable, "-m", "hookedu"],
    "with one, and none within": ["--cap-add", "ALL", "--", sys.executable, "-c", LIMIT],
}


@pytest.mark.parametrize("machine", MACHINES)
def test_where_the_machine_does_not_isolate_it_stops_before_the_first(tmp_path, machine):
    hand_in(tmp_path, "ann", "1 / 0")
    command = [isolation.bwrap(), "--dev-bind", "/", "/", "--unshare-user", *MACHINES[machine]]
    grade = [*command, "grade", tmp_path / "class", "--out", tmp_path / "out"]
    run = subprocess.run(grade, capture_output=True, text=True)
    assert run.returncode == 2 and "--no-isolation" in run.stderr + run.stdout
    with contextlib.closing(Gradebook(tmp_path / "out", create=False)) as gradebook:
        assert not gradebook.students()
    run = subprocess.run([*command, "doctor"], capture_output=True, text=True)
    assert run.returncode == 0 and "Only instructors need it. Submissions cannot be isolated" in run.stdout


def test_no_isolation_is_written_into_every_row(tmp_path):
    hand_in(tmp_path, "ann", "1 / 0")
    done = grade(tmp_path / "class", tmp_path / "out", isolated=False)
    assert [note.en for note in done.rows[0].notes] == ["run without isolation"]
    assert (done.rows[0].status, done.rows[0].points) == (Status.GRADED, 12)


@pytest.mark.skipif(os.getuid() != 0, reason="only root could change it")
def test_before_linux_6_14_the_limit_of_the_whole_machine_is_left_alone(monkeypatch):
    path = Path("/proc/sys/kernel/pid_max")
    before = path.read_text()
    machine = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*machine[:2], "6.1.0-28-amd64", *machine[3:])))
    try:
        namespaces.limit_processes()
        assert path.read_text() == before
    finally:
        path.write_text(before)
