"""Odd but honest submissions of the corpus: whatever a learner does beside the answers costs no point."""

import json

import nbformat

from tests.grading import notebooks as nb
from tests.grading.corpus import (
    ANSWER,
    IDS,
    RAISED,
    RIGHT,
    UNTOUCHED,
    Case,
    Status,
    each_cell,
    edited,
    first_answer,
    notebook,
    packed,
    with_cell,
)

# --- cells that a learner, an editor or a tool has moved and changed -------------------------------------------------


def deleted(exercise):
    return edited(lambda made: made["cells"].remove(nb.cell_of(made, exercise)))


def moved(exercise):
    def to_the_end(made):
        made["cells"].append(made["cells"].pop(made["cells"].index(nb.cell_of(made, exercise))))

    return edited(to_the_end)


def copied(exercise):
    made = notebook()
    return nb.before(made, "02.2", [nb.cell_of(made, exercise) | {"id": "a-copy"}])


def in_two_cells():
    """Return a notebook whose first answer needs what stands in a cell of its own."""
    body = "def at_once(y, seen): return y.register_hook(lambda g: seen.append(g.clone()))"
    return nb.before(
        nb.answered(nb.reference() | {"02.1": "def watch(y, seen): return at_once(y, seen)"}),
        "02.1",
        [nb.code(body)],
    )


def of_ten_thousand_cells():
    cells = [{"cell_type": "markdown", "source": "..."} for _ in range(9_500)]
    return nb.before(notebook(), "02.1", cells + [nb.code(f"n = {n}") for n in range(500)])


def with_large_plots():
    plot = {"output_type": "display_data", "data": {"image/png": "A" * 2**20}, "metadata": {}}
    return edited(lambda made: made["cells"].append(nb.code("plot()", outputs=[plot] * 30)))


def in_check_cells():
    """Return a notebook whose answers all stand above the check, and whose own cells are untouched."""
    made = nb.handed_out()
    for exercise in IDS:
        cell = nb.check_of(made, exercise)
        cell["source"] = [f"{nb.reference()[exercise]}\n", *cell["source"]]
    return made


def renamed_in_the_check(value):
    """Return a notebook whose first answer has another name, and whose check is given that."""
    made = nb.answered(nb.reference() | {"02.1": ANSWER.replace("def watch", "def watched")})
    nb.check_of(made, "02.1")["source"] = f'check("02.1", {value})'
    return made


def of_version(number):
    new = nbformat.from_dict(notebook() | {"nbformat": 4, "nbformat_minor": 5})
    return packed(nbformat.convert(new, number))


def spaced(made):
    for cell in made["cells"]:
        cell["source"] = "\n \n" + "".join(cell["source"]) + "  \n\n"


ALL = "\n\n\n".join(nb.reference().values())
CELLS = {
    "cell-deleted": Case(deleted("02.3"), Status.GRADED, [3, 3, 0, 5]),
    "cell-moved": Case(moved("02.1"), *RIGHT),
    "cell-copied": Case(copied("02.1"), *RIGHT, notes=("2 cells answer it",)),
    "cell-retyped": Case(first_answer(lambda cell: cell.update(cell_type="markdown")), *RIGHT, notes=("turned into markdown",)),
    "cells-in-reverse": Case(edited(lambda made: made["cells"].reverse()), *RIGHT),
    "answer-in-two-cells": Case(in_two_cells(), *RIGHT),
    "answers-in-one-cell": Case({"cells": [nb.code(ALL)]}, *RIGHT, notes=("02.1: metadata lost, found by the name `watch`",)),
    "answers-in-the-checks": Case(in_check_cells(), *RIGHT, notes=("02.4: answered in another cell",)),
    "answers-as-text": Case({"cells": [{"cell_type": "markdown", "source": ALL}]}, *RIGHT, notes=("turned into markdown",)),
    "lines-as-a-list": Case(each_cell(lambda cell: cell.update(source="".join(cell["source"]).splitlines(True))), *RIGHT),
    "lines-of-windows": Case(each_cell(lambda cell: cell.update(source="".join(cell["source"]).replace("\n", "\r\n"))), *RIGHT),
    "ids-all-the-same": Case(each_cell(lambda cell: cell.update(id="x")), *RIGHT),
    "without-metadata": Case(each_cell(lambda cell: cell.pop("metadata", 0)), *RIGHT, notes=("found by its cell id",)),
    "without-cell-types": Case(each_cell(lambda cell: cell.get("cell_type") == "code" and cell.pop("cell_type")), *RIGHT),
    "format-3": Case(of_version(3), *RIGHT),
    "format-99": Case(edited(lambda made: made.update(nbformat=99, nbformat_minor="x", metadata=[])), *RIGHT),
    "without-a-format": Case(edited(lambda made: (made.pop("nbformat"), made.pop("metadata"))), *RIGHT),
    "untouched": Case(nb.handed_out(), *UNTOUCHED),
    "only-spaces-added": Case(nb.answered({}, nb.handed_out() | {"cells": (spaced(made := nb.handed_out()), made["cells"])[1]}), *UNTOUCHED),
    "answer-renamed": Case("def watched(y, seen): return y.register_hook(seen.append)", *RAISED, error="NameError: name 'watch' is not defined"),
    "answer-renamed-in-the-check": Case(renamed_in_the_check("watched"), *RIGHT, notes=("what is checked is `watched`",)),
    "answer-written-into-the-check": Case(renamed_in_the_check("lambda y, seen: watched(y, seen)"), *RIGHT, notes=("what is checked",)),
    "answers-quoted-in-text": Case({"cells": [{"cell_type": "markdown", "source": f"My answers:\n\n```python\n{ALL}\n```\n"}]}, *RIGHT, notes=("turned into markdown",)),
    "ten-thousand-cells": Case(of_ten_thousand_cells(), *RIGHT),
    "thirty-megabytes-of-plots": Case(with_large_plots(), *RIGHT),
    "two-megabytes-in-a-line": Case(with_cell("data = '" + "x" * 2**21 + "'"), *RIGHT),
}  # fmt: skip

FILES = {
    "file-renamed": Case(notebook(), *RIGHT, file="Untitled3 (final).ipynb"),
    "file-of-no-latin": Case(notebook(), *RIGHT, file="作业 \u200fתרגיל\u200e é́ 🙂.ipynb"),
    "named-otherwise": Case(notebook(), *RIGHT, file="12 Nov homework.ipynb", notes=("says lesson 12",)),
    "byte-order-mark": Case(b"\xef\xbb\xbf" + packed(notebook()), *RIGHT),
    "utf-16": Case(json.dumps(notebook()).encode("utf-16"), *RIGHT),
    "utf-32-without-a-mark": Case(json.dumps(notebook()).encode("utf-32-le"), *RIGHT),
    "not-a-number-in-outputs": Case(edited(lambda made: made["cells"].append(nb.code("1", outputs=[float("nan"), float("-inf")]))), *RIGHT),
    "lone-surrogates": Case(packed(with_cell("s = 'X'")).replace(b"'X'", b"'\\ud83d'"), *RIGHT),
}  # fmt: skip

# --- code -----------------------------------------------------------------------------------------------------------

DECORATED = f"""
import functools
def shout(f):
    @functools.wraps(f)
    def g(*given, **named): return f(*given, **named)
    return g
{ANSWER.replace("def watch", "@shout" + chr(10) + "def watch")}
"""
AN_OBJECT = """
class Watch:
    __slots__ = ("times",)
    def __call__(self, y, seen):
        return y.register_hook(lambda g: seen.append(g.clone()))
watch = Watch()
"""
UNICODE = """
数据, größe, ﬁne = [], 1, "👍🏽"
def watch(y, seen):
    def 钩子(梯度): seen.append(梯度.clone())
    return y.register_hook(钩子)
assert fine == "👍🏽"
"""
PROMPTS = """
>>> def watch(y, seen):
...     return y.register_hook(lambda g: seen.append(g.clone()))
"""
PLOTS = """
import matplotlib.pyplot as plt
for n in range(25):
    plt.figure()
    plt.plot(range(n))
    plt.title("梯度")
plt.show()
plt.savefig("plot.png")
"""
LOGS = """
import logging
logging.basicConfig(level=logging.DEBUG, filename="log.txt")
logging.captureWarnings(True)
for n in range(20_000): logging.debug("step %d", n)
"""
SETTINGS = {
    "dtype-changed": "import torch\ntorch.set_default_dtype(torch.float64)",
    "device-changed": "import torch\ntorch.set_default_device('meta')",
    "device-of-another-machine": "import torch\ntorch.set_default_device('cuda')",
    "gradients-off": "import torch\ntorch.set_grad_enabled(False)\ntorch.inference_mode().__enter__()",
    "autocast-entered": "import torch\ntorch.autocast('cpu').__enter__()",
    "anomalies-watched": "import torch\ntorch.autograd.set_detect_anomaly(True)",
    "threads-of-torch": "import torch\ntorch.set_num_threads(16)\ntorch.rand(700, 700) @ torch.rand(700, 700)",
    "seeds-set": "import random, numpy, torch\nrandom.seed(0); numpy.random.seed(0); torch.manual_seed(0); torch.set_printoptions(precision=1)",
    "warnings-as-errors": "import warnings\nwarnings.simplefilter('error')",
    "numpy-strict": "import numpy\nnumpy.seterr(all='raise')\nnumpy.set_printoptions(threshold=1)",
    "environment-changed": "import os, sys\nos.environ.clear()\nos.environ['OMP_NUM_THREADS'] = '99'\nsys.argv[:] = ['train', '--lr']\nos.umask(0o777)",
    "collector-off": "import gc\ngc.disable()\ngc.freeze()\ngc.set_threshold(1)",
}
CODE = {
    # what a sandbox cannot do, beside what is right
    "installs": Case(f"%pip install -q torch\n!pip install torch\n{ANSWER}", *RIGHT),
    "asks-the-system": Case(f"!ls\nnames = !ls /\nassert names\n%cd nowhere\n{ANSWER}", *RIGHT),
    "magics": Case(f"%matplotlib widget\n%load_ext autoreload\n%autoreload 2\n%nonsense\n{ANSWER}", *RIGHT),
    "bash-cell": Case(with_cell("%%bash\nls; exit 3"), *RIGHT),
    "no-such-cell-magic": Case(with_cell("%%nonsense\nls"), *RIGHT),
    "timed-cell": Case(f"%%time\n{ANSWER}", *RIGHT),
    "captured-cell": Case(f"%%capture said\nprint(1)\n{ANSWER}", *RIGHT),
    "written-and-run": Case(with_cell("%%writefile mine.py\nprint('x')\n"), *RIGHT),
    "module-of-its-own": Case("open('mine.py', 'w').write(" + repr(ANSWER) + ")\nfrom mine import watch", *RIGHT),
    "help-asked": Case(f"print?\n?print\nhelp(len)\n%pinfo len\n%who\n%history\n%env\n%xmode Verbose\n{ANSWER}", *RIGHT),
    "everything-reset": Case(with_cell("%reset -f"), Status.GRADED, [3, 3, 4, 0]),
    "exit-in-a-cell": Case(with_cell("exit()\nquit()\nget_ipython().ask_exit()"), *RIGHT),
    "debugger-on": Case(with_cell("%pdb on\n1 / 0"), *RIGHT),
    "awaits": Case(f"import asyncio\nasync def one():\n    await asyncio.sleep(0)\ntask = asyncio.ensure_future(one())\nawait task\n{ANSWER}", *RIGHT),
    "runs-a-loop-itself": Case(with_cell("import asyncio\nasync def one(): pass\nasyncio.run(one())"), *RIGHT),
    "prints-a-million-lines": Case(with_cell("for n in range(10**6): print(n)"), *RIGHT),
    "plots": Case(with_cell(PLOTS), *RIGHT),
    "logs": Case(with_cell(LOGS), *RIGHT),
    "shows-widgets": Case(with_cell("import ipywidgets\nfrom IPython.display import *\ndisplay(ipywidgets.IntSlider(), HTML('<script>'))\nclear_output(wait=True)\nIPython.display"), *RIGHT),
    "library-missing": Case(with_cell("import pandas_of_next_year"), *RIGHT),
    "loads-data-with-workers": Case(with_cell("import torch\nfor _ in torch.utils.data.DataLoader(range(4), num_workers=1): pass"), *RIGHT),
    "saves-and-loads": Case(with_cell("import torch\ntorch.save(torch.nn.Linear(2, 2).state_dict(), 'm.pt')\ntorch.load('m.pt')"), *RIGHT),
    "starts-python": Case(with_cell("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(1)'], check=True)"), *RIGHT),
    "unicode-names": Case(UNICODE, *RIGHT),
    "prompts-pasted": Case(PROMPTS, *RIGHT),
    "decorated": Case(DECORATED, *RIGHT),
    "an-object": Case(AN_OBJECT, *RIGHT),
    "defined-by-exec": Case(f"exec({ANSWER!r})", *RIGHT),
    "indented-as-a-whole": Case("\n".join(f"    {line}" for line in ANSWER.splitlines()), *RIGHT),
    "full-width-brackets": Case("def watch（y, seen）：\n    pass", *RAISED, error="SyntaxError"),
    "conflict-of-a-merge": Case(f"<<<<<<< HEAD\n{ANSWER}\n=======\n>>>>>>> mine", *RAISED, error="SyntaxError"),
    "mixed-tabs": Case("def watch(y, seen):\n\tif y is None:\n        return\n\treturn", *RAISED, error="TabError"),
    "a-null-in-the-source": Case("x = '\0'\n" + ANSWER, *RAISED, error="SyntaxError"),
    **{name: Case(with_cell(source), *RIGHT) for name, source in SETTINGS.items()},
}  # fmt: skip

ODD = CELLS | FILES | CODE
