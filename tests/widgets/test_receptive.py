"""Receptive fields against what a gradient reaches in networks whose weights are all positive."""

import pytest
import torch
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from torch import nn
from torchvision.models import densenet121, resnet50

from hookedu.widgets.receptive import Field, Fields

SIZE = 40


class Residual(nn.Module):
    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x):
        out = self.inside(x)
        out += x
        return torch.relu(torch.cat([out, x], 1)).mean(1, keepdim=True)


def conv(kernel: int, stride: int, padding: int, dilation: int) -> nn.Module:
    made = nn.Conv2d(1, 1, kernel, stride, padding, dilation)
    nn.init.constant_(made.weight, 1 / kernel**2)
    nn.init.ones_(
        made.bias
    )  # a random one let a ReLU stop the gradient at the border, once in a thousand runs
    return made


layers = st.one_of(
    st.builds(conv, st.integers(1, 4), st.integers(1, 2), st.integers(0, 2), st.integers(1, 2)),
    st.builds(nn.AvgPool2d, st.integers(1, 3), st.integers(1, 2)),
    st.sampled_from([nn.ReLU(), nn.ReLU(inplace=True), nn.ZeroPad2d((1, 2, 3, 0)), nn.Dropout(0.0)]),
    st.sampled_from([1, 3, 5]).map(lambda k: Residual(conv(k, 1, k // 2, 1))),
)


@given(st.lists(layers, min_size=1, max_size=5), st.data())
@settings(max_examples=100, deadline=None)
def test_a_field_is_what_the_gradient_reaches(parts, data):
    model = nn.Sequential(*parts).double()
    x = torch.ones(1, 1, SIZE, SIZE, dtype=torch.float64, requires_grad=True)
    try:
        model(x * 1).sum().backward()  # not the leaf, as a ReLU may work in place
    except RuntimeError:  # a picture too small, or a ReLU that changes in place what another one keeps
        reject()
    x.grad, fields = None, Fields([x])
    with fields:
        y = model(x * 1)
    field = fields.of(y)
    at = [data.draw(st.integers(0, size - 1)) for size in y.shape[-2:]]
    y[0, 0, at[0], at[1]].backward()
    reached = x.grad[0, 0].nonzero()
    for axis in range(2):
        start = field.start[axis] + at[axis] * field.stride[axis]
        wanted = max(start, 0), min(start + field.size[axis], SIZE) - 1
        found = reached[:, axis].tolist()
        # At the border a kernel with gaps may leave out places; all may lie in the padding.
        assert all(wanted[0] <= index <= wanted[1] for index in found)
        if start >= 0 and start + field.size[axis] <= SIZE and found:
            assert (min(found), max(found)) == wanted
    assert len(reached) or min(field.start) < 0 or max(at) > 0


@pytest.mark.parametrize(
    ("build", "layer", "size", "stride"),
    [(resnet50, "layer1", 35, 4), (resnet50, "layer4", 427, 32), (densenet121, "features.conv0", 7, 2)],
)
def test_of_known_networks(build, layer, size, stride):
    model, x = build(weights=None).eval(), torch.zeros(1, 3, 64, 64)
    found = []
    fields = Fields([x])
    model.get_submodule(layer).register_forward_hook(lambda _, args, output: found.append(fields.of(output)))
    with torch.no_grad(), fields:
        model(x)
    assert [(field.size, field.stride) for field in found] == [((size,) * 2, (stride,) * 2)]


@pytest.mark.parametrize(
    "unknown",
    [
        lambda x: nn.functional.interpolate(x, scale_factor=2),
        lambda x: x.transpose(2, 3),
        lambda x: x.flip(3),
        lambda x: x[:, :, 2:],
        lambda x: torch.fft.fft2(x).real,
        lambda x: nn.functional.conv_transpose2d(x, torch.ones(1, 1, 2, 2), stride=2),
        lambda x: x.flatten(2),
    ],
    ids=["resized", "transposed", "flipped", "cropped", "Fourier", "transposed convolution", "flat"],
)
def test_what_is_not_known_is_none(unknown):
    x = torch.ones(1, 1, 6, 6)
    fields = Fields([x])
    with fields:
        y = unknown(x)
        z = torch.relu(y)
        plus = torch.ones(1, 1, *y.shape[-2:]) + y
        both = x + y if x.shape == y.shape else y
    assert {fields.of(one) for one in (y, z, plus, both)} == {None}


def test_a_picture_that_is_overwritten_is_no_longer_known():
    x, y = torch.ones(1, 1, 6, 6), torch.ones(1, 1, 6, 6)
    fields = Fields([x])
    with fields:
        kept = x * 2
        x.copy_(y.flip(2))
    assert fields.of(kept) == Field() and fields.of(x) is None
