"""What widgets are given: arrays, bytes and images are read, and an error says in each language what else to give."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from hookedu import (
    GradCamPlayground,
    GradientFlow,
    HookTimeline,
    LayerPicker,
    TrainingPanel,
    plot_graph,
    plot_sharing,
    timeline,
)
from hookedu.language import has_chinese, preference
from hookedu.widgets.given import picture


def net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


X = torch.rand(2, 3, 8, 8)
BYTES = (255 * X[0]).round().byte()  # 3×8×8
LAST = BYTES.permute(1, 2, 0).numpy()  # 8×8×3
LEAF = torch.ones(2, requires_grad=True)
LOSS = LEAF.sum()


def play(draw=lambda shapes, ground: X[0], classes=("a", "b"), **options):
    return GradCamPlayground(net(), "1", draw, classes, **options)


def pick(**options):
    return LayerPicker(net(), X, **options)


REFUSED = {
    "loss: float": (lambda: GradientFlow(1.0, {"x": LEAF}), TypeError, r"`1\.0`", r"`\.item\(\)`"),
    "loss: list": (lambda: GradientFlow([LOSS], {"x": LEAF}), TypeError, "`list`", r"`\.item\(\)`"),
    "loss: None": (lambda: GradientFlow(None, {}), TypeError, "`None`", r"`\.item\(\)`"),
    "loss: array": (lambda: GradientFlow(np.ones(1), {}), TypeError, "`ndarray` 1 float64", r"`\.numpy\(\)`"),
    "loss: vector": (lambda: GradientFlow(2 * LEAF, {"x": LEAF}), ValueError, "2", r"`\.sum\(\)`"),
    "loss: complex": (lambda: GradientFlow((LEAF * 1j).sum(), {}), ValueError, "", r"`\.abs\(\)`"),
    "loss: leaf": (lambda: GradientFlow(torch.tensor(1.0), {}), ValueError, "grad_fn", "requires_grad=True"),
    "tensors: list": (lambda: GradientFlow(LOSS, [LEAF]), TypeError, "`list`", '{"x": x, "w": w}'),
    "tensors: tensor": (
        lambda: GradientFlow(LOSS, LEAF),
        TypeError,
        "`Tensor` 2 float32",
        '{"x": x, "w": w}',
    ),
    "tensors: model": (lambda: GradientFlow(LOSS, net()), TypeError, "`Sequential`", r"named_parameters\(\)"),
    "tensors: float": (lambda: GradientFlow(LOSS, {"x": 1.0}), TypeError, r"`1\.0`", r"tensors\['x'\]"),
    "tensors: None": (lambda: GradientFlow(LOSS, {"x": None}), TypeError, "`None`", r"tensors\['x'\]"),
    "plot: float": (lambda: plot_graph(1.0, {"x": LEAF}), TypeError, r"`1\.0`", "`output`"),
    "plot: leaf": (lambda: plot_graph(LEAF, {"x": LEAF}), ValueError, "grad_fn", "`output`"),
    "plot: list": (lambda: plot_graph(LOSS, [LOSS]), TypeError, "`list`", '{"x": x, "w": w}'),
    "plot: not named": (lambda: plot_graph(LOSS, {"x": LEAF}), ValueError, "`tensors`", '"y": output'),
    "plot: nothing": (lambda: plot_sharing({}), ValueError, "", ""),
    "draw: None": (lambda: play(lambda s, g: None), ValueError, "`None`", r"`draw\(\[\], None\)`"),
    "draw: list": (lambda: play(lambda s, g: [1, 2]), ValueError, "`list`", "uint8"),
    "draw: batch": (lambda: play(lambda s, g: X), ValueError, "`Tensor` 2×3×8×8 float32", "uint8"),
    "draw: int64": (lambda: play(lambda s, g: BYTES.long()), ValueError, "3×8×8 int64", "uint8"),
    "draw: sparse": (lambda: play(lambda s, g: X[0].to_sparse()), ValueError, "3×8×8", "uint8"),
    "draw: meta": (lambda: play(lambda s, g: X[0].to("meta")), ValueError, "3×8×8", "uint8"),
    "draw: empty": (lambda: play(lambda s, g: X[0, :, :0]), ValueError, "3×0×8", "uint8"),
    "draw: objects": (lambda: play(lambda s, g: np.array([[[None]]] * 3)), ValueError, "object", "uint8"),
    "draw: a picture": (lambda: play(X[0]), TypeError, "`Tensor` 3×8×8 float32", "draw_shapes"),
    "classes: none": (lambda: play(classes=[]), ValueError, "`classes`", "logit"),
    "classes: None": (lambda: play(classes=None), TypeError, "`None`", r'`\["cat", "dog"\]`'),
    "classes: number": (lambda: pick(classes=10), TypeError, "`10`", r'`\["cat", "dog"\]`'),
    "classes: word": (lambda: pick(classes="ab"), TypeError, "`'ab'`", r'`\["cat", "dog"\]`'),
    "classes: dict": (lambda: pick(classes={0: "a"}), TypeError, "`dict`", r"list\(classes\.values\(\)\)"),
    "shapes: number": (lambda: play(shapes=5), Exception, "5", "a, b"),
    "shapes: one": (lambda: play(shapes=("a", 1, 1)), Exception, "'a'", "a, b"),
    "target: word": (lambda: pick(target="cat"), TypeError, "`'cat'`", r"`\[0, 3\]`"),
    "target: float": (lambda: pick(target=1.5), TypeError, r"`1\.5`", r"`\[0, 3\]`"),
    "target: floats": (lambda: pick(target=torch.ones(2)), TypeError, "2 float32", r"`\[0, 3\]`"),
    "target: one-hot": (lambda: pick(target=torch.eye(2).long()), TypeError, "2×2 int64", r"`\[0, 3\]`"),
    "target: mask": (lambda: pick(target=torch.tensor([True, False])), TypeError, "2 bool", r"`\[0, 3\]`"),
    "target: bool": (lambda: pick(target=True), TypeError, "`True`", r"`\[0, 3\]`"),
    "target: dict": (lambda: pick(target={}), TypeError, "`dict`", r"`\[0, 3\]`"),
    "target: nothing": (lambda: pick(target=[]), TypeError, "`list`", r"`\[0, 3\]`"),
    "images: number": (lambda: pick(images=3), TypeError, "`3`", r"`images=\[image\]`"),
    "images: path": (lambda: pick(images="cat.png"), TypeError, r"`'cat\.png'`", r"`images=\[image\]`"),
    "images: one": (lambda: pick(images=X[0]), TypeError, "3×8×8", r"`images=\[image\]`"),
    "images: generator": (lambda: pick(images=iter(X)), TypeError, "iterator", r"`images=\[image\]`"),
    "image: path": (
        lambda: pick(images=["a.png"]),
        TypeError,
        r"images\[0\].*`'a\.png'`",
        r"PIL\.Image\.open",
    ),
    "image: None": (lambda: pick(images={"a": None}), TypeError, r"images\['a'\].*`None`", "NumPy"),
    "loss: word": (lambda: HookTimeline(net(), X, loss="mse"), TypeError, "`'mse'`", "lambda output"),
    "timeline: tensor": (lambda: timeline(net(), X, loss=LOSS), TypeError, "scalar float32", "lambda output"),
    "timeline: vector": (lambda: timeline(net(), X, loss=lambda o: o), ValueError, "2×2", r"`\.sum\(\)`"),
    "timeline: float": (
        lambda: timeline(net(), X, loss=lambda o: 1.0),
        TypeError,
        r"`1\.0`",
        r"`\.item\(\)`",
    ),
    "timeline: detached": (
        lambda: timeline(net(), X, loss=lambda o: o.detach().sum()),
        ValueError,
        r"`loss\(output\)`",
        r"`\.detach\(\)`",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_with_what_was_given_and_what_to_give(case):
    make, kind, given, accepted = REFUSED[case]
    for language in ("zh", "en"):
        preference.language = language
        with pytest.raises(kind) as raised:
            make()
        said = str(raised.value)
        assert re.search(given, said) and re.search(accepted, said)
        assert has_chinese(said) == (language == "zh")


FITS = {
    "cat": (lambda: pick(target=7), "0", "1"),
    "below": (lambda: pick(target=-3), "0", "1"),
    "one of them": (lambda: pick(target=[0, 9]), "9", "1"),
    "too many": (lambda: pick(target=[0, 1, 1]), "2", r"\[0, 1, 1\]"),
    "vector": (lambda: pick(target=lambda output: output), "2×2", r"\.sum\(\)"),
    "number": (lambda: pick(target=lambda output: 1.0), r"`1\.0`", r"`target\(output\)`"),
}


@pytest.mark.parametrize("case", FITS)
def test_a_target_that_does_not_fit_the_output_is_reported_in_the_widget(case):
    make, *said = FITS[case]
    for language in ("zh", "en"):
        preference.language = language
        picker = make()
        picker.view = "gradients"
        report = picker.failure["error"]
        assert all(re.search(each, report) for each in said) and has_chinese(report) == (language == "zh")
        picker.view = "maps"
        assert picker.error is None


@pytest.mark.parametrize(
    "value",
    [
        X[0].numpy(),
        X[0].permute(1, 2, 0).numpy(),
        X[0].permute(1, 2, 0),
        BYTES,
        BYTES.numpy(),
        LAST,
        LAST[::-1, ::-1][::-1, ::-1],
        Image.fromarray(LAST),
        X[0].double().numpy(),
        X[0].half(),
    ],
    ids=[
        "array",
        "array last",
        "last",
        "bytes",
        "array of bytes",
        "like imread",
        "flipped",
        "PIL",
        "double",
        "half",
    ],
)
def test_a_picture_may_be_drawn_in_any_form(value):
    widget = play(lambda shapes, ground: value, shapes=[("a", np.float32(1.5), torch.tensor(2))])
    assert widget.error is None and (widget.picture - X[0]).abs().max() < 1 / 255
    assert widget.shapes == [("a", 1.5, 2)]
    widget.ground = value
    assert widget.error is None and widget.ground.shape == (3, 8, 8)
    assert widget.heat.isfinite().all()


def test_a_picture_as_it_should_be_is_left_alone():
    drawn = X[0]
    assert picture(drawn, "") is drawn


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (X[0].numpy(), X[:1]),
        (X.double().numpy(), X),
        (BYTES, BYTES[None] / 255),
        (LAST, BYTES[None] / 255),
        (np.stack([LAST, LAST]), torch.stack([BYTES, BYTES]) / 255),
        (Image.fromarray(LAST), BYTES[None] / 255),
        (LAST[::-1], BYTES.flip(1)[None] / 255),
        (X[0].double(), X[:1]),
    ],
)
def test_images_are_read_as_the_model_takes_them_and_the_code_does_the_same(image, expected):
    model = net()
    picker = LayerPicker(model, X, images={"it": image})
    picker.input = "images['it']"
    assert picker.error is None and torch.allclose(picker.shown, model[0](expected)[0].detach(), atol=1e-6)
    names = {"model": model, "x": X, "images": {"it": image}}
    exec(picker.code, names)
    assert torch.equal(names["shown"], picker.shown)


def test_a_grey_image_stands_for_one_with_one_channel():
    model, grey = nn.Sequential(nn.Conv2d(1, 2, 3)), np.full((5, 6), 255, np.uint8)
    picker = LayerPicker(model, torch.zeros(2, 1, 5, 6), images=[grey])
    picker.input = "images[0]"
    assert picker.error is None and torch.equal(picker.shown, model[0](torch.ones(1, 1, 5, 6))[0].detach())


@pytest.mark.parametrize("target", [np.int64(1), torch.tensor(1), np.array(1)])
def test_an_index_of_any_kind_is_one(target):
    picker, other = pick(target=target), pick(target=1)
    picker.view = other.view = "gradients"
    assert torch.equal(picker.shown, other.shown) and picker.code == other.code


def test_names_of_tensors_need_not_be_words():
    flow = GradientFlow(LOSS, {0: LEAF})
    flow.hooks = {"0": "double"}
    assert flow.error is None and flow.gradients["0"].tolist() == [2, 2]


def panel():
    model = net()
    return TrainingPanel(model, torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize(
    "loss",
    [
        torch.tensor(0.5, requires_grad=True),
        torch.tensor([[0.5]]),
        torch.tensor(0.5, dtype=torch.bfloat16),
        np.float32(0.5),
        np.array([0.5]),
        Fraction(1, 2),
        Decimal("0.5"),
        torch.tensor([0.5]).to_sparse(),
    ],
    ids=repr,
)
def test_a_loss_of_any_kind_is_noted_as_a_number(loss):
    with panel() as shown:
        shown.note(loss)
    assert shown.noted == {0: 0.5} and type(shown.noted[0]) is float


@pytest.mark.parametrize(
    "loss",
    [
        None,
        "0.5",
        b"1",
        torch.ones(2),
        np.ones(2),
        1j,
        torch.tensor(1j),
        np.complex64(1),
        [0.5],
        {"loss": 0.5},
        10**400,
        torch.tensor(1.0, device="meta"),
        torch.empty(0),
    ],
    ids=repr,
)
def test_what_is_no_loss_is_refused_with_what_was_given_and_what_to_give(loss):
    shown = panel()
    for language in ("zh", "en"):
        preference.language = language
        with pytest.raises(TypeError, match=r"`loss\.mean\(\)`") as raised:
            shown.note(loss)
        assert type(loss).__name__ in str(raised.value) or repr(loss) in str(raised.value)
        assert has_chinese(str(raised.value)) == (language == "zh") and shown.noted == {}


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), 1e308, -1e308, True, 3])
def test_a_loss_out_of_all_bounds_stops_no_picture(loss):
    shown = panel()
    with shown:
        shown._monitor._layers["0"](X)
        shown.note(loss)
    assert "text/plain" in shown._repr_mimebundle_()[0]
