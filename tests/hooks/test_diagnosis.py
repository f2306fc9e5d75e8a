"""diagnose(): each fault is found, and nothing is reported in the same situation without the fault."""

import functools
import pickle
import sys

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from hookedu import diagnose, list_hooks, record
from hookedu.hooks.diagnosis import SAYS, graph_bytes
from hookedu.hooks.state import GLOBAL_HOOKS
from tests.hooks.capture_models import CallsForward, Repeated, conv_relu, hook_tables, images


def silent(*_):
    """Do nothing, as a hook at module level, which can be pickled."""


def also_silent(*_):
    pass


@pytest.fixture(autouse=True)
def no_global_hooks():
    """Remove global hooks after each test, also after one that failed."""
    yield
    for table in GLOBAL_HOOKS.values():
        table.clear()


def faults(*args, **kwargs) -> list[str]:
    return [finding.id for finding in diagnose(*args, **kwargs)]


def test_a_healthy_model_has_no_findings():
    model, kept = conv_relu(), {}

    def keep(module, args, output):
        kept["map"] = output.detach().clone()

    model[0].register_forward_hook(silent)
    assert faults(model) == faults(model, images()) == []
    model[0].register_forward_hook(keep)
    assert faults(model, images()) == ["blocks_pickling"], "a local function does"
    assert "没有发现钩子的问题" in repr(diagnose(conv_relu()))


def test_messages_are_in_both_languages_and_name_the_hook():
    model = conv_relu()
    model[0].register_forward_hook(silent)
    model[0].register_forward_hook(silent)
    (finding,) = diagnose(model)
    assert f"`silent:{silent.__code__.co_firstlineno}`" in finding.says.zh
    assert f"`silent:{silent.__code__.co_firstlineno}`" in finding.says.en
    assert finding.hook == list_hooks(model)[0]
    assert "<li" in diagnose(model)._repr_html_() and 'lang="zh"' in diagnose(model)._repr_html_()


class TestRegisteredTwice:
    def test_one_function_twice(self):
        model = conv_relu()
        model[0].register_forward_hook(silent)
        model[0].register_forward_hook(silent)
        assert faults(model) == ["registered_twice"]
        assert "2 times as a forward hook on 0" in diagnose(model)[0].says.en

    def test_a_cell_that_was_run_three_times(self):
        model = conv_relu()
        cell = compile("def hook(m, i, o): pass\nmodel[0].register_forward_hook(hook)", "<cell>", "exec")
        for _ in range(3):
            exec(cell, {"model": model})
        assert "3 times" in next(f for f in diagnose(model) if f.id == "registered_twice").says.en

    @pytest.mark.parametrize("make", [functools.partial, lambda f, *a: functools.partial(f, *a)])
    def test_partials_and_methods_of_the_same(self, make):
        model, store = conv_relu(), Store()
        for _ in range(2):
            model[0].register_forward_hook(make(silent, "name"))
            model[1].register_forward_hook(store.keep)
        assert faults(model) == ["registered_twice"] * 2

    def test_silent_about_different_ones(self):
        model = conv_relu()
        model[0].register_forward_hook(silent)
        model[0].register_forward_hook(also_silent)
        model[1].register_forward_hook(silent)
        model[0].register_forward_pre_hook(silent)
        model[0].register_forward_hook(functools.partial(silent, "a"))
        model[0].register_forward_hook(functools.partial(silent, "b"))
        model[0].register_forward_hook(Store().keep)
        model[0].register_forward_hook(Store().keep)
        assert faults(model) == []

    def test_silent_about_closures_over_different_stores(self):
        model = conv_relu()

        def keep_in(store):
            return lambda m, i, o: store.append(o.detach().clone())

        model[0].register_forward_hook(keep_in([]))
        model[0].register_forward_hook(keep_in([]))
        assert "registered_twice" not in faults(model)

    def test_silent_about_two_recorders(self):
        model = conv_relu()
        with record(model, "0"), record(model, "0"):
            assert faults(model, images()) == []


class Store:
    """An object whose methods are hooks."""

    def __init__(self) -> None:
        self.kept = []

    def keep(self, module, args, output) -> None:
        self.kept.append(output)

    def keep_detached(self, module, args, output) -> None:
        self.kept.append(output.detach())

    def keep_clone(self, module, args, output) -> None:
        self.kept.append(output.detach().clone())


class TestReturnsValue:
    @pytest.mark.parametrize(
        "hook",
        [
            lambda m, i, o: (o,),
            lambda m, i, o: o.shape,
            lambda m, i, o: o.detach(),
            lambda m, i, o: o.mean(),
            lambda m, i, o: o * 1,
        ],
    )
    def test_a_lambda_that_returns_something(self, hook):
        model = conv_relu()
        model[0].register_forward_hook(hook)
        assert "returns_value" in faults(model, images())

    def test_a_function_that_returns_another_form(self):
        def summarise(module, args, output):
            return output.mean().item()

        model = conv_relu()
        model[0].register_forward_hook(summarise)
        finding = diagnose(model, images())[0]
        assert finding.id == "returns_value" and "`float`" in finding.says.en

    def test_a_pre_hook_that_returns_no_tensor(self):
        model = conv_relu()
        model[0].register_forward_pre_hook(lambda m, a: len(a))
        assert "returns_value" in faults(model, images())

    def test_silent_about_a_value_that_is_meant(self):
        def steer(module, args, output):
            return output * 2

        def normalise(module, args):
            return (args[0] / 2,)

        model = conv_relu()
        model[0].register_forward_hook(steer)
        model[0].register_forward_pre_hook(normalise)
        model[1].register_forward_hook(lambda m, i, o: None)
        model[1].register_forward_hook(lambda m, i, o: o)
        assert "returns_value" not in faults(model, images())


class TestOverwritten:
    @pytest.mark.parametrize("keep", ["keep", "keep_detached"])
    def test_an_output_that_a_later_relu_changes(self, keep):
        model, store = conv_relu(inplace=True), Store()
        model[0].register_forward_hook(getattr(store, keep))
        found = diagnose(model, images())
        assert [f.id for f in found] == ["overwritten"] and "clone()" in found[0].says.en
        assert store.kept == [], "the run leaves nothing in the user's lists"

    def test_only_the_hook_before_the_change_is_blamed(self):
        model, store = conv_relu(inplace=True), Store()
        model[1].register_forward_hook(store.keep_detached)
        model[0].register_forward_hook(store.keep_detached)
        (finding,) = diagnose(model, images())
        assert finding.hook.path == "0"

    def test_a_store_that_the_hook_does_not_reach_is_given_as_kept(self):
        model, features = conv_relu(), {}
        _stores["features"] = features
        model[0].register_forward_hook(keep_elsewhere)
        assert "overwritten" not in faults(model, images())
        assert "overwritten" in faults(model, images(), kept=features)

    @pytest.mark.parametrize(("keep", "inplace"), [("keep_clone", True), ("keep_detached", False)])
    def test_silent_about_a_clone_and_about_a_model_that_changes_nothing(self, keep, inplace):
        model, store = conv_relu(inplace), Store()
        model[0].register_forward_hook(getattr(store, keep))
        assert faults(model, images()) == []


_stores = {}


def keep_elsewhere(module, args, output):
    sys.modules[__name__].__dict__["_stores"]["features"]["map"] = output.detach()


class TestNeverFired:
    def test_a_module_that_forward_does_not_call(self):
        model = CallsForward()
        model.skipped.register_forward_hook(silent)
        (finding,) = diagnose(model, torch.ones(1, 3))
        assert finding.id == "never_fired" and "skips hooks" in finding.says.en

    def test_attention_s_out_proj(self):
        model, x = nn.MultiheadAttention(4, 2), torch.randn(3, 1, 4)
        model.out_proj.register_forward_hook(silent)
        (finding,) = diagnose(model, x, x, x)
        assert finding.id == "never_fired" and "MultiheadAttention" in finding.says.zh

    def test_a_parameter_that_no_gradient_reaches(self):
        model = CallsForward()
        model.unused = nn.Linear(1, 1)
        model.unused.weight.register_hook(silent)
        assert faults(model, torch.ones(1, 3)) == ["never_fired"]

    def test_silent_where_every_hook_fires(self):
        model = CallsForward()
        for hooked in (model.layers[0], model):
            hooked.register_forward_hook(silent)
            hooked.register_forward_pre_hook(silent)
            hooked.register_full_backward_hook(silent)
        model.skipped.weight.register_hook(silent)
        model.skipped.weight.register_post_accumulate_grad_hook(silent)
        assert faults(model, torch.ones(1, 3, requires_grad=True)) == []


class TestAfterCompile:
    @pytest.fixture(autouse=True)
    def fresh_dynamo(self):
        torch.compiler.reset()
        yield
        torch.compiler.reset()

    def test_a_hook_added_after_the_first_compiled_call(self):
        model, x = conv_relu(), images()
        compiled = torch.compile(model, backend="eager")
        compiled(x)
        model[0].register_forward_hook(silent)
        found = diagnose(compiled, x)
        assert [f.id for f in found] == ["after_compile"] and "set_stance" in found[0].says.en

    def test_silent_about_a_hook_from_before(self):
        model, x = conv_relu(), images()
        model[0].register_forward_hook(silent)
        compiled = torch.compile(model, backend="eager")
        compiled(x)
        assert faults(compiled, x) == []
        assert model[0]._forward_hooks[list_hooks(model)[0].id] is silent


class TestBlocksPickling:
    def test_a_lambda(self):
        model = conv_relu()
        model[0].register_forward_hook(lambda m, i, o: None)
        with pytest.raises(Exception, match="lambda"):
            pickle.dumps(model)
        (finding,) = diagnose(model)
        assert finding.id == "blocks_pickling" and "state_dict" in finding.says.en

    def test_silent_about_what_can_be_pickled(self):
        model = conv_relu()
        model[0].register_forward_hook(silent)
        model[0].register_forward_hook(functools.partial(silent, 1))
        model[0].weight.register_hook(lambda grad: None)  # hooks of parameters are not pickled
        pickle.dumps(model)
        assert faults(model) == []


class TestHoldsGraph:
    def test_a_kept_output_and_how_many_bytes(self):
        model, store = nn.Sequential(nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 100)), Store()
        model[2].register_forward_hook(store.keep)
        model(torch.randn(1000, 100))
        (finding,) = diagnose(model)
        assert finding.id == "holds_graph"
        # The input and the ReLU's output, 400 kB each. Weights belong to the model and do not count.
        assert "`self.kept` keeps 1 tensors" in finding.says.en and "800.0 kB" in finding.says.en

    def test_bytes_are_those_that_autograd_saved(self):
        model, saved = Repeated(3), {}

        def pack(tensor):
            saved[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model(torch.randn(8, 3))
        output = model(torch.randn(8, 3))
        assert graph_bytes([output]) == sum(saved.values())

    def test_a_global_and_a_given_container(self):
        model = conv_relu()
        kept = [model(images())]
        assert faults(model, kept=kept) == ["holds_graph"]

    def test_silent_about_detached_tensors_and_freed_graphs(self):
        model, store = conv_relu(), Store()
        model[0].register_forward_hook(store.keep_detached)
        model(images())
        assert faults(model) == []
        assert faults(model, kept=[torch.ones(1), None, model[0].weight]) == []


class TestGlobalLeftover:
    def test_a_global_hook(self):
        handle = register_module_forward_hook(silent)
        (finding,) = diagnose(conv_relu())
        assert finding.id == "global_leftover" and "every model" in finding.says.en
        handle.remove()
        assert faults(conv_relu()) == []

    def test_silent_about_the_model_s_own(self):
        model = conv_relu()
        model.register_forward_hook(silent)
        assert faults(model) == []


def test_every_diagnosis_has_both_languages():
    for id, says in SAYS.items():
        assert says.zh and says.en and id


def test_the_run_leaves_no_mark():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(), nn.Flatten(), nn.Linear(8, 2))
    counter, x = [0], images().requires_grad_()
    model[0].register_forward_hook(silent)
    model[1].register_full_backward_hook(silent)
    model[4].weight.register_hook(lambda grad: counter.__setitem__(0, counter[0] + 1))
    model(x).sum().backward()
    buffers = [b.clone() for b in model.buffers()]
    grads = [p.grad.clone() for p in model.parameters()]
    tables, rng, x_grad = hook_tables(model), torch.get_rng_state(), x.grad.clone()
    diagnose(model, x)
    assert all(map(torch.equal, model.buffers(), buffers))
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), grads, strict=True))
    assert hook_tables(model) == tables and torch.equal(torch.get_rng_state(), rng)
    assert torch.equal(x.grad, x_grad) and counter == [1]


def test_an_error_of_the_model_is_raised_and_the_hooks_are_back():
    model = conv_relu()
    model[0].register_forward_hook(silent)
    tables = hook_tables(model)
    with pytest.raises(RuntimeError, match="channels"):
        diagnose(model, torch.randn(1, 3, 4, 4))
    assert hook_tables(model) == tables
