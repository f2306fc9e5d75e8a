"""record(): cases 1 to 15 of hookedu/hooks/CASES.md."""

import contextlib
import gc
import weakref
from collections import UserDict, deque

import pytest
import torch
from torch import nn

from hookedu import record
from tests.hooks.capture_models import (
    Answer,
    CallsForward,
    Failing,
    Holder,
    Pair,
    Repeated,
    Residual,
    Returns,
    Scaled,
    conv_relu,
    hook_tables,
    images,
)


def clones_of(model, name, *args, **kwargs):
    """Return what a hand-written hook keeps of the same run."""
    kept = []
    handle = model.get_submodule(name).register_forward_hook(lambda m, i, o: kept.append(o.detach().clone()))
    model(*args, **kwargs)
    handle.remove()
    return kept


@pytest.mark.parametrize(("model", "layer"), [(conv_relu(), "0"), (Residual(), "conv")], ids=["relu", "+="])
class TestCase01InPlace:
    def test_case_01_the_record_is_a_clone_at_hook_time(self, model, layer):
        x = images()
        (expected,) = clones_of(model, layer, x)
        with record(model, layer) as rec:
            output = model(x)
        assert torch.equal(rec[layer].activation, expected)
        assert not torch.equal(output, expected) or layer == "0"

    def test_case_01_an_alias_shows_the_change_and_the_summary_says_so(self, model, layer):
        x = images()
        (expected,) = clones_of(model, layer, x)
        with record(model, layer, copy=False) as rec:
            model(x)
        assert not torch.equal(rec[layer].activation, expected)
        assert "overwritten since by an in-place op" in str(rec.summary())


def test_case_01_an_alias_that_nothing_changed_is_not_called_overwritten():
    model = conv_relu(inplace=False)
    with record(model, "0", copy=False) as rec:
        model(images())
    assert "overwritten" not in str(rec.summary())


def test_case_02_the_gradient_is_that_of_the_model_without_in_place():
    changed, plain = conv_relu(inplace=True), conv_relu(inplace=False)
    plain.load_state_dict(changed.state_dict())
    kept = []
    plain[0].register_forward_hook(lambda m, i, o: kept.append(o) or o.retain_grad())
    plain(images()).square().sum().backward()
    with record(changed, "0", gradients=True) as rec:
        changed(images()).square().sum().backward()
    assert torch.equal(rec["0"].gradient, kept[0].grad)
    assert rec["0"].gradient.abs().sum() > 0
    assert not changed[0]._backward_hooks, "never a full backward hook"


def test_case_03_every_call_of_a_module_is_kept():
    model, x = Repeated(3), torch.randn(2, 3)
    expected = clones_of(model, "layer", x)
    with record(model, "layer", inputs=True, gradients=True) as rec:
        model(x).sum().backward()
    calls = rec["layer"].calls
    assert [call.number for call in calls] == [0, 1, 2]
    assert all(torch.equal(call.activation, clone) for call, clone in zip(calls, expected, strict=True))
    for what in ("activation", "gradient", "input", "kwargs"):
        with pytest.raises(ValueError, match=rf"called 3 times.*\.calls\[0\]\.{what}"):
            getattr(rec["layer"], what)
    assert rec["layer"].stats().count == sum(call.stats().count for call in rec["layer"].calls)


class CallsItself(nn.Module):
    """Calls itself twice before it returns, directly or through a child that knows its parent."""

    def __init__(self, through=None) -> None:
        super().__init__()
        self.through = through

    def forward(self, x, depth=2):
        inner = self if self.through is None else lambda *args: self.through(self, *args)
        return inner(x + 1, depth - 1) * 2 if depth else x


class CallsBack(nn.Module):
    def forward(self, parent, *args):
        return parent(*args)


@pytest.mark.parametrize(
    "options", [{}, {"inputs": True}, {"gradients": True}, {"keep": "stats"}, {"outputs": False}]
)
@pytest.mark.parametrize("through", [None, CallsBack()])
def test_case_03_calls_inside_one_another_come_in_the_order_in_which_they_started(options, through):
    model = CallsItself(through)
    options = {"gradients": True} | options
    with record(model, "", **options) as rec:
        model(torch.zeros(1, requires_grad=True)).backward()
    calls = rec[""].calls
    assert [call.number for call in calls] == [0, 1, 2]
    if options.get("outputs", True):
        assert [call.stats().mean for call in calls] == [8, 4, 2]
    assert [call.stats("gradient").mean for call in calls] == [1, 2, 4]


def test_case_04_gradients_belong_to_their_own_call():
    model, x = Repeated(3), torch.randn(2, 3)
    outputs = []
    handle = model.layer.register_forward_hook(lambda m, i, o: outputs.append(o) or o.retain_grad())
    with record(model, "layer", gradients=True) as rec:
        model(x).square().sum().backward()
    handle.remove()
    for call, output in zip(rec["layer"].calls, outputs, strict=True):
        assert torch.equal(call.gradient, output.grad)
    assert not torch.equal(outputs[0].grad, outputs[2].grad)
    arrived = [event.call for event in rec.events if event.kind == "output_grad"]
    assert arrived == [2, 1, 0], "they come reversed"


def test_case_05_a_second_backward_replaces_the_gradient():
    model = conv_relu()
    with record(model, "0", gradients=True) as rec:
        loss = model(images()).sum()
        loss.backward(retain_graph=True)
        once = rec["0"].gradient
        (loss * 2).backward()
    assert torch.allclose(rec["0"].gradient, once * 2)
    assert rec["0"].calls[0].n_backward == 2
    assert rec.nbytes == 2 * rec["0"].activation.untyped_storage().nbytes(), "the first gradient is let go"


def test_case_06_one_module_under_two_names():
    model = conv_relu()
    model.again = model[0]
    with record(model, ["again", "0"]) as rec:
        assert len(model[0]._forward_hooks) == 1
        model[0](images())
    assert rec["0"].name == rec["again"].name == "0"
    assert rec["again"].aliases == ("again",) and list(rec) == ["0"] and "again" in rec
    assert rec["again"].activation.shape == (2, 2, 2, 2)
    assert "also again" in str(rec.summary())


@pytest.mark.parametrize(
    "build",
    [
        lambda y: (y, y * 2),
        lambda y: [y, None, {"deep": (y * 3,)}],
        lambda y: {"out": y, "aux": None},
        lambda y: Pair(y, y * 2),
        lambda y: Answer(y),
        lambda y: y.max(dim=1),
        lambda y: nn.utils.rnn.pack_padded_sequence(y[None], [2], batch_first=True),
    ],
    ids=["tuple", "list", "dict", "namedtuple", "dataclass", "return_types", "PackedSequence"],
)
def test_case_07_nested_outputs_keep_their_form(build):
    from hookedu.hooks.tensors import map_tensors, tensors_in

    model, x = Returns(build), torch.randn(2, 3)
    hand = []
    handle = model.register_forward_hook(
        lambda m, i, o: hand.append(map_tensors(lambda t: t.detach().clone(), o))
    )
    with record(model, "", gradients=True) as rec:
        output = model(x)
        sum(t.sum() for t in tensors_in(output) if t.requires_grad).backward()
    handle.remove()
    kept = rec[""].activation
    assert type(kept) is type(output)
    assert repr(kept) == repr(hand[0])
    for ours, theirs in zip(tensors_in(kept), tensors_in(output), strict=True):
        assert torch.equal(ours, theirs) and not ours.requires_grad
        assert ours.untyped_storage()._cdata != theirs.untyped_storage()._cdata
    assert type(rec[""].gradient) is type(output)
    assert next(tensors_in(rec[""].gradient)).shape == next(tensors_in(output)).shape


def test_case_07_a_module_that_returns_none():
    model = Returns(lambda y: None)
    with record(model, "") as rec:
        model(torch.ones(1, 3))
    assert rec[""].activation is None


def test_case_07_of_a_nested_output_only_what_was_used_has_a_gradient():
    model = Returns(lambda y: {"used": y * 2, "unused": y * 3, "index": y.argmax()})
    with record(model, "", gradients=True, outputs=False) as rec:
        model(torch.ones(1, 3))["used"].sum().backward()
    gradient = rec[""].gradient
    assert torch.equal(gradient["used"], torch.ones(1, 3))
    assert gradient["unused"] is None and gradient["index"] is None


@pytest.mark.parametrize("other", [lambda y: UserDict(h=3 * y), lambda y: deque([3 * y]), lambda y: {1, 2}])
def test_case_07_beside_containers_that_nobody_copies_each_gradient_keeps_its_place(other):
    model = Returns(lambda y: (other(y), 2 * y))
    with record(model, "", gradients=True) as rec:
        beside, tensor = model(torch.ones(1, 3))
        loss = 5 * tensor.sum()
        if isinstance(beside, UserDict | deque):
            loss = loss + 7 * (beside["h"] if isinstance(beside, UserDict) else beside[0]).sum()
        loss.backward()
    assert torch.equal(rec[""].gradient[1], torch.full((1, 3), 5.0))
    assert not isinstance(rec[""].gradient[0], torch.Tensor)


class Unprintable:
    """A key of a dictionary that nobody may print."""

    def __repr__(self) -> str:
        raise ValueError("printed")


class Liar(tuple):
    """A tuple that has `_fields` and is no named tuple."""

    _fields = ("a", "b", "c")


@pytest.mark.parametrize("build", [lambda y: {Unprintable(): 2 * y}, lambda y: Liar((2 * y,))])
def test_case_07_what_cannot_be_printed_or_has_false_names_never_disturbs_the_model(build):
    model = Returns(build)
    with record(model, "", gradients=True) as rec:
        (output,) = (
            list(model(torch.ones(1, 3)).values()) if build(1).__class__ is dict else model(torch.ones(1, 3))
        )
        output.sum().backward()
    assert len(rec[""].calls) == 1 and rec[""].gradient is not None


def test_case_08_keyword_arguments_are_seen():
    model, x = Holder(Scaled()), torch.ones(2)
    with record(model, "child", inputs=True) as rec:
        model(x, scale=torch.tensor(3.0))
    assert rec["child"].kwargs == {"scale": torch.tensor(3.0)}
    assert torch.equal(rec["child"].input[0], x) and rec["child"].input[0] is not x


def test_case_08_the_input_is_what_forward_got_even_when_it_changes_it_in_place():
    model, x = conv_relu(), images()
    (before,) = clones_of(model, "0", x)
    with record(model, "1", inputs=True) as rec:
        model(x)
    assert torch.equal(rec["1"].input[0], before)
    assert (before < 0).any()


def test_case_09_an_exception_passes_and_leaves_no_hook():
    model = Failing()
    tables = hook_tables(model)
    with (
        pytest.raises(ValueError, match="broken on purpose") as caught,
        record(model, nn.Module, inputs=True) as rec,
    ):
        model(torch.ones(1, 3))
    assert type(caught.value) is ValueError and caught.value.__cause__ is None
    assert hook_tables(model) == tables
    assert rec.failed_at == "broken"
    assert rec["first"].activation.shape == (1, 3)
    assert "last" in rec.missed
    with pytest.raises(RuntimeError, match="did not finish"):
        _ = rec["broken"].activation
    assert rec["broken"].input[0].shape == (1, 3)


def test_case_09_the_layers_after_the_one_that_raised_are_told_so_and_the_others_can_be_read_at_once():
    model = Failing()
    with pytest.raises(ValueError, match="broken on purpose"), record(model, nn.Module) as rec:
        model(torch.ones(1, 3))
    assert "finished no call: the forward pass raised in `broken`" in rec.missed["last"].en
    assert rec.activations.keys() == {"first"}


def test_case_09_a_model_that_handles_its_own_exception():
    class Falls(nn.Module):
        def forward(self, x):
            raise ValueError

    class Handles(nn.Module):
        def __init__(self):
            super().__init__()
            self.falls, self.linear = Falls(), nn.Linear(3, 3)

        def forward(self, x):
            with contextlib.suppress(ValueError):
                self.falls(x)
            return self.linear(x)

    model, x = Handles(), torch.ones(1, 3)
    with record(model, nn.Module, inputs=True) as rec:
        y = model(x)
    assert rec.activations.keys() == {"", "linear"} and torch.equal(rec[""].activation, y)
    assert not rec["falls"].calls[0].finished


@pytest.mark.parametrize("inputs", [True, False])
def test_case_09_a_call_inside_the_module_s_own_that_raises_takes_no_output_from_it(inputs):
    class Deep(nn.Module):
        def forward(self, x, depth):
            if depth == 2:
                raise ValueError
            try:
                return self(x + 1, depth + 1) * 2
            except ValueError:
                return x * 10

    with record(Deep(), "", inputs=inputs) as rec:
        rec[""].module(torch.zeros(()), 0)
    calls = rec[""].calls
    assert {call.number: call.activation.item() for call in calls if call.finished} == {0: 20, 1: 10}
    if inputs:
        assert [call.input[1] for call in calls] == [0, 1, 2]


def test_case_09_an_exception_of_the_block_itself_is_no_module_s():
    model = conv_relu()
    with pytest.raises(ZeroDivisionError), record(model, "0") as rec:
        model(images())
        _ = 1 / 0
    assert rec.failed_at is None and rec["0"].activation is not None


def test_case_10_a_misspelt_name_gets_the_closest_ones_and_no_hook():
    model = Holder(conv_relu())
    tables = hook_tables(model)
    with pytest.raises(KeyError, match=r"no layer named 'chlid.0'; the closest are: 'child.0'"):
        record(model, ["child.1", "chlid.0"])
    with pytest.raises(KeyError, match=r"closest are: 'child.3'"):
        record(model, "3")
    assert hook_tables(model) == tables


@pytest.mark.parametrize("choice", [nn.LSTM, lambda name, module: False], ids=["type", "predicate"])
def test_case_11_what_matches_nothing_is_an_error(choice):
    model = conv_relu()
    tables = hook_tables(model)
    with pytest.raises(ValueError, match=r"no layer matches .*Conv2d, Flatten, Linear"):
        record(model, ["0", choice])
    assert hook_tables(model) == tables


def test_case_12_a_layer_that_never_ran_is_missed_with_the_reason():
    model = CallsForward()
    with record(model, ["skipped", "layers", "layers.0"]) as rec:
        model(torch.ones(1, 3))
    assert set(rec.missed) == {"skipped", "layers"}
    assert "`.forward()`" in rec.missed["skipped"].en and "`.forward()`" in rec.missed["skipped"].zh
    assert "ModuleList" in rec.missed["layers"].en
    with pytest.raises(RuntimeError, match=r"skips hooks"):
        _ = rec["skipped"].activation
    with pytest.raises(RuntimeError, match="only holds modules"):
        _ = rec["layers"].calls


def test_case_12_attention_reads_out_proj_and_never_calls_it():
    model, x = nn.MultiheadAttention(4, 2, batch_first=True), torch.randn(1, 3, 4)
    with record(model, ["out_proj", ""]) as rec:
        model(x, x, x)
    assert list(rec.missed) == ["out_proj"] and "MultiheadAttention" in rec.missed["out_proj"].en
    assert rec[""].activation[0].shape == (1, 3, 4)


def test_case_12_the_fused_path_of_an_encoder_is_named_where_it_hides_layers():
    """PyTorch 2.15 leaves its fast path if a layer inside has a hook; older versions take it anyway."""
    model = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    x = torch.randn(1, 3, 4)
    with torch.no_grad():
        plain = model(x)
        with record(model, ["linear1", "self_attn.out_proj"]) as rec:
            assert torch.allclose(model(x), plain, atol=1e-6)
    assert "self_attn.out_proj" in rec.missed
    assert "linear1" not in rec.missed or "fast path" in rec.missed["linear1"].en


@pytest.mark.parametrize(
    ("reason", "run"),
    [
        ("no_grad", lambda m, x: torch.no_grad()(m)(x)),
        ("inference_mode", lambda m, x: torch.inference_mode()(m)(x)),
        ("neither its input nor its parameters", lambda m, x: m.requires_grad_(False)(x)),
    ],
)
def test_case_13_no_gradient_to_be_had(reason, run):
    model = conv_relu()
    with record(model, ["0", "3"], gradients=True) as rec:
        output = run(model, images())
    assert not output.requires_grad
    assert rec["0"].activation.shape == (2, 2, 2, 2)
    with pytest.raises(RuntimeError, match=reason):
        _ = rec["0"].gradient
    with pytest.raises(RuntimeError, match=reason):
        rec["0"].stats("gradient")


def test_case_13_requires_grad_is_never_changed():
    model = conv_relu()
    model[0].requires_grad_(False)
    before = [p.requires_grad for p in model.parameters()]
    with record(model, nn.Module, gradients=True) as rec:
        model(images()).sum().backward()
    assert [p.requires_grad for p in model.parameters()] == before
    with pytest.raises(RuntimeError, match="neither its input"):
        _ = rec["0"].gradient
    assert rec["3"].gradient.shape == (2, 2)


def test_case_13_an_output_of_integers_has_none():
    model = Returns(lambda y: y.argmax(1))
    with record(model, "", gradients=True) as rec:
        model(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="not a floating-point tensor"):
        _ = rec[""].gradient


def test_case_14_a_gradient_before_backward():
    model = conv_relu()
    with record(model, "0", gradients=True) as rec:
        model(images())
    with pytest.raises(RuntimeError, match="call backward first"):
        _ = rec["0"].gradient
    assert rec["0"].calls[0].n_backward == 0


def test_case_14_a_branch_that_backward_did_not_reach_is_told_apart():
    model = nn.ModuleDict({"used": nn.Linear(3, 1), "unused": nn.Linear(3, 1)})
    with record(model, nn.Linear, gradients=True) as rec:
        loss, _ = model["used"](torch.ones(3)), model["unused"](torch.ones(3))
        loss.backward()
    assert rec["used"].gradient.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="no backward pass went through its output"):
        _ = rec["unused"].gradient


def test_case_14_a_view_that_is_changed_in_place_is_told_apart():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.ReLU(inplace=True), nn.Linear(8, 1))
    with record(model, ["0", "1"], gradients=True) as rec:
        model(images()).sum().backward()
    assert rec["0"].gradient is not None
    with pytest.raises(RuntimeError, match="is a view"):
        _ = rec["1"].gradient


def test_case_15_backward_after_the_block_is_captured():
    model = conv_relu()
    with record(model, "0", gradients=True) as rec:
        loss = model(images()).sum()
    assert not model[0]._forward_hooks
    loss.backward()
    assert rec["0"].gradient.shape == (2, 2, 2, 2)


class Box:
    def __init__(self, tensor) -> None:
        self.tensor = tensor


def test_case_15_the_record_keeps_no_graph_alive():
    model = conv_relu()
    graph = weakref.WeakSet()  # what autograd saves for backward; lives as long as the graph

    def pack(tensor):
        box = Box(tensor.detach())  # an attached tensor would keep its own graph alive
        graph.add(box)
        return box

    with record(model, nn.Module, inputs=True, gradients=True) as rec:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
            output = model(images())
        assert len(graph) > 0
        del output
        gc.collect()
        assert len(graph) == 0
    assert rec["0"].activation.grad_fn is None and not rec["0"].input[0].requires_grad


def test_case_15_close_ends_it_and_releases_every_tensor():
    model = conv_relu()
    with record(model, nn.Module, inputs=True, gradients=True) as rec:
        loss = model(images()).sum()
        loss.backward(retain_graph=True)
    call, event = rec["0"].calls[0], rec.events[0]
    alive = [weakref.ref(t) for t in (call.activation, call.gradient, call.input[0])]
    rec.close()
    loss.backward()
    gc.collect()
    assert [ref() for ref in alive] == [None, None, None]
    assert event.value is None and not rec.events and rec.nbytes == 0
    for read in (lambda: rec["0"].activation, lambda: call.gradient, lambda: rec.missed, rec.summary):
        with pytest.raises(RuntimeError, match="closed"):
            read()
    assert repr(rec) == "Recording (closed)"
    rec.close()  # twice is harmless
