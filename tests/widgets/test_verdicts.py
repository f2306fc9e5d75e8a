"""What each channel would turn the verdict into by itself: what a forward pass of its own says, tried in batches."""

import asyncio

import pytest
import torch
from torch import nn

from hookedu.models.shapes import CLASSES, load_model
from hookedu.widgets import grad_cam_playground, verdicts
from hookedu.widgets.grad_cam import explain
from hookedu.widgets.verdicts import UNKNOWN, Verdicts
from tests.widgets.test_grad_cam_playground import SHAPES, by_hand, playground, receive, shown


def alone(widget, model, layer, off):
    """Return for each channel the class that is the highest if it is switched, each from a forward pass of its own."""
    channels = model.get_submodule(layer).weight.shape[0] if layer.endswith("bn") else len(widget.verdicts)
    top = []
    for channel in range(channels):
        logits, _, _ = by_hand(model, layer, widget.picture, 0, set(off) ^ {channel})
        top.append(CLASSES[logits.argmax()])
    return top


@pytest.mark.parametrize("layer", ["block4", "block3", "block2", "block4.bn"])
@pytest.mark.parametrize("off", [[], [20], [3, 9]])
def test_each_is_what_a_pass_of_its_own_says(layer, off, untouched):
    model = load_model()
    untouched(model)
    widget = playground(model, layer)
    widget.off = off
    assert widget.verdicts == alone(widget, model, layer, off)


def test_a_channel_that_changes_the_verdict_does_so_when_it_is_switched_off():
    widget = playground(layer="block3")
    turning = {n: to for n, to in enumerate(widget.verdicts) if to != "triangle"}
    assert turning
    for channel, to in turning.items():
        widget.off = [channel]
        assert CLASSES[widget.logits.argmax()] == to
        assert widget.verdicts[channel] == "triangle"  # switched on again


def test_the_strongest_are_tried_first_in_batches_that_fit_the_time_and_the_memory(monkeypatch):
    model, sizes = load_model(), []
    picture = playground(model).picture
    now = explain(model, "block4", picture, None, [])
    with model.head.register_forward_hook(lambda m, a, output: sizes.append(len(output))):
        found = Verdicts("block4", picture, now, [])
        assert found.left == now.brings.abs().argsort(descending=True, stable=True).tolist()
        strongest = found.left[:8]
        found.more(model, seconds=0.0)
        assert sizes == [9] and (found.found >= 0).nonzero().flatten().tolist() == sorted(strongest)
        found.more(model, seconds=0.0)
        assert sizes == [9, 2], "no time, one channel"
        found.more(model, seconds=1000.0)
        assert sizes == [9, 2, 56] and found.left == []
        monkeypatch.setattr(verdicts, "_MOST", 5 * now.maps.numel())
        small = Verdicts("block4", picture, now, [])
        while small.left:
            small.more(model, seconds=1000.0)
    assert max(sizes[3:]) == 5 and torch.equal(small.found, found.found)


class Joined(nn.Module):
    """A model whose second half joins the layer with what another branch gives for one picture."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(8, len(CLASSES))

    def forward(self, x):
        return self.head(torch.cat([self.one(x), self.other(x)], dim=1).mean(dim=(2, 3)))


def in_training():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, len(CLASSES)),
    ).train()


def with_dropout():
    torch.manual_seed(0)
    layers = (
        nn.Conv2d(3, 64, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(),  # of so many numbers that no two passes drop the same ones
        nn.Linear(64, len(CLASSES)),
    )
    return nn.Sequential(*layers).train()


@pytest.mark.parametrize(
    ("model", "layer"),
    [(Joined(), "one"), (in_training(), "0"), (with_dropout(), "0")],
    ids=["joined", "batch norm in training", "dropout"],
)
def test_where_a_batch_is_not_as_its_pictures_nothing_is_claimed(model, layer, untouched):
    untouched(model)
    widget = playground(model, layer)
    assert widget.error is None and widget.verdicts and set(widget.verdicts) == {None}
    message, buffers = widget._posted["verdicts"]
    assert message["content"]["mixed"] is True
    assert set(torch.frombuffer(bytearray(buffers[0]), dtype=torch.int32).tolist()) == {UNKNOWN}


def test_in_a_notebook_they_are_tried_once_the_hand_rests(monkeypatch):
    async def drag() -> None:
        widget = playground(layer="block3")
        monkeypatch.setattr(
            grad_cam_playground, "_REST", 1e6
        )  # however slow this machine is, the hand does not rest
        for x in range(20, 40):
            receive(widget, kind="move", index=0, x=x, y=20)
            while shown(widget)[0]["shapes"][0] != ("cross", x, 20):
                await asyncio.sleep(0.001)
        assert "verdicts" not in widget._posted, "no time is taken from a shape in motion"
        monkeypatch.setattr(grad_cam_playground, "_REST", 0.01)
        receive(widget, kind="move", index=0, x=40, y=20)
        while widget._posted.get("verdicts", [{}])[0].get("content") != {"tried": 48, "mixed": False}:
            await asyncio.sleep(0.01)
        assert shown(widget)[0]["shapes"] == [("cross", 40, 20), SHAPES[1]]
        _, buffers = widget._posted["verdicts"]
        found = torch.frombuffer(bytearray(buffers[0]), dtype=torch.int32).tolist()
        assert [CLASSES[n] for n in found] == widget.verdicts

    asyncio.run(asyncio.wait_for(drag(), 60))
