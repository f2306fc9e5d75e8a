"""timeline(): every event of a step, in PyTorch's own order, on a model that stays as it was."""

import copy
import random
import re
import sys
import textwrap
import warnings
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from hookedu import HookTimeline, LayerPicker, diagnose, plot_timeline, record, timeline
from hookedu.hooks.timeline import BACKWARD, FORWARD
from tests.hooks.capture_models import Holder, Repeated, Returns, Scaled, conv_relu, hook_tables, images
from tests.hooks.test_state import KINDS, Odd, picture


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
    """The example in the module's docstring registers hooks of a user in the same places."""
    example = re.search(r"\n\n((?: {4}.*\n|\n)+)", sys.modules[timeline.__module__].__doc__)[1]
    seen, x = [], torch.randn(4, 3, requires_grad=True)
    exec(textwrap.dedent(example), {"module": nn.Linear(3, 2, bias=False), "x": x, "print": seen.append})
    assert len(seen) == 8
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


def test_what_is_missing_for_two_reasons_is_reported_of_both():
    with warnings.catch_warnings(action="ignore"):  # torch.jit is deprecated
        model = nn.Sequential(conv_relu(inplace=True), torch.jit.script(nn.Flatten()))
    note = timeline(model, images()).note
    assert "in place" in note.en and note.en.endswith("no events here: 1")
    assert "就地" in note.zh and "TorchScript" in note.zh


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


class Locked(nn.Module):
    """A module that refuses attributes, such as the one that PyTorch sets for a full backward hook."""

    def forward(self, x):
        return x * 2

    def __setattr__(self, name, value):
        raise AttributeError("locked")


@pytest.mark.parametrize("make", [Locked, lambda: Returns(lambda x: x.max(1))])
def test_without_full_backward_hooks_where_they_cannot_be_whatever_the_error(make):
    model = make()
    events = timeline(model, torch.ones(1, 3, requires_grad=True))
    assert "backward" not in kinds(events, "") and {"forward", "output_grad"} <= {*kinds(events, "")}
    assert "full backward hooks" in events.note.en


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


@pytest.mark.parametrize("look", [timeline, diagnose, LayerPicker, HookTimeline])
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


class Applies(nn.Module):
    """A layer, and a function of the layer and the input."""

    def __init__(self, function, layer=None) -> None:
        super().__init__()
        self.layer, self.function = layer or nn.Linear(3, 3), function

    def forward(self, x):
        return self.function(self.layer, x)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_with_a_buffer_of_any_kind_stays_as_it_was(kind):
    model = Odd(KINDS[kind]())
    model.forward = lambda x: model.inside(x) @ model.weight
    before = picture(model)
    events = timeline(model, torch.ones(3, 4, requires_grad=True))
    assert picture(model) == before
    assert len([e for e in events if e.kind == "post_accumulate"]) == 5


def test_a_meta_model_has_shapes_and_gradients_of_shapes():
    with torch.device("meta"):
        model, x = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), torch.ones(2, 1, 4, 4)
    events = timeline(model, x, values=True)
    assert next(e for e in events if e.kind == "output_grad").shape == (2, 2, 2, 2)
    assert model[1].num_batches_tracked.is_meta


def test_lazy_layers_get_their_events_and_are_lazy_again():
    model = nn.Sequential(nn.LazyConv2d(2, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    before = picture(model)
    events = timeline(model, images())
    assert picture(model) == before and any(map(is_lazy, model.parameters()))
    assert {(e.path, e.leaf) for e in events if e.kind == "param_grad"} == {
        (path, leaf) for path in ("0", "1", "3") for leaf in ("weight", "bias")
    }
    assert model(images()).shape == (2, 2) and not any(map(is_lazy, model.parameters()))
    assert type(model[3]) is nn.Linear and model[3].in_features == 8


def test_weights_that_a_forward_rescales_are_put_back():
    model = nn.Embedding(4, 3, max_norm=0.1, sparse=True)
    weight, values = model.weight, model.weight.detach().clone()
    timeline(model, torch.tensor([0, 1]))
    assert model.weight is weight and torch.equal(weight, values) and weight.grad is None


def test_of_complex_outputs_the_absolute_values_are_summed():
    x = torch.randn(2, 3, requires_grad=True)
    events = timeline(Applies(lambda layer, x: torch.fft.fft(x)), x, values=True)
    torch.fft.fft(x).abs().sum().backward()
    assert torch.allclose(events[-1].value, x.grad) and events[-1].kind == "input_grad"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("refused", "function"),
    [
        (True, lambda layer, x: torch.nested.as_nested_tensor([layer(x), layer(x[:1])])),
        (True, lambda layer, x: layer(x).to_sparse()),
        (True, lambda layer, x: torch.func.grad(lambda x: layer(x).sum())(x)),
        (False, lambda layer, x: torch.vmap(layer)(x)),
        (False, lambda layer, x: torch.func.functional_call(layer, {"bias": layer.bias * 2}, (x,))),
    ],
    ids=["nested", "sparse", "grad", "vmap", "functional_call"],
)
def test_a_model_that_refuses_full_backward_hooks_runs_without_them(refused, function):
    events = timeline(Applies(function), torch.ones(2, 3), values=True)
    called = [e.kind for e in events if e.path == "layer" and e.kind in FORWARD]
    assert called[:2] == ["forward_pre", "forward"] and "forward" in repr(events)
    if refused:
        assert "full backward hooks" in events.note.en and "完整反向钩子" in events.note.zh
        assert not {"backward", "backward_pre"} & {event.kind for event in events}
    else:
        assert events.note is None


def test_no_hook_stays_on_a_leaf_of_the_model():
    model = Applies(lambda layer, x: layer(model.scale) + layer(x), nn.Identity())
    model.scale = torch.ones(3, requires_grad=True)
    kinds = [e.kind for e in timeline(model, torch.ones(2, 3))]
    assert kinds.count("input_grad") == 1 and not model.scale._backward_hooks and model.scale.grad is None


def test_a_compiled_part_runs_uncompiled():
    torch.compiler.reset()
    compiled = []

    def backend(graph, _):
        compiled.append(graph)
        return graph

    model = nn.Sequential(nn.Linear(3, 3), torch.compile(nn.Sequential(nn.Linear(3, 3)), backend=backend))
    paths = [event.path for event in timeline(model, torch.ones(2, 3)) if event.kind == "forward"]
    assert paths == ["0", "1.0", "1", ""] and not compiled
    model(torch.ones(2, 3))
    assert compiled, "the stance is the user's again"
    torch.compiler.reset()


@pytest.mark.parametrize("look", [timeline, HookTimeline, LayerPicker])
def test_inputs_are_arguments_and_a_tuple_of_them_is_explained(look):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x, scale):
            return self.layer(x) * scale.mean()

    def error(*inputs, **kwargs):
        try:
            return look(Two(), *inputs, **kwargs).error
        except AttributeError:  # a Timeline
            return None
        except TypeError as error:
            return error

    pair = {"x": torch.ones(2, 3), "scale": torch.ones(2)}
    assert error(*pair.values()) is error(**pair) is error(pair["x"], scale=pair["scale"]) is None
    for only, remedy in ((tuple(pair.values()), "`model, *x`"), (pair, "`model, **x`")):
        failed = error(only)
        assert isinstance(failed, TypeError) and remedy in str(failed) and "'scale'" in str(failed)
        assert isinstance(failed.__cause__, TypeError)
    assert "`model" not in str(error(pair["x"])), "with a tensor, nothing is to be explained"


def test_an_attribute_that_a_tuple_does_not_have_is_explained_too():
    with pytest.raises(TypeError, match=r"`model, \*x`"):
        timeline(Applies(lambda layer, x: layer(x.float())), (torch.ones(3),))
    with pytest.raises(AttributeError, match="nothing"):
        timeline(Applies(lambda layer, x: layer.nothing), (torch.ones(3),))


def test_arguments_are_copied_as_what_they_are():
    """What is no leaf may be changed in place, and one tensor given twice is one tensor."""

    class InPlace(nn.Module):
        def forward(self, x, y):
            assert x is y or x.requires_grad  # full backward hooks make a view of each
            return x.mul_(2)

    for x in (torch.ones(3), torch.ones(3, requires_grad=True) * 1):
        assert [event.kind for event in timeline(InPlace(), x, x)][:2] == ["forward_pre", "forward"]
        assert x.tolist() == [1, 1, 1]


def nested(levels):
    model = nn.Linear(3, 3)
    for _ in range(levels):
        model = nn.Sequential(model)
    return model


def test_a_copy_of_a_layer_that_forward_makes_is_another_module():
    class Ensemble(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return copy.deepcopy(self.layer)(x) + self.layer(x)

    events = timeline(Ensemble(), torch.ones(1, 2))
    assert events.note is None
    assert [
        e.call for e in events if e.path == "layer" and e.kind in ("forward_pre", "forward", "backward")
    ] == [0] * 3


def test_a_class_with_a_call_of_its_own_that_leaves_out_pytorchs():
    class Direct(nn.Linear):
        def __call__(self, x):
            return self._call_impl(x)

    events = timeline(nn.Sequential(Direct(2, 2), nn.ReLU()), torch.ones(1, 2))
    assert [(e.kind, e.call) for e in events if e.path == "0"][:2] == [("forward_pre", 0), ("forward", 0)]


def test_an_iterator_is_not_used_for_a_second_run():
    class Sums(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, xs):
            return sum(self.layer(x).relu_() for x in xs)

    xs = [torch.ones(1, 2)] * 3
    assert [e.call for e in timeline(Sums(), xs) if (e.kind, e.path) == ("forward", "layer")] == [0, 1, 2]
    with pytest.raises(RuntimeError, match="is a view") as raised:
        timeline(Sums(), iter(xs))
    assert "pass a list or a tuple" in raised.value.__notes__[-1]


def test_200_nested_modules():
    model = nested(200)
    events = timeline(model, torch.ones(2, 3))
    assert max(event.path.count(".") for event in events) == 199
    for widget in (HookTimeline, LayerPicker):
        shown = widget(model, torch.ones(2, 3))
        assert shown.error is None
        shown.close()


def python_calls(function) -> int:
    """Return how many Python functions are called; unlike seconds it is the same for every run."""
    count = 0

    def tick(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(tick)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_time_is_linear_in_the_number_of_layers_and_what_is_shown_is_small():
    def cost(layers):
        model, shown = nn.Sequential(*(nn.Linear(2, 2) for _ in range(layers))), {}
        made = {
            "timeline": lambda: timeline(model, torch.ones(1, 2)),
            "text": lambda: repr(shown["timeline"]),
            "HTML": lambda: shown["timeline"]._repr_html_(),
            "figure": lambda: plot_timeline(shown["timeline"]),
            "HookTimeline": lambda: HookTimeline(model, torch.ones(1, 2)),
            "LayerPicker": lambda: LayerPicker(model, torch.ones(1, 2)),
        }
        costs = {name: python_calls(lambda name=name: shown.update({name: made[name]()})) for name in made}
        assert max(len(shown["text"]), len(shown["HTML"])) < 50_000
        assert max(shown["figure"].figure.get_size_inches()) < 15
        assert len(str(shown["HookTimeline"]._posted["model"][0])) < 10_000
        for name in ("HookTimeline", "LayerPicker"):
            assert shown[name].error is None
            shown[name].close()
        plt.close(shown["figure"].figure)
        return costs

    small, large = cost(100), cost(400)
    assert {name: large[name] / small[name] for name in small if large[name] > 5 * small[name]} == {}


def test_parameters_that_are_read_directly_are_not_called_unused():
    class Fused(nn.Module):
        """As Swin's attention: `qkv` is never called."""

        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(3, 3)

        def forward(self, x):
            return nn.functional.linear(x, self.qkv.weight, self.qkv.bias)

    with record(Fused(), "qkv") as rec:
        pass
    assert "only reads its weights" in rec.missed["qkv"].en and "只读取它的权重" in rec.missed["qkv"].zh
    model = Fused()
    with record(model, "qkv") as rec:
        model(torch.ones(2, 3)).sum().backward()
    assert "so they are used" in rec.missed["qkv"].en and "可见用到了它们" in rec.missed["qkv"].zh
    assert "unused" not in rec.missed["qkv"].en
