"""timeline(): every event of a step, in PyTorch's own order, on a model that stays as it was."""

import random
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from hookedu import LayerPicker, diagnose, plot_timeline, timeline
from hookedu.hooks.timeline import BACKWARD, FORWARD
from tests.hooks.capture_models import Holder, Repeated, Returns, Scaled, conv_relu, hook_tables, images


def kinds(events, path):
    return [(e.kind, e.leaf) if isinstance(e.leaf, str) else e.kind for e in events if e.path == path]


def test_one_step_gives_the_order_of_fact_f20():
    events = timeline(nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True))
    assert kinds(events, "") == [
        "forward_pre",
        "forward",
        "output_grad",
        "backward_pre",
        ("param_grad", "bias"),
        ("post_accumulate", "bias"),
        ("param_grad", "weight"),
        ("post_accumulate", "weight"),
        "backward",
        "input_grad",
    ] or kinds(events, "") == [
        "forward_pre",
        "forward",
        "output_grad",
        "backward_pre",
        ("param_grad", "weight"),
        ("post_accumulate", "weight"),
        ("param_grad", "bias"),
        ("post_accumulate", "bias"),
        "backward",
        "input_grad",
    ]
    assert [event.order for event in events] == list(range(10))


def test_the_order_is_that_of_hooks_registered_by_hand():
    """The same step with hooks of a user in the same places."""
    seen = []

    def note(kind):
        return lambda *_: seen.append(kind)

    model, x = nn.Linear(3, 2, bias=False), torch.randn(4, 3, requires_grad=True)
    model.register_forward_pre_hook(note("forward_pre"))
    model.register_forward_hook(note("forward"))
    model.register_full_backward_pre_hook(note("backward_pre"))
    model.register_full_backward_hook(note("backward"))
    model.weight.register_hook(note("param_grad"))
    model.weight.register_post_accumulate_grad_hook(note("post_accumulate"))
    x.register_hook(note("input_grad"))
    y = model(x)
    y.register_hook(note("output_grad"))
    y.sum().backward()
    assert [event.kind for event in timeline(nn.Linear(3, 2, bias=False), x)] == seen


def test_forward_climbs_and_backward_descends():
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))
    events = timeline(model, torch.randn(2, 3))
    assert [e.path for e in events if e.kind == "forward_pre"] == ["", "0", "1", "1.0", "1.1"]
    assert [e.path for e in events if e.kind == "forward"] == ["0", "1.0", "1.1", "1", ""]
    assert [e.path for e in events if e.kind == "backward_pre"] == ["", "1", "1.1", "1.0", "0"]
    turn = next(i for i, e in enumerate(events) if e.kind in BACKWARD)
    assert all(e.kind in FORWARD for e in events[:turn]) and all(e.kind in BACKWARD for e in events[turn:])


def test_calls_of_a_repeated_module_are_told_apart_in_both_directions():
    events = timeline(Repeated(3), torch.randn(2, 3, requires_grad=True))
    of_layer = {
        kind: [e.call for e in events if e.path == "layer" and e.kind == kind] for kind in FORWARD + BACKWARD
    }
    assert of_layer["forward"] == of_layer["forward_pre"] == [0, 1, 2]
    assert of_layer["backward_pre"] == of_layer["backward"] == of_layer["output_grad"] == [2, 1, 0]
    assert of_layer["param_grad"] == [0, 0], "a parameter's gradient comes once, summed over the calls"


def test_a_module_that_calls_itself():
    class Nested(nn.Module):
        def forward(self, x, depth=2):
            return self(x, depth - 1) * 2 if depth else x * 3

    events = timeline(Nested(), torch.ones(1, requires_grad=True))
    assert [(e.kind, e.call) for e in events if e.kind in FORWARD] == [
        *(("forward_pre", call) for call in (0, 1, 2)),
        *(("forward", call) for call in (2, 1, 0)),
    ]
    assert [e.call for e in events if e.kind == "backward_pre"] == [0, 1, 2]


def test_shapes_and_values():
    model, x = Holder(Scaled()), torch.ones(2, 3)
    bare, full = timeline(model, x, scale=2.0), timeline(model, x, scale=torch.tensor(2.0), values=True)
    assert bare[1].path == "child" and bare[1].value is None
    assert bare[1].shape == ((2, 3), {"scale": 2.0})
    assert next(e for e in full if e.kind == "forward").shape == (2, 3)
    assert torch.equal(next(e for e in full if e.kind == "forward").value, 2 * x)


def test_values_are_copies():
    (before, *_) = [
        e
        for e in timeline(conv_relu(inplace=True), images(), values=True)
        if e.path == "0" and e.kind == "forward"
    ]
    assert (before.value < 0).any()


def test_an_in_place_model_goes_without_module_backward_hooks_and_says_so():
    model = conv_relu(inplace=True)
    events = timeline(model, images())
    assert not {"backward", "backward_pre"} & {event.kind for event in events}
    assert {"output_grad", "param_grad"} <= {event.kind for event in events}
    assert "in place" in events.note.en and "就地" in events.note.zh
    assert timeline(conv_relu(inplace=False), images()).note is None


def test_a_frozen_model_has_no_backward_half():
    events = timeline(conv_relu().requires_grad_(False), images())
    assert {event.kind for event in events} == {"forward_pre", "forward"}


def test_loss_and_layers_are_the_caller_s():
    seen = []

    def loss(output):
        seen.append(output.shape)
        return output[0].sum()

    events = timeline(conv_relu(), images(), loss=loss, layers=nn.Linear)
    assert seen == [(2, 2)] and {event.path for event in events} == {"3"}
    with pytest.raises(KeyError, match="no layer named"):
        timeline(conv_relu(), images(), layers="9")


def test_nested_outputs_and_one_without_gradient():
    events = timeline(Returns(lambda y: {"a": y, "b": (y * 2, None), "i": y.argmax()}), torch.ones(1, 3))
    assert next(e for e in events if e.path == "" and e.kind == "forward").shape["b"] == ((1, 3), None)
    assert sum(e.kind == "output_grad" and e.path == "" for e in events) == 2


def test_the_run_leaves_no_mark():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(), nn.Flatten(), nn.Linear(8, 2))
    x = images().requires_grad_()
    mine = []
    model[0].register_forward_hook(lambda *_: mine.append("forward"))
    model(x).sum().backward()
    before = [t.clone() for t in (*model.buffers(), *(p.grad for p in model.parameters()), x.grad)]
    grads = [p.grad for p in model.parameters()]
    tables, rng = hook_tables(model), torch.get_rng_state()
    attributes = [set(vars(module)) for module in model.modules()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        timeline(model, x)
    after = [*model.buffers(), *(p.grad for p in model.parameters()), x.grad]
    assert all(map(torch.equal, after, before))
    assert all(p.grad is grad for p, grad in zip(model.parameters(), grads, strict=True))
    assert hook_tables(model) == tables and torch.equal(torch.get_rng_state(), rng)
    assert [set(vars(module)) for module in model.modules()] == attributes
    assert [m._is_full_backward_hook for m in model.modules()] == [None] * 6
    assert mine == ["forward"] * 2, "hooks of others run as ever"


def test_a_failing_model_raises_and_has_no_hook_left():
    model = conv_relu()
    tables, attributes = hook_tables(model), [set(vars(module)) for module in model.modules()]
    with pytest.raises(RuntimeError, match="channels"):
        timeline(model, torch.randn(1, 3, 4, 4))
    assert hook_tables(model) == tables
    assert [set(vars(module)) for module in model.modules()] == attributes


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_a_legacy_backward_hook_is_left_alone():
    model, seen = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)), []
    model[0].register_backward_hook(lambda *_: seen.append(1))
    events = timeline(model, torch.ones(1, 3, requires_grad=True))
    assert seen == [1] and "backward" not in kinds(events, "0") and "backward" in kinds(events, "1")


def test_a_compiled_model_runs_uncompiled():
    torch.compiler.reset()
    model = conv_relu(inplace=False)
    model.compile(backend="eager")
    compiled = model._compiled_call_impl
    assert len({e.path for e in timeline(model, images())}) == 5
    assert model._compiled_call_impl is compiled
    torch.compiler.reset()


def test_as_list_table_and_figure():
    events = timeline(conv_relu(inplace=False), images())
    lines = str(events.table()).splitlines()
    assert lines[0].split() == ["order", "event", "module", "call", "parameter", "shape"]
    assert len(lines) == len(events) + 2 and "2×2×2×2" in lines[4]
    assert repr(events) == str(events.table()) and "<table>" in events._repr_html_()
    ax = plot_timeline(events)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["(model)", "0", "1", "2", "3"]
    assert {text.get_text() for text in ax.texts} == {"forward", "backward"}
    rows = {event.path: y for y, event in enumerate({e.path: e for e in events}.values())}
    parameters = next(c for c in ax.collections if c.get_label() == "param_grad")
    assert sorted(round(y) for _, y in parameters.get_offsets()) == [
        rows["0"],
        rows["0"],
        rows["3"],
        rows["3"],
    ]
    assert plot_timeline(events, ax=ax) is ax


@pytest.mark.parametrize("look", [timeline, diagnose, lambda model, x, cache: LayerPicker(model, (x, cache))])
def test_case_35_the_caller_s_cache_does_not_grow(look):
    class Grows(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x, cache):
            cache.values.append(self.layer(x))
            cache.seen["n"] = len(cache.values)
            return torch.cat(cache.values)

    cache = SimpleNamespace(values=[], seen={})
    for _ in range(2):
        look(Grows(), torch.ones(1, 2), cache)
        assert not cache.values and not cache.seen


@pytest.mark.parametrize("look", [timeline, diagnose])
def test_a_model_that_draws_from_every_generator_leaves_all_of_them_as_they_were(look):
    class Draws(nn.Module):
        def forward(self, x):
            return x * random.random() * np.random.rand() + torch.rand(())

    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    look(Draws(), torch.ones(1))
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())
