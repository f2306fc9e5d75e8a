"""`hookedu similar`: pairs of submissions that agree in what is rare, found in a real gradebook of real notebooks."""

import builtins
import contextlib
import html.parser
import json
import keyword
import re
import sqlite3
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from hookedu import catalog
from hookedu.cli import app
from hookedu.grading.batch import grade
from hookedu.grading.book.gradebook import Gradebook
from hookedu.grading.lexing import tokens
from hookedu.grading.matching import key_of, plan
from hookedu.grading.out import comparison, pages
from hookedu.grading.reading import read_cells
from hookedu.grading.rows import MOST_WRITTEN, Result, Row, Status, Written
from hookedu.grading.similar import similar
from tests.grading import notebooks as nb

MARKUP = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>"
HONEST = 8  # students, each with right answers that differ from the others'

STRIDE = 7

# An answer to 02.1 to 02.4 in an unusual way, in four cells.
OWN_WAY = {
    "02.1": """\
def watch(y, seen):
    # every gradient, as it comes
    def note(gradient):
        position = len(seen) + 1
        while position > len(seen):
            seen.append(gradient.clone() * 1.0)
    return y.register_hook(note)
""",
    "02.2": """\
def watch_many(tensors, seen):
    '''Watch them.'''
    pairs = sorted(tensors.items(), key=lambda pair: pair[0], reverse=True)
    taken = {}
    while pairs:
        label, tensor = pairs.pop()
        if tensor.requires_grad is not False:
            def note(gradient, label=label):
                seen.setdefault(label, gradient)
                seen[label] = gradient
            taken[label] = tensor.register_hook(note)
    return list(taken.values())
""",
    "02.3": """\
def observe_once(y, seen):
    box = {}
    def note(gradient):
        box.pop("handle").remove()
        seen.insert(len(seen), gradient)
    box["handle"] = y.register_hook(note)
    return box["handle"]
""",
}
# The same with other names, comments, line breaks and strings, and the cells the other way round.
COPIED = {
    "02.3": """\
def observe_once(y, seen):
    kept = {}

    def later(g):  # once only
        kept.pop('h').remove()
        seen.insert(
            len(seen), g,
        ) if False else seen.insert(len(seen), g)
    kept['h'] = y.register_hook(later)
    return kept['h']
""",
    "02.2": """\
def watch_many(tensors, seen):
    todo = sorted(tensors.items(), key=lambda p: p[0], reverse=True)
    handles = {}
    while todo:
        name, t = todo.pop()
        if t.requires_grad is not False:

            def later(g, name=name):
                seen.setdefault(name, g)
                seen[name] = g

            handles[name] = t.register_hook(later)
    return list(handles.values())
""",
    "02.1": """\
def watch(y, seen):
    \"\"\"My own idea.\"\"\"
    def later(g):
        n = len(seen) + 1
        while n > len(seen):
            seen.append(g.clone()
                        * 1.0)
    return y.register_hook(later)
""",
}


def hand_in(book, student, answers, lesson="02", **more):
    """Save a student's row as `grade` does, with the cells of a real notebook; return the notebook's cells."""
    notebook = answers if "cells" in answers else nb.answered(answers)
    todo = plan(read_cells(json.dumps(notebook).encode()), key_of(catalog.find(lesson)))
    written = Written.of((step.source, step.probes) for step in todo.steps)
    source = f"{student}/{lesson}.ipynb"
    book.save(Row(source, student, lesson, "hash", Status.GRADED, written=written, **more))


def hand_in_class(book, students=HONEST):
    """Hand in right answers, none of them twice; neighbours among the known answers are often one another's variants."""
    taken = set()
    for n in range(students):
        answers = {exercise: text for exercise, text in nb.right(STRIDE * n).items() if text not in taken}
        taken |= {*answers.values()}
        hand_in(book, f"honest-{n}", answers)


@pytest.fixture
def book(tmp_path):
    with contextlib.closing(Gradebook(tmp_path)) as book:
        yield book


def names(found):
    return [tuple(grade.row.student for grade in pair.grades) for pair in found.pairs]


def page_of(book, found):
    return comparison.write(book, found).read_text(encoding="utf-8")


class Elements(html.parser.HTMLParser):
    """Parser that collects the tags of a page, its text, and the lines of code that are marked."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.marked, self._inside = [], "", [], False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "span":
            self._inside = dict(attributes).get("class") in ("agree", "alone")
            self.marked += [""] * self._inside

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "span"

    def handle_data(self, data):
        self.text += data
        if self._inside:
            self.marked[-1] += data


# --- who is listed ----------------------------------------------------------------------------------------------


def test_a_copy_with_other_names_comments_and_order_comes_first(book):
    hand_in_class(book)
    hand_in(book, "ann", OWN_WAY)
    notebook = nb.answered(COPIED)
    cells = [nb.cell_of(notebook, exercise) for exercise in COPIED]  # 02.3 first
    hand_in(book, "bob", {"cells": cells})
    found = similar(book, 20)
    assert names(found) == [("ann", "bob")] and found.more == 0 and found.compared == HONEST + 2
    (pair,) = found.pairs
    assert pair.lines >= pair.alone >= 15 and pair.students == HONEST + 2
    exercises = [tuple(side.exercises for side in sides if side) for sides in pair.cells]
    assert exercises == [(("02.1",),) * 2, (("02.2",),) * 2, (("02.3",),) * 2], "each beside its counterpart"


def test_the_references_own_idea_is_nobodys(book):
    hand_in_class(book)
    reference = nb.reference()
    hand_in(book, "ann", reference)
    hand_in(book, "bob", {name: re.sub(r"\bhandles?\b", "taken", text) for name, text in reference.items()})
    assert names(similar(book, 20)) == []


def test_what_the_lesson_gives_is_nobodys(book):
    """Demonstrations of the lesson, edited in one place and so written by the learner, and its stubs."""
    notebook = nb.handed_out()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = "".join(cell["source"]) + "\n\nmine = 1\n"
    for n in range(3):
        hand_in(book, f"student-{n}", notebook)
    found = similar(book, 20)
    assert found.compared == 3 and found.pairs == ()


def test_what_most_of_the_class_wrote_is_nobodys(book):
    for n in range(6):
        hand_in(book, f"student-{n}", OWN_WAY)
    hand_in_class(book, 4)
    assert names(similar(book, 20)) == [], "6 of 10"


def test_three_who_share_what_few_have_are_three_pairs(book):
    hand_in_class(book, 20)
    for student in ("ann", "bob", "cem"):
        hand_in(book, student, OWN_WAY)
    found = similar(book, 20)
    assert names(found)[:3] == [("ann", "bob"), ("ann", "cem"), ("bob", "cem")]
    assert {pair.alone for pair in found.pairs[:3]} == {0}, "a third has them"
    others = {line.others for sides in found.pairs[0].cells for line in sides[0].lines}
    assert {None, 1} <= others and 0 not in others


def test_two_students_are_a_class(book):
    for student in ("ann", "bob"):
        hand_in(book, student, OWN_WAY)
    assert names(similar(book, 20)) == [("ann", "bob")]


def test_nobody_is_compared_with_their_own_attempts(book):
    hand_in_class(book, 3)
    hand_in(book, "ann", OWN_WAY)
    again = nb.answered(OWN_WAY | {"02.4": "import contextlib"})
    written = Written.of(
        (cell["source"], ()) for cell in again["cells"] if cell["id"].startswith("exercise-")
    )
    book.save(Row("ann/02 second.ipynb", "ann", "02", "other", Status.GRADED, written=written))
    assert similar(book, 20).pairs == () and similar(book, 20).compared == 4


def test_lessons_are_not_compared_with_each_other(book):
    hand_in(book, "ann", OWN_WAY)
    written = Written.of((source, ()) for source in OWN_WAY.values())
    book.save(Row("bob/03.ipynb", "bob", "03", "hash", Status.GRADED, written=written))
    assert similar(book, 20).pairs == ()


def test_a_rare_mistake_that_both_made_is_shown(book):
    def mistake(name):
        return {"results": (Result("02.2", "incorrect", 3, 0, name),)}

    for n in range(HONEST):
        hand_in(book, f"honest-{n}", nb.right(n), **mistake("late_binding" if n < 6 else "no_handle"))
    hand_in(book, "ann", OWN_WAY, **mistake("no_handle"))
    hand_in(book, "bob", COPIED, **mistake("no_handle"))
    (pair,) = similar(book, 20).pairs
    assert [(made.exercise, made.id, made.others) for made in pair.mistakes] == [("02.2", "no_handle", 2)]
    assert (
        "Both made the mistake no_handle in 02.2; others who made it: 2."
        in Elements(page_of(book, similar(book, 20))).text
    )
    for student in ("ann", "bob"):
        hand_in(book, student, OWN_WAY, **mistake("late_binding"))
    assert similar(book, 20).pairs[0].mistakes == (), "most of the class made it"


# --- what makes no difference -----------------------------------------------------------------------------------

CHOSEN = sorted({t.text for cell in tokens(list(OWN_WAY.values())) for t in cell if t.chosen})
FRESH = st.from_regex(r"[^\W\d]\w{0,5}", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name) and name not in dir(builtins) and name.isidentifier()
)


def renamed(names, answers):
    return {
        e: re.sub(r"(?<!\.)\b[^\W\d]\w*", lambda m: names.get(m[0], m[0]), text)
        for e, text in answers.items()
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(FRESH, min_size=len(CHOSEN), max_size=len(CHOSEN), unique=True))
@example(sorted(CHOSEN, reverse=True))
def test_consistent_renaming_does_not_change_the_score(fresh):
    scores = []
    for answers in (OWN_WAY, renamed(dict(zip(CHOSEN, fresh, strict=True)), OWN_WAY)):
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(Gradebook(Path(folder))) as book:
            for student, wrote in (("ann", OWN_WAY), ("bob", answers), ("cem", nb.right(1))):
                written = Written.of((source, (exercise,)) for exercise, source in wrote.items())
                book.save(Row(f"{student}/02.ipynb", student, "02", "hash", Status.GRADED, written=written))
            (pair,) = similar(book, 20).pairs
            scores.append((pair.score, pair.lines, pair.alone))
    assert scores[0] == scores[1]


def texts(*sources):
    """Return the tokens as text, each chosen name as the number of its first occurrence."""
    seen = {}
    flat = [token for cell in tokens(sources) for token in cell]
    return [str(seen.setdefault(t.text, len(seen))) if t.chosen else t.text for t in flat]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1  # one", "y=1"),
        ("def f(a):\n    'doc'\n    return a", 'def g(b):\n  """Another\n  doc."""\n  return b'),
        ("f(a,\n  b)", "g(c, d)"),
        ("x = 'a'", 'y = f"{b!r}"'),
        ("x = 1_000 + 0XFF", "y = 1000+0xff"),
        ("import torch\nfrom a import (\n  b,\n)\nx = 1", "y = 1"),
        ("self.kept = 1\nprint(self.kept)", "me.saved = 1\nprint(me.saved)"),
        ("class A:\n def go(self): pass\nA().go()", "class B:\n def run(me): pass\nB().run()"),
        ("x = 1 \\\n + 2", "x = 1 + 2"),
    ],
)
def test_the_same_tokens(one, other):
    assert texts(one) == texts(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x.append(1)", "x.extend(1)"),
        ("len(x)", "sum(x)"),
        ("a = b + a", "a = a + b"),
        ("x <= 1", "x < 1"),
        ("x = yes", "x = 'yes'"),
    ],
)
def test_different_tokens(one, other):
    assert texts(one) != texts(other)


# --- hostile code -----------------------------------------------------------------------------------------------

HOSTILE = {
    "nested": "x = " + "(" * 60_000,
    "lambdas": "lambda: " * 8_000,
    "one line": "x = " + "1 + " * 1_250_000 + "1",
    "no syntax": "def (((:\n\t]]] = '''never closed",
    "nul": "x = 1\0\0\n\0def f(): pass",
    "quotes": '"""' + '"\\' * 30_000,
    "carriage returns": "x = 1\r\ry = 2\r\n\x0c\u2028z = 3",
    "surrogate": "x = '\ud800' + \ud800",
    "directions": "x = 1 \u202e # \u2066",
    "markup": "\n".join(OWN_WAY.values()) + f"\nx = '{MARKUP}'  # {MARKUP} \0\r\x0c\u2028\u202e\u2066\n",
    "blank": "\n" * 60_000,
    "nothing": "",
}


def test_hostile_notebooks_cost_nothing_and_stay_text(book):
    hand_in_class(book, 4)
    hand_in(book, "ann", OWN_WAY)
    hand_in(book, "bob", COPIED)
    for number, (kind, source) in enumerate(HOSTILE.items()):
        notebook = {"cells": [nb.code(source), nb.code("def watch(y, seen): pass")]}
        hand_in(book, f"{kind} {number} <b>", notebook)
    begun = time.process_time()
    found = similar(book, 20)
    page = page_of(book, found)
    assert time.process_time() - begun < 20
    assert ("ann", "bob") in names(found) and found.too_long == ("one line 2 <b>/02.ipynb",)
    assert ("ann", "markup 9 <b>") in names(found)
    elements = Elements(page)
    assert elements.tags.count("script") == 1 and not {"img", "b", "iframe", "a"} & set(elements.tags)
    assert MARKUP not in page and MARKUP in elements.text, "it is shown, as text"
    assert not re.search(r"[\0\r\x0c\u2028\u202e\u2066]", page)


@settings(max_examples=300, deadline=None)
@given(st.text() | st.text("()[]'\"\\\n#. \t\0=:x1f", max_size=200))
def test_any_text_has_tokens_on_its_lines(source):
    (cell,) = tokens([source])
    lines = [token.line for token in cell]
    assert lines == sorted(lines) and all(0 <= line <= source.count("\n") for line in lines)


def test_two_hostile_twins_make_a_page_of_bounded_size(book):
    hand_in_class(book, 3)
    twin = {"cells": [nb.code("".join(f"x{n % 7}.a{n} = {n}\n" for n in range(3_000)))]}
    wide = {"cells": [nb.code("y = [" + ", ".join(f"a.b{n}" for n in range(300)) + "]")]}
    for student in ("ann", "bob"):
        hand_in(book, student, {"cells": twin["cells"] + wide["cells"]})
    found = similar(book, 20)
    assert names(found) == [("ann", "bob")] and found.pairs[0].lines == 3_001
    _, wide = found.pairs[0].cells
    assert {len(line.text) for cell in wide if cell for line in cell.lines} == {301}, (
        "cut, with a sign that it is"
    )
    assert "2701 more lines" in (page := page_of(book, found)) and len(page) < 200_000


# --- what is stored ---------------------------------------------------------------------------------------------


def test_what_is_kept_of_a_submission_is_bounded():
    long = "x" * (MOST_WRITTEN - 10)
    written = Written.of([("short", ("02.1",)), (long * 100, ()), (long, ()), ("too much by now", ())])
    assert [source for source, _ in written.cells] == ["short", long] and written.left_out == 2


def test_a_grade_of_an_earlier_version_is_reported_to_be_unknown(book):
    hand_in(book, "ann", OWN_WAY)
    book.save(Row("bob/02.ipynb", "bob", "02", "hash", Status.GRADED))
    book.save(Row("cem/02.ipynb", "cem", "02", "hash", Status.UNREADABLE))
    found = similar(book, 20)
    assert (found.compared, found.unknown) == (1, 1)
    assert f"hookedu grade SUBMISSIONS --out {book.folder} --again" in Elements(page_of(book, found)).text


def test_grading_again_replaces_what_was_kept_and_forgetting_deletes_it(book):
    hand_in_class(book, 3)
    for student in ("ann", "bob"):
        hand_in(book, student, OWN_WAY)
        hand_in(book, student, OWN_WAY)
    assert "ann" in page_of(book, similar(book, 20))
    pages.forget(book, "ann")
    assert not (book.folder / "similar.html").exists()
    with contextlib.closing(sqlite3.connect(book.db)) as connection:
        kept = [source for (source,) in connection.execute("SELECT source FROM written ORDER BY 1")]
    assert kept == ["bob/02.ipynb", *(f"honest-{n}/02.ipynb" for n in range(3))]


@pytest.mark.isolated
@pytest.mark.xdist_group("grading-report")
def test_grading_keeps_what_the_command_then_shows(tmp_path):
    """From real notebooks through the sandbox and the command line to the page."""
    folder, out, long = tmp_path / "class", tmp_path / "out", "bob" * 50
    for student, answers in {"ann": OWN_WAY, long: COPIED, "cem": nb.right(2), "dan": nb.right(4)}.items():
        nb.hand_in(folder / student / "02_tensor_hooks.ipynb", nb.answered(answers))
    grade(folder, out, jobs=1)
    done = CliRunner().invoke(app, ["similar", str(out), "--most", "1"])
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.output.splitlines() if "ann" in line and "similar.html" not in line]
    assert re.fullmatch(rf" *02 +\d+ +\d+  ann — {long}", line), "one line, nothing cut"
    page = Elements((out / "similar.html").read_text(encoding="utf-8"))
    assert "seen.setdefault(label, gradient)" in page.text and "seen.setdefault(name, g)" in page.text
    marked = "\n".join(page.marked)
    assert "≡" in marked and "setdefault(label" in marked and "setdefault(name" in marked
    assert "# every gradient" not in marked and "a person has to judge" in page.text
    assert "nobody else wrote so" in page.text and "抄" in page.text


@pytest.mark.scale
def test_a_class_of_300_with_four_lessons_takes_seconds(book):
    for lesson in ("02", "03", "05", "09"):
        for n in range(300):
            answers = OWN_WAY if n in (7, 70) else nb.right(n)
            cells = [(f"{source}\n{'y.a = ' + str(n)} + {lesson}", ()) for source in answers.values()]
            row = Row(f"{n}/{lesson}.ipynb", f"{n}", lesson, "hash", Status.GRADED, written=Written.of(cells))
            book.save(row)
    begun = time.process_time()
    found = similar(book, 20)
    assert names(found)[:4] == [("7", "70")] * 4 and time.process_time() - begun < 30
