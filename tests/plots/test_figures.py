"""Plots: cases 27 and 28 of CASES.md, and the conventions of all plots, checked on the pixels."""

from dataclasses import dataclass

import matplotlib
import numpy as np
import pytest
import torch
from torch import nn

from hookedu import plot_feature_maps, plot_gradients, plot_stats, record
from hookedu.hooks.stats import Stats
from hookedu.plots.layouts import layout_of
from hookedu.plots.mosaic import NAN, NEGATIVE_INF, POSITIVE_INF, mosaic
from tests.hooks.capture_models import Repeated, conv_relu, images

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def no_figure_is_left_or_shown(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("plt.show was called"))
    yield
    plt.close("all")


def title(ax) -> str:
    return ax.get_title() or ax.get_title(loc="left")


def pictures(ax) -> list:
    """Return the Axes of several pictures, without the colour bars in them."""
    return [one for one in ax.child_axes if one.get_label() != "<colorbar>"]


def has_colour(ax, colour) -> int:
    """Return the number of pixels that have a colour."""
    return int((ax.images[0].get_array() == np.array(colour)).all(-1).sum())


@pytest.mark.parametrize(
    "shape",
    [(), (5,), (4, 6), (3, 4, 6), (2, 3, 4, 6), (2, 3, 4, 5, 6), (1, 1, 1, 1), (70, 1, 1), (1, 500, 3, 3)],
)
@pytest.mark.parametrize("plot", [plot_feature_maps, plot_gradients])
def test_case_27_tensors_of_0_to_5_dimensions(shape, plot):
    ax = plot(torch.randn(shape))
    ax.figure.canvas.draw()
    assert ax.images or "single number" in ax.texts[0].get_text()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4, 4), (1, 3, 0, 7)])
def test_case_27_an_empty_tensor_is_a_message(shape):
    ax = plot_feature_maps(torch.empty(shape))
    assert not ax.images and ax.texts[0].get_text() == "empty: " + "×".join(map(str, shape))


def test_case_27_more_dimensions_are_a_message():
    assert "6 dimensions" in plot_feature_maps(torch.ones(1, 1, 1, 1, 2, 2)).texts[0].get_text()


def test_case_27_of_depth_the_middle_slice_is_drawn_and_said():
    volume = torch.zeros(1, 2, 5, 4, 4)
    volume[:, :, 2] = 1
    assert "depth 2 of 5" in title(plot_feature_maps(volume))


@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, torch.float16, torch.float64, torch.bool, torch.uint8, torch.int64, torch.complex64],
)
def test_case_28_every_dtype_looks_like_its_float(dtype):
    values = torch.tensor([[0, 1, 1], [1, 0, 1]]).expand(3, 2, 3)
    assert np.array_equal(mosaic(values.to(dtype)).pixels, mosaic(values.float()).pixels)
    ax = plot_feature_maps(values.to(dtype))
    assert ("|z|" in title(ax)) == dtype.is_complex


def test_case_28_nan_and_inf_are_coloured_and_counted():
    maps = torch.rand(4, 30, 30)
    maps[0, 0, :3], maps[1, 5, 5], maps[2, 7, :2] = float("nan"), float("inf"), -float("inf")
    ax = plot_feature_maps(maps)
    assert "3 NaN (magenta)" in title(ax) and "3 Inf (+ orange, − cyan)" in title(ax)
    assert [has_colour(ax, c) for c in (NAN, POSITIVE_INF, NEGATIVE_INF)] == [3, 1, 2]
    picture = mosaic(maps)
    finite = maps[maps.isfinite()]
    assert (picture.low, picture.high) == (finite.min().item(), finite.max().item()), (
        "the scale is of the finite"
    )


@pytest.mark.parametrize("value", [0.0, 5.0, -5.0, 1e-30, 1e30])
def test_case_28_a_constant_map_is_drawn_and_said(value):
    ax = plot_feature_maps(torch.full((2, 4, 4), value))
    ax.figure.canvas.draw()
    assert f"constant {value:g}" in title(ax)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_case_28_nothing_finite(value):
    ax = plot_feature_maps(torch.full((2, 4, 4), value))
    ax.figure.canvas.draw()
    assert "32 NaN" in title(ax) or "32 Inf" in title(ax)


def test_case_28_the_largest_floats_do_not_overflow():
    maps = torch.tensor([[[-1.7e308, 1.7e308]]], dtype=torch.float64)
    pixels = mosaic(maps).pixels
    assert not (pixels[0, 0] == pixels[0, -1]).all()
    plot_feature_maps(maps).figure.canvas.draw()


class TestConventions:
    def test_non_negative_is_viridis_and_signed_is_red_and_blue_about_zero(self):
        positive, signed = mosaic(torch.rand(3, 4, 4) + 1), mosaic(torch.rand(3, 4, 4) - 0.9)
        assert positive.cmap == "viridis" and positive.low >= 1
        assert signed.cmap == "RdBu_r" and signed.low == -signed.high
        gradient = plot_gradients(torch.rand(3, 4, 4))
        (bar,) = gradient.child_axes
        assert bar.get_ylim()[0] == -bar.get_ylim()[1]

    def test_64_tiles_and_what_they_are(self):
        maps = torch.rand(1, 256, 5, 5)
        ax = plot_feature_maps(maps, title="layer1")
        assert title(ax) == "layer1 · 64 of 256, first by index"
        assert [label for *_, label in mosaic(maps).corners] == [f"ch {i}" for i in range(64)]
        (labels,) = ax.collections
        assert len(labels.get_paths()) == 64
        assert labels.get_offsets().tolist() == [[x, y - 0.5] for x, y, _ in mosaic(maps).corners]

    def test_pages(self):
        maps = torch.rand(100, 5, 5)
        ax = plot_feature_maps(maps, page=1)
        assert title(ax) == "64 to 99 of 100, by index"
        assert [label for *_, label in mosaic(maps, page=1).corners][::35] == ["ch 64", "ch 99"]
        assert mosaic(maps, page=1).low == mosaic(maps, page=0).low, "one scale for the layer, not for a page"
        with pytest.raises(IndexError, match="page 2 of 2"):
            plot_feature_maps(maps, page=2)
        with pytest.raises(ValueError, match="tiles must be at least 1"):
            plot_feature_maps(maps, tiles=0)

    def test_one_scale_with_a_bar_by_default_and_per_map_without(self):
        maps = torch.stack([torch.arange(16.0).view(4, 4), 100 * torch.arange(16.0).view(4, 4)])
        shared, own = plot_feature_maps(maps), plot_feature_maps(maps, per_map=True)
        assert len(shared.child_axes) == 1 and not own.child_axes, "the colour bar"
        assert "each map on a scale of its own" in title(own) and "own" not in title(shared)
        yellow = (253, 231, 36)  # the upper end of viridis
        assert has_colour(own, yellow) == 2 * has_colour(shared, yellow) > 0

    @pytest.mark.parametrize("per_map", [True, False])
    def test_a_dead_map_is_dark_on_any_scale(self, per_map):
        assert (mosaic(torch.zeros(2, 4, 4), per_map=per_map).pixels == (68, 1, 84)).all(-1).sum() >= 32
        beside = mosaic(torch.stack([torch.zeros(4, 4), torch.ones(4, 4).tril()]), per_map=per_map)
        x, y, _ = beside.corners[0]
        assert (beside.pixels[y : y + 4, x : x + 4] == (68, 1, 84)).all()

    def test_each_pixel_stands_where_its_value_does(self):
        maps = torch.zeros(3, 30, 30)
        maps[1, 4, 9] = 1
        picture = mosaic(maps)
        x, y, label = picture.corners[1]
        assert label == "ch 1"
        assert (picture.pixels[y + 4, x + 9] == (253, 231, 36)).all()
        assert (picture.pixels == (253, 231, 36)).all(-1).sum() == 1

    def test_which_sample_of_the_batch(self):
        batch = torch.stack([torch.zeros(1, 4, 4), torch.rand(1, 4, 4)])
        assert "sample 1 of 2" in title(plot_feature_maps(batch, sample=1))
        assert "constant 0" in title(plot_feature_maps(batch))
        with pytest.raises(IndexError, match="sample 2 of a batch of 2"):
            plot_feature_maps(batch, sample=2)

    def test_ax_is_used_and_returned(self):
        _, (left, right) = plt.subplots(1, 2)
        assert plot_feature_maps(torch.rand(2, 4, 4), ax=left) is left
        assert plot_stats({"a": torch.rand(3)}, ax=right) is right
        assert len(plt.get_fignums()) == 1

    def test_the_tensor_is_not_changed(self):
        maps = torch.randn(2, 4, 4, requires_grad=True)
        before = maps.detach().clone()
        plot_feature_maps(maps)
        assert torch.equal(maps, before) and maps.grad is None


class Gives(nn.Module):
    """Returns what it was given."""

    def forward(self, value):
        return value


def recorded(module, *args, **options):
    with record(module, "", **options) as rec:
        module(*args)
    return rec[""]


@dataclass
class Output:
    last_hidden_state: torch.Tensor
    attentions: tuple
    loss: None = None


class TestTokensAndChannels:
    def test_what_a_layer_returned_in_three_dimensions_are_samples_of_tokens(self):
        tokens = torch.randn(4, 17, 32)
        ax = plot_feature_maps(recorded(nn.Linear(32, 32), tokens), sample=2)
        assert (ax.get_ylabel(), ax.get_xlabel()) == ("token", "feature") and "sample 2 of 4" in title(ax)
        assert not ax.collections, "no tile is labelled ch 0"
        ax = plot_feature_maps(recorded(Gives(), tokens), sample=2)
        low, high = tokens[2].aminmax()
        assert np.array_equal(ax.images[0].get_array(), mosaic(tokens[2], layout="TC").pixels)
        assert ax.images[0].get_extent() == [-0.5, 31.5, 16.5, -0.5] and low < 0 < high

    def test_a_tensor_alone_is_of_channels_unless_told_otherwise(self):
        tensor = torch.rand(4, 17, 32)
        assert title(plot_feature_maps(tensor)) == "4 of 4"
        tokens = plot_feature_maps(tensor, sample=3)
        assert np.array_equal(
            tokens.images[0].get_array(),
            plot_feature_maps(tensor, layout="NTC", sample=3).images[0].get_array(),
        )
        with pytest.raises(IndexError, match='layout="NTC"'):
            plot_feature_maps(tensor, layout="CHW", sample=3)
        with pytest.raises(IndexError, match="sample 4 of a batch of 4"):
            plot_feature_maps(tensor, sample=4)

    @pytest.mark.parametrize("layout", ["NC", "NTX", "NTT", "NTCH"])
    def test_a_layout_that_does_not_fit_is_refused(self, layout):
        with pytest.raises(ValueError, match=layout):
            plot_feature_maps(torch.rand(4, 17, 32), layout=layout)

    @pytest.mark.parametrize(
        ("module", "shape", "layout"),
        [
            (nn.Conv2d(3, 3, 1), (3, 8, 9), "CHW"),
            (nn.Conv2d(3, 3, 1), (2, 3, 8, 9), "NCHW"),
            (nn.MaxPool2d(2), (3, 8, 9), "CHW"),
            (nn.Conv1d(3, 3, 1), (2, 3, 9), "NCL"),
            (nn.Conv1d(3, 3, 1), (3, 9), "CL"),
            (nn.Conv3d(3, 3, 1), (3, 4, 8, 9), "CDHW"),
            (nn.LayerNorm(9), (2, 4, 5, 9), "NHWC"),
            (nn.Linear(9, 9), (2, 9), "NC"),
            (nn.ReLU(), (2, 4, 9), "NTC"),
            (nn.TransformerEncoderLayer(8, 2, 8), (5, 2, 8), "TNC"),
            (nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), (5, 2, 8), "NTC"),
            (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8), 1), (5, 8), "TC"),
        ],
    )
    def test_modules_that_say_what_their_dimensions_are(self, module, shape, layout):
        output = recorded(module, torch.rand(shape))
        assert layout_of(len(shape), module) == layout
        plain = plot_feature_maps(output.activation, layout=layout)
        assert np.array_equal(plot_feature_maps(output).images[0].get_array(), plain.images[0].get_array())

    def test_a_derived_class_is_of_its_kind_and_a_name_alone_is_none(self):
        class Standardized(nn.Conv2d):
            pass

        class Tokens2d(nn.Module):
            pass

        assert layout_of(3, Standardized(1, 1, 1)) == "CHW" and layout_of(3, Tokens2d()) == "NTC"

    @pytest.mark.parametrize("first", [True, False])
    def test_recurrent_layers_say_where_the_batch_is(self, first):
        module = nn.LSTM(3, 5, 2, batch_first=first)
        layer = recorded(module, torch.randn((4, 7, 3) if first else (7, 4, 3)))
        output, (hidden, cell) = layer.activation
        shown = pictures(plot_feature_maps(layer, sample=1))
        expected = [output[1] if first else output[:, 1], hidden[:, 1], cell[:, 1]]
        for ax, tensor in zip(shown, expected, strict=True):
            assert np.array_equal(ax.images[0].get_array(), mosaic(tensor, layout="TC").pixels)
        assert [title(ax).split(" · ")[0] for ax in shown] == ["output[0]", "output[1][0]", "output[1][1]"]
        assert [ax.get_ylabel() for ax in shown] == ["token", "state", "state"]

    def test_attention_has_a_picture_for_each_head(self):
        module, x = nn.MultiheadAttention(8, 4, batch_first=True), torch.randn(3, 6, 8)
        with record(module, "") as rec:
            module(x, x, x)
            module(x, x, x, average_attn_weights=False)
        (_, mean), (_, heads) = (pictures(plot_feature_maps(call)) for call in rec[""].calls)
        assert (mean.get_ylabel(), mean.get_xlabel()) == ("query", "key")
        assert "4 of 4 · query × key" in title(heads)
        labels = mosaic(rec[""].calls[1].activation[1], layout="NAQK").corners
        assert [label for *_, label in labels] == ["head 0", "head 1", "head 2", "head 3"]

    def test_channels_may_come_last_and_a_batch_of_features_shows_all_samples(self):
        maps = torch.rand(2, 3, 4, 5)
        last = plot_feature_maps(maps.movedim(1, -1), layout="NHWC", sample=1)
        assert np.array_equal(last.images[0].get_array(), mosaic(maps, sample=1).pixels)
        ax = plot_feature_maps(recorded(Gives(), torch.rand(3, 8)))
        assert ax.get_ylabel() == "sample" and ax.images[0].get_array().shape == (3, 8, 3)

    def test_a_large_matrix_is_subsampled_and_says_so(self):
        ax = plot_feature_maps(torch.rand(1, 2500, 70), layout="NTC")
        assert "1 in 3 rows drawn" in title(ax) and ax.images[0].get_extent()[2] == 2499.5


class TestStructures:
    def test_each_tensor_has_a_picture_with_its_place(self):
        maps = torch.rand(2, 3, 4, 4)
        ax = plot_feature_maps(recorded(Gives(), (maps, {"aux": -maps, "n": 3})))
        assert [title(one).split(" · ")[0] for one in pictures(ax)] == ["output[0]", "output[1]['aux']"]
        first, second = pictures(ax)
        assert np.array_equal(first.images[0].get_array(), mosaic(maps).pixels)
        assert np.array_equal(second.images[0].get_array(), mosaic(-maps).pixels)
        assert ax.texts[0].get_text() == "(model)"

    def test_a_dataclass_and_what_its_fields_are_called(self):
        value = Output(torch.rand(2, 6, 8), (torch.rand(2, 4, 6, 6),))
        layer = recorded(Gives(), value)
        hidden, attention = pictures(plot_feature_maps(layer))
        assert title(hidden).startswith("output.last_hidden_state") and hidden.get_ylabel() == "token"
        assert "query × key" in title(attention)
        rows = plot_stats(layer.recording).get_yticklabels()
        assert [row.get_text() for row in rows] == ["(model).last_hidden_state", "(model).attentions[0]"]

    def test_a_structure_with_one_tensor_names_its_place(self):
        assert title(plot_feature_maps(recorded(Gives(), (torch.rand(2, 3, 4, 4),)))).startswith(
            "(model) · output[0] · 3"
        )

    def test_of_many_tensors_the_first_are_drawn_and_it_says_so(self):
        ax = plot_feature_maps({str(i): torch.rand(2, 2) for i in range(50)})
        assert len(pictures(ax)) == 12 and ax.texts[0].get_text() == "first 12 of 50 tensors"

    def test_they_fit_into_given_axes(self):
        _, (left, right) = plt.subplots(1, 2)
        assert plot_feature_maps((torch.rand(3, 3), torch.rand(3, 3)), ax=left) is left
        assert len(pictures(left)) == 2 and not right.child_axes and len(plt.get_fignums()) == 1

    def test_a_sample_that_only_some_tensors_have(self):
        ax = plot_feature_maps((torch.rand(4, 2, 3), torch.rand(1, 2, 3)), sample=3)
        assert "sample 3 of 4" in title(pictures(ax)[0])
        assert pictures(ax)[1].texts[0].get_text() == "sample 3 of a batch of 1"
        with pytest.raises(IndexError, match="sample 5"):
            plot_feature_maps((torch.rand(4, 2, 3), torch.rand(1, 2, 3)), sample=5)

    def test_a_whole_recording(self):
        model = Repeated(2)
        with record(model, [nn.Linear, ""]) as rec:
            model(torch.randn(4, 3))
        shown = pictures(plot_feature_maps(rec))
        assert [title(ax) for ax in shown] == ["(model)", "layer, call 0", "layer, call 1"]


class TestWithoutTheData:
    def test_where_some_calls_have_gradients_those_are_drawn_and_the_others_counted(self):
        model = nn.ModuleDict({"used": nn.Linear(3, 2), "unused": nn.Linear(3, 2), "never": nn.Linear(3, 2)})
        with record(model, nn.Linear, gradients=True) as rec:
            model["unused"](torch.ones(1, 3))
            with pytest.raises(RuntimeError, match="call backward first"):
                plot_stats(rec, of="gradient")
            with pytest.raises(RuntimeError, match="call backward first"):
                plot_gradients(rec)
            model["used"](torch.ones(1, 3)).sum().backward()
        ax = plot_stats(rec, of="gradient")
        assert [row.get_text() for row in ax.get_yticklabels()] == ["used"]
        assert "without gradient: 1 of 2 calls" in ax.get_xlabel()
        assert "gradient of used · without gradient: 1 of 2 calls" in title(plot_gradients(rec))

    @pytest.mark.parametrize("plot", [plot_stats, plot_feature_maps])
    def test_a_recording_of_nothing_says_why(self, plot):
        with record(conv_relu(), "0") as rec:
            pass
        with pytest.raises(RuntimeError, match="never called"):
            plot(rec)

    def test_gradients_that_were_not_asked_for(self):
        model = conv_relu()
        with record(model, nn.Module) as rec:
            model(images())
        with pytest.raises(RuntimeError, match="gradients=True"):
            plot_gradients(rec)
        with pytest.raises(ValueError, match="activation, gradient, input"):
            plot_stats(rec, of="weights")


class TestWhatMayBeGiven:
    def test_layers_and_calls_of_a_recording(self):
        model = conv_relu()
        with record(model, "0", gradients=True) as rec:
            model(images()).square().sum().backward()
        assert title(plot_feature_maps(rec["0"])).startswith("0 · 2 of 2 · sample 0 of 2")
        assert title(plot_gradients(rec["0"].calls[0])).startswith("gradient of 0, call 0")

    def test_a_list_of_maps_of_one_shape(self):
        ax = plot_feature_maps([torch.rand(4, 4), torch.rand(4, 4)])
        assert title(ax) == "2 of 2" and len(ax.collections[0].get_paths()) == 2

    def test_maps_of_mixed_shapes_have_a_picture_each(self):
        ax = plot_feature_maps([torch.rand(4, 4), torch.rand(5, 5)])
        assert [title(one)[:3] for one in pictures(ax)] == ["[0]", "[1]"]

    @pytest.mark.parametrize(
        "value", [None, 3, "conv1", [], {}, Stats(torch.ones(2)), [Stats(torch.ones(2))]]
    )
    def test_what_holds_no_tensor(self, value):
        with pytest.raises(TypeError, match="no tensor to draw"):
            plot_feature_maps(value)

    def test_a_call_without_gradient_says_why(self):
        with record(conv_relu(), "0", gradients=True) as rec:
            pass
        with pytest.raises(RuntimeError, match="never called"):
            plot_gradients(rec["0"])


class TestStatsPlot:
    def test_one_row_a_call_first_at_the_top(self):
        model = Repeated(2)
        with record(model, [nn.Linear, ""], gradients=True) as rec:
            model(torch.randn(4, 3)).sum().backward()
        ax = plot_stats(rec)
        assert [label.get_text() for label in ax.get_yticklabels()] == ["(model)", "layer #0", "layer #1"]
        assert ax.get_ylim()[0] > ax.get_ylim()[1]
        means = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
        assert means[1] == pytest.approx(rec["layer"].calls[0].activation.mean().item())
        assert "gradient" in plot_stats(rec, of="gradient").get_xlabel()

    def test_tensors_by_name_nan_and_nothing(self):
        ax = plot_stats({"fine": torch.rand(3), "bad": torch.tensor([1.0, float("nan")]), "none": None})
        said = [text.get_text() for text in ax.texts]
        assert said == ["no values", "1 NaN, 0 Inf"]
        plot_stats({"one": torch.tensor([1.0]), "all nan": torch.tensor([float("nan")])}).figure.canvas.draw()

    def test_nothing_to_draw(self):
        with pytest.raises(ValueError, match="nothing to draw"):
            plot_stats({})
        with pytest.raises(TypeError, match="no tensor to draw"):
            plot_stats(3)

    def test_statistics_of_dropped_values_are_drawn(self):
        model = conv_relu()
        with pytest.warns(UserWarning, match="max_bytes"), record(model, nn.Module, max_bytes=1) as rec:
            model(images())
        assert len(plot_stats(rec).get_yticklabels()) == 5
