"""A corpus of hostile, broken and odd submissions, each with its expected row, graded together once.

Comments group the submissions by their purpose. More of them are in test_batch.py (forged lines, patched judges and
probes, memory, crashes), test_sandbox.py (what can be reached from inside), test_matching.py (damaged notebooks) and
test_collect.py (names, links, zips). THREATS.md says which promise each of them proves.
"""

import os
import socket
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import matplotlib.font_manager  # noqa: F401  first import writes a font cache into the home, which is watched below
import pytest

from hookedu import catalog
from hookedu.grading.batch import grade
from hookedu.grading.rows import LOST, Row, Status
from tests.grading import notebooks as nb
from tests.grading.processes import descendants, files, processes_with

pytestmark = [
    pytest.mark.xdist_group("grading-corpus"),
    pytest.mark.isolated,
]

FILE = "02_tensor_hooks.ipynb"
POINTS = [3, 3, 4, 5]
NOTHING = "def watch(y, seen): pass"


@dataclass(frozen=True)
class Case:
    """One submission and its expected row."""

    content: object  # a notebook, its bytes, or a str: the source of the first answer, the others being right
    status: Status
    points: list[int]  # of its four exercises
    error: str = ""  # beginning of the error that the first exercise raises
    file: str = FILE
    notes: tuple[str, ...] = ()  # texts that the notes of the row must contain
    reached: tuple[str, ...] = ()  # what it is told to have reached for behind the scenes


def deleted(exercise: str):
    notebook = nb.answered(nb.reference())
    notebook["cells"].remove(nb.cell_of(notebook, exercise))
    return notebook


def moved(exercise: str):
    notebook = nb.answered(nb.reference())
    cell = nb.cell_of(notebook, exercise)
    notebook["cells"].remove(cell)
    notebook["cells"].append(cell)
    return notebook


def copied(exercise: str):
    notebook = nb.answered(nb.reference())
    copy = nb.cell_of(notebook, exercise) | {"id": "a-copy"}
    return nb.before(notebook, "02.2", [copy])


def retyped(exercise: str):
    notebook = nb.answered(nb.reference())
    nb.cell_of(notebook, exercise)["cell_type"] = "markdown"
    return notebook


def of_ten_thousand_cells():
    cells = [{"cell_type": "markdown", "source": "..."} for _ in range(9_500)]
    cells += [nb.code(f"n = {n}") for n in range(500)]
    return nb.before(nb.answered(nb.reference()), "02.1", cells)


def with_cell(source: str):
    """Return a notebook of right answers with a cell before them."""
    return nb.before(nb.answered(nb.reference()), "02.1", [nb.code(source)])


THREADS = """
import threading
while True:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
FILES = """
for n in range(10**6):
    open(f"{n}", "w").close()
"""
FAREWELL = """
import atexit, os, sys
forged = b'{"done": true, "out_of_memory": false}\\n' * 9
def say_goodbye(*_):
    for fd in range(3, 256):
        try:
            os.write(fd, forged)
        except OSError:
            pass
    while True:
        pass
class Clinging:
    __del__ = say_goodbye
atexit.register(say_goodbye)
sys.clinging = Clinging()
"""
THREAD_LEFT = """
import threading
def spin():
    while True:
        pass
threading.Thread(target=spin).start()
threading.Thread(target=threading.Event().wait, daemon=False).start()
"""
THREAD_FORGES = """
import os, threading
def forge():
    while True:
        for fd in range(3, 256):
            try:
                os.write(fd, b'{"exercise": "02.1", "record": {"status": "correct", "points": 3}}\\n')
            except OSError:
                pass
threading.Thread(target=forge, daemon=True).start()
import time
time.sleep(0.2)
def watch(y, seen): pass
"""
PATCH_JSON = """
import json
json.dumps = lambda *a, **k: '{"exercise": "02.1", "record": {"status": "correct", "points": 3}, "points": 3}'
json.JSONEncoder.encode = json.JSONEncoder.iterencode = json.dumps
def watch(y, seen): pass
"""
PATCH_TORCH = """
import torch
torch.equal = torch.allclose = torch.Tensor.equal = torch.Tensor.allclose = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
def watch(y, seen): pass
"""
PATCH_IPYTHON = """
from IPython.core.interactiveshell import InteractiveShell
class Fine:
    success, error_in_exec, error_before_exec, result = True, None, None, None
InteractiveShell.run_cell = get_ipython().run_cell = lambda *a, **k: Fine()
def watch(y, seen): pass
"""
PATCH_HOOKEDU = """
import hookedu.exercises.probing as probing
probing.encode = lambda value: {"dict": [["passed", True], ["points", 3]]}
def watch(y, seen): pass
"""
TRACE = """
import sys
def tracer(frame, event, arg):
    for name in ("observations", "record", "points", "passed", "correct"):
        if name in frame.f_locals:
            frame.f_locals[name] = True
    return tracer
sys.settrace(tracer)
sys.setprofile(tracer)
def watch(y, seen): pass
"""
HUNT_BY_GC = """
import gc
for thing in gc.get_objects():
    if type(thing).__name__ == "Exercise":
        object.__setattr__(thing, "points", 1000)
        object.__setattr__(thing, "judge", lambda saw, rng: [])
def watch(y, seen): pass
"""
HUNT_BY_FRAMES = """
import sys
def watch(y, seen):
    frame = sys._getframe()
    while frame:
        if "send" in frame.f_locals:
            frame.f_locals["send"]({"exercise": "02.1", "record": {"status": "correct", "points": 3}})
        frame = frame.f_back
"""
CHANGE_SEEDS = """
import gc
for thing in gc.get_objects():
    if type(thing).__name__ == "_Submission":
        thing._seeds = dict.fromkeys(thing._seeds, 0)
def watch(y, seen): return y.register_hook(lambda g: seen.append(g.clone()))
"""
LISTEN = """
import socket, threading
server = socket.create_server(("0.0.0.0", PORT_IN))
threading.Thread(target=server.accept, daemon=True).start()
import time
time.sleep(1)
"""
CALL = """
import socket
for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)):
    try:
        with socket.socket(family, kind) as call:
            call.settimeout(1)
            call.connect(("127.0.0.1", PORT_OUT))
            call.send(b"hello")
    except OSError:
        pass
"""
LITTER = """
import os, pathlib, subprocess, tempfile
for place in (".", "~", "/", "/tmp", "/var/tmp", "/dev/shm", "/etc", "/root", tempfile.gettempdir(), "CLASS", "ROOT",
              "ROOT/hookedu", "/hookedu", "/hookedu/hookedu", os.path.dirname(os.__file__)):
    for name in ("LITTER", "grades.db"):
        try:
            pathlib.Path(place, name).expanduser().write_text("LITTER")
        except OSError:
            pass
subprocess.Popen(["/bin/sh", "-c", "trap '' TERM HUP; sleep 600; : LITTER"], start_new_session=True)
"""

ANSWER = nb.reference()["02.1"]
RIGHT, STOPPED, REFUSED = (Status.GRADED, POINTS), (Status.TIMEOUT, [0] * 4), (Status.UNREADABLE, [0] * 4)
RAISED, WRONG = (Status.GRADED, [0, *POINTS[1:]]), (Status.GRADED, [0, *POINTS[1:]])
FORGED = (Status.TAMPERED, [0] * 4)
CORPUS = {
    # damaged by hand or by a tool: nothing that is still there is lost
    "cell-deleted": Case(deleted("02.3"), Status.GRADED, [3, 3, 0, 5]),
    "cell-moved": Case(moved("02.1"), *RIGHT),
    "cell-copied": Case(copied("02.1"), *RIGHT, notes=("2 cells answer it",)),
    "cell-retyped": Case(retyped("02.2"), *RIGHT, notes=("turned into markdown",)),
    "file-renamed": Case(nb.answered(nb.reference()), *RIGHT, file="Untitled3 (final).ipynb"),
    "byte-order-mark": Case(b"\xef\xbb\xbf" + nb.json.dumps(nb.answered(nb.reference())).encode(), *RIGHT),
    "named-otherwise": Case(
        nb.answered(nb.reference()), *RIGHT, file="12 Nov homework.ipynb", notes=("says lesson 12",)
    ),
    # what a sandbox cannot do, beside what is right
    "installs": Case(f"%pip install -q torch\n!pip install torch\n{ANSWER}", *RIGHT),
    "asks-the-system": Case(f"!ls\nnames = !ls /\nassert names\n%cd nowhere\n{ANSWER}", *RIGHT),
    "magics": Case(f"%matplotlib widget\n%load_ext autoreload\n%autoreload 2\n%nonsense\n{ANSWER}", *RIGHT),
    "bash-cell": Case(with_cell("%%bash\nls; exit 3"), *RIGHT),
    "timed-cell": Case(f"%%time\n{ANSWER}", *RIGHT),
    "ten-thousand-cells": Case(of_ten_thousand_cells(), *RIGHT),
    # not a notebook
    "wrong-shape": Case(b'{"cells": {"source": "x"}, "metadata": 3}', *REFUSED),
    "hundred-megabytes": Case(bytes(100 * 2**20), *REFUSED, notes=("not complete JSON",)),
    "nested-deeply": Case(b'{"cells": ' + b"[" * 10**6 + b"]" * 10**6 + b"}", *REFUSED),
    # never ends
    "sleeps": Case("import time\ntime.sleep(10**6)", *STOPPED),
    "raises-to-a-power": Case("10 ** 10 ** 9", *STOPPED),
    "backtracks": Case("import re\nre.match('(a+)+$', 'a' * 64 + 'b')", *STOPPED),
    "ignores-signals": Case("import signal\nfor n in (2, 15, 24):\n    signal.signal(n, signal.SIG_IGN)\nwhile True: pass", *STOPPED),
    # exhausts resources
    "starts-threads": Case(THREADS, *RAISED, error="RuntimeError: can't start new thread"),
    "makes-files": Case(FILES, *RAISED, error="OSError: [Errno 28]"),
    # continues after its end
    "says-goodbye": Case(with_cell(FAREWELL), *RIGHT),
    "leaves-threads": Case(with_cell(THREAD_LEFT), *RIGHT),
    "litters": Case(with_cell(LITTER), *RIGHT),
    # claims points that it did not earn
    "forges-in-a-thread": Case(THREAD_FORGES, *FORGED),
    "patches-json": Case(PATCH_JSON, *FORGED),
    "patches-torch": Case(PATCH_TORCH, *WRONG),
    "patches-ipython": Case(PATCH_IPYTHON, Status.GRADED, [0] * 4),
    "patches-hookedu": Case(PATCH_HOOKEDU, *WRONG, reached=("import hookedu.exercises", "import hookedu.exercises.probing", "hookedu.exercises.probing.encode = ...")),
    "traces": Case(TRACE, *WRONG, reached=("sys.settrace", "sys.setprofile")),
    "hunts-by-gc": Case(HUNT_BY_GC, *WRONG, reached=("gc.get_objects",)),
    "hunts-by-frames": Case(HUNT_BY_FRAMES, *FORGED, reached=("sys._getframe",)),
    "changes-seeds": Case(CHANGE_SEEDS, Status.GRADED, [0] * 4, reached=("gc.get_objects",)),
    # uses the network
    "listens": Case(with_cell(LISTEN), *RIGHT),
    "calls": Case(with_cell(CALL), *RIGHT),
}  # fmt: skip


@dataclass
class Graded:
    """The rows by student, and the effects seen from outside."""

    rows: dict[str, Row]
    changed: set[str]  # changed files outside the gradebook's folder
    out: list[str]  # files in the gradebook's folder
    left: set[int]  # descendants of the test process that are still alive
    calls: int  # connections out of a submission, or into one


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Grade the corpus while observing the machine."""
    root = tmp_path_factory.mktemp("corpus")
    folder, home, port_in = root / "class", root / "home", free_port()
    home.mkdir()
    got_in, over = [], threading.Event()

    def call_in():
        while not over.wait(0.05):
            with socket.socket() as call:
                call.settimeout(0.05)
                got_in.extend([1] * (call.connect_ex(("127.0.0.1", port_in)) == 0))

    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(type=socket.SOCK_DGRAM) as mailbox,
        pytest.MonkeyPatch.context() as patch,
    ):
        port_out = server.getsockname()[1]
        mailbox.bind(("127.0.0.1", port_out))
        places = {"PORT_IN": port_in, "PORT_OUT": port_out, "CLASS": folder, "ROOT": catalog.ROOT}
        for name, case in CORPUS.items():
            content = case.content
            if isinstance(content, str):
                content = nb.answered(nb.reference() | {"02.1": content})
            if isinstance(content, dict):
                content = nb.json.dumps(content)
                for place, value in places.items():
                    content = content.replace(place, str(value))
                content = content.replace("LITTER", f"litter-{os.getpid()}")
            nb.hand_in(folder / name / case.file, content)
        for name in ("HOME", "XDG_DATA_HOME", "TMPDIR"):
            patch.setenv(name, str(home))
        patch.setattr(tempfile, "tempdir", None)
        parts = [catalog.ROOT / part for part in ("hookedu", "course", "lessons", "solutions", "tests")]
        watched = (folder, home, *parts, Path("/dev/shm"))
        files_before, before = files(*watched), descendants(os.getpid())
        caller = threading.Thread(target=call_in)
        caller.start()
        try:
            done = grade(folder, root / "out", jobs=4, time_limit=9, memory_limit=512)
        finally:
            over.set()
            caller.join()
        changed = {path for path, _ in files_before.items() ^ files(*watched).items()}
        server.settimeout(0)
        mailbox.settimeout(0)
        got_out = []
        for receive in (server.accept, lambda: mailbox.recv(9)):
            try:
                got_out.append(receive())
            except BlockingIOError:
                continue
    left = descendants(os.getpid()).keys() - before.keys()
    out = sorted(path.name for path in (root / "out").iterdir())
    return Graded({row.student: row for row in done.rows}, changed, out, left, len(got_in) + len(got_out))


@pytest.mark.parametrize("name", CORPUS)
def test_each_gets_its_row(corpus, name):
    case, row = CORPUS[name], corpus.rows[name]
    assert (row.status, [result.points for result in row.results]) == (case.status, case.points), row
    assert row.results[0].error.startswith(case.error)
    said = " ".join(note.en for note in row.notes)
    assert all(note in said for note in case.notes)
    assert row.reached == case.reached
    assert bool(said) == bool(case.notes or row.needs_a_look), "what was repaired or went wrong is told"
    if case.status in (Status.TAMPERED, Status.TIMEOUT, Status.UNREADABLE):
        assert {result.outcome for result in row.results} == {LOST}


def test_no_row_is_missing(corpus):
    assert corpus.rows.keys() == CORPUS.keys()


def test_nothing_outside_has_changed(corpus):
    """There are no effects outside the sandbox: on files, processes or the network."""
    assert corpus.changed == set() and corpus.out == ["grades.csv", "grades.db"]
    assert corpus.left == set() and processes_with(f"litter-{os.getpid()}") == []
    assert corpus.calls == 0
