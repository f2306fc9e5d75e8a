"""Any use of the public functions in any order leaves the process and the model as they were: a stateful machine."""

import contextlib
import gc
import random
import warnings

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from torch import nn

from hookedu import diagnose, list_hooks, record, remove_hooks, timeline
from tests.hooks.capture_models import hook_tables


class Model(nn.Module):
    """A model with a parameter that is returned, a part that works in place, and a fault on demand."""

    def __init__(self):
        super().__init__()
        self.linear, self.relu, self.drop = nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Dropout(0.5)
        self.norm, self.table = nn.BatchNorm1d(3), nn.Parameter(torch.ones(3))

    def forward(self, x, cache=None):
        if cache is not None:
            cache.append(x)
        x = self.norm(self.relu(self.linear(x)))
        if cache == [] or (cache and len(cache) > 3):
            raise ArithmeticError("on purpose")
        return x + self.drop(self.table)


def stance() -> str:
    return str(torch._dynamo.eval_frame._stance)


class Uses(RuleBasedStateMachine):
    """Recorders come and go; whatever is left after the last of them is an error."""

    def __init__(self):
        super().__init__()
        self.model = Model()
        self.compiled = torch.compile(self.model, backend="eager")
        self.open: list = []
        self.theirs: list = []
        self.first = stance()

    def forward(self, model, **options):
        with contextlib.suppress(ArithmeticError):
            return model(torch.ones(4, 3, requires_grad=True), **options)

    @rule(
        compiled=st.booleans(),
        layers=st.sampled_from(["", "linear", "drop", nn.Module, "*", ["relu", "norm"]]),
        options=st.fixed_dictionaries(
            {},
            optional={
                "inputs": st.booleans(),
                "gradients": st.booleans(),
                "max_bytes": st.sampled_from([1, 200]),
                "keep": st.sampled_from(["stats", torch.Tensor.norm]),
            },
        ),
    )
    def begin(self, compiled, layers, options):
        self.open.append(record(self.compiled if compiled else self.model, layers, **options))
        self.open[-1]._forget_call_site()  # otherwise every rule would replace the recorder of the one before

    @rule(compiled=st.booleans(), fails=st.booleans())
    def block(self, compiled, fails):
        model = self.compiled if compiled else self.model
        with contextlib.suppress(ZeroDivisionError), record(model, nn.Module, gradients=True):
            self.forward(model)
            _ = 1 / 0 if fails else None

    @precondition(lambda self: self.open)
    @rule(data=st.data(), how=st.sampled_from(["close", "exit", "forget", "clear"]))
    def end(self, data, how):
        rec = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        if how == "close":
            rec.close()
        elif how == "exit":
            with rec:
                pass
        elif how == "clear":
            rec.clear()
            self.open.append(rec)
        else:  # nobody holds it, but its hooks do: they are taken off as a user would
            remove_hooks(self.model, owner="hookedu")
            assert stance() == self.first
            rest, self.open = self.open, []
            for other in rest:
                other.close()
            del rec
            gc.collect()

    @rule()
    def misuse(self):
        for choice in ("lineer", 3, [], nn.LSTM):
            with pytest.raises((KeyError, TypeError, ValueError)):
                record(self.model, choice)
        with pytest.raises(RuntimeError):
            record(self.model, "", device="cuda:99")

    @rule(backward=st.booleans(), cache=st.booleans())
    def step(self, backward, cache):
        output = self.forward(self.model, cache=[torch.ones(1)] * 4 if cache else None)
        if backward and output is not None:
            output.sum().backward()
            self.model.zero_grad()

    @rule(which=st.sampled_from(["timeline", "diagnose", "list_hooks"]))
    def look(self, which):
        before = [t.clone() for t in self.model.state_dict().values()]
        rng, python = torch.get_rng_state(), random.getstate()
        if which == "list_hooks":
            repr(list_hooks(self.model))
        else:
            look = {"timeline": timeline, "diagnose": diagnose}[which]
            cache = [torch.ones(1)]
            look(self.model, torch.ones(4, 3), cache=cache)
            assert len(cache) == 1
        assert torch.equal(rng, torch.get_rng_state()) and python == random.getstate()
        assert all(map(torch.equal, before, self.model.state_dict().values()))
        assert all(p.grad is None for p in self.model.parameters())

    @rule()
    def read(self):
        for rec in self.open:
            repr(rec), rec.missed, rec.nbytes
            for layer in rec.values():
                with contextlib.suppress(RuntimeError, ValueError):
                    _ = layer.activation, layer.gradient

    @rule()
    def toggle_mode(self):
        self.model.train(not self.model.training)

    @rule()
    def hang_their_hook(self):
        self.theirs.append(self.model.linear.register_forward_hook(lambda module, args, output: None))

    @invariant()
    def all_is_as_it_should_be(self):
        hooks = list_hooks(self.model)
        assert len([hook for hook in hooks if hook.owner == "user"]) == len(self.theirs)
        assert len({module.training for module in self.model.modules()}) == 1
        if not self.open:
            assert len(hooks) == len(self.theirs)
            assert not self.model.table._backward_hooks
        if not any(rec._compiled for rec in self.open):
            assert stance() == self.first

    def teardown(self):
        for rec in self.open:
            rec.close()
        for handle in self.theirs:
            handle.remove()
        assert stance() == self.first
        assert not any(hook_tables(self.model))


@pytest.mark.filterwarnings("ignore")
class TestUses(Uses.TestCase):
    settings = settings(deadline=None, max_examples=150, stateful_step_count=20)


def test_recording_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with record(Model(), nn.Module, gradients=True) as rec:
            rec._named[""](torch.ones(4, 3)).sum().backward()
