"""Runs of a model for the widgets: its arguments, its recordings, and a cache of them for the next click."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch._C._functorch import is_functorch_wrapped_tensor

from hookedu.hooks.capture import record
from hookedu.hooks.modules import modules_by_name, unwrap
from hookedu.hooks.reach import restored
from hookedu.hooks.recording import Recording
from hookedu.hooks.state import call_model, deeper, single_number
from hookedu.hooks.tensors import fresh, named_tensors, shape_text
from hookedu.language import Text
from hookedu.widgets.receptive import Field, Fields

# Limits of the cache of recordings; the most recent one stays even if it is larger. The second is also the limit up to
# which the first run records the outputs of all layers, so that no click runs the model again.
_KEPT, _KEPT_BYTES = 8, 256_000_000
# A class, one class per sample, a function from the output to a scalar, or None for the highest score.
Target = int | Sequence[int] | torch.Tensor | Callable[[Any], torch.Tensor] | None
# The positional and the keyword arguments of one run.
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class ModuleRow:
    """One module of the list; `calls` is None if the model has not run."""

    name: str
    type: str
    shape: str = ""
    calls: int | None = None


class Runs:
    """Runs of a model on named inputs; each restores modes, buffers, `.grad`, RNG states and hooks."""

    def __init__(self, model: nn.Module, inputs: dict[str, Arguments], target: Target) -> None:
        self.model, self.inputs, self.target = unwrap(model), inputs, target
        self._rows: dict[str, list[ModuleRow]] = {}
        # By layer, input and whether it has gradients; the layer is None for a recording of all layers.
        self._recordings: OrderedDict[tuple[str | None, str, bool], Recording] = OrderedDict()
        self._fields: dict[tuple[str, str, int, str], Field] = {}
        self.head = ("", 0)  # of the last output: see `head_of`; its code and number of dimensions

    def forget(self) -> None:
        """Clear the cache, after a change of the model or its input."""
        self._rows.clear()
        self._recordings.clear()
        self._fields.clear()

    def release(self) -> None:
        """Drop the model, its inputs and every recording; nothing can run afterwards."""
        self.forget()
        self.inputs, self.target = {}, None
        del self.model

    def rows(self, name: str) -> list[ModuleRow]:
        """Return one row per module, with output shape and calls if the model has run on that input."""
        if name in self._rows:
            return self._rows[name]
        return [ModuleRow(path, type(module).__name__) for path, module in _once(self.model).items()]

    def field(self, name: str, layer: str, call: int, part: str) -> Field | None:
        """Return the receptive field of a part of a layer's output, None if it is not known."""
        return self._fields.get((name, layer, call, part))

    def recording(self, layer: str, name: str, gradients: bool) -> Recording:
        """Return a recording that has this layer for one of the inputs, from the cache if possible."""
        for key in ((layer, name, True), *(() if gradients else [(layer, name, False), (None, name, False)])):
            if key in self._recordings:
                self._recordings.move_to_end(key)
                return self._recordings[key]
        if gradients and name not in self._rows:
            self.recording(layer, name, False)  # a run of its own for `rows`
        recording = copy_context().run(self._run, layer, name, gradients)
        self._recordings[layer if len(recording) == 1 else None, name, gradients] = recording
        while len(self._recordings) > 1 and (
            len(self._recordings) > _KEPT or sum(r.nbytes for r in self._recordings.values()) > _KEPT_BYTES
        ):
            self._recordings.popitem(last=False)
        return recording

    def _run(self, layer: str, name: str, gradients: bool) -> Recording:
        args, kwargs = fresh(self.inputs[name])
        with ExitStack() as stack:
            stack.enter_context(restored(self.model, *self.inputs[name]))
            stack.enter_context(deeper(modules_by_name(self.model)))
            # Also for outputs alone: both views show the same numbers then, and a Transformer encoder does
            # not take its fused path, which skips the modules inside and requires that gradients are
            # disabled.
            stack.enter_context(torch.enable_grad())
            recording = stack.enter_context(record(self.model, [layer], gradients=gradients))
            everything, budget = None, _Budget()
            if name not in self._rows:
                # Never with gradients, so backward never runs under the mode that follows the receptive fields.
                everything = stack.enter_context(record(self.model, nn.Module, keep=budget))
                stack.enter_context(self._noting_fields(name, args, kwargs))
            output = call_model(self.model, args, kwargs)
            head = head_of(output)
            self.head = (head[0], head[1].dim()) if head else ("", 0)
            if everything is not None:
                self._rows[name] = _rows(everything, self.model)
            # If nothing requires a gradient, the recording says why.
            if gradients and (start := score(output, self.target)).requires_grad:
                start.backward()
        return recording if everything is None or budget.exceeded else everything

    @contextmanager
    def _noting_fields(self, name: str, args: Any, kwargs: Any) -> Iterator[None]:
        """Note the receptive field of every output of every module in the forward pass of this block."""
        pictures = [t for _, t in named_tensors((args, kwargs)) if is_picture(t)]
        if not pictures:
            yield
            return
        fields, calls = Fields(pictures), Counter()

        def note(module: nn.Module, _: Any, output: Any, *, path: str) -> None:
            for part, tensor in named_tensors(output):
                if (field := fields.of(tensor)) is not None:
                    self._fields[name, path, calls[path], part] = field
            calls[path] += 1

        with ExitStack() as stack:
            for path, module in _once(self.model).items():
                handle = module.register_forward_hook(partial(note, path=path))
                stack.callback(handle.remove)
            stack.enter_context(fields)
            yield


class _Budget:
    """Keeps tensors (see `record`) as long as all of them together are small enough."""

    def __init__(self) -> None:
        self._bytes = 0

    @property
    def exceeded(self) -> bool:
        return self._bytes > _KEPT_BYTES

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor | None:
        self._bytes += tensor.numel() * tensor.element_size()
        return None if self.exceeded else tensor


def _once(model: nn.Module) -> dict[str, nn.Module]:
    """Return all modules by name, each under its first name only."""
    first = {id(module): name for name, module in reversed(modules_by_name(model).items())}
    return {name: module for name, module in modules_by_name(model).items() if first[id(module)] == name}


def _rows(everything: Recording, model: nn.Module) -> list[ModuleRow]:
    """Return one row per module: the shape of its last output and its number of finished calls."""
    ran = [event for event in everything.events if event.kind == "forward"]
    shapes, calls = {event.path: event.shape for event in ran}, Counter(event.path for event in ran)
    return [
        ModuleRow(
            path, type(module).__name__, shape_text(shapes[path]) if path in shapes else "", calls[path]
        )
        for path, module in _once(model).items()
    ]


def call_as_code(given: Arguments, first: str) -> tuple[str, list[str], str]:
    """Return the call with these arguments as code, its names, and a line that makes `first` the first argument.

    The only argument is `x`; several are `inputs` and `kwargs`. Without `first` the line is "".
    """
    args, kwargs = given
    if len(args) == 1 and not kwargs:
        return "model(x)", ["x"], f"x = {first}" if first else ""
    stars = ["*inputs"] * bool(args) + ["**kwargs"] * bool(kwargs)
    setup = ""
    if first:
        key = next(iter(kwargs), None)
        setup = f"inputs = ({first}, *inputs[1:])" if args else f"kwargs = {{**kwargs, {key!r}: {first}}}"
    return f"model({', '.join(stars)})", [star.strip("*") for star in stars], setup


def with_first(given: Arguments, first: Any) -> Arguments:
    """Return the arguments with another value for the first of them."""
    args, kwargs = given
    if kwargs and not args:
        return args, {**kwargs, next(iter(kwargs)): first}
    return (first, *args[1:]), kwargs


def is_picture(tensor: torch.Tensor) -> bool:
    """Check for an input that can be drawn as a picture: (N, C, H, W), or (C, H, W)."""
    return tensor.dim() in (3, 4) and tensor.is_floating_point() and tensor.layout is torch.strided


def has_no_values(tensor: torch.Tensor) -> bool:
    """Check for a tensor whose numbers cannot be read: on the meta device, or a wrapper of vmap, grad or jvp."""
    return tensor.is_meta or is_functorch_wrapped_tensor(tensor)


def dense(tensor: torch.Tensor) -> tuple[torch.Tensor, str]:
    """Return a tensor in a form that can be indexed, and as code what makes it so."""
    if tensor.is_nested:
        return tensor.to_padded_tensor(0.0), ".to_padded_tensor(0.0)"
    if tensor.is_quantized:
        return tensor.dequantize(), ".dequantize()"
    return (tensor, "") if tensor.layout is torch.strided else (tensor.to_dense(), ".to_dense()")


def head_of(output: Any) -> tuple[str, torch.Tensor] | None:
    """Return the first tensor of an output that a gradient can start from, as code and as real dense tensor."""
    for path, tensor in named_tensors(output):
        if tensor.is_floating_point() or tensor.is_complex():
            head, code = dense(tensor)
            return (f"{path}{code}.abs()", head.abs()) if head.is_complex() else (f"{path}{code}", head)
    return None


def score(output: Any, target: Target) -> torch.Tensor:
    """Return the scalar on which backward is called; `score_text` gives the same as code."""
    if callable(target):
        return single_number(target(output), "`target(output)`")
    found = head_of(output)
    if found is None:
        raise TypeError(str(NO_SCORE))
    head = found[1]
    if target is not None:
        if head.dim() != 2:
            raise ValueError(str(NO_CLASSES.format(shape=shape_text(tuple(head.shape)))))
        chosen, (n, classes) = torch.as_tensor(target, device="cpu"), head.shape
        if (chosen.dim() and len(chosen) != n) or not ((-classes <= chosen) & (chosen < classes)).all():
            raise ValueError(str(NOT_OF_THESE.format(target=chosen.tolist(), n=n, last=classes - 1)))
        return head[range(len(head)), target].sum()
    return head.max(1).values.sum() if head.dim() == 2 else head.sum()


def score_kind(dimensions: int, target: Target) -> str:
    """Return the key of the words for what `score` computes from an output of so many dimensions."""
    if callable(target):
        return "score_target"
    if target is not None:
        return "score_class" if isinstance(target, int) else "score_classes"
    return "score_highest" if dimensions == 2 else "score_sum"


def score_text(head: str, dimensions: int, target: Target) -> str:
    """Return as code what `score` computes from an output with this head."""
    if callable(target):
        return "target(output)"
    if target is not None:
        chosen = repr(target) if isinstance(target, int) else "target"
        return f"output{head}[range(len(output{head})), {chosen}].sum()"
    if dimensions == 2:
        return f"output{head}.max(1).values.sum()  # of each sample the highest"
    return f"output{head}.sum()"


NO_SCORE = Text(
    zh="模型的输出里没有浮点数张量，反向传播无从开始：请给 `target=` 一个函数，由输出算出一个标量",
    en="the model's output holds no floating-point tensor for backward to start from: give `target=` a function "
    "from the output to a scalar",
)
NOT_OF_THESE = Text(
    zh="`target={target}` 和模型的输出对不上：这一批有 {n} 个样本，类别的序号是 0 到 {last}。请给一个序号，或者每个样本一个。",
    en="`target={target}` does not fit the model's output: the batch has the size {n}, and the indices of classes run from 0 to "
    "{last}. Give one index, or one for each sample.",
)
NO_CLASSES = Text(
    zh="`target` 作为类别需要形状为 样本×类别 的输出，得到的是 {shape}；也可以给一个由输出算出标量的函数",
    en="`target` as a class needs an output of samples × classes, got {shape}; it may also be a function from the "
    "output to a scalar",
)
