"""Runs of a model for the widgets: its arguments, its recordings, and a cache of them for the next click."""

import inspect
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from hookedu.hooks.capture import record
from hookedu.hooks.modules import modules_by_name, unwrap
from hookedu.hooks.recording import Recording
from hookedu.hooks.state import restored
from hookedu.hooks.tensors import fresh, named_tensors, shape_text
from hookedu.language import Text

# Limits of the cache of recordings; the most recent one stays even if it is larger.
_KEPT, _KEPT_BYTES = 8, 256_000_000
# A class, one class per sample, a function from the output to a scalar, or None for the highest score.
Target = int | Sequence[int] | torch.Tensor | Callable[[Any], torch.Tensor] | None


@dataclass(frozen=True)
class Row:
    """One module of the list; `calls` is None if the model has not run."""

    name: str
    type: str
    shape: str = ""
    calls: int | None = None


class Runs:
    """Runs of a model on named inputs; each restores modes, buffers, `.grad`, RNG states and hooks."""

    def __init__(self, model: nn.Module, inputs: dict[str, Any], target: Target = None) -> None:
        self.model, self.inputs, self.target = unwrap(model), inputs, target
        self._rows: dict[str, list[Row]] = {}
        self._recordings: OrderedDict[tuple[str, str, bool], Recording] = OrderedDict()
        self.output_form: list[tuple[str, torch.Size]] = []  # path and shape per tensor of the last output

    def forget(self) -> None:
        """Clear the cache, after a change of the model or its input."""
        self._rows.clear()
        self._recordings.clear()

    def release(self) -> None:
        """Drop the model, its inputs and every recording; nothing can run afterwards."""
        self.forget()
        self.inputs, self.target = {}, None
        del self.model

    def rows(self, name: str) -> list[Row]:
        """Return one row per module, with output shape and calls if the model has run on that input."""
        if name in self._rows:
            return self._rows[name]
        return [Row(path, type(module).__name__) for path, module in _once(self.model).items()]

    def recording(self, layer: str, name: str, gradients: bool) -> Recording:
        """Return a recording of one layer for one of the inputs, from the cache if possible."""
        for key in ((layer, name, True), (layer, name, gradients)):
            if key in self._recordings:
                self._recordings.move_to_end(key)
                return self._recordings[key]
        if gradients and name not in self._rows:
            # A run of its own for `rows`, whose hooks would keep the gradients of every layer.
            self.recording(layer, name, False)
        self._recordings[layer, name, gradients] = recording = self._run(layer, name, gradients)
        while len(self._recordings) > 1 and (
            len(self._recordings) > _KEPT or sum(r.nbytes for r in self._recordings.values()) > _KEPT_BYTES
        ):
            self._recordings.popitem(last=False)
        return recording

    def _run(self, layer: str, name: str, gradients: bool) -> Recording:
        args, kwargs = arguments(self.model, fresh(self.inputs[name]))
        with ExitStack() as stack:
            stack.enter_context(restored(self.model))
            # Also for outputs alone: both views show the same numbers then, and a Transformer encoder does
            # not take its fused path, which skips the modules inside and requires that gradients are
            # disabled.
            stack.enter_context(torch.enable_grad())
            recording = stack.enter_context(record(self.model, [layer], gradients=gradients))
            everything = None
            if name not in self._rows:
                # For shapes and calls only: with outputs=False nothing is copied.
                everything = record(self.model, nn.Module, outputs=False, gradients=True)
                stack.callback(everything.close)
                stack.enter_context(everything)
            output = self.model(*args, **kwargs)
            self.output_form = [(path, t.shape) for path, t in named_tensors(output) if t.is_floating_point()]
            if everything is not None:
                self._rows[name] = _rows(everything, self.model)
            # If nothing requires a gradient, the recording says why.
            if gradients and (start := score(output, self.target)).requires_grad:
                start.backward()
        return recording


def _once(model: nn.Module) -> dict[str, nn.Module]:
    """Return all modules by name, each under its first name only."""
    first = {id(module): name for name, module in reversed(modules_by_name(model).items())}
    return {name: module for name, module in modules_by_name(model).items() if first[id(module)] == name}


def _rows(everything: Recording, model: nn.Module) -> list[Row]:
    """Return one row per module: the shape of its last output and its number of finished calls."""
    ran = [event for event in everything.events if event.kind == "forward"]
    shapes, calls = {event.path: event.shape for event in ran}, Counter(event.path for event in ran)
    return [
        Row(path, type(module).__name__, shape_text(shapes[path]) if path in shapes else "", calls[path])
        for path, module in _once(model).items()
    ]


def arguments(model: nn.Module, x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and keyword arguments that `x` stands for.

    A tuple holds positional arguments, a dict keyword arguments if `forward` accepts them; anything else,
    named tuples included, is the only argument.
    """
    if _is_positional(x):
        return x, {}
    return ((), dict(x)) if call_text(model, x) == "model(**x)" else ((x,), {})


def call_text(model: nn.Module, x: Any) -> str:
    """Return as code the call that `arguments` prepares."""
    if _is_positional(x):
        return "model(*x)"
    if hasattr(x, "keys") and all(isinstance(key, str) for key in x):
        try:
            inspect.signature(model.forward).bind(**x)
        except TypeError:
            return "model(x)"
        return "model(**x)"
    return "model(x)"


def _is_positional(x: Any) -> bool:
    """Check for a tuple of arguments; a named tuple is one argument."""
    return isinstance(x, tuple) and not hasattr(x, "_fields")


def score(output: Any, target: Target) -> torch.Tensor:
    """Return the scalar on which backward is called; `score_text` gives the same as code."""
    if callable(target):
        return target(output)
    tensors = [tensor for _, tensor in named_tensors(output) if tensor.is_floating_point()]
    if not tensors:
        raise TypeError(str(NO_SCORE))
    head = tensors[0]
    if target is not None:
        if head.dim() != 2:
            raise ValueError(str(NO_CLASSES.format(shape=shape_text(tuple(head.shape)))))
        return head[range(len(head)), target].sum()
    return head.max(1).values.sum() if head.dim() == 2 else head.sum()


def score_text(form: list[tuple[str, torch.Size]], target: Target) -> str:
    """Return as code what `score` computes from an output with these paths and shapes."""
    if callable(target):
        return "target(output)"
    path, shape = form[0] if form else ("", ())
    if target is not None:
        chosen = repr(target) if isinstance(target, int) else "target"
        return f"output{path}[range(len(output{path})), {chosen}].sum()"
    if len(shape) == 2:
        return f"output{path}.max(1).values.sum()  # of each sample the highest"
    return f"output{path}.sum()"


NO_SCORE = Text(
    zh="模型的输出里没有浮点数张量，反向传播无从开始：请给 `target=` 一个函数，由输出算出一个标量",
    en="the model's output holds no floating-point tensor for backward to start from: give `target=` a function "
    "from the output to a scalar",
)
NO_CLASSES = Text(
    zh="`target` 作为类别需要形状为 样本×类别 的输出，得到的是 {shape}；也可以给一个由输出算出标量的函数",
    en="`target` as a class needs an output of samples × classes, got {shape}; it may also be a function from the "
    "output to a scalar",
)
