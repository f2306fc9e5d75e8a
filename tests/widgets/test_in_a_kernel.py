"""The widgets in a real kernel: a cell that runs twenty times leaves one widget, in a small notebook."""

import json
import textwrap

import nbformat
import pytest
from nbclient import NotebookClient

SETUP = """\
import ctypes, gc, os, threading, ipywidgets, torch
from torch import nn
from hookedu import GradCamPlayground, GradientFlow, HookInspector, HookTimeline, LanguageToggle, LayerPicker, guess, list_hooks

model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 64 * 64, 2))
x = torch.randn(4, 3, 64, 64)  # 4 MB an activation
small = nn.Sequential(nn.Linear(2, 2))

def census():
    gc.collect()
    tensors = {t.untyped_storage()._cdata: t.untyped_storage().nbytes()
               for t in gc.get_objects() if issubclass(type(t), torch.Tensor)}
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure
    figures = sum(type(o) is Figure for o in gc.get_objects())
    events = sum(map(len, get_ipython().events.callbacks.values()))
    return [len(ipywidgets.widgets.widget._instances), events, len(list_hooks(model)), threading.active_count(),
            len(plt.get_fignums()), figures, round(sum(tensors.values()) / 1e6)]

def resident():
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)  # what Python has freed, glibc may keep
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6"""
SHOW = """\
picker = LayerPicker(model, x)
picker.view = "gradients"
picker.figure
a = torch.ones(2**20, requires_grad=True)  # 4 MB
b = 2 * a
flow = GradientFlow(b.sum(), {"a": a, "b": b})
flow.hooks = {"b": "zero_in_place"}
flow.settle()
def draw(shapes, ground):
    return torch.full((3, 64, 64), 0.1 * len(shapes))
play = GradCamPlayground(model, "1", draw, ["a", "b"])
play.off = [3]
play.settle()
display(LanguageToggle(), picker, HookTimeline(small, torch.ones(1, 2)), HookInspector(model), guess("02.d"), flow, play)"""


@pytest.fixture(scope="module")
def kernel():
    """Return a function that executes code in one kernel, and returns its stdout and the cell."""
    notebook = nbformat.v4.new_notebook()
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", store_widget_state=False)
    with client.setup_kernel():

        def run(code: str, cell_id: str = "other"):
            cell = nbformat.v4.new_code_cell(textwrap.dedent(code), id=cell_id)
            notebook.cells.append(cell)
            client.execute_cell(cell, len(notebook.cells) - 1)
            return "".join(o.text for o in cell.outputs if o.output_type == "stream"), cell

        run(SETUP)
        yield run


def test_twenty_runs_leave_nothing_behind(kernel):
    for _ in range(2):
        kernel(SHOW)
    before, memory = (json.loads(kernel(f"print({what})")[0]) for what in ("census()", "resident()"))
    for _ in range(20):
        kernel(SHOW)
    after, more = (json.loads(kernel(f"print({what})")[0]) for what in ("census()", "resident()"))
    assert after == before
    assert after[2] == 0 and after[4] == 0
    assert more - memory < 40  # one leaked recording per run would be 160 MB


def test_pictures_are_shown_after_a_widget_was():
    """Whatever comes first in a kernel: a widget's still picture leaves pyplot as it is."""
    show = """\
        import torch
        from hookedu import GradientFlow
        x = torch.ones(2, requires_grad=True)
        loss = x.sum()
        GradientFlow(loss, {"x": x, "loss": loss})"""
    plot = "import matplotlib.pyplot as plt; _ = plt.plot([1, 2])"
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(code)) for code in (show, plot)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    assert [output.output_type for output in notebook.cells[1].outputs] == ["display_data"]


def test_two_widgets_of_one_cell_live_together(kernel):
    kernel("two = [LayerPicker(small, torch.ones(1, 2)) for _ in range(2)]")
    assert kernel("print([picker.closed for picker in two])")[0].split() == ["[False,", "False]"]


def test_a_stored_notebook_is_small_and_the_same_every_time(kernel):
    texts, pictures = [], []
    for _ in range(2):
        _, cell = kernel(SHOW)
        pictures.append([output.data.pop("image/png", None) for output in cell.outputs])
        assert len(json.dumps(cell)) < 5_000
        texts.append([output.data["text/plain"] for output in cell.outputs])
    assert pictures[0] == pictures[1] and pictures[0][1]  # LayerPicker's stands where widgets are not shown
    # Characters: noise, which no PNG makes smaller. The pictures in the solutions have a tenth of that.
    assert sum(len(picture or "") for picture in pictures[0]) < 1_500_000
    assert (
        texts[0]
        == texts[1]
        == [
            "LanguageToggle(中文 | English | 双语)",
            *("LayerPicker()", "HookTimeline()", "HookInspector()", "guess 02.d", "GradientFlow()"),
            "GradCamPlayground()",
        ]
    )


def test_the_inspector_follows_the_cells_that_run(kernel):
    kernel("inspector = HookInspector(small)")
    kernel("handle = small[0].register_forward_hook(lambda *_: None)")
    assert kernel("print(len(inspector.hooks))")[0] == "1\n"
    kernel("handle.remove()")
    assert kernel("print(len(inspector.hooks)); inspector.close()")[0] == "0\n"
    kernel("handle = small[0].register_forward_hook(lambda *_: None)")
    assert "error" not in kernel("handle.remove()")[0].lower()


@pytest.mark.parametrize("times", [1, 2])
def test_without_ids_of_cells_a_guess_waits_for_the_next_one(kernel, times):
    """As in front ends that send none, and with nbclient; a cell with another guess is not the next one."""
    kernel("fired, asked = [1, 2], guess('02.d')")
    kernel('guess("02.b")')
    assert kernel("print(asked._truth); asked.said = '1'")[0] == "None\n"
    state = "asked.settle(); print(asked.state, asked._truth, asked._shell)"
    assert kernel(state)[0].split() == ["wrong", "0.0", "None"]
    for _ in range(times):
        kernel("fired.append(3)")
    assert kernel(state)[0].split() == ["wrong", "0.0", "None"]


def test_a_guess_is_kept_once_and_only_if_it_came_before_the_truth(kernel):
    kernel(
        "from hookedu import guesses, storage; storage.append_record = lambda *it: kept.append(it); kept = []"
    )
    kernel("fired, asked = [1, 2], guess('02.d')")
    kernel("1")
    kernel("asked.settle()")
    kernel("asked.said = '0'; asked.settle()")
    assert kernel("print(asked.state, len(kept))")[0].split() == ["right", "0"]
    kernel("del fired; asked = guess('02.d'); asked.said = ' 0 '")
    kernel("1")  # no truth: `fired` is gone
    assert kernel("asked.settle(); print(asked.state)")[0].split() == ["noted"]
    kernel("fired = [1, 2]")
    assert kernel("asked.settle(); print(asked.state, len(kept))")[0].split() == ["right", "1"]
