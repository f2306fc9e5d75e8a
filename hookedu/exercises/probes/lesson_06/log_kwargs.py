"""What is observed of 06.3, `log_kwargs(layer, log)`: four calls with keyword arguments, and one without the hook."""

import contextlib
import warnings
from collections import namedtuple
from typing import Any

import numpy as np
import torch
from torch import nn

from hookedu.exercises.conduct import HANDLES
from hookedu.exercises.probing import Draw, Probe, remove_handle
from hookedu.exercises.tools import backward_hooks, copies, module_hooks

FAILING = 2  # of the calls, where the case says that one fails

# The input; the shape of two tensors, the dtype of one; three other values; what is in the log before; "eval", "no_grad",
# or "fails" if the forward of the third call raises.
Case = namedtuple("Case", "x shape dtype first bias last log setting")


def make_case(rng: Draw) -> Case:
    """Return a case.

    Turn 0 has a number and a list that holds a tensor, turn 2 tensors of rank 0, turn 3 a dtype, empty tensors and a
    long log.
    """
    shape = [(rng.randint(1, 4), rng.randint(2, 9)), (rng.randint(1, 4), 1), (), (0, rng.randint(2, 9))][
        rng.turn
    ]
    numbers = rng.sample([0.25, 0.5, 1.5, 2.0, 2.5, 4.0, 8.0, 16.0], 2)
    inside, listed = (torch.zeros(2), [rng.randint(4, 9)]), [numbers[1], torch.tensor(numbers[0])]
    first, last = [(numbers[0], listed), (None, 0), (True, inside), (torch.float64, np.array(numbers))][
        rng.turn
    ]
    log = [{"mask": n} for n in range([0, 1, 0, 120][rng.turn])]
    bias = [[], np.array(numbers[0]), "", np.array([])][rng.turn]  # all but one are empty
    dtype = [torch.bool, torch.float32, torch.int64, torch.float16][rng.turn]
    setting = ["", "eval", "no_grad", "fails"][rng.turn]
    return Case(torch.ones(1, 2), shape, dtype, first, bias, last, log, setting)


def keywords(case: Case) -> list[dict[str, Any]]:
    """Return the keyword arguments of each call; the last two are alike. In the case "no_grad" the first has no tensor.

    In float32 the first tensor comes from a computation: such a one cannot be deep-copied.
    """
    mask = torch.zeros(case.shape, dtype=case.dtype)
    if case.dtype == torch.float32:
        mask = 2 * nn.Parameter(mask)
    last = {"mask": mask, "bias": nn.Parameter(torch.zeros(case.shape)), "scale": case.last}
    first = {"bias": case.bias, "scale": case.first}
    return [first if case.setting == "no_grad" else {"mask": mask, **first}, {}, last, last]


def positional(case: Case) -> list[torch.Tensor]:
    """Return the positional arguments of the second call, the one without keywords: two in the case "eval"."""
    return [case.x] * (1 + (case.setting == "eval"))


class _Failure(Exception):
    """Raised inside the forward of a layer."""


class _Attend(nn.Module):
    """A layer with any inputs; it records what its forward receives, of positional ones the first, and the last ones.

    Nobody passes `gain`: a default is no argument of a call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inputs, self.received = [], []
        self.args: tuple[Any, ...] = ()
        self.fails, self.inside = False, nn.Identity()
        self.register_forward_pre_hook(lambda module, args: None)  # of somebody else

    def forward(self, *args: torch.Tensor, gain: float = 1.0, **options: Any) -> torch.Tensor:
        self.received.append(options)
        self.inputs.extend(args[:1])
        self.args = args
        if self.fails:
            raise _Failure
        return args[0] if args else torch.zeros(1)


def _takes(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Pass the keyword arguments on in another dictionary and take one out of their own, as somebody's hook may."""
    passed = dict(kwargs)
    kwargs.pop("scale", None)
    return args, passed


def kinds(entry: Any) -> Any:
    """Return an entry with every value as [name of its kind, value].

    A torch.Size counts as a tuple, a Parameter as a Tensor, and a dtype is written as text.
    """
    if not isinstance(entry, dict):
        return copies(entry)
    found = {}
    for key, value in entry.items():
        known = (kind.__name__ for kind in (torch.Tensor, tuple) if isinstance(value, kind))
        plain = value.tolist() if isinstance(value, np.ndarray) else copies(value)
        plain = tuple(value) if isinstance(value, tuple) else plain
        plain = str(value) if isinstance(value, torch.dtype) else plain
        found[key] = [next(known, type(value).__name__), plain]
    return found


def _passes(layer: _Attend, *args: torch.Tensor) -> bool:
    """Check whether the forward of a layer receives these positional arguments."""
    layer.args = (None,)
    with contextlib.suppress(IndexError, ValueError):
        layer(*args, scale=1.0)
    return len(layer.args) == len(args) and all(got is arg for got, arg in zip(layer.args, args, strict=True))


def observe(log_kwargs: Any, case: Case) -> dict[str, Any]:
    """Make the calls, then one more in each mode, and one after removing the hook."""
    x, given, log = case.x, keywords(case), list(case.log)
    layer, other = _Attend().train(case.setting != "eval"), _Attend()
    handle, handle_of_other = log_kwargs(layer, log), log_kwargs(other, [])
    saw = {"handle": handle, "hooks": module_hooks(layer) - 1}
    saw |= {"backward": backward_hooks(layer), "after": bool(layer._forward_hooks)}
    saw["flag"] = bool(layer._forward_pre_hooks_with_kwargs or layer._forward_hooks_with_kwargs)
    outputs = []
    others = []
    if case.setting == "no_grad":
        others = [layer.register_forward_pre_hook(_takes, with_kwargs=True)]
    with torch.set_grad_enabled(case.setting != "no_grad"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of hooks that fail after a forward that failed
        for n, options in enumerate(given):
            layer.fails = case.setting == "fails" and n == FAILING
            with contextlib.suppress(_Failure):
                outputs.append(layer(*(positional(case) if n == 1 else [x]), **options))
    for hook in others:
        hook.remove()
    saw |= {
        "log": [kinds(entry) for entry in log],
        "received": [kinds(options) for options in layer.received],
        "one_entry": all(entry is log[-1] for entry in log[len(case.log) :]),
    }
    saw |= {"inputs": copies(layer.inputs), "same_input": all(i is x for i in layer.inputs)}
    saw |= {"same_output": all(o is x for o in outputs), "hooks_later": module_hooks(layer) - 1}
    saw["same_keywords"] = all(
        got.keys() == sent.keys() and all(got[name] is sent[name] for name in sent)
        for got, sent in zip(layer.received, given, strict=True)
    )
    mode = layer.training
    layer.train()(x, scale=1.0)
    layer.eval()(x, scale=1.0)
    layer.train(mode)
    saw["more"] = len(log) - len(saw["log"])
    saw |= {"two": _passes(layer, x, x + 1), "none": _passes(layer)}
    del log[len(saw["log"]) + saw["more"] :]
    for one in (handle, handle_of_other):
        remove_handle(one)
    layer(x, scale=1.0)
    return saw | {"after_removal": len(log) - len(saw["log"]) - saw["more"]}


PROBE = Probe("06.3", "log_kwargs", make_case, observe, cases=4, leaves=(HANDLES,))
