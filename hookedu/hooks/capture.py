"""record(): what the layers of a model take in, give out and get back as gradients, captured rightly.

A hook that keeps activations is three lines long, and those three lines are wrong in many ways. Each comment
below that starts with a case number tells of one; the table of cases stands in the design, a test for each in
tests/test_capture*.py. Read from top to bottom: what is promised, putting hooks on and off, what a hook does.
"""

import sys
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from hookedu.hooks.events import Dropped, Event
from hookedu.hooks.modules import choose, is_compiled, modules_by_name, survey, unwrap
from hookedu.hooks.recording import Recording
from hookedu.hooks.tensors import map_tensors, shape_of, tensors_in
from hookedu.language import Text


def record(
    model: nn.Module,
    layers: Any = (),
    *,
    outputs: bool = True,
    inputs: bool = False,
    gradients: bool = False,
    copy: bool = True,
    device: torch.device | str | None = None,
    max_bytes: int | None = None,
) -> "Recorder":
    """Record chosen layers of a model while it runs.

    >>> with record(model, layers=["layer1.0.conv1", nn.Linear], gradients=True) as rec:  # doctest: +SKIP
    ...     model(x).sum().backward()
    >>> rec["layer1.0.conv1"].activation, rec["layer1.0.conv1"].gradient  # doctest: +SKIP

    layers: one choice or a list: dotted names ("" is the model itself), module types, modules of this model, or
    functions (name, module) -> bool. outputs, inputs, gradients: what to keep: the outputs, the arguments as they
    were before forward, the gradients of the loss for the outputs. copy: False keeps aliases, which later in-place
    ops change. device: where the copies go, "cpu" for instance; None leaves them where they are. max_bytes: past
    so many bytes of tensors only statistics are kept, with one warning.

    Hooks come off at the end of the with-block, or with `close()`, or when the same line runs again. Gradients
    arrive whenever backward runs, also after the block; `close()` ends that and releases every tensor.

    Raises before any hook is put on: KeyError for an unknown layer's name, with the closest ones; ValueError where
    nothing is chosen or an option makes no sense; TypeError for TorchScript and for what is no nn.Module.
    """
    if not (outputs or inputs or gradients):
        raise ValueError(str(NOTHING_WANTED))
    if max_bytes is not None and max_bytes <= 0:
        raise ValueError(str(BAD_MAX_BYTES.format(got=max_bytes)))
    if device is not None and not copy:
        raise ValueError(str(ALIAS_ELSEWHERE))
    wants = {"outputs": outputs, "inputs": inputs, "gradients": gradients}
    recorder = Recorder(model, layers, wants, copy, torch.device(device) if device else None, max_bytes)
    recorder._replace_earlier(_call_site())
    recorder._put_hooks_on()
    return recorder


class Recorder(Recording):
    """A Recording that is being made: the hooks, and the way back to a model without them."""

    def __init__(
        self,
        model: nn.Module,
        layers: Any,
        wants: dict[str, bool],
        copy: bool,
        device: torch.device | None,
        max_bytes: int | None,
    ) -> None:
        inner = unwrap(model)
        named, self._compiled = survey(inner)
        self._compiled |= inner is not model and is_compiled(model)
        super().__init__(inner, choose(named, layers), wants)
        self._keep = _keeper(copy, device, max_bytes, self._versions, self._pending)
        self._outputs, self._gradients = wants["outputs"], wants["gradients"]
        self._plain = wants == {"outputs": True, "inputs": False, "gradients": False} and self._keep is _clone
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self._gradient_handles: list[torch.utils.hooks.RemovableHandle] = []
        self._stance: Any = None
        self._call_site: tuple[Any, ...] | None = None
        self._entered = False

    # -- on and off --------------------------------------------------------------------------------------------

    def _put_hooks_on(self) -> None:
        if self._compiled:
            # Case 19. Compiled code has the hooks of its first call baked in and never looks for new ones.
            warnings.warn(str(RUNS_EAGERLY), stacklevel=3)
            self._stance = torch.compiler.set_stance("force_eager")
        # Case 6. One hook for a module, however many names it has.
        inputs, handles = self._wants["inputs"], self._handles
        for name, (module, _) in self._chosen.items():
            tap = _Tap(name, self)
            if inputs:
                # Case 8. Without with_kwargs a hook never sees keyword arguments. And not in a forward hook: a
                # module that works in place has overwritten its own input by then.
                handles.append(module.register_forward_pre_hook(tap.before, with_kwargs=True))
            handles.append(module.register_forward_hook(tap.after))

    def _take_hooks_off(self) -> None:
        """Module hooks only: gradients may still be on their way (case 15)."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None
        self._forget_call_site()

    def __enter__(self) -> "Recorder":
        if self._entered or self.closed:
            raise RuntimeError(str(ENTERED_TWICE))
        self._entered = True
        self._forget_call_site()  # the with-block will end it, and nothing else may
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._take_hooks_off()  # case 9: in every case, and the exception goes on its way
        if error is not None:
            self.failed_at = self._innermost_module(trace)

    def close(self) -> None:
        """Take off every hook and release every tensor. Reading the recording afterwards raises RuntimeError."""
        self._take_hooks_off()
        while self._gradient_handles:
            self._gradient_handles.pop().remove()
        for event in self.events:  # somebody may hold an Event or a Call: let go of the tensor all the same
            event.value = None
        self.events.clear()
        self._by_call.clear()
        self.closed = True

    def _innermost_module(self, trace: TracebackType | None) -> str | None:
        """The module whose code the exception came from, read off the traceback: no hook is needed for that."""
        names = {id(module): name for name, module in reversed(modules_by_name(self._model).items())}
        found = None
        while trace is not None:
            found = names.get(id(trace.tb_frame.f_locals.get("self")), found)
            trace = trace.tb_next
        return found

    def _forget_call_site(self) -> None:
        if self._call_site is not None:
            _recorders.pop(self._call_site, None)
            self._call_site = None

    def _replace_earlier(self, call_site: tuple[Any, ...]) -> None:
        """Case 23. A cell that is run again must not put a second set of hooks beside the first."""
        key = id(self._model), tuple(self._chosen), call_site
        earlier = _recorders.get(key, lambda: None)()
        if earlier is not None:
            earlier._take_hooks_off()
        _recorders[key] = weakref.ref(self, lambda _: _recorders.pop(key, None))
        self._call_site = key


# Recorders that no with-block will end, by model, layers and call site in the user's code. A recorder holds its model: as
# long as it stands here no other model has that id.
_recorders: "dict[tuple[Any, ...], weakref.ref[Recorder]]" = {}


def _call_site() -> tuple[Any, ...]:
    """Where in the user's code `record` is being called: files, functions and instructions, out to the cell or script."""
    site, frame = [], sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        site.append((code.co_filename, code.co_firstlineno, frame.f_lasti))
        frame = None if code.co_name == "<module>" else frame.f_back
    return tuple(site)


# -- what the hooks do -----------------------------------------------------------------------------------------


class _Tap:
    """The hooks of one layer. They write events and return None, always (case 17): a value would replace the
    module's output.

    Case 22. A copied or unpickled model brings copies of its hooks along; a copied tap has no recorder and is deaf.
    """

    __slots__ = ("calls", "log", "name", "plain", "recorder", "running")

    def __init__(self, name: str, recorder: Recorder | None = None) -> None:
        self.name, self.recorder = name, recorder
        if recorder is None:
            self.log, self.plain = None, False
        else:
            self.log, self.plain = recorder.events, recorder._plain
        # Case 3. A module called n times makes n events, not one that is overwritten n - 1 times.
        self.calls = 0
        self.running: tuple[int, ...] = ()  # numbers of calls that have begun; a module may call itself

    def __reduce__(self) -> tuple[Any, ...]:
        return _Tap, (self.name,)

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        log = self.log
        if log is None:
            return
        self.running += (self.calls,)
        value = map_tensors(self.recorder._keep, (args, kwargs))
        log.append(Event(len(log), "forward_pre", self.name, self.calls, value))
        self.calls += 1

    def after(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        log = self.log
        if self.plain and output.__class__ is Tensor:  # by far the most frequent, hence the short way
            log.append(Event(len(log), "forward", self.name, self.calls, _clone(output)))
            self.calls += 1
            return
        if log is None:
            return
        if self.running:
            call, self.running = self.running[-1], self.running[:-1]
        else:
            call = self.calls
            self.calls += 1
        recorder = self.recorder
        if recorder._outputs:  # case 7: outputs may be nested
            log.append(Event(len(log), "forward", self.name, call, map_tensors(recorder._keep, output)))
        else:
            log.append(Event(len(log), "forward", self.name, call, None, shape_of(output)))
        if recorder._gradients:
            self._watch_gradients(recorder, call, output)

    def _watch_gradients(self, recorder: Recorder, call: int, output: Any) -> None:
        """Case 2. A tensor hook on the output, put on before any later op can change the output in place: it stays
        with the value of this moment, whereas a full backward hook would make that op raise, and retain_grad would
        move on to the changed value.
        """
        key, tensors = (self.name, call), list(tensors_in(output))
        for leaf, tensor in enumerate(tensors):
            if tensor.requires_grad:  # case 13: never switched on by us
                # Case 4: each call has hooks of its own, so it does not matter in which order gradients come.
                hook = _GradientHook(recorder, self.name, call, leaf)
                recorder._gradient_handles.append(tensor.register_hook(hook))
                if tensor._is_view():
                    recorder._views.add(key)
        if not recorder._wants["outputs"]:
            recorder._skeletons[key] = map_tensors(lambda tensor: torch.empty(0), output)
        if not any(tensor.requires_grad for tensor in tensors):
            recorder._no_gradient[key] = _why_no_gradient(tensors)


class _GradientHook:
    """A tensor hook for one tensor of one call's output. It holds the log and never the graph (case 15)."""

    __slots__ = ("call", "last", "leaf", "name", "recorder")

    def __init__(self, recorder: Recorder, name: str, call: int, leaf: int) -> None:
        self.recorder, self.name, self.call, self.leaf = recorder, name, call, leaf
        self.last: Event | None = None

    def __call__(self, grad: Tensor) -> None:
        log = self.recorder.events
        if self.last is not None:  # case 5: of several backward passes the last one's gradient is kept
            self.last.size, self.last.value = self.last.shape, None
        # A copy again: autograd may hand the very same tensor to other hooks, and they may change it in place.
        self.last = Event(
            len(log), "output_grad", self.name, self.call, self.recorder._keep(grad), leaf=self.leaf
        )
        log.append(self.last)


def _clone(tensor: Tensor) -> Tensor:
    """Case 1. detach() shares memory, so a later ReLU(inplace=True) or `out += identity` would show through:
    clone() is what makes it a record. detach() costs a third of it on small tensors: only where there is a graph.
    """
    return tensor.detach().clone() if tensor.requires_grad else tensor.clone()


def _keeper(
    copy: bool,
    device: torch.device | None,
    max_bytes: int | None,
    versions: dict[int, int],
    pending: set[torch.device],
) -> Callable[[Tensor], Tensor]:
    """How a tensor is kept. Always detached: an attached tensor holds its whole graph in memory.

    versions, pending: a Recording's notes of aliases and of copies that are on their way.
    """
    if not copy:

        def keep(tensor: Tensor) -> Tensor:
            alias = tensor.detach()
            if not alias.is_inference():  # inference tensors have no version to tell a change by
                versions[id(alias)] = alias._version
            return alias

    elif device is None:
        keep = _clone

    else:

        def keep(tensor: Tensor) -> Tensor:
            if tensor.device.type not in ("cpu", device.type):
                pending.add(tensor.device)  # a hook never waits for a GPU; who reads does, once
            # Case 25. A copy even where the tensor is on that device already.
            return tensor.detach().to(device, non_blocking=True, copy=True)

    if max_bytes is None:
        return keep
    held, warned = 0, False

    def keep_within_bounds(tensor: Tensor) -> Tensor:
        nonlocal held, warned  # case 24
        size = tensor.numel() * tensor.element_size()
        if held + size <= max_bytes:
            held += size
            return keep(tensor)
        if not warned:
            warnings.warn(str(PAST_MAX_BYTES.format(max_bytes=max_bytes)), stacklevel=2)
            warned = True
        return Dropped.from_tensor(tensor)

    return keep_within_bounds


def _why_no_gradient(tensors: list[Tensor]) -> str:
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    if not torch.is_grad_enabled():
        return "no_grad"
    floating = any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors)
    return "frozen" if floating else "dtype"


NOTHING_WANTED = Text(
    zh="outputs、inputs、gradients 都是 False：没有可录制的内容",
    en="outputs, inputs and gradients are all False: there is nothing to record",
)
BAD_MAX_BYTES = Text(
    zh="max_bytes 必须大于 0（或为 None，表示不限制），得到的是 {got}",
    en="max_bytes must be greater than 0 (or None for no limit), got {got}",
)
ALIAS_ELSEWHERE = Text(
    zh="copy=False 保留的是别名，不能同时指定 device",
    en="copy=False keeps aliases, which cannot be on another device: leave out device",
)
ENTERED_TWICE = Text(
    zh="同一个录制器只能用于一个 with 块：请再次调用 record()",
    en="a recorder serves one with-block: call record() again",
)
RUNS_EAGERLY = Text(
    zh="模型经过编译，编译后的代码不会调用新的钩子：录制期间改为不编译运行",
    en="the model is compiled, and compiled code never calls new hooks: it runs uncompiled while recording",
)
PAST_MAX_BYTES = Text(
    zh="超出 max_bytes={max_bytes}：之后的值不再保留，只留统计量",
    en="past max_bytes={max_bytes}: further values are dropped, only their statistics are kept",
)
