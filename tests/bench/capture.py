"""Benchmark of record() against a hand-written hook and other libraries that capture activations.

    python tests/bench/capture.py [rounds]

1. One hook call: the time of calling the forward hook itself on a tensor, against a hand-written hook that keeps
   `output.detach().clone()`. The other results include the model's run and therefore differ less.
2. A whole run with every convolution captured, including registering and removing the hooks, with and without building
   the graph: of a chain of small layers, and of ResNet-18.

Every contender runs once per round. The results are the minima over all rounds, their ratios, and the median of the
differences within a round, so that other load on the machine affects all contenders alike. Libraries that are not
installed are skipped with a message. What a library does to torch itself is undone after each of its turns. Some libraries keep aliases, or only the last call; the note says what each keeps.
baukit is not on PyPI: it is measured where a clone of github.com/davidbau/baukit is on PYTHONPATH.
"""

import ctypes
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import torch
from torch import nn
from torchvision.models import resnet18

from hookedu import record

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
SHAPES = [(1, 8, 4, 4), (1, 64, 56, 56), (8, 64, 56, 56)]


def keep_memory() -> None:
    """Stop glibc from returning freed memory to the system.

    It does so whenever much free memory lies at the end of the heap, and it is chance whose tensors cause that: some
    contender would then pay for new pages in every round, up to four times the cost of the hook itself.
    """
    with suppress(OSError, AttributeError):  # a C library other than glibc
        trim_threshold, mmap_threshold = -1, -3
        for parameter in (trim_threshold, mmap_threshold):
            ctypes.CDLL(None).mallopt(parameter, 2**30)


def around(run: Callable[[], object]) -> AbstractContextManager:
    """Return the context in which a contender runs; entering and leaving it is not timed."""
    return getattr(run, "context", nullcontext)()


def timed(
    contenders: dict[str, Callable[[], object]], rounds: int, repeat: int = 1
) -> dict[str, list[float]]:
    """Return the seconds of one call in each round, by contender.

    Within a round the contenders take turns in random order, because each one pays for the state in which its
    predecessor leaves the CPU caches. One that takes a hundred times as long as the quickest takes part in three rounds.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    turns, first = list(contenders), {}
    for name in turns:
        with around(contenders[name]):
            contenders[name]()
            start = time.perf_counter()
            contenders[name]()
            first[name] = time.perf_counter() - start
    quick = [name for name in turns if first[name] < 100 * min(first.values())]
    for number in range(rounds):
        turns = quick if number >= 3 else turns
        random.shuffle(turns)
        for name in turns:
            run = contenders[name]
            with around(run):
                start = time.perf_counter()
                for _ in range(repeat):
                    run()
                times[name].append((time.perf_counter() - start) / repeat)
    return times


def report(
    title: str, times: dict[str, list[float]], against: str, notes: dict[str, str] | None = None
) -> None:
    """Print the minima, their ratios, and the median difference from `against` within a round.

    The median difference cancels what is common to all contenders of a round, so it separates contenders that the
    minima of a few rounds do not.
    """
    print(f"\n{title}")
    best = {name: min(seconds) for name, seconds in times.items()}
    for name in sorted(times, key=best.get):
        more = statistics.median(map(float.__sub__, times[name], times[against]))
        figures = (
            f"{best[name] * 1e6:10.1f} µs {best[name] / best[against]:6.2f} × {against} {more * 1e6:+8.1f} µs"
        )
        print(f"  {name:<32}{figures}   {(notes or {}).get(name, '')}".rstrip())


def hook_calls() -> None:
    for shape in SHAPES:
        output, layer, kept = torch.randn(shape), nn.Identity(), []
        recorder = record(layer, "")
        (ours,) = layer._forward_hooks.values()

        def by_hand(module, args, output, kept=kept):
            kept.append(output.detach().clone())

        def call(hook, store, layer=layer, output=output):
            for _ in range(50):
                hook(layer, (output,), output)
            store.clear()  # timed for both: freeing 50 tensors

        times = timed(
            {
                "hand-written": lambda call=call, by_hand=by_hand, kept=kept: call(by_hand, kept),
                "record": lambda call=call, ours=ours, recorder=recorder: call(ours, recorder.events),
            },
            rounds=ROUNDS * 5,
        )
        size = "×".join(map(str, shape))
        each = {name: [t / 50 for t in all_] for name, all_ in times.items()}
        report(f"one hook call, {size}", each, "hand-written")
        recorder.close()


def captures(model: nn.Module, x: torch.Tensor, layers: list[str]) -> tuple[dict, dict]:
    """Return one function per installed library that runs the model and captures the layers, and a note on each."""
    modules = [model.get_submodule(name) for name in layers]

    def by_hand():
        kept, handles = {}, []
        for name, module in zip(layers, modules, strict=True):
            handles.append(
                module.register_forward_hook(
                    lambda m, i, o, name=name: kept.__setitem__(name, o.detach().clone())
                )
            )
        model(x)
        for handle in handles:
            handle.remove()
        return kept

    def ours(**options):
        with record(model, layers, **options) as rec:
            model(x)
        return rec

    def dropping():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that values are dropped
            return ours(max_bytes=1)

    contenders = {
        "no capture": lambda: model(x),
        "hand-written": by_hand,
        "record": ours,
        "record, copy=False": lambda: ours(copy=False),
        "record, keep=the mean": lambda: ours(keep=lambda t: t.mean()),
        'record, keep="stats"': lambda: ours(keep="stats"),
        "record, max_bytes=2**30": lambda: ours(max_bytes=2**30),
        "record, max_bytes=1": dropping,
    }
    notes = {
        "hand-written": "a clone of the last call",
        "record": "clones of every call",
        "record, copy=False": "aliases of every call, and their versions",
        "record, keep=the mean": "one number for every call",
        'record, keep="stats"': "eight numbers for every call",
        "record, max_bytes=2**30": "clones of every call, counted",
        "record, max_bytes=1": "eight numbers for every call, after one warning",
    }
    for name, make, note in PEERS:
        try:
            contenders[name] = make(model, x, layers, modules)
            notes[name] = note
            with around(contenders[name]):
                contenders[name]()
        except Exception as error:  # not installed, or incompatible with this PyTorch: report it
            contenders.pop(name, None)
            print(f"  {name} is left out: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
    return contenders, notes


def captum(model, x, layers, modules):
    from captum.attr import LayerActivation

    capture = LayerActivation(model, modules)
    return lambda: capture.attribute(x)


def captum_with_graph(model, x, layers, modules):
    """Capture with the function that captum's own gradient methods call: LayerActivation always disables autograd."""
    from captum._utils.gradient import _forward_layer_eval

    return lambda: _forward_layer_eval(model, x, modules, grad_enabled=torch.is_grad_enabled())


def fastai(model, x, layers, modules):
    from fastai.callback.hook import hook_outputs

    def run():
        with hook_outputs(modules, detach=True, cpu=False) as hooks:
            model(x)
            return hooks.stored

    return run


def baukit(model, x, layers, modules):
    from baukit import TraceDict

    def run():
        with TraceDict(model, layers, clone=True, detach=True) as traces:
            model(x)
        return traces

    return run


def torchextractor(model, x, layers, modules, capture=None):
    import torchextractor

    def run():
        extractor = torchextractor.Extractor(model, layers, capture_fn=capture)
        result = extractor(x)
        for handle in extractor.hook_handles:
            handle.remove()
        return result

    return run


def torchextractor_cloning(model, x, layers, modules):
    def keep(module, input, output, module_name, feature_maps):
        feature_maps[module_name] = output.detach().clone()

    return torchextractor(model, x, layers, modules, keep)


def nnsight(model, x, layers, modules):
    from nnsight import NNsight

    wrapped = NNsight(model)

    def run():
        kept = []
        with wrapped.trace(x):
            for name in layers:
                kept.append(wrapped.get(name).output.detach().clone().save())
        return kept

    return run


def torchlens(model, x, layers, modules):
    import torchlens
    from torchlens.backends.torch.wrappers import unwrap_torch, wrap_torch

    @contextmanager
    def wrapped():
        """Undo what torchlens leaves behind: wrappers around all functions of torch.

        Every other contender that computes something in its hook, such as `keep="stats"`, would pay for them.
        """
        wrap_torch()
        try:
            yield
        finally:
            unwrap_torch()

    def run():
        return torchlens.extract(model, x, layers)

    run.context = wrapped
    return run


PEERS = [
    ("captum", captum, "clones of the last call; builds no graph, also where asked to"),
    (
        "captum, told to build the graph",
        captum_with_graph,
        "clones of the last call, with their graph if any",
    ),
    ("fastai", fastai, "aliases of the last call"),
    ("baukit", baukit, "clones of the last call, asked for"),
    ("torchextractor", torchextractor, "aliases of the last call"),
    # For a like-for-like comparison: by default it does not copy, and returns outputs that later in-place ops changed.
    ("torchextractor, told to clone", torchextractor_cloning, "clones of the last call"),
    ("nnsight", nnsight, "clones, asked for"),
    ("torchlens", torchlens, "clones of every operation's output, with the graph between them"),
]


def whole_runs() -> None:
    torch.manual_seed(0)
    # Small layers keep a run short, so that the minimum of many is free of other load on the machine and capturing is
    # a measurable part of it.
    # torchlens does not find a module whose output is the model's: the chain ends with another one.
    chain = nn.Sequential(*(nn.Conv2d(8, 8, 3, padding=1) for _ in range(20)), nn.Flatten())
    # Many rounds, because the differences are a few microseconds per run.
    runs = [
        ("20 small convolutions", chain.eval(), torch.randn(1, 8, 16, 16), ROUNDS * 25),
        ("ResNet-18 at 64×64", resnet18().eval(), torch.randn(1, 3, 64, 64), ROUNDS * 8),
    ]
    for name, model, x, rounds in runs:
        layers = [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d)]
        for title, mode in (("no_grad", torch.no_grad), ("building the graph", nullcontext)):
            with mode():
                contenders, notes = captures(model, x, layers)
                times = timed(contenders, rounds)
            report(f"{name}, {len(layers)} layers captured, {title}", times, "record", notes)


def bytes_kept() -> None:
    model, x = resnet18().eval(), torch.randn(4, 3, 64, 64)
    with torch.no_grad(), record(model, nn.Module) as rec:
        model(x)
    clones = sum(
        call.activation.untyped_storage().nbytes()
        for name in rec
        if name not in rec.missed
        for call in rec[name].calls
    )
    print(
        f"\nbytes: rec.nbytes {rec.nbytes}, sum of the clones {clones}: {'equal' if rec.nbytes == clones else 'DIFFERENT'}"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep_memory()
    print(f"torch {torch.__version__}, {ROUNDS} rounds, one thread")
    hook_calls()
    whole_runs()
    bytes_kept()
