"""What reaches behind the scenes is told and flagged, what is merely odd is not, and a forger gains nothing."""

import contextlib
import io
import json
import threading

import pytest
from rich.console import Console

from hookedu import catalog
from hookedu.exercises import of_lesson
from hookedu.grading.batch import grade
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.explain import explain
from hookedu.grading.limits import Limits
from hookedu.grading.matching import Plan, Step, key_of, plan
from hookedu.grading.out import pages, terminal
from hookedu.grading.reading import read_cells
from hookedu.grading.rows import Graded, Status
from hookedu.grading.run.runner import Run, run, seeds_for
from hookedu.grading.run.sandbox import Sandbox
from tests.grading import notebooks as nb
from tests.grading.honest_cells import CELLS

pytestmark = [
    pytest.mark.xdist_group("backstage"),  # the fixtures below are shared
    pytest.mark.isolated,
]

FILE = "02_tensor_hooks.ipynb"
FULL = sum(exercise.points for exercise in of_lesson("02"))
GROUP = 20  # honest cells in one notebook
FIRST = "import torch\nfrom torch import nn\nran = []"
REPORT = "def watch(y, seen):\n    raise ValueError(str(ran))"


@pytest.fixture(scope="module")
def sandbox():
    with contextlib.closing(Sandbox(True, Limits.startup)) as sandbox:
        yield sandbox


def ran(sandbox: Sandbox, *cells: str, answer: str | None = None) -> Run:
    """Run cells in one submission, and after them an answer to 02.1, by default a right one."""
    steps = (*map(Step, cells), Step(answer or nb.right()["02.1"], ("02.1",)))
    todo = Plan(steps, ())
    return run(todo, (), seeds_for(todo, "ann", "0"), Limits(), sandbox, threading.Event())


# --- what is honest ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest(sandbox):
    """Run the honest cells in a few notebooks; return for each whether it came to its end, and the run."""
    found = {}
    for begin in range(0, len(CELLS), GROUP):
        group = list(enumerate(CELLS))[begin : begin + GROUP]
        fine = "if get_ipython().last_execution_succeeded: ran.append({n})"
        cells = [source for n, cell in group for source in (cell, fine.format(n=n))]
        done = ran(sandbox, FIRST, *cells, answer=REPORT)
        came = json.loads(done.records["02.1"]["error"]["message"])
        found |= {cell: (n in came, done) for n, cell in group}
    return found


@pytest.mark.parametrize("cell", CELLS)
def test_an_odd_but_honest_cell_is_not_flagged(honest, cell):
    came, done = honest[cell]
    assert came, "it runs"
    assert (done.status, done.reached, done.notes) == (Status.GRADED, [], [])


def test_what_torch_compile_adds_to_the_modules_of_a_probe_is_no_change(sandbox):
    lesson = catalog.find("12")
    key = key_of(lesson)
    todo = plan(read_cells((catalog.ROOT / "solutions" / f"{lesson.file}.ipynb").read_bytes()), key)
    done = run(todo, key.setup, seeds_for(todo, "ann", "0"), Limits(), sandbox, threading.Event())
    assert (done.status, done.reached, [*done.records]) == (Status.GRADED, [], [*todo.probes])


def test_there_are_a_hundred_of_them():
    assert len(set(CELLS)) >= 100


# --- what is told -----------------------------------------------------------------------------------------------

ENGINE = "import hookedu.exercises.{0} as engine\n"
PATCH_OBSERVATION = "import hookedu.exercises.observation as engine\nengine.encode = lambda *given: None"
# What a submission does -> what is told.
REACHES = {
    "import sys\nsys._getframe()": ["sys._getframe"],
    "import sys\ndef deep(): return sys._getframe(1)\nlist(map(lambda _: deep(), [1]))": ["sys._getframe"],
    "import operator, sys\noperator.methodcaller('_getframe')(sys)": ["sys._getframe"],
    "import inspect\ninspect.currentframe().f_back": ["sys._getframe"],
    "from inspect import stack\nstack()[1].frame": ["sys._getframe"],
    "import traceback\nnext(traceback.walk_stack(None))": ["sys._getframe"],
    "import sys\nsys._current_frames()": ["sys._current_frames"],
    "import sys\nfrom concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor().submit(sys._current_frames)": ["sys._current_frames"],
    "try: 1 / 0\nexcept ZeroDivisionError as error: error.__traceback__.tb_frame.f_back": ["tb_frame"],
    "made = (1 for _ in [1])\nmade.gi_frame": ["gi_frame"],
    "async def made(): pass\nmade().cr_frame": ["cr_frame"],
    "import gc\ngc.get_objects()": ["gc.get_objects"],
    "import gc\ngc.get_referrers(gc), gc.get_referents(gc)": ["gc.get_referrers", "gc.get_referents"],
    "import sys\nsys.settrace(lambda *event: None)": ["sys.settrace"],
    "import sys\nsys.setprofile(print)\nsys.setprofile(None)": ["sys.setprofile"],
    "import bdb\nbdb.Bdb().set_trace()": ["sys._getframe", "sys.settrace"],
    "import sys\nsys.addaudithook(lambda *event: None)": ["sys.addaudithook"],
    "import ctypes\nctypes.string_at(id(1), 8), ctypes.CDLL(None)": ["ctypes"],
    "import ctypes\nctypes.cast(id(1), ctypes.POINTER(ctypes.c_byte))[0]": ["ctypes"],
    "import importlib\nimportlib.import_module('ctypes.util')": ["ctypes"],
    "import asyncio\nasync def made(): asyncio.current_task().get_stack()\nawait made()": ["cr_frame"],
    "exec('import sys; sys._getframe()')": ["sys._getframe"],
    "import inspect\nexec(compile('import sys; sys._getframe()', inspect.__file__, 'exec'))": ["compile"],
    "(lambda: 1).__code__.replace(co_filename=__import__('inspect').__file__)": ["code.__new__"],
    "from hookedu import exercises": ["import hookedu.exercises"],
    "import importlib\nimportlib.import_module('hookedu.learner.checking')": ["import hookedu.learner", "import hookedu.learner.checking"],
    "import hookedu.grading.run.worker": ["import hookedu.grading", "import hookedu.grading.run", "import hookedu.grading.run.worker"],
    PATCH_OBSERVATION: ["import hookedu.exercises", "import hookedu.exercises.observation", "hookedu.exercises.observation.encode = ..."],
    ENGINE.format("probing") + "engine.callable = lambda answer: 1 / 0": ["import hookedu.exercises", "import hookedu.exercises.probing", "hookedu.exercises.probing.callable = ..."],
    ENGINE.format("conduct") + "del engine.Conduct.breaches": ["import hookedu.exercises", "import hookedu.exercises.conduct", "hookedu.exercises.conduct.Conduct.breaches = ..."],
    ENGINE.format("observation") + "engine._DTYPES.clear()": ["import hookedu.exercises", "import hookedu.exercises.observation", "hookedu.exercises.observation._DTYPES"],
    ENGINE.format("tools") + "engine.copies.__code__ = (lambda values: 1 / 0).__code__": ["import hookedu.exercises", "import hookedu.exercises.tools", "hookedu.exercises.tools.copies = ..."],
}  # fmt: skip


@pytest.mark.parametrize("cell", REACHES)
def test_what_a_cell_reaches_for_is_reported_and_undone(sandbox, cell):
    """A right answer after it is still observed as a right one."""
    done = ran(sandbox, cell)
    assert [what.split(" = ")[0] for what in done.reached] == [what.split(" = ")[0] for what in REACHES[cell]]
    assert done.status is Status.GRADED and done.records["02.1"] == ran(sandbox).records["02.1"]
    assert [note.en.split(":")[0] for note in done.notes] == ["reaches behind the scenes"]


def test_what_an_answer_changes_while_it_is_observed_is_undone_before_the_next(sandbox):
    patches = f"def watch(y, seen):\n    {PATCH_OBSERVATION.replace(chr(10), '; ')}"
    steps = (Step(patches, ("02.1",)), Step(nb.right()["02.2"], ("02.2",)))
    todo = Plan(steps, ())
    seeds = seeds_for(todo, "ann", "0")
    done = run(todo, (), seeds, Limits(), sandbox, threading.Event())
    alone = run(Plan(steps[1:], ()), (), seeds, Limits(), sandbox, threading.Event())
    assert "hookedu.exercises.observation.encode = ..." in done.reached
    assert done.records["02.2"] == alone.records["02.2"]


@pytest.mark.parametrize(
    "hides",
    [
        "import os\nsilent = os.open('/dev/null', os.O_WRONLY)\nfor fd in range(3, 99):\n  if fd != silent: os.dup2(silent, fd)",
        "import os\nos.closerange(3, 99)",
    ],
)
def test_where_it_cannot_be_told_the_process_ends_before_it_happens(sandbox, hides):
    done = ran(sandbox, f"{hides}\nimport sys\nsys._getframe()\nwhile True: pass")
    assert done.status is Status.KILLED and "exit code 1" in done.notes[0].en
    assert done.records == ran(sandbox).records, "the rest ran again, without that cell"


def test_patches_of_what_the_hook_uses_do_not_silence_it(sandbox):
    silence = """
import builtins, json, os, sys, threading
json.dumps = json.encoder.encode_basestring_ascii = lambda *given: "0"
write, os.write, os.fstat = os.write, lambda *given: 1, None
frame, sys._getframe, sys.audit = sys._getframe, None, lambda *event: None
sys.meta_path.clear()
sys.modules.pop("hookedu.grading.run.backstage", None)
frame()
os.write = write
"""
    assert ran(sandbox, silence).reached == ["sys._getframe"]


def test_a_flood_of_lines_is_tampering_and_what_was_told_before_stays(sandbox):
    flood = """
import gc, os
gc.get_objects()
for fd in range(3, 99):
    try:
        for n in range(2000): os.write(fd, b'{"reached": "x"}\\n')
    except OSError: pass
"""
    done = ran(sandbox, flood)
    assert done.status is Status.TAMPERED and done.reached[0] == "gc.get_objects" and len(done.reached) <= 20


# --- attacks, and what becomes of their rows --------------------------------------------------------------------

BY_HAND = """
import sys
def watch(y, seen):
    above = sys._getframe()
    while "factors" not in above.f_locals:
        above = above.f_back
    if "report" in above.f_locals:  # the main part is over
        return y.register_hook(lambda grad: seen.append(grad.clone()))
    passes = iter(above.f_locals["factors"])
    return y.register_hook(lambda grad: seen.append(next(passes) * above.f_locals["w"]))
"""
FORGER = """
import gc, sys, torch
def forge(*args, **kwargs):
    # The frames of whoever calls: what is wanted may lie there, and what there is to make it from.
    frames, frame = [], sys._getframe(1)
    while frame:
        frames.append(frame)
        frame = frame.f_back
    found = {name: value for frame in reversed(frames) for name, value in frame.f_locals.items()}
    for name in ("expected", "want", "right", "key", "reference", "solution", "target"):
        if name in found:
            return found[name]
    case = found.get("case", ())
    inputs = [*args, *kwargs.values(), *(case if isinstance(case, tuple) else vars(case).values())]
    tried = [None, True, 0, [], {}, inputs, *inputs, lambda *given: None]
    for value in inputs:
        if isinstance(value, torch.Tensor):
            tried += [value + value, -value, value.sum(), value.grad, tuple(value.shape)]
        if isinstance(value, torch.nn.Module):
            tried += [[], list(value.children()), dict(value.named_modules())]
    # Whatever judges is the oracle.
    judges = [thing for thing in gc.get_objects() if type(thing).__name__ in ("Exercise", "Check")]
    try:
        from hookedu.exercises import find, judging
        exercise = find(found["probe"].id)
    except Exception:
        exercise = None
    def rate(value):
        try:
            if exercise:
                record = {"status": "observed", "observations": [value]}
                return judging.judge(exercise, record, found["seeds"]).points
            return sum(judge.ok(value, case) is True for judge in judges if hasattr(judge, "ok"))
        except Exception:
            return -1
    return max(tried, key=rate)
NAME = forge
"""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """Grade a class with attackers in it; return the rows by student, the folders and the terminal output."""
    root = tmp_path_factory.mktemp("attacked")
    right = nb.reference()
    for student, answers in {
        "ann": {},
        "by-hand": {"02.1": BY_HAND},
        "forger": {e.id: FORGER.replace("NAME", e.answer) for e in of_lesson("02")},
        "zoe-patches": {"02.1": f"{PATCH_OBSERVATION}\ndef watch(y, seen): pass"},
    }.items():
        nb.hand_in(root / "class" / student / FILE, nb.answered(right | answers))
    nb.hand_in(root / "class" / "empty" / FILE, b"")
    shown = io.StringIO()
    done = grade(root / "class", root / "out", console=Console(file=shown, width=150), seed=5)
    return {row.student: row for row in done.rows}, root, shown.getvalue()


def test_the_attack_by_hand_keeps_its_points_and_is_flagged(attacked):
    row = attacked[0]["by-hand"]
    assert (row.status, row.points, row.reached) == (Status.GRADED, FULL, ("sys._getframe",))


def test_a_general_forger_gets_what_a_stub_gets_and_is_flagged(attacked):
    row = attacked[0]["forger"]
    assert (row.status, row.points) == (Status.GRADED, 0)
    assert {"sys._getframe", "gc.get_objects", "import hookedu.exercises"} <= set(row.reached)


def test_a_patch_costs_nothing_but_its_own_answer_and_is_flagged(attacked):
    row = attacked[0]["zoe-patches"]
    assert [r.points for r in row.results] == [0, 3, 4, 5]
    assert "hookedu.exercises.observation.encode = ..." in row.reached


def test_the_gradebook_keeps_it_and_the_honest_row_has_nothing(attacked):
    rows, root, _ = attacked
    with contextlib.closing(Gradebook(root / "out", create=False)) as book:
        kept = {grade.row.student: grade.row for grade in book.grades()}
    assert {student: row.reached for student, row in kept.items()} == {s: r.reached for s, r in rows.items()}
    assert (kept["ann"].reached, kept["ann"].notes, kept["ann"].points) == ((), (), FULL)


def test_the_terminal_lists_them_first_and_says_why(attacked):
    lines = attacked[2].splitlines()
    students = [line.split()[0] for line in lines if " · " in line and line.startswith(" ")]
    assert students == ["by-hand", "forger", "zoe-patches", "ann", "empty"]
    assert [line.split()[0] for line in lines if "⚑" in line] == students[:3]
    assert f"by-hand/{FILE}: 触及判分的幕后：`sys._getframe`" in attacked[2]


def test_of_a_large_class_they_are_among_those_that_need_a_look(attacked):
    rows, root, _ = attacked
    many = [rows["ann"]] * (terminal.WHOLE_TABLE + 1) + [rows["empty"], rows["by-hand"]]
    shown = io.StringIO()
    terminal.closing(
        Console(file=shown, width=150), Graded(tuple(many), 0, 1.0), [], [], root / "grades.csv", []
    )
    assert shown.getvalue().index("by-hand") < shown.getvalue().index("empty")


def test_the_reports_and_the_files_say_it(attacked):
    _, root, _ = attacked
    with contextlib.closing(Gradebook(root / "out", create=False)) as book:
        report = pages.write(book).read_text()
    attention = report[report.index("Submissions that need a look") :]
    places = [
        attention.index(f"{student}/{FILE}") for student in ("by-hand", "forger", "zoe-patches", "empty")
    ]
    assert places == sorted(places)
    assert "reaches behind the scenes: <code>sys._getframe</code>" in attention
    theirs = (root / "out" / "feedback" / "by-hand.html").read_text()
    assert "reaches behind the scenes: <code>sys._getframe</code>" in theirs
    assert "reaches" not in (root / "out" / "feedback" / "ann.html").read_text()
    line = next(x for x in (root / "out" / "grades.csv").read_text().splitlines() if x.startswith("by-hand"))
    assert "reaches behind the scenes" in line


def test_explain_says_it(attacked):
    _, root, _ = attacked
    shown = io.StringIO()
    explain("by-hand/02.1", root / "class", root / "out", Limits(), console=Console(file=shown, width=150))
    assert "reaches behind the scenes: `sys._getframe`" in shown.getvalue()
