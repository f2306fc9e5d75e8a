"""The hooks of a recorder: what happens in the model while it is recorded.

Comments that start with a case number refer to CASES.md, the table beside this file.
"""

import itertools
import sys
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import _symbolic_trace

from hookedu.hooks.events import Event
from hookedu.hooks.keeping import clone
from hookedu.hooks.log import LATER, Log, Returned
from hookedu.hooks.tensors import map_tensors, shape_of, tensors_in

# Two of these names are newer than torch 2.6; the older one of `_fx_traces` had the meaning then that the newer one has.
_fx_traces = getattr(_symbolic_trace, "is_fx_symbolic_tracing", _symbolic_trace.is_fx_tracing)
_exports = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
_jit_traces = torch._C._is_tracing
_modes = torch._C._len_torch_function_stack


def traced() -> bool:
    """Check whether torch.fx, torch.export or torch.jit.trace is making a graph of what is being done now (case 39)."""
    return _jit_traces() or _exports() or _fx_traces()


class Tap:
    """The hooks of one layer. They append events and always return None (case 17).

    A returned value would replace the module's input or output.

    Case 22: deepcopy and pickle of a model copy its hooks, too. A copied tap has no recorder and records
    nothing.
    """

    __slots__ = ("calls", "keep", "name", "outputs_log", "recorder", "running")

    def __init__(self, name: str, recorder: Log | None = None, counts_starts: bool = False) -> None:
        self.name, self.recorder = name, recorder
        # The recorder's log if only outputs are recorded and no `before` counts the calls; else None. See `after`.
        self.outputs_log = None
        # What keeps a tensor; a copied tap has none.
        if recorder is not None:
            self.keep = recorder._keep.quick or partial(_kept, recorder, name)
            if recorder._only_outputs and not counts_starts:
                self.outputs_log = recorder._log
        self.restart()

    def restart(self) -> None:
        """Count calls from zero."""
        # Case 3: a module called n times makes n events, not one that is overwritten n - 1 times.
        self.calls = itertools.count()
        # Indices of the calls in progress, by the frame that runs the hooks of the call: a module may call itself, run in
        # several threads (case 38), and never finish a call that raises.
        self.running: dict[int, int] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Tap, (self.name,)

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recorder = self.recorder
        if recorder is None or traced():
            return
        log, call = recorder._log, next(self.calls)
        if recorder._wants["inputs"]:
            log.append(Event(LATER, "forward_pre", self.name, call, self._kept(recorder, (args, kwargs))))
        self.running[id(sys._getframe(1))] = call

    def after(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        log = self.outputs_log
        # By far the most frequent case, hence a fast path. Where torch.fx traces with tensors, there is a mode.
        if log is not None and output.__class__ is Tensor and not (_modes() or _jit_traces() or _exports()):
            log.append(Event(LATER, "forward", self.name, next(self.calls), self.keep(output)))
            return
        recorder = self.recorder
        if recorder is None:
            return
        if traced():
            recorder._traced.add(self.name)
            return
        log = recorder._log
        call = self.running.pop(id(sys._getframe(1)), None)
        call = next(self.calls) if call is None else call
        make = Returned if recorder._wants["gradients"] else Event
        if recorder._wants["outputs"]:  # case 7: outputs may be nested
            event = make(LATER, "forward", self.name, call, self._kept(recorder, output))
        else:
            event = make(LATER, "forward", self.name, call, None, shape_of(output))
        log.append(event)
        if isinstance(event, Returned):
            self._watch_gradients(recorder, event, output)

    def when_removed(self) -> None:
        """Let compiled models run compiled again if somebody else has removed the recorder's last hook (case 32)."""
        if self.recorder is not None:
            handles = self.recorder._handles
            if not any(handle.id in (handle.hooks_dict_ref() or ()) for handle in handles):
                self.recorder._compile_again()

    def _kept(self, recorder: Log, value: Any) -> Any:
        """Return a copy of a value; what cannot be copied is kept as it is, and `summary` says so (case 34)."""
        keep = partial(_kept, recorder, self.name)
        return map_tensors(
            keep, value, lambda _: recorder._uncopied.add(self.name), arrays=recorder._keep.copy
        )

    def _watch_gradients(self, recorder: Log, event: Returned, output: Any) -> None:
        """Register a tensor hook on each tensor of the output.

        Case 2: the hook is registered before a later operation can change the output in place, and it stays
        with the value of this moment. A full backward hook would make that operation raise, and retain_grad
        would follow the changed value.
        """
        tensors = list(tensors_in(output))
        for leaf, tensor in enumerate(tensors):
            if tensor.requires_grad:  # case 13: requires_grad is never changed
                # Case 4: each call has its own tensor hooks, so gradients may arrive in any order.
                hook = _GradientHook(recorder, self.name, event.call, leaf)
                if tensor.is_leaf:
                    _LeafHook.of(tensor, recorder).add(hook)
                    event.otherwise = "leaf"
                else:
                    recorder._gradient_handles.append(tensor.register_hook(hook))
                    event.otherwise = "view" if tensor._is_view() else event.otherwise
        if not (recorder._wants["outputs"] and recorder._keep.keep is None):
            event.skeleton = map_tensors(lambda tensor: torch.empty(0), output, arrays=recorder._keep.copy)
        if not any(tensor.requires_grad for tensor in tensors):
            event.reason = _why_no_gradient(tensors)


def _kept(recorder: Log, name: str, tensor: Tensor) -> Any:
    """Return what a recorder keeps of a tensor.

    Case 34: some tensors cannot be copied to another device (from "meta"), and a subclass may refuse any operation.
    That is no reason for the model's forward to raise. What the user's own function raises is.
    """
    try:
        return recorder._keep(tensor)
    except Exception:
        if callable(recorder._keep.keep):
            raise
    with torch._C.DisableTorchFunctionSubclass():
        try:
            return clone(tensor)
        except Exception:
            recorder._uncopied.add(name)
            return tensor.detach()


class _GradientHook:
    """A tensor hook for one tensor of one call's output. It never refers to the graph (case 15)."""

    __slots__ = ("call", "last", "leaf", "name", "recorder")

    def __init__(self, recorder: Log, name: str, call: int, leaf: int) -> None:
        self.recorder, self.name, self.call, self.leaf = recorder, name, call, leaf
        self.last: Event | None = None

    def __call__(self, grad: Tensor | None) -> None:
        if grad is None:  # a later autograd function has returned no gradient for this tensor
            return
        log = self.recorder._log
        if self.last is not None:  # case 5: the gradient of the last of several backward passes is kept
            self.last.size, self.last.value = self.last.shape, None
        # A copy: autograd may pass the same tensor to other hooks, which may change it in place.
        self.last = Event(
            LATER,
            "output_grad",
            self.name,
            self.call,
            _kept(self.recorder, self.name, grad),
            leaf=self.leaf,
        )
        log.append(self.last)


class _LeafHook:
    """The tensor hook of a leaf (a parameter, an input), for every call of any layer that returned it (case 33).

    A leaf has no graph that ends: one hook per call would stay on it and see the backward passes of later calls. This
    one serves the calls since the last backward pass, and all of them again if a second one follows.
    """

    @classmethod
    def of(cls, leaf: Tensor, recorder: Log) -> "_LeafHook":
        """Return the hook of a leaf, registered at the first request."""
        found = recorder._leaves.get(leaf)
        if found is None:
            found = recorder._leaves[leaf] = cls()
            found.handle = leaf.register_hook(found)
        return found

    def __init__(self) -> None:
        self.handle: Any = None
        self.calls: list[_GradientHook] = []
        self.fired = False

    def add(self, hook: _GradientHook) -> None:
        """Serve one more call; the first one after a backward pass begins anew."""
        if self.fired:
            self.calls.clear()
        self.fired = False
        self.calls.append(hook)

    def __call__(self, grad: Tensor | None) -> None:
        self.fired = True
        for hook in self.calls:
            hook(grad)


def _why_no_gradient(tensors: list[Tensor]) -> str:
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    if not torch.is_grad_enabled():
        return "no_grad"
    floating = any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors)
    return "frozen" if floating else "dtype"
