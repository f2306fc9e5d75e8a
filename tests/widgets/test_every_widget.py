"""Behaviour that LayerPicker, HookTimeline and HookInspector share, for various models and inputs."""

import pytest
import torch
from torch import nn

from hookedu import GradientFlow, HookInspector, HookTimeline, LanguageToggle, LayerPicker
from hookedu.language import preference
from tests.hooks.capture_models import Failing, Repeated, conv_relu, images

WIDGETS = [LayerPicker, HookTimeline, HookInspector]


class Tokens(nn.Module):
    """A Transformer encoder on tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)

    def forward(self, tokens):
        return self.encoder(self.embed(tokens)).mean(1)


def out_of_memory(x):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")


def hungry() -> nn.Module:
    model = conv_relu()
    model.forward = out_of_memory
    return model


@pytest.mark.parametrize("widget", WIDGETS)
@pytest.mark.parametrize(
    ("build", "x"),
    [
        (conv_relu, images()[:1]),
        (conv_relu, images()),
        (conv_relu, torch.full((1, 1, 4, 4), float("nan"))),
        (Tokens, torch.tensor([[1, 2, 3], [4, 5, 6]])),
        (Repeated, torch.randn(4, 3)),
    ],
    ids=["one", "batch", "NaN", "tokens", "reused"],
)
def test_works_the_same_for_every_input(widget, build, x, untouched):
    model = build()
    untouched(model)
    shown = widget(model, x)
    shown.close()
    assert shown.error is None


def test_a_closed_widget_refuses_what_it_is_asked_for_in_words():
    picker, x = LayerPicker(conv_relu(), images()), torch.ones(2, requires_grad=True)
    flow = GradientFlow(x.sum(), {"x": x})
    picker.close()
    flow.close()
    with pytest.raises(RuntimeError, match="run the cell"):
        picker.value = "1"
    with pytest.raises(RuntimeError, match="run the cell"):
        flow.hooks = {"x": "double"}


def test_a_layer_that_was_shown_and_is_gone_is_reported_in_words():
    model = conv_relu()
    picker = LayerPicker(model, images())
    picker.value = last = list(dict(model.named_children()))[-1]
    del model[int(last)]
    picker.run_again()
    assert "closest" in str(picker.error) and "最接近" in picker.failure["error"]
    picker.value = "0"
    assert picker.error is None


def failure(shown) -> tuple[str, str] | None:
    """Return what a widget says of its exception, in both languages, and its report; None if it shows none."""
    if not shown.failure:
        return None
    return " ".join(shown.words[shown.failure["says"]].values()), shown.failure["error"]


@pytest.mark.parametrize("widget", WIDGETS)
@pytest.mark.parametrize(
    ("build", "x", "zh", "en"),
    [
        (Failing, torch.ones(1, 3), "出现异常", "raised an exception"),
        (hungry, images(), "内存不足", "Out of memory"),
    ],
    ids=["raises", "out of memory"],
)
def test_an_error_is_shown_kept_and_survived(widget, build, x, zh, en, untouched):
    model = build()
    untouched(model)
    shown = widget(model, x)
    says, report = failure(shown)
    assert zh in says and en in says and type(shown.error).__name__ in report
    again = {
        LayerPicker: lambda: shown.run_again(),
        HookTimeline: lambda: shown.run_again(),
        HookInspector: lambda: shown.run(),
    }[widget]
    again()
    assert shown.error is not None  # the model is still broken
    for module in model.modules():  # repair the model
        module.__dict__.pop("forward", None)
    if build is Failing:
        model.broken.forward = lambda x: x
    again()
    assert shown.error is None and failure(shown) is None
    model.broken.__dict__.pop("forward") if build is Failing else setattr(model, "forward", out_of_memory)


@pytest.mark.parametrize("layer", ["embed", "encoder.layers.0.linear1", ""])
def test_what_has_no_maps_is_a_strip(layer):
    """3-D and 2-D activations are drawn with one row per position and one column per unit."""
    picker = LayerPicker(Tokens(), tokens=torch.tensor([[1, 2, 3], [4, 5, 6]]))
    picker.value = layer
    strip = picker.figure.axes[0]
    assert (strip.get_xlabel(), strip.get_ylabel()) == ("unit", "row")
    assert strip.images[0].get_size() == tuple(picker.shown.shape)


def test_a_closed_toggle_no_longer_follows_and_changes_nothing():
    one, other = LanguageToggle(), LanguageToggle()
    preference.language = "zh"
    one.close()
    preference.language = "en"
    assert (one.language, other.language) == ("zh", "en")
    assert one.comm is None
    one.language = "both"
    assert preference.language == "en"


@pytest.mark.parametrize("widget", WIDGETS)
def test_a_closed_widget_says_so_in_its_place(widget):
    shown = widget(conv_relu(), images())
    shown.close()
    data, _ = shown._repr_mimebundle_()
    assert "run the cell" in data["text/plain"] and "已经关闭" in data["text/plain"]
    assert set(data) == {"text/plain", "text/html"} and 'lang="zh"' in data["text/html"]
    shown.close()
    assert shown.error is None
