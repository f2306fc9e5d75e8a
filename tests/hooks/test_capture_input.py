"""record() with invalid arguments: a clear error in the caller's terms, and no hook on the model."""

import pytest
import torch
from torch import nn

from hookedu import diagnose, list_hooks, record, remove_hooks, timeline
from tests.hooks.capture_models import conv_relu, hook_tables, images


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"layers": []}, ValueError, "no layer was chosen; for example"),
        ({"layers": None}, ValueError, "no layer was chosen"),
        ({}, ValueError, "no layer was chosen"),
        ({"layers": 3}, TypeError, "a function, got `int`"),
        ({"layers": ["0", 3]}, TypeError, "got `int`"),
        ({"layers": "conv"}, KeyError, "no layer named 'conv'"),
        ({"layers": nn.Linear(1, 1)}, ValueError, "this `Linear` does not belong to this model"),
        ({"layers": "0", "max_bytes": 0}, ValueError, "max_bytes is a number of bytes greater than 0"),
        ({"layers": "0", "max_bytes": "1GB"}, ValueError, "got '1GB'; 1 GB is 1_000_000_000"),
        ({"layers": "0", "max_bytes": -5}, ValueError, "got -5"),
        ({"layers": "0", "outputs": False}, ValueError, "nothing to record"),
        ({"layers": "0", "copy": False, "device": "cpu"}, ValueError, "leave out device"),
        ({"layers": "0", "device": "warp"}, RuntimeError, "warp"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_hook(options, error, message):
    model = conv_relu()
    tables = hook_tables(model)
    with pytest.raises(error, match=message):
        record(model, **options)
    assert hook_tables(model) == tables


@pytest.mark.parametrize("model", [None, 3, lambda x: x, nn.Linear], ids=["None", "int", "function", "class"])
@pytest.mark.parametrize("function", [lambda m: record(m, "0"), diagnose, lambda m: timeline(m, 1)])
def test_a_model_must_be_a_module(model, function):
    with pytest.raises(TypeError, match=r"a model must be an `nn\.Module`, got"):
        function(model)
    if model is not None:  # list_hooks(None) lists the global hooks
        with pytest.raises(TypeError, match=r"must be an `nn\.Module`"):
            list_hooks(model)


def test_messages_come_in_both_languages():
    with pytest.raises(ValueError) as caught:
        record(conv_relu(), [])
    zh, en = str(caught.value).split("\n")
    assert zh.startswith("没有选择任何层") and en.startswith("no layer was chosen")


def test_layers_are_chosen_by_name_type_module_and_predicate_together_in_the_model_s_order():
    model = conv_relu()
    with record(model, [lambda name, m: name == "3", model[1], nn.Conv2d, "0"]) as rec:
        model(images())
    assert list(rec) == ["0", "1", "3"] and len(rec) == 3
    assert rec["3"].type == "Linear" and "2" not in rec


@pytest.mark.parametrize("choice", ["0", nn.Conv2d, lambda name, m: name == "0"])
def test_one_choice_needs_no_list(choice):
    with record(conv_relu(), choice) as rec:
        pass
    assert list(rec) == ["0"] and list(rec.missed) == ["0"]


def test_what_was_not_asked_for_says_how_to_ask():
    model = conv_relu()
    with record(model, "0", outputs=False, gradients=True) as rec:
        model(images()).sum().backward()
    assert rec["0"].gradient.shape == (2, 2, 2, 2)
    assert rec["0"].stats("gradient").count == 16
    assert rec.events[0].shape == (2, 2, 2, 2) and rec.nbytes == 16 * 4
    with pytest.raises(RuntimeError, match=r"record\(\.\.\., outputs=True\)"):
        _ = rec["0"].activation
    with pytest.raises(RuntimeError, match=r"record\(\.\.\., inputs=True\)"):
        _ = rec["0"].kwargs
    with pytest.raises(RuntimeError, match=r"record\(\.\.\., outputs=True\)"):
        rec["0"].stats()
    with pytest.raises(ValueError, match="of must be one of activation, gradient, input"):
        rec["0"].stats("weights")


def test_the_summary_tells_layers_calls_shapes_and_bytes():
    model = conv_relu()
    with record(model, ["0", "3"]) as rec:
        model(images())
    assert str(rec.summary()).splitlines() == [
        "layer  type    calls  output   dtype    memory  note",
        "-----  ------  -----  -------  -------  ------  ----",
        "0      Conv2d      1  2×2×2×2  float32  64 B",
        "3      Linear      1  2×2      float32  16 B",
        "total 80 B",
    ]
    assert "<table>" in rec._repr_html_()


def test_a_clone_is_what_everything_else_may_change():
    model = conv_relu()
    with record(model, "3", gradients=True) as rec:
        output = model(images())
        # A hook of the user that works in place, after ours.
        handle = output.register_hook(lambda grad: grad.mul_(100))
        output.square().sum().backward()
        handle.remove()
    assert torch.equal(rec["3"].gradient, 2 * output)


def test_arguments_whose_hook_was_taken_off_are_said_to_be_missing():
    model = conv_relu()
    with record(model, layers="0", inputs=True) as rec:
        remove_hooks(model, kind="forward_pre")
        model(images())
    assert rec["0"].activation is not None
    for read in (lambda: rec["0"].input, lambda: rec["0"].kwargs, lambda: rec["0"].stats("input")):
        with pytest.raises(RuntimeError, match="no recorded arguments"):
            read()
