"""The runs of a model that a widget shows: what goes in, what is recorded, what is kept for the next click."""

import inspect
from collections import Counter, OrderedDict
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

_KEPT, _KEPT_BYTES = (
    8,
    256_000_000,
)  # recordings of the layers looked at last; the newest one stays in any case


@dataclass(frozen=True)
class Row:
    """One module in a list: calls is None where the model has not run."""

    name: str
    type: str
    shape: str = ""
    calls: int | None = None


class Runs:
    """Runs a model on named inputs and leaves it as it was: modes, buffers, `.grad`, RNG and hooks."""

    def __init__(self, model: nn.Module, inputs: dict[str, Any], target: Any = None) -> None:
        self.model, self.inputs, self.target = unwrap(model), inputs, target
        self._rows: dict[str, list[Row]] = {}
        self._recordings: OrderedDict[tuple[str, str, bool], Recording] = OrderedDict()
        self.output_form: list[tuple[str, torch.Size]] = []  # of the last run: see `named_tensors`

    def forget(self) -> None:
        """Run again next time: the model or its input has changed."""
        self._rows.clear()
        self._recordings.clear()

    def rows(self, name: str) -> list[Row]:
        """Every module: its type, and as far as the model has run on that input, output shape and calls."""
        if name in self._rows:
            return self._rows[name]
        return [Row(path, type(module).__name__) for path, module in _once(self.model).items()]

    def recording(self, layer: str, name: str, gradients: bool) -> Recording:
        """What one layer gave out, and got back as gradients, for one of the inputs."""
        for key in ((layer, name, True), (layer, name, gradients)):
            if key in self._recordings:
                self._recordings.move_to_end(key)
                return self._recordings[key]
        if gradients and name not in self._rows:
            self.recording(layer, name, False)  # for `rows`: their hooks would keep every layer's gradient
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
            # Also where only outputs are wanted: both views show the same numbers, and a Transformer encoder
            # takes its fused path, which skips the modules inside, only where no gradient is.
            stack.enter_context(torch.enable_grad())
            recording = stack.enter_context(record(self.model, [layer], gradients=gradients))
            everything = None
            if name not in self._rows:
                # Shapes and calls only: without outputs nothing is copied.
                everything = record(self.model, nn.Module, outputs=False, gradients=True)
                stack.callback(everything.close)
                stack.enter_context(everything)
            output = self.model(*args, **kwargs)
            self.output_form = [(path, t.shape) for path, t in named_tensors(output) if t.is_floating_point()]
            if everything is not None:
                self._rows[name] = _rows(everything, self.model)
            if (
                gradients and (start := score(output, self.target)).requires_grad
            ):  # else the recording says why
                start.backward()
        return recording


def _once(model: nn.Module) -> dict[str, nn.Module]:
    """Modules by name; one with several names under its first."""
    first = {id(module): name for name, module in reversed(modules_by_name(model).items())}
    return {name: module for name, module in modules_by_name(model).items() if first[id(module)] == name}


def _rows(everything: Recording, model: nn.Module) -> list[Row]:
    """A row a module, read off the log: the shape of the last output, and how often it ran to its end."""
    ran = [event for event in everything.events if event.kind == "forward"]
    shapes, calls = {event.path: event.shape for event in ran}, Counter(event.path for event in ran)
    return [
        Row(path, type(module).__name__, shape_text(shapes[path]) if path in shapes else "", calls[path])
        for path, module in _once(model).items()
    ]


def arguments(model: nn.Module, x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """How `x` is handed to the model: a tuple as positional arguments, a dict as keyword arguments where forward
    takes such, and everything else as the one argument."""
    if isinstance(x, tuple) and not hasattr(x, "_fields"):
        return x, {}
    return ((), dict(x)) if call_text(model, x) == "model(**x)" else ((x,), {})


def call_text(model: nn.Module, x: Any) -> str:
    """The call that `arguments` prepares, as code."""
    if isinstance(x, tuple) and not hasattr(x, "_fields"):
        return "model(*x)"
    if hasattr(x, "keys") and all(isinstance(key, str) for key in x):
        try:
            inspect.signature(model.forward).bind(**x)
        except TypeError:
            return "model(x)"
        return "model(**x)"
    return "model(x)"


def score(output: Any, target: Any) -> torch.Tensor:
    """The scalar that backward starts from; `score_text` is the same as code."""
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


def score_text(form: list[tuple[str, torch.Size]], target: Any) -> str:
    """The code of `score` for an output of that form."""
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
