"""Reading notebooks of any size and shape: at once or as a stream, with the same cells, and within bounds."""

import json
import subprocess
import sys
import tracemalloc

import hypothesis.strategies as st
import nbformat
import pytest
from hypothesis import given, settings

from hookedu.grading import reading
from hookedu.grading.reading import MAX_CELLS, read_cells
from hookedu.grading.rows import Unreadable
from tests.grading import notebooks as nb


@pytest.mark.parametrize(
    "data, reason",
    [
        *((b"", "empty"), (b" \n", "empty"), (b'{"cells": [', "not complete JSON")),
        *((b"\xff\xfe\x00", "not complete JSON"), (b"[" * 200_000, "not complete JSON")),
        *((b"[]", "no cells"), (b"{}", "no cells"), (b'{"cells": 3}', "no cells"), (b"null", "no cells")),
    ],
)
def test_what_is_no_notebook_says_why(data, reason):
    with pytest.raises(Unreadable) as caught:
        read_cells(data)
    assert reason in caught.value.says.en and caught.value.says.zh


def as_stream(data):
    """Read as a large file is read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_AT_ONCE", 0)
        return read_cells(data)


def outcome(read, data):
    try:
        return read(data)
    except Unreadable as reason:
        return reason.says.en.split(":")[0]


plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
names = st.sampled_from(
    [
        "cells",
        "source",
        "metadata",
        "outputs",
        "tags",
        "id",
        "cell_type",
        "worksheets",
        "nbgrader",
        "grade_id",
        "x",
    ]
)
anything = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5),
    max_leaves=30,
)
cells = st.fixed_dictionaries(
    {"source": anything, "metadata": anything}, optional={"outputs": anything, "id": anything, "x": anything}
)


@settings(max_examples=300)
@given(anything | st.fixed_dictionaries({"cells": st.lists(cells | anything, max_size=5)}), st.booleans())
def test_as_a_stream_the_same_cells_are_read(notebook, ascii_only):
    data = json.dumps(notebook, ensure_ascii=ascii_only).encode("utf-8", "replace")
    assert outcome(as_stream, data) == outcome(read_cells, data)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]:,"\\ 1nult', max_size=60).map(str.encode))
def test_bytes_of_any_kind_end_in_cells_or_in_a_reason(data):
    outcome(as_stream, data), outcome(read_cells, data)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_other_encodings_and_what_python_writes_into_outputs_are_read_as_a_stream(encoding):
    notebook = nb.answered(nb.reference() | {"02.1": "x = 1  # \u4e2d\u6587 \U0001f600"})
    notebook["cells"][3]["outputs"] = [{"data": {"application/json": [float("nan"), -float("inf")]}}]
    data = json.dumps(notebook, ensure_ascii=False).encode(encoding)
    assert as_stream(data) == read_cells(data)
    old = nbformat.convert(nbformat.from_dict(nb.handed_out() | {"nbformat_minor": 5}), 3)
    assert as_stream(json.dumps(old).encode(encoding)) == read_cells(json.dumps(old).encode(encoding))


def test_plots_cost_neither_the_answers_nor_the_memory():
    notebook = nb.answered(nb.reference())
    expected = read_cells(json.dumps(notebook).encode())
    plot = {"output_type": "display_data", "data": {"image/png": "A" * 2**22}, "metadata": {}}
    for cell in notebook["cells"][:10]:
        cell["outputs"] = [plot]
    data = json.dumps(notebook).encode()
    tracemalloc.start()
    try:
        assert len(data) > 40 * 2**20 and read_cells(data) == expected
        assert tracemalloc.get_traced_memory()[1] < 2 * len(data)
    finally:
        tracemalloc.stop()


def test_long_numbers_do_not_crash_the_thread_that_reads_them():
    # ijson's C parser did crash, and the whole process with it, in a thread that read a number after other files.
    script = (
        "from concurrent.futures import ThreadPoolExecutor; from hookedu.grading import reading\n"
        "def read(digits):\n"
        "    try: reading.read_cells(b'{\"cells\":[{\"metadata\":{\"n\":' + b'9' * digits + b'}}]}')\n"
        "    except reading.Unreadable: return 'refused'\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    print(*set(pool.map(read, [10**6 + 10**5, 5 * 10**6, 2 * 10**7] * 4)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout.strip()) == (0, "refused"), done.stderr


@pytest.mark.parametrize(
    "data",
    [
        b'{"cells":[' + b"{}," * 2**22 + b"{}]}",
        b'{"cells":[' + b"{}," * MAX_CELLS + b"{}]}",
        b'{"cells":[' + b"[" * 2**20 + b"]" * 2**20 + b"]}",
        b'{"cells":[{"source":"' + b"x" * (21 * 2**20) + b'"},{}]}',
        b'{"cells":[' + b"1," * 2**21 + b"1]}",
        b'{"cells":[{"outputs":[' + b"[]," * 2**20 + b"1]}]}",
    ],
)
def test_too_much_is_refused_before_it_is_made_into_objects(data):
    tracemalloc.start()
    try:
        assert outcome(read_cells, data).startswith("too much")
        assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    finally:
        tracemalloc.stop()


def test_a_large_file_of_zeros_is_not_called_too_much():
    assert outcome(read_cells, bytes(100 * 2**20)).startswith("not complete JSON")


def code(**places):
    return {"cell_type": "code", "metadata": {}} | places


@pytest.mark.parametrize(
    ("notebook", "shown"),
    [
        (
            {"nbformat": 4, "cells": [code(source="shown")], "worksheets": [{"cells": [code(source="not")]}]},
            "shown",
        ),
        ({"nbformat": 4, "cells": [code(source="", input="not")]}, ""),
        ({"nbformat": 3, "worksheets": [{"cells": [code(input="shown", source="not")]}]}, "shown"),
        (
            {"nbformat": 3, "cells": [code(source="not")], "worksheets": [{"cells": [code(input="shown")]}]},
            "shown",
        ),
        ({"worksheets": [{"cells": [code(input="shown")]}]}, "shown"),
        ({"cells": [code(source=["sho", "wn"])], "worksheets": [{"cells": [code(input="not")]}]}, "shown"),
    ],
)
def test_what_is_read_is_what_jupyter_shows(notebook, shown):
    """A hand-out without answers had the answers in the places of an older format, and full marks."""
    assert [cell.source for cell in read_cells(json.dumps(notebook).encode())] == [shown]
