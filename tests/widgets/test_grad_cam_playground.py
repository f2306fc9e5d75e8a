"""GradCamPlayground shows what hooks written by hand show, refuses what is no choice, and leaves nothing behind."""

import asyncio
import base64
import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
import traitlets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from hookedu import GradCamPlayground
from hookedu.language import preference
from hookedu.models.shapes import CLASSES, draw_shapes, load_model
from hookedu.widgets.grad_cam import overlay
from tests.hooks.capture_models import hook_tables
from tests.widgets.conftest import english_comments, marks, same

SHAPES = [("cross", 18, 32), ("triangle", 46, 32)]


def playground(model=None, layer="block4", draw=draw_shapes, **options):
    model = load_model() if model is None else model
    return GradCamPlayground(model, layer, draw, CLASSES, **({"shapes": SHAPES} | options))


def by_hand(model, layer, picture, chosen, off=()):
    """Return logits, heat and contributions, with a channel switched off by another hook and no gradient hook at all."""
    seen = {}

    def zero(module, args, output):
        seen["maps"] = output.detach().clone()
        mask = torch.ones(output.shape[1])
        mask[list(off)] = 0
        seen["on"] = output * mask[:, None, None]
        return seen["on"].clone()  # what follows may work in place

    with model.get_submodule(layer).register_forward_hook(zero):
        logits = model(picture[None])
    (grads,) = torch.autograd.grad(logits[0, chosen], seen["on"])
    cam = torch.einsum("c,chw->hw", grads[0].mean(dim=(1, 2)), seen["on"][0].detach()).clamp(min=0)
    heat = F.interpolate(cam[None, None], size=picture.shape[1:], mode="bilinear")[0, 0]
    return logits[0].detach(), heat, grads[0].mean(dim=(1, 2)) * seen["maps"][0].sum(dim=(1, 2))


def shown(widget):
    """Return the content and the tensors of the last picture that the browser got, as bytes."""
    message, buffers = widget._posted["shown"]
    return message["content"], dict(zip((t["name"] for t in message["tensors"]), buffers, strict=True))


def receive(widget, *message, **content):
    widget._receive(widget, *message or ({**content},), [])


# -- the numbers -----------------------------------------------------------------------------------------------------


def in_place(model):
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = True
    return model


@pytest.mark.parametrize("layer", ["block4", "block4.bn", "block2"])
@pytest.mark.parametrize("off", [[], [3], [0, 5, 17, 31]])
@pytest.mark.parametrize("name", ["cross", "heart"])
def test_its_numbers_are_those_of_hooks_written_by_hand(layer, off, name, untouched):
    model = in_place(load_model())
    untouched(model)
    widget = playground(model, layer)
    widget.off, widget.explained = off, name
    picture = draw_shapes(SHAPES)
    logits, heat, brings = by_hand(model, layer, picture, CLASSES.index(name), off)
    assert widget.error is None and torch.equal(widget.picture, picture)
    assert torch.allclose(widget.logits, logits, atol=1e-5)
    assert torch.allclose(widget.heat, heat, atol=1e-5)
    content, tensors = shown(widget)
    sent = torch.frombuffer(bytearray(tensors["brings"]), dtype=torch.float32)
    assert torch.allclose(sent, brings, atol=1e-4)
    usual = torch.frombuffer(bytearray(tensors["before"]), dtype=torch.float32)
    assert torch.allclose(usual, by_hand(model, layer, picture, 0)[0], atol=1e-5)
    assert content["off"] == off and content["explained"] == CLASSES.index(name)


def test_switching_a_channel_off_takes_what_it_brings():
    """Behind block4 everything is linear, so that the prediction is exact."""
    widget = playground()
    widget.explained = "cross"
    before, brings = widget.logits[4].item(), widget._now.brings
    channel = int(brings.argmax())
    receive(widget, kind="switch", channel=channel, on=False)
    assert widget.off == [channel]
    assert widget.logits[4].item() == pytest.approx(before - brings[channel].item(), abs=1e-4)
    receive(widget, kind="switch", channel=channel, on=True)
    assert widget.off == [] and widget.logits[4].item() == pytest.approx(before, abs=1e-5)


def test_it_explains_the_highest_class_until_one_is_chosen():
    widget = playground(shapes=[("star", 20, 30)])
    assert shown(widget)[0]["explained"] == CLASSES.index("star") and shown(widget)[0]["follows"]
    widget.shapes = [("heart", 20, 30)]
    assert shown(widget)[0]["explained"] == CLASSES.index("heart")
    receive(widget, kind="explain", name="star")
    assert shown(widget)[0]["explained"] == CLASSES.index("star") and not shown(widget)[0]["follows"]
    receive(widget, kind="explain", name=None)
    assert shown(widget)[0]["explained"] == CLASSES.index("heart")


def test_the_heat_lies_on_the_shape_that_is_explained():
    widget = playground()
    for name, x, y in SHAPES:
        widget.explained = name
        column, row = shown(widget)[0]["peak"]
        assert abs(column - x) < 9 and abs(row - y) < 9


def test_where_nothing_speaks_for_the_class_the_picture_is_shown_without_heat():
    model = load_model()
    with torch.no_grad():
        model.head.weight.copy_(-model.head.weight.abs())  # every channel speaks against every class
    widget = playground(model)
    assert widget.error is None and not widget.heat.any()
    pixels = (255 * widget.picture.movedim(0, -1)).round().to(torch.uint8)
    assert torch.equal(overlay(widget.picture, widget.heat, 0.0), pixels)
    widget.off = [3]
    assert widget.error is None and not widget.heat.any() and widget.verdicts


@pytest.mark.parametrize("off", [[], [2, 40]])
def test_the_code_computes_what_is_shown(off):
    model = load_model()
    widget = playground(model)
    widget.off, widget.explained = off, "triangle"
    names = {"model": model, "x": widget.picture[None]}
    exec(widget.code, names)
    assert torch.allclose(names["heat"], widget.heat, atol=1e-6)
    assert torch.equal(names["logits"][0], widget.logits) and hook_tables(model) == hook_tables(load_model())
    assert "hookedu" not in widget.code and english_comments(widget.code) == []


def test_frozen_and_half_precision_models_are_explained_as_well():
    frozen = load_model().requires_grad_(False)
    expected = playground().heat
    assert torch.allclose(playground(frozen).heat, expected, atol=1e-5)
    assert frozen.head.weight.requires_grad is False
    half = playground(load_model().bfloat16())
    assert half.error is None and half.heat.dtype == torch.float32


# -- shapes ----------------------------------------------------------------------------------------------------------


def test_shapes_are_added_moved_and_removed():
    widget = playground(shapes=[])
    receive(widget, kind="add", name="cross")
    assert widget.shapes == [("cross", 32, 32)]
    for name in CLASSES:
        receive(widget, kind="add", name=name)
    places = [(x, y) for _, x, y in widget.shapes]
    assert len(set(places)) == 7 and widget.error is None  # none on top of another
    receive(widget, kind="move", index=1, x=7, y=8.5)
    receive(widget, kind="remove", index=0)
    assert widget.shapes[0] == ("circle", 7, 8.5)
    assert torch.equal(widget.picture, draw_shapes(widget.shapes))
    for _ in range(6):
        assert not shown(widget)[0]["full"]
        receive(widget, kind="add", name="star")
    assert shown(widget)[0]["full"] and widget.error is None  # the page offers no more
    receive(widget, kind="add", name="star")
    assert len(widget.shapes) == 12 and "room for 12" in str(widget.error)


def test_an_uploaded_picture_lies_behind_the_shapes():
    widget = playground()
    pixels = torch.arange(3 * 64 * 64).remainder(251).to(torch.uint8).view(64, 64, 3)
    widget._receive(widget, {"kind": "upload"}, [memoryview(pixels.numpy().tobytes())])
    ground = pixels.permute(2, 0, 1).float() / 255
    assert torch.equal(widget.ground, ground) and shown(widget)[0]["uploaded"]
    assert torch.equal(widget.picture, draw_shapes(SHAPES, ground))
    assert torch.equal(widget.picture[:, 0], ground[:, 0])
    receive(widget, kind="drop")
    assert widget.ground is None and torch.equal(widget.picture, draw_shapes(SHAPES))


def test_of_many_moves_the_last_is_computed_and_no_queue_remains():
    drawn = []

    def draw(shapes, ground):
        drawn.append(list(shapes))
        return draw_shapes(shapes, ground)

    async def drag() -> None:
        widget = playground(draw=draw)
        drawn.clear()
        for x in range(60):
            receive(widget, kind="move", index=0, x=x, y=20)
        while not drawn:
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        assert drawn == [[("cross", 59, 20), SHAPES[1]]]
        assert torch.equal(widget.picture, draw_shapes(drawn[0]))

    asyncio.run(drag())


# -- what goes wrong -------------------------------------------------------------------------------------------------

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(CLASSES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
kinds = st.sampled_from(["move", "add", "remove", "explain", "switch", "all_on", "upload", "drop", "", "x"])
messages = anything | st.fixed_dictionaries(
    {"kind": kinds | anything},
    optional={key: anything for key in ("index", "x", "y", "name", "channel", "on")},
)
# Python's own float, int and bool, so that a number is as likely as a list.
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=150)


@settings(QUIET)
@given(st.lists(st.tuples(messages, st.lists(st.binary(max_size=9), max_size=2)), max_size=4))
def test_a_hostile_message_never_raises_and_what_is_shown_stays_true(received):
    model = load_model()
    before = marks(model)
    widget = playground(model)
    for message, buffers in received:
        widget._receive(widget, message, buffers)
        assert all(name in CLASSES and 0 <= x < 64 and 0 <= y < 64 for name, x, y in widget.shapes)
        assert all(0 <= channel < 64 for channel in widget.off) and widget.explained in (None, *CLASSES)
        assert torch.equal(widget.picture, draw_shapes(widget.shapes, widget.ground))
    assert same(before, marks(model))
    receive(widget, kind="move", index=99, x=1, y=1)
    assert widget.failure["says"] == "failed" and "nothing was changed" in widget.failure["error"]
    widget.shapes = [("star", 30, 30)]
    assert widget.error is None and widget.failure == {}
    widget.close()


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("shapes", [("hexagon", 3, 3)]),
        ("shapes", [("cross", 64, 3)]),
        ("shapes", [("cross", 3)]),
        ("off", [64]),
        ("off", [-1]),
        ("explained", "hexagon"),
        ("ground", torch.zeros(3, 32, 32)),
        ("shapes", [("cross", float("nan"), 3)]),
    ],
)
def test_a_choice_that_does_not_exist_is_refused_in_both_languages(trait, value):
    widget = playground()
    before = getattr(widget, trait)
    with pytest.raises(traitlets.TraitError, match=r"[\u4e00-\u9fff][\s\S]*(?i:shape|channel|class|picture)"):
        setattr(widget, trait, value)
    assert getattr(widget, trait) == before
    preference.language = "en"
    with pytest.raises(traitlets.TraitError, match=r"^[^\u4e00-\u9fff]*$"):
        setattr(widget, trait, value)


class Failing(nn.Module):
    """Changes everything that it should not, and then raises."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.broken = load_model(), False
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.train()
        self.calls += 1
        torch.manual_seed(3)
        logits = self.net(x)
        if self.broken:
            raise RuntimeError("no")
        return logits


def test_an_exception_is_shown_and_the_widget_goes_on(untouched):
    model = Failing().eval()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    untouched(model)
    widget = playground(model, "net.block4")
    assert widget.error is None
    model.broken = True
    before = marks(model)
    widget.off = [1]
    assert "no" in str(widget.error) and widget.failure["says"] == "failed" and same(before, marks(model))
    words = widget.words["failed"]
    assert "goes on" in words["en"] and "继续用" in words["zh"]
    model.broken = False
    widget.shapes = [("star", 30, 30)]
    assert widget.error is None and widget.failure == {}
    assert torch.equal(widget.picture, draw_shapes([("star", 30, 30)]))


@pytest.mark.parametrize(
    ("model", "layer", "says"),
    [
        (load_model(), "head", "no batch of feature maps"),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), "0", "1×classes"),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()), "0", "4 logits"),
    ],
)
def test_a_layer_or_model_that_cannot_be_explained_says_why(model, layer, says, untouched):
    untouched(model)
    widget = playground(model, layer)
    assert says in str(widget.error) and widget.logits is None and widget._still() is None
    words = widget.words["failed"]  # there is no shape to move
    assert "run this cell again" in words["en"] and "再运行这个单元格" in words["zh"]
    receive(widget, kind="switch", channel=0, on=False)
    assert widget.off == []


def test_a_layer_that_runs_twice_or_never_says_so():
    conv = nn.Conv2d(3, 3, 3, padding=1)
    twice = nn.Sequential(conv, conv, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 6))
    assert "more than once" in str(playground(twice, "0").error)
    unused = load_model()
    unused.spare = nn.Conv2d(3, 3, 3)
    assert "never called" in str(playground(unused, "spare").error)


def test_what_cannot_be_begun_with_raises():
    with pytest.raises(KeyError, match="block4"):
        playground(layer="blok4")
    with pytest.raises(ValueError, match="3×height×width"):
        playground(draw=lambda shapes, ground: torch.zeros(1, 64, 64))
    with pytest.raises(TypeError):
        playground("model")


# -- in the notebook -------------------------------------------------------------------------------------------------


def test_its_still_picture_and_its_state_are_small(closes):
    widget = playground()
    data, metadata = widget._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert len(data["image/png"]) < 60_000 and metadata["image/png"]["width"] > 400
    assert data["text/plain"] == "GradCamPlayground()"
    state = {key: value for key, value in widget.get_state().items() if key not in ("_esm", "_css")}
    assert len(str(state)) < 10_000
    assert not {"shapes", "off", "explained", "ground"} & set(state)
    closes(widget)


def test_it_lets_go_of_the_model(closes):
    model = load_model()
    widget, gone = playground(model), weakref.ref(model)
    widget.off = [1]
    del model
    closes(widget)
    gc.collect()
    assert gone() is None
