"""record(): cases 16 to 31 of hookedu/hooks/CASES.md: other hooks, wrappers, memory, figures.

What cases 18, 29, 30 and 31 say of widgets is tested in tests/widgets.
"""

import copy
import gc
import io
import pickle
import warnings
import weakref

import pytest
import torch
from torch import nn

from hookedu import list_hooks, plot_feature_maps, record
from hookedu.hooks.tensors import storage_bytes
from tests.hooks.capture_models import Holder, Repeated, conv_relu, hook_tables, images


def test_case_16_nested_recorders_are_independent():
    model, x = conv_relu(), images()
    mine = []
    handle = model[0].register_forward_hook(lambda m, i, o: mine.append(1))
    with record(model, "0") as outer:
        with record(model, ["0", "3"]) as inner:
            model(x)
        assert len(model[0]._forward_hooks) == 2
        model(x)
    assert len(outer["0"].calls) == 2 and len(inner["0"].calls) == 1 and len(inner["3"].calls) == 1
    assert list(model[0]._forward_hooks) == [handle.id] and mine == [1, 1]
    inner.close()
    assert torch.equal(outer["0"].calls[0].activation, outer["0"].calls[1].activation)


def test_case_16_the_outer_one_may_end_first():
    model, x = conv_relu(), images()
    outer, inner = record(model, "0"), record(model, "3")
    with inner:
        with outer:
            model(x)
        model(x)
    assert len(outer["0"].calls) == 1 and len(inner["3"].calls) == 2
    assert not list_hooks(model)


def test_case_16_a_recorder_serves_one_block():
    model = conv_relu()
    with record(model, "0") as rec, pytest.raises(RuntimeError, match="serves one with-block"), rec:
        pass
    with pytest.raises(RuntimeError, match="serves one with-block"), rec:
        pass
    assert not model[0]._forward_hooks


@pytest.mark.parametrize("train", [False, True])
def test_case_17_our_hooks_return_none_so_outputs_are_the_same_bits(train):
    model, x = conv_relu().train(train), images()
    expected = model(x)
    with record(model, nn.Module, inputs=True, gradients=True):
        for module in model.modules():
            for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values()):
                assert hook(module, (x,), {} if hook.__name__ == "before" else x) is None
        assert torch.equal(model(x), expected)


def test_case_18_modes_rng_buffers_and_grads_are_left_alone():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(), nn.Flatten(), nn.Linear(8, 2))
    twin, x = copy.deepcopy(model), images()
    for one in (model, twin):
        one[3].eval()
    torch.manual_seed(1)
    expected = twin(x)
    expected.sum().backward()
    state = torch.get_rng_state()
    torch.manual_seed(1)
    with record(model, nn.Module, inputs=True, gradients=True, max_bytes=100), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        output = model(x)
        output.sum().backward()
    assert torch.equal(output, expected) and torch.equal(torch.get_rng_state(), state)
    assert [m.training for m in model.modules()] == [m.training for m in twin.modules()]
    for ours, theirs in zip(model.buffers(), twin.buffers(), strict=True):
        assert torch.equal(ours, theirs)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(ours.grad, theirs.grad)


@pytest.fixture
def fresh_dynamo():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("how", ["torch.compile", "Module.compile", "a part"])
def test_case_19_a_compiled_model_runs_uncompiled_while_recording(fresh_dynamo, how):
    inner, x = conv_relu(), images()
    model = inner
    if how == "torch.compile":
        model = torch.compile(inner, backend="eager")
    elif how == "Module.compile":
        inner.compile(backend="eager")
    else:
        inner[0] = torch.compile(inner[0], backend="eager")
    expected = model(x)
    with (
        pytest.warns(UserWarning, match="runs uncompiled while recording") as caught,
        record(model, ["", "0"]) as rec,
    ):
        output = model(x)
    assert len(caught) == 1
    assert list(rec) == ["", "0"] and not rec.missed
    assert torch.allclose(output, expected)
    assert rec["0"].activation.shape == (2, 2, 2, 2) and len(rec[""].calls) == 1
    assert not list_hooks(model)
    seen = []
    inner[3].register_forward_hook(lambda *_: seen.append(1))
    model(x)
    assert seen == [] or how == "a part", "after the block compiled code runs again"


def test_case_20_data_parallel_records_the_wrapped_module():
    model = nn.DataParallel(conv_relu())
    with record(model, ["0", ""]) as rec:
        model(images())
    assert rec["0"].activation.shape == (2, 2, 2, 2) and len(rec[""].calls) == 1


def test_case_20_data_parallel_on_several_gpus_is_a_clear_error():
    model = nn.DataParallel(conv_relu())
    model.device_ids = [0, 1]
    with pytest.raises(ValueError, match=r"record `model\.module`"):
        record(model, "0")


def test_case_20_distributed_data_parallel_records_the_wrapped_module(tmp_path):
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        model = nn.parallel.DistributedDataParallel(conv_relu())
        with record(model, "0", gradients=True) as rec:
            model(images()).sum().backward()
        assert rec["0"].activation.shape == rec["0"].gradient.shape == (2, 2, 2, 2)
    finally:
        dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_case_21_torchscript_is_refused_with_the_remedy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(conv_relu(), images())
    for model, layer in ((traced, "0"), (Holder(traced), "child")):
        with pytest.raises(TypeError, match=r"use the Python mod(el|ule) that it was made from"):
            record(model, layer)


def test_case_22_copies_of_the_model_carry_no_live_recorder():
    model, x = conv_relu(), images()
    with record(model, nn.Module, inputs=True, gradients=True) as rec:
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        copies = [
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),
            torch.load(file, weights_only=False),
        ]
        for one in copies:
            expected = one(x)
            expected.sum().backward()
        assert len(rec.events) == 0
        assert torch.equal(model(x), expected)
    assert len(rec["0"].calls) == 1
    gc.collect()


@pytest.mark.parametrize("options", [{}, {"keep": lambda t: t.mean()}, {"keep": "stats"}, {"copy": False}])
def test_case_22_a_copy_of_a_recording_has_its_values_and_no_hooks(options):
    model, x = conv_relu(), images()
    with record(model, nn.Module, inputs=True, gradients=True, **options) as rec:
        model(x).sum().backward()
        read = pickle.loads(pickle.dumps(rec))
        model.last = model(x)  # with its graph, so that PyTorch refuses to deep-copy the model
        rec.clear()
        model(x).sum().backward()
        twin = copy.deepcopy(rec)
        model(x)
    assert twin["0"].module is model[0] and read["0"].module is not model[0]
    expected = str(rec["0"].calls[0].stats()), str(rec["3"].calls[0].stats("gradient"))
    rec.close()
    for one in (twin, read):
        assert [*one] == ["", "0", "1", "2", "3"] and len(one["0"].calls) == 1
        assert (str(one["0"].stats()), str(one["3"].stats("gradient"))) == expected
        assert one.summary().rows


def test_case_22_a_model_that_holds_its_recording_can_be_copied():
    model = Holder(conv_relu())
    model.rec = record(model, "child.0")
    model(images())
    for one in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        one(images())
        assert one.rec["child.0"].module is one.child[0] and len(one.rec["child.0"].calls) == 1
        assert torch.equal(one.rec["child.0"].activation, model.rec["child.0"].activation)
    model.rec.close()


def test_case_23_the_same_place_again_replaces_the_earlier_recorder():
    model, x = conv_relu(), images()
    cell = compile("rec = record(model, ['0', '3'])\nmodel(x)", "<cell 7>", "exec")
    names = {"record": record, "model": model, "x": x}
    kept = []
    for _ in range(3):
        exec(cell, names)
        kept.append(names["rec"])  # as a notebook's `Out` does
    assert len(model[0]._forward_hooks) == len(model[3]._forward_hooks) == 1
    assert [len(rec["0"].calls) for rec in kept] == [1, 1, 1]
    kept[0].close()
    model(x)
    assert len(kept[2]["0"].calls) == 2, "closing the replaced one does not touch the new one"
    kept[2].close()
    assert not list_hooks(model)


def test_case_23_another_place_another_model_or_another_layer_is_left_alone():
    model, other = conv_relu(), conv_relu()

    def watch(model, layer):
        return record(model, layer)

    recorders = [watch(model, "0"), watch(model, "3"), watch(other, "0")]
    first, second = record(model, "0"), record(model, "0")
    assert len(model[0]._forward_hooks) == 3 and len(model[3]._forward_hooks) == 1
    for rec in (*recorders, first, second):
        rec.close()
    assert not list_hooks(model) and not list_hooks(other)


def test_case_23_a_recorder_in_a_block_is_never_replaced():
    model, x = conv_relu(), images()
    recorders = []

    def nest(depth):
        with record(model, "0") as rec:
            recorders.append(rec)
            if depth:
                nest(depth - 1)
            else:
                model(x)

    nest(2)
    assert [len(rec["0"].calls) for rec in recorders] == [1, 1, 1]


def test_case_24_past_max_bytes_only_statistics_are_kept():
    model, x = Repeated(4), torch.randn(8, 3)
    with record(model, "layer") as full:
        model(x)
    size = full["layer"].calls[0].activation.nbytes
    with (
        pytest.warns(UserWarning, match="past max_bytes") as caught,
        record(model, "layer", max_bytes=2 * size) as rec,
    ):
        model(x)
    assert len(caught) == 1
    assert rec.nbytes == 2 * size
    assert torch.equal(rec["layer"].calls[1].activation, full["layer"].calls[1].activation)
    with pytest.raises(RuntimeError, match="max_bytes"):
        _ = rec["layer"].calls[2].activation
    for ours, whole in zip(rec["layer"].calls, full["layer"].calls, strict=True):
        stats, tensor = ours.stats(), whole.activation
        assert stats.as_dict() == whole.stats().as_dict()
        assert stats.shape == (8, 3) and stats.dtype == torch.float32
        assert stats.mean == pytest.approx(tensor.mean().item(), abs=1e-6)
        assert stats.std == pytest.approx(tensor.std().item(), rel=1e-5)
        assert (stats.min, stats.max) == (tensor.min().item(), tensor.max().item())
    assert rec.events[3].shape == (8, 3)
    assert "values dropped: max_bytes" in str(rec.summary())


def test_case_25_device_cpu_is_a_true_copy_even_on_the_spot():
    model = conv_relu()
    with record(model, "0", device="cpu", gradients=True) as rec:
        model(images()).sum().backward()
    with record(model, "0") as reference:
        model(images())
    assert torch.equal(rec["0"].activation, reference["0"].activation)
    assert (rec["0"].activation < 0).any(), "the in-place ReLU does not show through"


def test_case_25_values_go_to_the_chosen_device():
    model = conv_relu()
    with record(model, "0", device="meta") as rec:
        model(images())
    assert rec["0"].activation.device.type == "meta" and rec["0"].activation.shape == (2, 2, 2, 2)


def test_case_26_lazy_parameters_get_their_shapes_from_the_model_s_own_first_run():
    model = nn.Sequential(nn.LazyConv2d(2, 3), nn.Flatten(), nn.LazyLinear(5))
    with record(model, [nn.Linear, "0"], inputs=True, gradients=True) as rec:
        assert "LazyLinear" in str(rec.summary()) and "never called" in str(rec.summary())
        model(images()).sum().backward()
    assert rec["2"].activation.shape == (2, 5) and rec["0"].input[0].shape == (2, 1, 4, 4)
    assert rec["2"].gradient.shape == (2, 5)


def test_case_27_and_28_plots_take_what_was_recorded():
    model = conv_relu()
    with record(model, nn.Module) as rec:
        model(images())
    for name in rec:
        assert plot_feature_maps(rec[name]).figure is not None


def test_case_31_a_model_of_a_thousand_layers():
    model = nn.Sequential(*(nn.Identity() for _ in range(1000)))
    tables = hook_tables(model)
    with record(model, nn.Identity) as rec:
        model(torch.ones(1))
    assert len(rec) == 1000 and not rec.missed and len(rec.summary().rows) == 1000
    assert hook_tables(model) == tables
    with pytest.raises(KeyError, match="closest are") as caught:
        _ = rec["999x"]
    assert len(str(caught.value)) < 400, "a few names, not a thousand"


class TestNothingIsLeft:
    def test_nbytes_is_the_sum_of_the_clones(self):
        model, x = conv_relu(), images()
        with record(model, nn.Module, inputs=True, gradients=True) as rec:
            model(x).sum().backward()
        clones = [c.activation for name in rec for c in rec[name].calls]
        clones += [c.gradient for name in rec for c in rec[name].calls]
        clones += [c.input[0] for name in rec for c in rec[name].calls]
        assert rec.nbytes == sum(clone.untyped_storage().nbytes() for clone in clones)
        assert rec.nbytes == storage_bytes(iter(clones))

    def test_without_a_block_close_takes_the_hooks_off(self):
        model = conv_relu()
        tables = hook_tables(model)
        rec = record(model, nn.Module, inputs=True, gradients=True)
        model(images()).sum().backward()
        rec.close()
        assert hook_tables(model) == tables

    def test_a_forgotten_recording_goes_at_once_without_the_garbage_collector(self):
        model = conv_relu()
        with record(model, nn.Module, inputs=True, gradients=True) as rec:
            model(images()).sum().backward()
        alive = weakref.ref(rec["0"].activation)
        gc.collect()
        gc.disable()
        try:
            del rec
            assert alive() is None
        finally:
            gc.enable()

    def test_a_recorder_keeps_no_model_alive_after_it_is_forgotten(self):
        model = conv_relu()
        rec = record(model, "0")
        model(images())
        alive = weakref.ref(model)
        del rec, model
        gc.collect()
        assert alive() is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
class TestOnCuda:
    def test_captures_add_no_synchronisation(self):
        model, x = conv_relu().cuda(), images().cuda()

        def synchronisations(run) -> int:
            run()
            torch.cuda.synchronize()
            with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as profile:
                run()
            return sum(e.count for e in profile.key_averages() if "Synchronize" in e.key)

        def recorded(**options):
            def run():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with record(model, nn.Module, inputs=True, gradients=True, **options):
                        model(x).sum().backward()

            return run

        plain = synchronisations(lambda: model(x).sum().backward())
        for options in ({}, {"device": "cpu"}, {"max_bytes": 1}):
            assert synchronisations(recorded(**options)) <= plain, options

    def test_copies_on_the_cpu_are_right_when_read(self):
        model, x = (
            nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(20))).cuda(),
            torch.randn(512, 2048).cuda(),
        )
        with record(model, nn.Linear) as there:
            model(x)
        with record(model, nn.Linear, device="cpu") as here:
            model(x)
        for name in here:
            assert torch.equal(here[name].activation, there[name].activation.cpu())
