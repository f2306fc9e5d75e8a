"""A corpus of hostile, broken and odd submissions, each with its expected row, graded together in one batch.

The submissions are in corpus_hostile.py (they claim points), corpus_effects.py (they want an effect), corpus_broken.py
and corpus_odd.py (honest). More of them are in test_batch.py (memory, crashes, odd values), test_sandbox.py (what can be
reached from inside), test_backstage.py (what is told), test_layout.py and test_collect.py (names, links, zips).
THREATS.md says which promise each of them proves.

Whoever runs the tests grades the whole corpus. If that is root, an ordinary user grades a sample of it as well, and
`make scale` the whole.
"""

import contextlib
import functools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hookedu import catalog
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.rows import LOST, Row, Status
from tests import isolation
from tests.grading import notebooks as nb
from tests.grading.corpus import Case
from tests.grading.corpus_broken import BROKEN
from tests.grading.corpus_effects import EFFECTS
from tests.grading.corpus_hostile import CLAIMS
from tests.grading.corpus_odd import ODD
from tests.grading.machine import Network, machine
from tests.grading.processes import descendants, files, processes_with

pytestmark = [pytest.mark.xdist_group("grading-corpus"), pytest.mark.isolated]

CORPUS = CLAIMS | EFFECTS | BROKEN | ODD
# Of what an ordinary user may and may not do, other rules apply: limits, devices, folders of others.
SAMPLE = (
    *(
        "starts-threads",
        "makes-files",
        "leaves-a-daemon",
        "litters",
        "links-to-elsewhere",
        "changes-the-machine",
    ),
    *(
        "calls-by-name",
        "fills-shared-memory",
        "forges-in-a-thread",
        "patches-json",
        "a-pipe",
        "byte-order-mark",
    ),
)
USER = 54321  # an ordinary user whom no machine has
DROP = (
    "import os, sys; os.setgroups([]); os.setresgid(*[{user}] * 3); os.setresuid(*[{user}] * 3); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
OPTIONS = ("--jobs", "4", "--time-limit", "9", "--memory-limit", "512")
COVERED = (
    "/",
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/etc",
    "/root",
    "/hookedu",
)  # where LITTER is left, if it can be


@dataclass(frozen=True)
class Run:
    """Who grades, and what: names of submissions."""

    who: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.who}-{len(self.names)}"


MINE, SOME, ALL = (
    Run("me", tuple(CORPUS)),
    Run("an-ordinary-user", SAMPLE),
    Run("an-ordinary-user", tuple(CORPUS)),
)
RUNS = [MINE, SOME, pytest.param(ALL, marks=pytest.mark.scale)]


@dataclass
class Graded:
    """The rows by student, and the effects seen from outside."""

    names: tuple[str, ...]
    code: int  # exit code of the command
    said: str
    rows: list[Row]
    changed: set[object]  # files outside the gradebook's folder, and settings of the machine
    out: list[str]  # files in the gradebook's folder
    left: list[int]  # processes that are still alive
    calls: int  # connections out of a submission, or into one


def hand_in(path: Path, case: Case, places: dict[str, str]) -> None:
    """Write a submission; of a notebook, the words in capitals are replaced by the places that they mean."""
    content = case.content
    if isinstance(content, Callable):
        path.parent.mkdir(parents=True)
        content(path)
        return
    if isinstance(content, str):
        content = nb.answered(nb.reference() | {"02.1": content})
    if isinstance(content, dict):
        content = nb.json.dumps(content)
        for place, value in places.items():
            content = content.replace(place, value)
    nb.hand_in(path, content)


def as_ordinary_user() -> list[object]:
    """Return what to put before a command, so that USER runs it, without any privilege.

    Python and the course may be below a folder that others cannot enter, such as root's home: another one covers it.
    """
    below: list[object] = []
    covered: set[Path] = set()
    for place in dict.fromkeys(map(Path, (sys.base_prefix, sys.prefix, catalog.ROOT))):
        above = [*reversed(place.parents)]
        closed = next((parent for parent in above if not parent.stat().st_mode & stat.S_IXOTH), None)
        if closed is None:
            continue
        if closed not in covered:
            covered.add(closed)
            below += ["--perms", "0755", "--tmpfs", closed]
        for parent in above:
            if parent.is_relative_to(closed) and parent != closed:
                below += ["--perms", "0755", "--dir", parent]
        below += ["--ro-bind", place, place]
    command = [
        isolation.bwrap(),
        "--die-with-parent",
        "--dev-bind",
        "/",
        "/",
        *below,
        "--cap-add",
        "ALL",
        "--",
    ]
    return [*command, sys.executable, "-c", DROP.format(user=USER)]


def processes_of(user: int) -> list[int]:
    """Return all processes of a user."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            if entry.name.isdigit() and entry.stat().st_uid == user:
                found.append(int(entry.name))
    return found


def settled(left: Callable[[], list[int]]) -> list[int]:
    """Return the processes that do not end by themselves: a namespace takes a moment to disappear."""
    limit = time.monotonic() + 20
    while left() and time.monotonic() < limit:
        time.sleep(0.05)
    return left()


@pytest.fixture
def corpus(request):
    """Return what came of a run, which is made once."""
    if request.param.who != "me" and os.getuid():
        pytest.skip("not run by root: an ordinary user has graded the whole corpus")
    return graded(request.param)


@functools.cache
def graded(run: Run) -> Graded:
    """Grade submissions of the corpus while observing the machine."""
    root = Path(tempfile.mkdtemp())  # not below pytest's folder, which nobody else can read
    try:
        return graded_in(root, run)
    finally:
        shutil.rmtree(root)


def graded_in(root: Path, run: Run) -> Graded:
    ordinary = run.who != "me"
    before_it = as_ordinary_user() if ordinary else []
    folder, home, mark, network = root / "class", root / "home", f"litter-{os.getpid()}", Network()
    home.mkdir()
    (root / "out").mkdir()
    (root / "fonts").mkdir()
    parts = [catalog.ROOT / part for part in ("hookedu", "course", "lessons", "solutions", "tests")]
    command = [
        *(before_it or [sys.executable]),
        "-m",
        "hookedu",
        "grade",
        folder,
        "--out",
        root / "out",
        *OPTIONS,
    ]
    homes = dict.fromkeys(("HOME", "XDG_DATA_HOME", "TMPDIR"), str(home))
    homes["MPLCONFIGDIR"] = str(root / "fonts")  # the grader itself makes matplotlib look for fonts
    with network.watched():
        places = network.places | {"CLASS": str(folder), "ROOT": str(catalog.ROOT), "LITTER": mark}
        for name in run.names:
            hand_in(folder / name / CORPUS[name].file, CORPUS[name], places)
        if ordinary:
            for path in (root, home, root / "out", root / "fonts"):
                os.chown(path, USER, USER)
        watched = (folder, home, *parts, Path("/dev/shm"))
        before = files(*watched) | machine()
        children = descendants(os.getpid()).keys()
        done = subprocess.run(
            command,
            cwd=catalog.ROOT,
            env=os.environ | homes | {"PYTHONFAULTHANDLER": "1"},
            capture_output=True,
            text=True,
        )
        after = files(*watched) | machine()
    changed: set[object] = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    changed |= {path for place in COVERED for path in Path(place).glob(mark)}
    left = settled(
        lambda: [
            *(descendants(os.getpid()).keys() - children),
            *processes_with(mark),
            *(processes_of(USER) if ordinary else ()),
        ]
    )
    assert (root / "out" / "grades.db").exists(), done.stdout + done.stderr
    with contextlib.closing(Gradebook(root / "out", create=False)) as book:
        rows = [grade.row for grade in book.grades()]
    out = sorted(path.name for path in (root / "out").iterdir())
    return Graded(
        run.names, done.returncode, done.stdout + done.stderr, rows, changed, out, left, network.calls
    )


EACH = [
    pytest.param(run, name, id=f"{run}-{name}", marks=marks)
    for run, marks in ((MINE, ()), (SOME, ()), (ALL, pytest.mark.scale))
    for name in run.names
]


@pytest.mark.parametrize(("corpus", "name"), EACH, indirect=["corpus"])
def test_each_gets_its_row(corpus, name):
    case = CORPUS[name]
    (row,) = (row for row in corpus.rows if row.student == name)
    assert (row.status, [result.points for result in row.results]) == (case.status, case.points), row
    assert not row.results or row.results[0].error.startswith(case.error)
    said = " ".join(note.en for note in row.notes)
    assert all(note in said for note in case.notes)
    assert row.reached == case.reached
    assert bool(said) == bool(case.notes or row.needs_a_look), "what was repaired or went wrong is told"
    lost = {result.outcome for result in row.results[: 1 if case.status is Status.TIMEOUT else None]}
    if case.status in (Status.TAMPERED, Status.TIMEOUT, Status.UNREADABLE):
        assert lost <= {LOST}


each_run = pytest.mark.parametrize("corpus", RUNS, indirect=True, ids=str)


@each_run
def test_the_batch_comes_to_its_end_and_no_row_is_missing_or_twice(corpus):
    assert corpus.code == 0 and "Traceback" not in corpus.said, corpus.said
    assert sorted(row.student for row in corpus.rows) == sorted(corpus.names)


@each_run
def test_a_wrong_answer_gets_no_points(corpus):
    got = {
        row.student: sum(
            result.points > points
            for result, points in zip(row.results, CORPUS[row.student].points, strict=False)
        )
        for row in corpus.rows
    }
    assert not any(got.values()), got


@each_run
def test_nothing_outside_has_changed(corpus):
    """There are no effects outside the sandbox: on files, processes, the machine or the network."""
    assert corpus.changed == set() and corpus.out == ["grades.csv", "grades.db"]
    assert corpus.left == [] and corpus.calls == 0


def test_there_are_two_hundred_kinds_of_them():
    assert len(CORPUS) == len(CLAIMS) + len(EFFECTS) + len(BROKEN) + len(ODD) >= 200
    plain = (bytes, str)
    contents = [
        (c.content if isinstance(c.content, plain) else repr(c.content), c.file) for c in CORPUS.values()
    ]
    assert len(set(contents)) == len(contents), "each is a submission of its own"
