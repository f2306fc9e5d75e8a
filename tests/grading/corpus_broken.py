"""Broken submissions of the corpus: files that are no notebooks, and notebooks whose parts are not what they should be."""

import gzip
import io
import json
import os
import zipfile

from tests.grading import notebooks as nb
from tests.grading.corpus import (
    ANSWER,
    NOTHING,
    RAISED,
    REFUSED,
    RIGHT,
    UNTOUCHED,
    WRONG,
    Case,
    Status,
    each_cell,
    edited,
    first_answer,
    notebook,
    packed,
)

WHOLE = packed(notebook())
TEXT = WHOLE.decode()


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.ipynb", WHOLE)
    return file.getvalue()


def with_value(value):
    """Return a notebook with a value, given as JSON, beside its cells."""
    return packed({"extra": "VALUE"} | notebook()).replace(b'"VALUE"', value)


def refused(content, why, **more):
    return Case(content, *REFUSED, notes=(why,), **more)


def a_link_in_a_circle(path):
    path.symlink_to(path.name)


def a_link_to_the_gradebook(path):
    path.symlink_to(path.parents[2] / "out" / "grades.db")


def a_pipe(path):
    os.mkfifo(path)


def a_sparse_file(path):
    path.touch()
    os.truncate(path, 2**40)


JSON, NO_CELLS = "not complete JSON", "there are no cells in it"
NOT_JSON = {
    "empty": refused(b"", "the file is empty"),
    "only-zeros": refused(bytes(5000), JSON),
    "hundred-megabytes": refused(bytes(100 * 2**20), JSON),
    "cut-in-a-character": refused(TEXT.encode()[: TEXT.encode().index("é".encode()) + 1] if "é" in TEXT else WHOLE.rstrip(b"}") + b"\xe4\xbd", JSON),
    "zeros-at-the-end": refused(WHOLE + bytes(512), JSON),
    "twice-in-one-file": refused(WHOLE + b"\n" + WHOLE, JSON),
    "comma-too-many": refused(WHOLE[:-1] + b",}", JSON),
    "quotes-of-python": refused(repr(notebook()).encode(), JSON),
    "conflict-markers": refused(b"<<<<<<< HEAD\n" + WHOLE + b"\n=======\n>>>>>>> mine\n", JSON),
    "raw-newlines-in-strings": refused(WHOLE.replace(rb"\n", b"\n"), JSON),
    "latin-1": refused(packed(notebook()).replace("，".encode(), b"\xe9"), JSON),
    "compressed": refused(gzip.compress(WHOLE), JSON),
    "a-zip-by-another-name": refused(zipped(), JSON),
    "a-script": refused(f"# %%\n{ANSWER}".encode(), JSON),
    "a-web-page": refused(b"<!DOCTYPE html><html><body><pre>def watch(y, seen)</pre></body></html>", JSON),
    "nested-deeply": refused(b'{"cells": ' + b"[" * 10**6 + b"]" * 10**6 + b"}", "too much"),
    "nested-in-a-small-file": refused(b'{"cells": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", JSON),
    "number-of-a-million-digits": refused(with_value(b"9" * 10**6), JSON),
    "number-beyond-all-floats": Case(with_value(b"-1e999999"), *RIGHT),
    "keys-twice": Case(WHOLE[:-1] + b', "cells": [], "cells": ' + packed(notebook()["cells"]) + b"}", *RIGHT),
}  # fmt: skip
OF_ANOTHER_SHAPE = {
    "a-list": refused(packed(notebook()["cells"]), NO_CELLS),
    "a-string": refused(packed(TEXT), NO_CELLS),
    "wrong-shape": refused(b'{"cells": {"source": "x"}, "metadata": 3}', NO_CELLS),
    "cells-of-null": refused({"cells": None, "nbformat": 4}, NO_CELLS),
    "cells-of-numbers": Case({"cells": [3, None, [], "x", True, 1.5, {}]}, *UNTOUCHED),
    "cells-within-cells": Case(packed({"cells": [{"cells": notebook()["cells"]}]}), *UNTOUCHED),
    "notebook-within-a-notebook": refused(packed({"content": notebook(), "type": "notebook"}), NO_CELLS),
    "too-many-cells": refused(edited(lambda made: made["cells"].extend([{}] * 20_001)), "too much"),
    "too-much-text": refused(edited(lambda made: made["cells"].append(nb.code("#" * 21 * 2**20))), "too much"),
    "sources-missing": Case(each_cell(lambda cell: cell.pop("source")), *UNTOUCHED),
    "source-a-number": Case(first_answer(lambda cell: cell.update(source=3.5)), *WRONG),
    "source-an-object": Case(first_answer(lambda cell: cell.update(source={"text": ANSWER})), *WRONG),
    "source-with-gaps": Case(first_answer(lambda cell: cell.update(source=[*f"{ANSWER}\n".splitlines(True), None, 3, ["x = ("]])), *RIGHT),
    "ids-of-all-types": Case(each_cell(lambda cell: cell.update(id=[cell["id"]])), *RIGHT),
    "metadata-of-all-types": Case(each_cell(lambda cell: cell.update(metadata=[3, "x"])), *RIGHT, notes=("found by its cell id",)),
    "grade-ids-of-all-types": Case(each_cell(lambda cell: cell.update(metadata={"nbgrader": {"grade_id": {}}, "tags": 3})), *RIGHT, notes=("found by its cell id",)),
    "types-of-all-types": Case(first_answer(lambda cell: cell.update(cell_type={"x": 1})), *RIGHT),
    "type-of-markup": Case(first_answer(lambda cell: cell.update(cell_type="<b>[red]\x1b[31m")), *RIGHT, notes=("turned into <b>[red]",)),
    "half-an-answer": Case("def watch(y, seen):", *RAISED, error="SyntaxError"),
    "of-another-lesson": Case({"cells": [nb.code("fix = 1", id="exercise-01-1")]}, *NOTHING, error="NameError", file="01.ipynb", notes=("found by its cell id",)),
    "of-no-lesson": Case({"cells": [nb.code("1 + 1")]}, Status.UNREADABLE, [], file="notes.ipynb", notes=("of no lesson",)),
}  # fmt: skip
NO_FILES = {
    "a-link-in-a-circle": refused(a_link_in_a_circle, "this is a link"),
    "a-link-to-the-gradebook": refused(a_link_to_the_gradebook, "this is a link"),
    "a-pipe": refused(a_pipe, "not an ordinary file"),
    "a-folder": Case(lambda path: path.mkdir(), Status.NO_NOTEBOOK, [], notes=("nothing was handed in",)),
    "a-terabyte-of-nothing": refused(a_sparse_file, "larger than"),
}

BROKEN = NOT_JSON | OF_ANOTHER_SHAPE | NO_FILES
assert json.loads(WHOLE)
