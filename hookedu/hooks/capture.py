"""record(): capture of the inputs, outputs and output gradients of a model's layers.

A hook that keeps activations takes three lines, and those three lines go wrong in many ways. Each comment
that starts with a case number explains how the code avoids one of them: "Case 5" is case 5 of CASES.md, the
table beside this file that also names the test of each case. Here are the public function and what registers
and removes the hooks; taps.py has the hooks themselves, keeping.py what they keep, recording.py and reading.py
what is read afterwards.
"""

import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.jit import ScriptModule

from hookedu.hooks.keeping import Keeper
from hookedu.hooks.modules import Choice, choose, is_compiled, survey, unwrap
from hookedu.hooks.recording import Recording
from hookedu.hooks.state import run_uncompiled
from hookedu.hooks.taps import Tap
from hookedu.language import Text


def record(
    model: nn.Module,
    layers: Choice | Iterable[Choice] = (),
    *,
    outputs: bool = True,
    inputs: bool = False,
    gradients: bool = False,
    copy: bool = True,
    device: torch.device | str | None = None,
    max_bytes: int | None = None,
    keep: Callable[[Tensor], Any] | Literal["stats"] | None = None,
) -> "Recorder":
    """Record chosen layers of a model while it runs.

    The returned recorder is a context manager. Its hooks come off at the end of the ``with`` block, also when
    the block raises. Without a block they stay until ``close()`` is called or the same line of code runs
    again, so that a notebook cell that is run twice does not stack up hooks. Gradients are recorded whenever
    ``backward`` runs, also after the block; ``close()`` ends that and releases every tensor.

    The hooks never change what the model computes, and the recording keeps no autograd graph alive.

    Parameters
    ----------
    model : torch.nn.Module
        The model to record. Inside ``torch.compile``, ``DataParallel`` (one device) and
        ``DistributedDataParallel`` the wrapped model is recorded, under its own names.
    layers : str, type, torch.nn.Module or callable, or an iterable of these
        What to record: dotted names as in ``model.named_modules()`` (``""`` is the model itself), patterns of
        names (``"blocks.*.attn"``; ``*`` is one part of a name, ``**`` any number of parts), module types,
        modules of this model, or predicates ``(name, module) -> bool``. A layer is recorded once, however many
        of the choices it matches.
    outputs : bool, default True
        Keep what each call returns. Nested outputs keep their structure; each tensor and NumPy array in them is copied.
    inputs : bool, default False
        Keep the positional and keyword arguments of each call, as they are before ``forward`` runs.
    gradients : bool, default False
        Keep the gradient of the loss with respect to each call's output, which has the output's structure and
        shapes.
    copy : bool, default True
        Keep copies. ``False`` keeps aliases without copying any memory; later in-place operations then show
        through, and ``summary()`` names the layers where that has happened to a tensor.
    device : torch.device or str, optional
        Where the copies go, for example ``"cpu"``. By default each copy stays on the device of its tensor.
        Copies from a GPU to the CPU are asynchronous; reading a value waits for them.
    max_bytes : int, optional
        Limit in bytes on the kept tensors. A tensor that would exceed it is dropped after its statistics have
        been computed, and one warning is issued. By default there is no limit.
    keep : callable or "stats", optional
        What to keep of each tensor: a function that gets it, detached, and returns what is kept in its place,
        such as ``lambda t: t[:, -1]``, ``lambda t: t.mean(dim=0)`` or ``lambda t: t.norm().item()``. A view is
        copied, also within a tuple, list or dict. What the function raises passes through the model's forward.
        ``"stats"`` keeps the statistics alone (those of small tensors are computed together, so that up to 256 KB
        of copies wait for theirs).
        Layers with several calls merge theirs: ``rec[name].stats()`` covers all batches since ``clear()``.

    Returns
    -------
    Recorder
        The recording, with its hooks in place: a mapping from names to layers, with ``activations`` for all at
        once and ``clear()`` for the next batch. ``rec[name]`` is a layer with ``activation``, ``gradient``,
        ``input``, ``kwargs`` and ``stats()``; ``rec[name].calls`` holds one entry per call of the module,
        with the same attributes. ``rec.summary()`` is a table of all layers, ``rec.missed`` maps each layer
        that never ran to the reason, ``rec.nbytes`` is the memory of all kept tensors in bytes,
        ``rec.failed_at`` names the module in which the forward pass raised, and ``rec.events`` is the log
        behind all of these.

    Raises
    ------
    KeyError
        If no layer has the given name. The message lists the closest names.
    ValueError
        If nothing is chosen or a choice matches no layer of this model; if ``outputs``, ``inputs`` and
        ``gradients`` are all false; if ``max_bytes`` is not positive; if ``device`` or ``keep`` is combined
        with ``copy=False``; if ``keep`` is another word than "stats"; or if the model is a ``DataParallel`` on
        several devices.
    TypeError
        If the model is not a ``torch.nn.Module``, if it is TorchScript or a layer chosen by its name is, or if a
        choice is none of the types listed above.
    RuntimeError
        If PyTorch does not know the device or cannot use it here.

    Warns
    -----
    UserWarning
        If the model is compiled: it runs uncompiled while hooks are in place, because compiled code may not
        call them. Also when ``max_bytes`` is exceeded.

    Notes
    -----
    ``record`` raises before it registers any hook. Later, reading a value that was not recorded raises
    ``RuntimeError`` with the reason: the layer never ran, ``backward`` was not called, the value was dropped.
    Reading a value of a layer with several calls raises ``ValueError``, which points to ``calls``.

    What happens in 39 cases, such as in-place operations, shared modules and exceptions, is listed in
    ``hookedu/hooks/CASES.md``.

    Examples
    --------
    Record the output of a convolution and its gradient. The ReLU after it works in place, and the record
    still holds what the convolution returned:

    >>> import torch
    >>> from torch import nn
    >>> from hookedu import record
    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(32, 10))
    >>> with record(model, layers=["0", nn.Linear], gradients=True) as rec:
    ...     model(torch.randn(2, 3, 4, 4)).sum().backward()
    >>> rec["0"].activation.shape
    torch.Size([2, 8, 2, 2])
    >>> bool((rec["0"].activation < 0).any())
    True
    >>> rec["3"].gradient.shape
    torch.Size([2, 10])
    >>> rec.summary()
    layer  type    calls  output   dtype    memory  note
    -----  ------  -----  -------  -------  ------  ----
    0      Conv2d      1  2×8×2×2  float32  512 B
    3      Linear      1  2×10     float32  160 B
    total 672 B

    A module that is called several times has several calls:

    >>> double = nn.Sequential(*[nn.Identity()] * 2)
    >>> with record(double, layers="0", inputs=True) as rec:
    ...     _ = double(torch.tensor([1.0, 2.0]))
    >>> [call.input[0].tolist() for call in rec["0"].calls]
    [[1.0, 2.0], [1.0, 2.0]]

    Keep one number for each output, and the statistics of many batches:

    >>> with record(model, "*", keep=lambda t: round(t.abs().max().item(), 2)) as rec:
    ...     _ = model(torch.ones(1, 3, 4, 4))
    >>> rec.activations
    {'0': 0.57, '1': 0.31, '2': 0.31, '3': 0.24}
    >>> with record(model, nn.Conv2d, keep="stats") as rec:
    ...     for _ in range(3):
    ...         _ = model(torch.randn(4, 3, 4, 4))
    >>> rec["0"].stats().count
    384
    """
    if not (outputs or inputs or gradients):
        raise ValueError(str(NOTHING_WANTED))
    if max_bytes is not None and not (isinstance(max_bytes, int | float) and max_bytes > 0):
        raise ValueError(str(BAD_MAX_BYTES.format(got=max_bytes)))
    if not copy and (device is not None or keep is not None):
        raise ValueError(str(ALIAS_ELSEWHERE))
    if not (keep is None or keep == "stats" or callable(keep)):
        raise ValueError(str(BAD_KEEP.format(got=keep)))
    wants = {"outputs": outputs, "inputs": inputs, "gradients": gradients}
    recorder = Recorder(model, layers, wants, Keeper(copy, _usable(device), max_bytes, keep))
    recorder._replace_earlier(_call_site())
    recorder._put_hooks_on()
    return recorder


def _usable(device: torch.device | str | None) -> torch.device | None:
    """Return the device; raise here and not in the middle of the model's forward if it cannot be used."""
    if device is None:
        return None
    try:
        return torch.empty(0, device=device).device
    except AssertionError as error:  # "Torch not compiled with CUDA enabled"
        raise RuntimeError(str(error)) from None


def _may_call_itself(module: nn.Module) -> bool:
    """Check whether calls of a module may lie inside one another; those of PyTorch's own modules never do.

    Such calls end in another order than that in which they begin, so that only a pre-hook can number them.
    """
    if not module._modules:  # most modules; traversing one costs as much as registering its hook
        return not _is_of_torch(module)
    return not all(map(_is_of_torch, module.modules()))


def _is_of_torch(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn.")


class Recorder(Recording):
    """A `Recording` together with the hooks that fill it.

    Recorders come from `record`, which checks the options and registers the hooks. A recorder is a context
    manager for one `with` block. At the end of the block it removes its module hooks and remains readable as
    a `Recording`. The tensor hooks that record gradients stay until `close` is called or the autograd graph
    is freed. `close` also releases every tensor.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Choice | Iterable[Choice],
        wants: dict[str, bool],
        keep: Keeper,
    ) -> None:
        inner = unwrap(model)
        named, self._compiled = survey(inner)
        self._compiled |= inner is not model and is_compiled(model)
        super().__init__(named, choose(named, layers), wants, keep)
        self._call_site: tuple[Any, ...] | None = None
        self._entered = False

    # -- registering and removing ------------------------------------------------------------------------------

    def _put_hooks_on(self) -> None:
        if self._compiled:
            # Case 19: compiled code contains the hooks of its first call and never looks for new ones.
            warnings.warn(str(RUNS_EAGERLY), stacklevel=3)
        # Case 6: one hook per module, however many names it has.
        inputs, handles = self._wants["inputs"], self._handles
        for name, (module, _) in self._chosen.items():
            if isinstance(module, ScriptModule):  # case 21: it runs no hooks, as `missed` says
                continue
            before = inputs or _may_call_itself(module)
            tap = Tap(name, self, before)
            if before:
                # Case 8: without with_kwargs a hook never sees keyword arguments. A forward hook would be too
                # late: a module that works in place has overwritten its own input by then.
                handles.append(module.register_forward_pre_hook(tap.before, with_kwargs=True))
            handles.append(module.register_forward_hook(tap.after))
        if self._compiled:
            self._compile_again = run_uncompiled(self)

    def _take_hooks_off(self) -> None:
        """Remove the module hooks but not the tensor hooks: backward may still run (case 15)."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for hook in self._leaves.values():  # case 33: a leaf outlives this run, and so would its hook
            hook.handle.remove()
        self._leaves.clear()
        self._compile_again()
        self._forget_call_site()

    def __enter__(self) -> "Recorder":
        if self._entered or self.closed:
            raise RuntimeError(str(ENTERED_TWICE))
        self._entered = True
        self._forget_call_site()  # only the end of the with block may end this recorder
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._take_hooks_off()  # case 9: also after an exception, which propagates unchanged
        if error is not None:
            self.failed_at = self._innermost_module(trace)

    def clear(self) -> None:
        """Release what was recorded and start anew, for the next batch; the hooks stay.

        Gradients of what was recorded before are no longer recorded.
        """
        self._forget()
        for handle in self._handles:
            # Somebody else may have removed the hook, or put another function in its place.
            hook = (handle.hooks_dict_ref() or {}).get(handle.id)
            tap = getattr(hook, "__self__", None)
            if isinstance(tap, Tap):
                tap.restart()

    def close(self) -> None:
        """Remove every hook and release every tensor; reading a value afterwards raises RuntimeError."""
        self._take_hooks_off()
        self.clear()
        self.closed = True

    def _innermost_module(self, trace: TracebackType | None) -> str | None:
        """Return the name of the innermost module in the traceback; no hook is needed for that."""
        names = {id(module): name for name, module in reversed(self._named.items())}
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
        """Remove the hooks of an earlier recorder of the same place.

        Case 23: a notebook cell that is run again must not add a second set of hooks.
        """
        key = id(self._named[""]), tuple(self._chosen), threading.get_ident(), call_site
        earlier = _recorders.get(key, lambda: None)()
        if earlier is not None:
            earlier._take_hooks_off()
        _recorders[key] = weakref.ref(self, lambda _: _recorders.pop(key, None))
        self._call_site = key


# Recorders that no with block will end, by id of the model, layers, thread (case 38) and call site in the
# user's code. A recorder holds its model, so no other model can have that id while the entry exists.
_recorders: "dict[tuple[Any, ...], weakref.ref[Recorder]]" = {}


def _call_site() -> tuple[Any, ...]:
    """Return the stack of the call to `record`, up to the notebook cell or script.

    One (file name, first line of the function, instruction) per frame.
    """
    site, frame = [], sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        site.append((code.co_filename, code.co_firstlineno, frame.f_lasti))
        frame = None if code.co_name == "<module>" else frame.f_back
    return tuple(site)


NOTHING_WANTED = Text(
    zh="outputs、inputs、gradients 都是 False：没有可录制的内容",
    en="outputs, inputs and gradients are all False: there is nothing to record",
)
BAD_MAX_BYTES = Text(
    zh="max_bytes 是一个大于 0 的字节数（或为 None，表示不限制），得到的是 {got!r}；1 GB 写作 1_000_000_000",
    en="max_bytes is a number of bytes greater than 0 (or None for no limit), got {got!r}; 1 GB is 1_000_000_000",
)
ALIAS_ELSEWHERE = Text(
    zh="copy=False 保留的是别名，不能同时指定 device 或 keep",
    en="copy=False keeps aliases, which cannot be on another device or anything else: leave out device and keep",
)
BAD_KEEP = Text(
    zh='keep 是一个函数，或者 "stats"，得到的是 {got!r}',
    en='keep is a function or "stats", got {got!r}',
)
ENTERED_TWICE = Text(
    zh="同一个录制器只能用于一个 with 块：请再次调用 record()",
    en="a recorder serves one with-block: call record() again",
)
RUNS_EAGERLY = Text(
    zh="模型经过编译，编译后的代码可能不会调用新的钩子：录制期间改为不编译运行",
    en="the model is compiled, and compiled code may not call new hooks: it runs uncompiled while recording",
)
