"""diagnose(): each fault is found, and nothing is reported in the same situation without the fault."""

import copy
import functools
import pickle
import sys
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from hookedu import diagnose, list_hooks, record
from hookedu.hooks.faults import FAULTS
from hookedu.hooks.memory import graph_bytes
from hookedu.hooks.state import GLOBAL_HOOKS
from tests.hooks.capture_models import CallsForward, Repeated, conv_relu, hook_tables, images
from tests.timing import cpu_seconds


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
    def test_silent_about_a_method_and_the_one_it_overrides(self):
        class Base:
            def report(self, module, args, output):
                pass

        class Probe(Base):
            def report(self, module, args, output):
                pass

            def watch(self, module):
                module.register_forward_hook(super().report)
                module.register_forward_hook(self.report)

        model = nn.Linear(2, 2)
        Probe().watch(model)
        assert "registered_twice" not in faults(model)

    def test_one_function_twice(self):
        model = conv_relu()
        model[0].register_forward_hook(silent)
        model[0].register_forward_hook(silent)
        assert faults(model) == ["registered_twice"]
        assert "2 times as a forward hook on `0`" in diagnose(model)[0].says.en

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

    def test_what_a_hook_returns_is_used(self):
        """A hook that returns a pair, which the next one takes apart again: the model raises without either."""

        def doubled(module, args, output):
            return output, output

        model, seen = conv_relu(), []
        model[0].register_forward_hook(doubled)
        model[0].register_forward_hook(lambda m, i, o: o[0])
        model[1].register_forward_hook(lambda m, i, o: seen.append(type(o)))
        assert "returns_value" in faults(model, images())
        assert seen == []


def keep(module, args, output):
    Store.last = output


def keep_by_helper(module, args, output):
    _put(output)


def keep_as_array(module, args, output):
    _stores["array"] = output.detach().numpy()


def keep_view(module, args, output):
    _stores["view"] = output.detach().flatten()[1:]


def keep_out_of_reach(module, args, output):
    sys.modules[__name__].__dict__["_st" + "ores"]["map"] = output.detach()


def keep_tuple(module, args, output):
    _stores["call"] = (module, args, output)


def _put(output):
    _stores["map"] = output.detach()


_stores = {}


def same(module, args, output):
    return output


def zeros(grad):
    return torch.zeros_like(grad)


class Keeper(nn.Module):
    """A module that is no part of the model, and keeps what a hook gives to it."""

    def hook(self, module, args, output):
        self.features = output


class TestOverwritten:
    @pytest.mark.parametrize("keep", ["keep", "keep_detached"])
    def test_an_output_that_a_later_relu_changes(self, keep):
        model, store = conv_relu(inplace=True), Store()
        model[0].register_forward_hook(getattr(store, keep))
        found = diagnose(model, images())
        assert {f.id for f in found} - {"holds_graph"} == {"overwritten", "grows"} and "clone()" in found[
            0
        ].says.en
        assert store.kept == [], "the run leaves nothing in the user's lists"

    @pytest.mark.parametrize(
        "hook",
        [keep, keep_by_helper, keep_as_array, keep_view, keep_out_of_reach, keep_tuple, Keeper().hook],
    )
    def test_wherever_it_is_kept(self, hook):
        model = conv_relu(inplace=True)
        model[0].register_forward_hook(hook)
        finding = diagnose(model, images())[0]
        assert finding.id == "overwritten" and finding.hook.function == hook.__qualname__
        assert not hasattr(Store, "last") and not hasattr(Keeper, "features")
        assert not any(_stores) or hook is keep_out_of_reach
        _stores.clear()

    @pytest.mark.parametrize("hook", [lambda m, i: _put(i[0]), lambda m, i: _stores.update(args=i)])
    def test_an_input_that_the_layer_itself_changes(self, hook):
        model = conv_relu(inplace=True)
        model[1].register_forward_pre_hook(hook)
        assert "overwritten" in faults(model, images()) and not _stores

    def test_only_the_hook_before_the_change_is_reported(self):
        model, store = conv_relu(inplace=True), Store()
        model[1].register_forward_hook(store.keep_detached)
        model[0].register_forward_hook(store.keep_detached)
        (finding,) = [f for f in diagnose(model, images()) if f.id == "overwritten"]
        assert finding.hook.path == "0" and finding.hooks == (finding.hook,)

    def test_only_the_hook_that_keeps_is_reported(self):
        model, store = conv_relu(inplace=True), Store()
        for hook in (silent, same, store.keep_detached, also_silent):
            model[0].register_forward_hook(hook)
        assert {f.hook.function for f in diagnose(model, images())} == {"Store.keep_detached"}

    @pytest.mark.parametrize(("keep", "inplace"), [("keep_clone", True), ("keep_detached", False)])
    def test_silent_about_a_clone_and_about_a_model_that_changes_nothing(self, keep, inplace):
        model, store = conv_relu(inplace), Store()
        model[0].register_forward_hook(getattr(store, keep))
        assert faults(model, images()) == ["grows"], "of the list there is something to say"

    def test_silent_about_another_part_of_the_same_memory(self):
        class Halves(nn.Module):
            def __init__(self):
                super().__init__()
                self.left, self.all = nn.Identity(), nn.Linear(3, 3)

            def forward(self, x):
                left, right = self.all(x).detach().t().contiguous().chunk(2)
                self.left(left)
                return right.mul_(2)

        model = Halves()
        model.left.register_forward_hook(keep_view)
        assert "overwritten" not in faults(model, torch.ones(2, 3))


class TestGrows:
    def test_a_list_that_nobody_empties(self):
        model, store = conv_relu(), Store()
        model[3].register_forward_hook(store.keep_clone)
        (finding,) = diagnose(model, images())
        assert finding.id == "grows" and "1 tensor more (16 B)" in finding.says.en and store.kept == []

    @pytest.mark.parametrize("kept", ["all", "last"])
    @pytest.mark.parametrize("kind", ["param_grad", "backward"])
    def test_gradients_that_nobody_throws_away(self, kind, kept):
        model, gradients = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), []

        def keep(gradient):
            if kept == "last":
                gradients.clear()
            gradients.append(gradient.clone())

        if kind == "param_grad":
            model[0].weight.register_hook(keep)
        else:
            model[0].register_full_backward_hook(lambda module, inputs, outputs: keep(outputs[0]))
        found = {finding.id for finding in diagnose(model, torch.ones(2, 3))} - {"blocks_pickling"}
        assert found == ({"grows"} if kept == "all" else set())
        assert gradients == [] and all(parameter.grad is None for parameter in model.parameters())

    @pytest.mark.parametrize("where", ["dict", "first and last", "queue", "emptied", "numbers"])
    def test_silent_about_what_has_an_end(self, where):
        kept, queue = {}, deque(maxlen=100)

        def hook(module, args, output):
            value = output.detach().clone()
            if where == "dict":
                kept["map"] = value
            elif where == "first and last":
                kept.setdefault("first", value)
                kept["last"] = value
            elif where == "queue":
                queue.append((len(queue), value))
            else:
                kept.setdefault("all", []).append(value if where == "emptied" else value.mean().item())

        def empty(module, args):
            if where == "emptied":
                kept.clear()

        model = conv_relu()
        model[0].register_forward_hook(hook)
        model.register_forward_pre_hook(empty)
        assert faults(model, images()) == ["blocks_pickling"] * 2
        assert not kept and not queue


class TestChanges:
    def test_a_pre_hook_that_cuts_the_graph(self):
        def detached(module, args):
            return (args[0].detach(),)

        model = conv_relu()
        model[3].register_forward_pre_hook(detached)
        (finding, _) = diagnose(model, images())
        assert finding.id == "cuts_graph" and "if unmeant" in finding.says.en and finding.hook.path == "3"

    @pytest.mark.parametrize("cut", [lambda m, i, o: o.detach(), lambda m, i, o: (o.detach_(), None)[1]])
    def test_a_hook_that_cuts_the_graph(self, cut):
        model = conv_relu()
        model[0].register_forward_hook(cut)
        assert faults(model, images()) == ["cuts_graph", "blocks_pickling"]

    @pytest.mark.parametrize("of", [lambda output: output, lambda output: output.data[:1]])
    def test_a_hook_that_writes_to_the_output(self, of):
        def in_place(module, args, output):
            of(output).mul_(2)

        model = conv_relu()
        model[0].register_forward_hook(in_place)
        (finding, _) = diagnose(model, images())
        assert finding.id == "edits_in_place" and "if unmeant" in finding.says.en

    def test_gradient_hooks_that_write_or_return_zeros(self):
        def zero_in(module, grad_input, grad_output):
            return tuple(None if grad is None else torch.zeros_like(grad) for grad in grad_input)

        model = conv_relu(inplace=False)
        model[3].weight.register_hook(lambda grad: (grad.mul_(2), None)[1])
        model[3].bias.register_hook(lambda grad: grad * 0)
        model[3].register_full_backward_hook(zero_in)
        found = {f.hook.path: f.id for f in diagnose(model, images()) if f.id != "blocks_pickling"}
        assert found == {"3": "zero_gradient", "3.bias": "zero_gradient", "3.weight": "edits_gradient"}
        assert all(p.grad is None for p in model.parameters())

    def test_zeros_behind_a_softmax_whose_sum_has_no_gradient(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.Softmax(1))
        model[0].weight.register_hook(zeros)
        assert faults(model, torch.randn(2, 3)) == ["zero_gradient"]

    def test_silent_about_gradients_that_are_zero_before(self):
        model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
        nn.init.constant_(model[0].bias, -100)  # all units are dead
        model[0].weight.register_hook(lambda grad: grad * 0.5)
        model[2].weight.register_hook(lambda grad: grad.clone())
        model[2].weight.register_post_accumulate_grad_hook(lambda p: (p.grad.zero_(), None)[1])
        assert faults(model, torch.ones(1, 3)) == []

    def test_a_full_backward_hook_where_an_op_works_in_place(self):
        model, x = conv_relu(inplace=True), images()
        model[0].register_full_backward_hook(silent)
        model[3].register_full_backward_hook(also_silent)
        with pytest.raises(RuntimeError, match="BackwardHookFunction"):
            model(x)
        (finding,) = diagnose(model, x)
        assert finding.id == "full_backward_inplace" and finding.hook.path == "0"
        assert "`inplace=False`" in finding.says.en and len(list_hooks(model)) == 2

    @pytest.mark.parametrize(
        "part", [lambda y: y[:, 0], lambda y: y.mT, lambda y: y.view(-1)[:2], torch.diagonal]
    )
    def test_a_full_backward_hook_where_an_op_works_in_place_on_a_part_of_the_output(self, part):
        model = nn.Sequential(nn.Linear(2, 2), nn.Identity())
        model[1].forward = lambda y: (part(y).mul_(0), y)[1]
        model[0].register_full_backward_hook(silent)
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            model(torch.ones(2, 2))
        (finding,) = diagnose(model, torch.ones(2, 2))
        assert finding.id == "full_backward_inplace" and finding.hook.path == "0"


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

    def test_the_copy_of_a_layer_has_its_own_hooks_under_the_same_ids(self):
        class One(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(3, 3)
                self.first.register_forward_hook(silent)
                self.second = copy.deepcopy(self.first)

            def forward(self, x):
                return self.second(x)

        (finding,) = diagnose(One(), torch.ones(1, 3))
        assert finding.id == "never_fired" and finding.hook.path == "first"

    @pytest.mark.filterwarnings("ignore")
    def test_an_operation_that_compiles_itself(self):
        from torch.nn.attention.flex_attention import flex_attention

        class Flexible(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(16, 16)

            def forward(self, x):
                return flex_attention(*[self.layer(x).detach()] * 3)

        model = Flexible()
        model.layer.register_forward_hook(silent)
        model.register_forward_hook(silent)
        assert faults(model, torch.randn(1, 1, 16, 16)) == []


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
        assert " at 0x" not in finding.says.en, "the same words in every run"

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
        x = torch.randn(1000, 100)
        model(x)
        for found in (diagnose(model), diagnose(model, x)):
            finding = next(f for f in found if f.id == "holds_graph")
            # The input and the ReLU's output, 400 kB each. Weights belong to the model and do not count.
            assert "`Store.keep:" in finding.says.en and "keeps 1 tensor attached" in finding.says.en
            assert "800.0 kB" in finding.says.en
        assert len(store.kept) == 1

    def test_bytes_are_those_that_autograd_saved(self):
        model, saved = Repeated(3), {}

        def pack(tensor):
            saved[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model(torch.randn(8, 3))
        output = model(torch.randn(8, 3))
        assert graph_bytes([output]) == sum(saved.values())

    @pytest.mark.parametrize(
        "hook", [keep, Keeper().hook, keep_tuple, lambda m, i, o: _stores.update(o=o.mean())]
    )
    def test_it_is_found_in_the_run_wherever_it_is(self, hook):
        model = conv_relu(inplace=False)
        model[0].register_forward_hook(hook)
        assert "holds_graph" in faults(model, images())
        assert not hasattr(Store, "last") and not _stores

    def test_a_sum_that_grows_a_graph(self):
        total = torch.zeros(())

        def add(module, args, output):
            nonlocal total
            total += output.sum()

        model, version = conv_relu(inplace=False), total._version
        model[0].register_forward_hook(add)
        assert "holds_graph" in faults(model, images())
        assert (total.item(), total.grad_fn, total._version) == (0, None, version)

    def test_silent_about_detached_tensors_and_freed_graphs(self):
        model, store = conv_relu(), Store()
        model[0].register_forward_hook(store.keep_detached)
        model(images())
        assert faults(model) == []

    def test_silent_about_what_the_model_itself_keeps(self):
        class Remembers(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 3)

            def forward(self, x):
                self.loss = self.layer(x).sum()
                return self.loss * 2

        model = Remembers()
        model(torch.ones(1, 3))
        model.layer.register_forward_hook(functools.partial(silent, model))
        assert "holds_graph" not in faults(model) + faults(model, torch.ones(1, 3))


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


class TestManyHooks:
    def test_what_is_one_thing_is_one_finding(self):
        """One lambda on each layer of a deep model, two times: not one paragraph for each."""
        model, store = nn.Sequential(*[nn.Linear(3, 3) for _ in range(12)]), Store()
        for _ in range(2):
            for layer in model:
                layer.register_forward_hook(lambda m, i, o: store.keep_clone(m, i, o))
        found = diagnose(model, torch.ones(1, 3))
        assert [f.id for f in found] == ["registered_twice", "grows", "blocks_pickling"]
        assert [len(f.hooks) for f in found] == [12, 24, 24] and "24 tensors more" in found[1].says.en
        assert all("(`0`, `1`, `2`, `3`, … (+8))" in each.title.en for each in found), "each layer once"

    def test_other_functions_and_kinds_are_other_findings(self):
        model = conv_relu()
        model[0].register_forward_hook(lambda m, i, o: None)
        model[1].register_forward_hook(lambda m, i, o: None)
        model[1].register_forward_pre_hook(lambda m, i: None)
        assert faults(model) == ["blocks_pickling"] * 3

    def test_attention_that_never_calls_its_projection_is_reported_once(self):
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        for block in model.layers:
            block.self_attn.out_proj.register_forward_hook(silent)
        (finding,) = diagnose(model, torch.ones(1, 2, 4))
        assert (
            finding.id == "never_fired"
            and len(finding.hooks) == 3
            and "MultiheadAttention" in finding.says.en
        )

    def test_two_thousand_hooks_that_share_a_dict(self):
        """Linear: ten times the hooks take ten times as long, and not a hundred times."""

        def seconds(n):
            model, kept = nn.Sequential(*[nn.Linear(2, 2) for _ in range(n)]), {}
            for number, layer in enumerate(model):
                layer.register_forward_hook(functools.partial(keep_in, kept, number))

            def look():
                assert faults(model, torch.ones(1, 2)) == [] and not kept

            return cpu_seconds(look)

        seconds(20)
        assert seconds(2000) < 40 * seconds(200)


def keep_in(kept, key, module, args, output):
    kept[key] = output.detach().clone()


class TestNothingIsChanged:
    def test_what_the_hooks_can_reach(self):
        class Slots:
            __slots__ = ("calls",)

        slots, array, delta = Slots(), np.zeros(3), nn.Parameter(torch.ones(2))
        generator, optimizer = torch.Generator().manual_seed(0), torch.optim.Adam([delta])
        box = SimpleNamespace(kept=[], queue=deque([1], maxlen=2), names={"a"}, array=array)
        slots.calls, probe, counter = 0, nn.BatchNorm2d(2), 0
        total = torch.zeros(2)

        def hook(module, args, output):
            nonlocal counter
            counter += 1
            slots.calls += 1
            box.kept.append(output.mean().item())
            box.queue.append(2)
            box.names.add("b")
            box.new = True
            array[:] = 1
            probe(output.detach())
            total.add_(output.detach().sum())
            torch.rand(1, generator=generator)
            Store.count = 1
            _stores["n"] = 1
            delta.grad = torch.ones(2)
            optimizer.step()
            module.calls = 1
            output.retain_grad()
            return output + delta.sum()

        model = conv_relu(inplace=False)
        model[0].register_forward_hook(hook)
        before = generator.get_state(), [t.clone() for t in probe.state_dict().values()]
        diagnose(model, images())
        assert (counter, slots.calls, box.kept, [*box.queue], box.names) == (0, 0, [], [1], {"a"})
        assert not hasattr(box, "new") and array.tolist() == [0, 0, 0] and total.tolist() == [0, 0]
        assert not hasattr(Store, "count") and not _stores and not hasattr(model[0], "calls")
        assert delta.tolist() == [1, 1] and delta.grad is None and not optimizer.state and not delta._version
        assert torch.equal(generator.get_state(), before[0])
        assert all(map(torch.equal, before[1], probe.state_dict().values()))

    def test_arguments_of_every_kind(self):
        class Greedy(nn.Module):
            def forward(self, x, y, cache, array, *, flags):
                assert x is y, "one tensor given twice is one tensor"
                cache.append(x.mul_(2))
                array += 1
                flags.add("ran")
                return x

        x, cache, array, flags = torch.ones(2, requires_grad=True) * 1, [], np.zeros(2), set()
        model = Greedy()
        model.register_forward_hook(silent)
        assert faults(model, x, x, cache, array, flags=flags) == []
        assert x.tolist() == [1, 1] and not cache and array.tolist() == [0, 0] and not flags
        x.sum().backward()

    def test_a_lazy_model_stays_as_it_was(self):
        model = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
        model[1].register_forward_hook(silent)
        assert faults(model, torch.ones(1, 2)) == []
        assert model[0].has_uninitialized_params() and type(model[0]) is nn.LazyLinear

    def test_a_recording_in_progress(self):
        model = conv_relu()
        with record(model, "0") as rec:
            model(images())
            model[1].register_forward_hook(silent)
            found = diagnose(model, images())
            assert found == found.notes == [] and len(rec["0"].calls) == 1
            model(images())
        assert [call.number for call in rec["0"].calls] == [0, 1]

    def test_what_cannot_be_put_back_is_reported(self):
        numbers = iter(range(100))
        model = conv_relu()
        model[0].register_forward_hook(lambda m, i, o: (next(numbers), None)[1])
        (note,) = diagnose(model, images()).notes
        assert "range_iterator" in note.en and "range_iterator" in repr(diagnose(model, images()))

    def test_generators_of_numpy_and_a_variable_without_a_value(self):
        draws = np.random.RandomState(0), np.random.default_rng(0)

        def hook(module, args, output):
            if args is None:
                later()
            for draw in draws:
                draw.normal()

        model, before = conv_relu(), copy.deepcopy(draws)
        model[0].register_forward_hook(hook)
        assert not diagnose(model, images()).notes
        assert [draw.normal() for draw in draws] == [draw.normal() for draw in before]
        later = silent

    def test_a_graph_of_the_user_is_not_freed(self):
        model = conv_relu(inplace=False)
        steering = (nn.Parameter(torch.ones(2)) * 2).exp()
        model[3].register_forward_hook(lambda m, i, o: o + steering)
        model[3].weight.register_hook(silent)
        diagnose(model, images())
        steering.sum().backward()


def test_a_backward_pass_that_raises_is_reported_and_not_raised():
    class Refused(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            y = self.layer(x).sigmoid()
            z = y * 2
            y.mul_(2)  # the sigmoid has saved it
            return z

    model = Refused()
    model.layer.weight.register_hook(silent)
    found = diagnose(model, torch.ones(1, 3))
    assert not found and "modified by an inplace operation" in found.notes[0].en
    assert "modified by an inplace operation" in found._repr_html_()


def test_what_a_backward_pass_raised_is_quoted_as_code():
    """Marks of Markdown stay what they are, and no address is told."""

    def refuses(grad):
        raise ValueError("got **a** of `f` <object at 0x7f0012ab>")

    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    model[0].weight.register_hook(refuses)
    (note,) = diagnose(model, torch.ones(1, 3)).notes
    assert note.en.endswith("`ValueError: got **a** of 'f' <object>`")


def test_every_fault_is_reported_in_both_languages_and_briefly():
    for id, fault in FAULTS.items():
        for text in (fault.title, fault.says):
            assert text.zh and text.en and "{hook}" in text.zh and "{hook}" in text.en, id
        assert len(fault.title.en) < 70 and len(fault.title.en) < len(fault.says.en), id


def test_the_most_serious_faults_come_first():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    kept = []
    model[0].register_forward_hook(lambda module, args, output: kept.append(output))
    model[2].register_forward_hook(lambda module, args, output: output.detach())
    found = diagnose(model, torch.ones(1, 2))
    severities = [finding.severity for finding in found]
    assert severities == sorted(severities, key=["serious", "warning", "minor"].index)
    assert set(severities) == {"serious", "warning", "minor"}
    title = next(finding.title.en for finding in found if finding.id == "cuts_graph")
    assert title.endswith("(`2`) cuts the graph") and "<lambda>" in title


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


def test_a_scripted_part_is_left_alone():
    model = nn.Sequential(nn.Linear(3, 2), torch.jit.script(nn.Linear(2, 2)))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    assert diagnose(model, torch.ones(1, 3)) == []
    assert all(map(torch.equal, model.parameters(), before))
