"""What holds for record() on every model: checked on random ones (graphs.py), Hypothesis looks for a counterexample."""

import contextlib
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch import Tensor, nn

from hookedu import record
from hookedu.hooks.tensors import tensors_in
from tests.hooks.capture_models import hook_tables
from tests.hooks.graphs import Graph, drawn, seed, settings_of


def leaves(value: Any) -> list[Tensor]:
    """Return the tensors in what these models return and get; written by hand, not by what is tested."""
    if isinstance(value, Tensor):
        return [value]
    held = vars(value) if hasattr(value, "logits") else value
    items = held.values() if isinstance(held, dict) else held if isinstance(held, tuple | list) else ()
    return [tensor for item in items for tensor in leaves(item)]


class Run:
    """One forward and backward pass of a model that is built for it, and everything that it left."""

    def __init__(
        self, graph: dict, setting: dict, look=lambda model: contextlib.nullcontext(), plain: bool = False
    ):
        seed(setting["seed"])
        self.model = Graph(**graph, plain=plain).train(setting["training"])
        seed(setting["seed"])
        self.x = torch.randn(4, 3, requires_grad=setting["leaf"])
        self.error = self.output = None
        with look(self.model) as self.seen:
            try:
                self.output = self.model(self.x * 1)
                if self.output.requires_grad:
                    self.output.sum().backward()
            except RuntimeError as error:  # in-place operations that autograd refuses
                self.error = str(error).partition(":")[0]
        self.rng = torch.get_rng_state()

    def left(self) -> list[Any]:
        """Return all that a recorder must not change, in an order of its own."""
        grads = [p.grad for p in self.model.parameters()]
        tensors = [self.output, self.x.grad, *grads, *self.model.state_dict().values()]
        return [
            self.error,
            # As text, in which NaN equals NaN and -0.0 differs from 0.0.
            *(None if tensor is None else (str(tensor.tolist()), tensor.requires_grad) for tensor in tensors),
            [module.training for module in self.model.modules()],
            self.rng.numpy().tobytes(),
        ]


@contextlib.contextmanager
def by_hand(model: nn.Module):
    """Clone what every module returns in a hook of a few lines; of the plain model, keep the gradients, too."""
    found: dict[int, list[list[Tensor]]] = {}
    kept: dict[int, list[list[Tensor]]] = {}

    def hook(module, args, output):
        found.setdefault(id(module), []).append([t.detach().clone() for t in leaves(output)])
        kept.setdefault(id(module), []).append(leaves(output))
        for tensor in leaves(output):
            if tensor.requires_grad:
                tensor.retain_grad()

    handles = [module.register_forward_hook(hook) for module in set(model.modules())]
    yield found, kept
    for handle in handles:
        handle.remove()


def look(model: nn.Module):
    return record(model, nn.Module, inputs=True, gradients=True)


def check(graph: dict, setting: dict) -> None:
    alone, recorded, hand = Run(graph, setting), Run(graph, setting, look), Run(graph, setting, by_hand)
    rec = recorded.seen
    # Nothing is changed, and nothing stays.
    assert recorded.left() == alone.left()
    assert not any(table for table in hook_tables(recorded.model))
    assert not any(p._backward_hooks for p in recorded.model.parameters())
    # Every call that finished is recorded, in order and with the values of its moment.
    modules = dict(recorded.model.named_modules())
    of_hand = dict(hand.model.named_modules())
    for name in rec:
        finished = [event.value for event in rec.events if event.kind == "forward" and event.path == name]
        theirs = hand.seen[0].get(id(of_hand[name]), [])
        assert len(finished) == len(theirs), name
        for ours, clones in zip(finished, theirs, strict=True):
            tensors = list(tensors_in(ours))
            assert str([t.tolist() for t in tensors]) == str([t.tolist() for t in clones]), name
            assert not any(t.requires_grad for t in tensors), name
    assert repr(rec) and {name for name in rec if not rec._calls_of(name)} == set(rec.missed)
    assert set(rec) | {alias for layer in rec.values() for alias in layer.aliases} >= set(modules)
    # Gradients are those of the same model without in-place operations.
    if alone.error is None and alone.output.requires_grad:
        plain = Run(graph, setting, by_hand, plain=True)
        of_plain = dict(plain.model.named_modules())
        for name in rec:
            calls = (
                [call for call in rec[name].calls if call._event("forward")] if rec._calls_of(name) else []
            )
            kept = plain.seen[1].get(id(of_plain[name]), [])
            if len(kept) != len(calls):  # a checkpoint that is recomputed by other rules
                continue
            for call, tensors in zip(calls, kept, strict=True):
                compare_gradients(call, tensors)


def compare_gradients(call, tensors: list[Tensor]) -> None:
    try:
        ours = {leaf: event.value for leaf, event in call._gradients().items()}
    except RuntimeError as error:
        # No gradient at all, or a view that was changed in place later: PyTorch drops the hooks on it.
        assert "view" in str(error) or all(tensor.grad is None for tensor in tensors), error
        return
    for leaf, tensor in enumerate(tensors):
        if tensor.grad is None:
            assert leaf not in ours or not ours[leaf].any()
        elif leaf in ours:
            torch.testing.assert_close(ours[leaf], tensor.grad, equal_nan=True)
        else:
            assert call._event("forward").otherwise == "view"


QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


@settings(QUIET, max_examples=2000)
@given(drawn, settings_of)
def test_recording_changes_nothing_and_misses_nothing(graph, setting):
    check(graph, setting)


@pytest.mark.zoo
@settings(QUIET, max_examples=50_000)
@given(drawn, settings_of)
def test_the_same_on_fifty_thousand_models(graph, setting):
    check(graph, setting)
