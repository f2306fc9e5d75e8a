"""What has to hold for record() on a model of the zoo, and a table of all models.

python -m tests.hooks.zoo [words]     the table, of the models whose name contains one of the words
"""

import contextlib
import copy
import functools
import operator
import os
import random
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel as DDP

from hookedu import record
from hookedu.tables import Table
from tests.hooks.capture_models import hook_tables
from tests.hooks.zoo_models import SPECIMENS, Specimen

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # transformers asks no server for anything
CLOSED = (nn.Module, type, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType)


def walk(value: Any, path: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in a value with their places; written by hand, not by what is tested."""
    if isinstance(value, Tensor):
        yield path, value
    elif id(value) not in above and not isinstance(value, CLOSED):
        if isinstance(value, dict):
            inside = value.items()
        elif isinstance(value, list | tuple):
            inside = enumerate(value)
        else:
            inside = vars(value).items() if hasattr(value, "__dict__") else ()
        for key, item in inside:
            yield from walk(item, f"{path}/{key}", (*above, id(value)))


def copied(value: Any) -> dict[str, Tensor]:
    return {path: tensor.detach().clone() for path, tensor in walk(value)}


def bits(tensor: Tensor) -> tuple[Any, ...]:
    """Return what two tensors must share to be the same to the bit: NaN equals itself, and 0.0 is not -0.0."""
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor  # a DTensor: this process's part
    plain = local.detach().flatten().clone(memory_format=torch.contiguous_format)
    return tensor.dtype, tensor.shape, plain.view(torch.uint8).numpy().tobytes()


def same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> bool:
    return ours.keys() == theirs.keys() and all(bits(ours[path]) == bits(theirs[path]) for path in ours)


@dataclass
class ByHand:
    """The hooks that a person would write, on every module: clones, and a tensor hook for each gradient."""

    inputs: dict[str, list[dict[str, Tensor]]] = field(default_factory=dict)
    outputs: dict[str, list[dict[str, Tensor]]] = field(default_factory=dict)
    gradients: dict[str, list[dict[str, Tensor]]] = field(default_factory=dict)

    @contextlib.contextmanager
    def on(self, model: nn.Module) -> Iterator[None]:
        handles = []
        for name, module in model.named_modules():
            for kept in (self.inputs, self.outputs, self.gradients):
                kept[name] = []
            handles.append(module.register_forward_pre_hook(self._before(name), with_kwargs=True))
            handles.append(module.register_forward_hook(self._after(name, handles)))
        yield
        for handle in handles:
            handle.remove()

    def _before(self, name: str):
        return lambda module, args, kwargs: self.inputs[name].append(copied((args, kwargs)))

    def _after(self, name: str, handles: list[Any]):
        def after(module, args, output):
            gradients: dict[str, Tensor] = {}
            self.outputs[name].append(copied(output))
            self.gradients[name].append(gradients)
            for path, tensor in walk(output):
                if tensor.requires_grad:
                    handles.append(tensor.register_hook(functools.partial(self._arrives, gradients, path)))

        return after

    @staticmethod
    def _arrives(gradients: dict[str, Tensor], path: str, grad: Tensor | None) -> None:
        if grad is not None:  # an autograd function may return none
            gradients[path] = grad.clone()


def loss_of(output: Any) -> Tensor | None:
    terms = [t.float().square().mean() for _, t in walk(output) if t.requires_grad and t.is_floating_point()]
    return sum(terms) if terms else None


def run(specimen: Specimen, model: nn.Module, given: dict[str, Any], train: bool, look) -> dict[str, Any]:
    """Run a model with the same random numbers each time; return all that a recorder must not change."""
    positional = [given.pop("")] if "" in given else []
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    # A reversible model asks the operating system for a seed, with which backward computes the same again.
    with patch("torch.seed", lambda: 1), look(model), contextlib.nullcontext() if train else torch.no_grad():
        output = specimen.run(model, *positional, **given)
        loss = loss_of(output) if train else None
        if loss is not None:
            loss.backward()
    generators = (
        torch.get_rng_state().numpy().tobytes(),
        np.random.get_state()[1].tobytes(),
        random.getstate(),
    )
    return {
        "outputs": copied(output),
        "arguments": copied((positional, given)),
        "state": dict(model.state_dict()),
        "gradients": {name: p.grad for name, p in model.named_parameters() if p.grad is not None},
        "attributes": {name: set(vars(module)) for name, module in model.named_modules()},
        "modes": [module.training for module in model.modules()],
        "hooks": [[str(type(hook)) for hook in table.values()] for table in hook_tables(model)],
        "generators": generators,
    }


def compare(rec: Any, hand: ByHand) -> None:
    """Compare every call of every module with the hand-written clones."""
    assert set(rec) == set(hand.outputs)
    for name, layer in rec.items():
        calls = layer.calls if hand.inputs[name] else ()
        assert bool(calls) != (name in rec.missed), name
        assert len(calls) == len(hand.inputs[name]), name
        for call, theirs in zip(calls, hand.inputs[name], strict=True):
            assert same(dict(walk((call.input, call.kwargs))), theirs), f"input of {call}"
        # What a checkpoint computes again ends as soon as backward has what it needs.
        finished = [call for call in calls if "did not finish" not in repr(call)]
        assert len(finished) == len(hand.outputs[name]), name
        for call, output, gradient in zip(finished, hand.outputs[name], hand.gradients[name], strict=True):
            assert same(dict(walk(call.activation)), output), f"output of {call}"
            try:
                ours = dict(walk(call.gradient))
            except RuntimeError:  # the reason why there is none
                ours = {}
            assert same(ours, gradient), f"gradient of {call}"


def inside(model: nn.Module) -> nn.Module:
    """Return what DistributedDataParallel or torch.compile has been put around."""
    return model._modules.get("_orig_mod") or (model.module if isinstance(model, DDP) else model)


def examine(
    specimen: Specimen, wrap: Callable[[nn.Module], nn.Module] = lambda model: model
) -> tuple[int, int]:
    """Check one model; return how many leaf layers it has and how often they were called and compared.

    `wrap` makes of a copy of the model what is run, such as a DistributedDataParallel.
    """
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    pristine, inputs = specimen.build()
    leaves = {name for name, module in pristine.named_modules() if not any(module.children())}
    compared = 0
    for train in (False, True) if specimen.train else (False,):
        hand, seen = ByHand(), []

        @contextlib.contextmanager
        def look(model, hand=hand, seen=seen):
            with hand.on(inside(model)), record(model, nn.Module, inputs=True, gradients=True) as rec:
                seen.append(rec)
                yield

        alone, recorded = (
            run(specimen, wrap(model.train(train)), given, train, around)
            for around in (lambda model: contextlib.nullcontext(), look)
            for model, given in [copy.deepcopy((pristine, inputs))]
        )
        for what, value in alone.items():
            equal = same if what in ("outputs", "arguments", "state", "gradients") else operator.eq
            assert equal(recorded[what], value), f"{what} differ from a run without record()"
        assert not train or alone["gradients"]
        (rec,) = seen
        compare(rec, hand)
        assert repr(rec) and rec.nbytes and not rec._uncopied, rec._uncopied
        compared += sum(len(calls) for name, calls in hand.outputs.items() if name in leaves)
    return len(leaves), compared


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Use one thread, and show none of the models' own warnings."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with contextlib.suppress(ImportError):
        import transformers

        transformers.logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


def main(words: list[str]) -> int:
    rows, failed = [], 0
    for specimen in SPECIMENS:
        if words and not any(word in str(specimen) for word in words):
            continue
        start = time.perf_counter()
        try:
            with quiet():
                leaves, calls = examine(specimen)
            verdict = "equal"
        except Exception as error:
            leaves, calls, verdict = 0, 0, f"{type(error).__name__}: {str(error)[:100]!r}"
            failed += 1
        rows.append([specimen.library, specimen.name, leaves, calls, verdict])
        print(*rows[-1], f"{time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    total = f"{len(rows)} runs, {sum(row[3] for row in rows)} calls, {failed} not equal"
    print(
        Table(["library", "architecture", "leaf layers", "calls", "against hand-written clones"], rows, total)
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
