"""A Recording: the event log that the hooks of `record()` write, read by layer and call."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import torch
from torch import nn

from hookedu.hooks.events import Dropped, Event
from hookedu.hooks.modules import LayerNotFound, closest, why_never_called
from hookedu.hooks.tensors import Stats, map_tensors, shape_text, storage_bytes, tensors_in
from hookedu.language import Text
from hookedu.tables import Table, size_text


class Recording:
    """What `record` saw: `rec["layer1.0.conv1"].activation`. Iterates over the layers' names.

    events: the log, in the order in which things happened. missed: chosen layers that never ran, with the reason.
    nbytes: bytes of all kept tensors. failed_at: the module in which the forward pass raised inside the block.
    """

    def __init__(
        self, model: nn.Module, chosen: dict[str, tuple[nn.Module, tuple[str, ...]]], wants: dict[str, bool]
    ) -> None:
        self.events: list[Event] = []
        self.failed_at: str | None = None
        self.closed = False
        self._model, self._chosen, self._wants = model, chosen, wants
        self._aliases = {other: name for name, (_, others) in chosen.items() for other in others}
        # The log once more, by layer and call. Layers and Calls are made when asked for and not kept: a cycle of
        # references would hold the tensors until Python's garbage collector comes by.
        self._by_call: dict[str, dict[int, list[Event]]] = {}
        self._read = 0  # how many events of the log stand there already
        self._no_gradient: dict[tuple[str, int], str] = {}  # (layer, call) -> a key of NO_GRADIENT
        self._skeletons: dict[
            tuple[str, int], Any
        ] = {}  # outputs=False: the output's form, with empty tensors
        self._views: set[tuple[str, int]] = set()
        self._pending: set[torch.device] = set()  # GPUs whose copies to the CPU may still be on their way
        self._versions: dict[int, int] = {}  # copy=False: id of a kept tensor -> its _version for the hook

    def __getitem__(self, name: str) -> "Layer":
        name = self._aliases.get(name, name)
        if name not in self._chosen:
            raise LayerNotFound(
                NOT_RECORDED.format(name=name, known=closest(name, [*self._chosen, *self._aliases]))
            )
        return Layer(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._chosen)

    def __len__(self) -> int:
        return len(self._chosen)

    def __contains__(self, name: object) -> bool:
        return name in self._chosen or name in self._aliases

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the kept tensors occupy; shared storage (copy=False) counts once."""
        return storage_bytes(tensor for event in self.events for tensor in tensors_in(event.value))

    @property
    def missed(self) -> dict[str, Text]:
        """Chosen layers without a call, by name, and why: a Text in both languages."""
        return {name: self[name].why_missed() for name in self if not self._calls_of(name)}

    def summary(self) -> Table:
        """One row a layer: calls, output shape of the last call, dtype, bytes, and what to know about it."""
        rows = [self[name]._row() for name in self]
        return Table(
            ["layer", "type", "calls", "output", "dtype", "memory", "note"],
            rows,
            f"total {size_text(self.nbytes)}",
        )

    def __repr__(self) -> str:
        return "Recording (closed)" if self.closed else str(self.summary())

    def _repr_html_(self) -> str:
        return repr(self) if self.closed else self.summary()._repr_html_()

    def _calls_of(self, name: str) -> dict[int, list[Event]]:
        """The events of one layer by call, with what the log got since the last look."""
        if self.closed:
            raise RuntimeError(str(CLOSED))
        for event in self.events[self._read :]:
            self._by_call.setdefault(event.path, {}).setdefault(event.call, []).append(event)
        self._read = len(self.events)
        return self._by_call.get(name, {})

    def _ready(self) -> None:
        """Wait for copies from a GPU, once, when somebody reads; the hooks themselves never wait."""
        while self._pending:
            torch.accelerator.synchronize(self._pending.pop())

    def _overwritten(self, tensor: torch.Tensor) -> bool:
        """copy=False only: whether an in-place op has changed the tensor since its hook saw it."""
        return id(tensor) in self._versions and self._versions[id(tensor)] != tensor._version


class Layer:
    """One recorded module. With exactly one call, its values can be read here; with more, from `calls`.

    name, aliases (other names of the same module), type (its class's name).
    """

    def __init__(self, recording: Recording, name: str) -> None:
        self.recording, self.name = recording, name
        self._module, self.aliases = recording._chosen[name]
        self.type = type(self._module).__name__

    @property
    def calls(self) -> tuple["Call", ...]:
        """Every call of the module, in order. Raises RuntimeError with the reason where it never ran."""
        numbers = self.recording._calls_of(self.name)
        if not numbers:
            raise RuntimeError(str(self.why_missed()))
        return tuple(Call(self, number) for number in numbers)

    @property
    def activation(self) -> Any:
        """What the module returned, as it was when the hook ran."""
        return self._only("activation").activation

    @property
    def gradient(self) -> Any:
        """The gradient of the loss for the output; the same structure, None where a part has none."""
        return self._only("gradient").gradient

    @property
    def input(self) -> tuple[Any, ...]:
        """The positional arguments, before forward could change them."""
        return self._only("input").input

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments, before forward could change them."""
        return self._only("kwargs").kwargs

    def stats(self, of: str = "activation") -> Any:
        """`Stats` of the activation, gradient or input; also where `max_bytes` dropped the values."""
        return self._only("stats").stats(of)

    def why_missed(self) -> Text:
        """Why the layer has no call."""
        return why_never_called(self.recording._model, self._module, self.name)

    def __repr__(self) -> str:
        return " ".join(str(cell) for cell in self._row() if cell not in (None, ""))

    def _only(self, what: str) -> "Call":
        calls = self.calls
        if len(calls) > 1:
            raise ValueError(str(SEVERAL_CALLS.format(name=self.name, n=len(calls), what=what)))
        return calls[0]

    def _row(self) -> list[Any]:
        calls = list(self.recording._calls_of(self.name).values())
        tensors = [tensor for events in calls for event in events for tensor in tensors_in(event.value)]
        last = next((e for events in reversed(calls) for e in events if e.kind == "forward"), None)
        dtypes = {str(t.dtype).removeprefix("torch.") for t in tensors_in(last.value)} if last else set()
        notes = [f"also {', '.join(self.aliases)}"] if self.aliases else []
        notes += [] if calls else [self.why_missed().en]
        overwritten = any(self.recording._overwritten(tensor) for tensor in tensors)
        notes += ["overwritten since by an in-place op"] if overwritten else []
        notes += ["values dropped: max_bytes"] if any(isinstance(t, Dropped) for t in tensors) else []
        return [
            self.name or "(model)",
            self.type,
            len(calls),
            shape_text(last.shape) if last else "",
            ", ".join(sorted(dtypes)),
            size_text(storage_bytes(iter(tensors))) if tensors else "",
            "; ".join(notes),
        ]


class Call:
    """One call of a recorded module: number (from 0), and the same values as a `Layer`."""

    def __init__(self, layer: Layer, number: int) -> None:
        self.layer, self.number = layer, number

    @property
    def events(self) -> list[Event]:
        """What the log holds about this call, in order."""
        return self.layer.recording._calls_of(self.layer.name)[self.number]

    @property
    def n_backward(self) -> int:
        """How many backward passes reached this call's output; `.gradient` is the last one's."""
        fired = [event.leaf for event in self.events if event.kind == "output_grad"]
        return max(map(fired.count, fired), default=0)

    @property
    def activation(self) -> Any:
        self._asked_for("outputs")
        return self._value(self._finished())

    @property
    def input(self) -> tuple[Any, ...]:
        self._asked_for("inputs")
        return self._value(self._event("forward_pre"))[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        self._asked_for("inputs")
        return self._value(self._event("forward_pre"))[1]

    @property
    def gradient(self) -> Any:
        return self._like_the_output({leaf: self._value(event) for leaf, event in self._gradients().items()})

    def stats(self, of: str = "activation") -> Any:
        """`Stats` of "activation", "gradient" or "input": one for a tensor, else a structure of them."""
        if of not in ("activation", "gradient", "input"):
            raise ValueError(f"of must be one of activation, gradient, input, got {of!r}")
        self.layer.recording._ready()
        if of == "gradient":
            return self._like_the_output(
                {leaf: _stats(event.value) for leaf, event in self._gradients().items()}
            )
        self._asked_for(f"{of}s" if of == "input" else "outputs")
        return map_tensors(
            _stats, self._finished().value if of == "activation" else self._event("forward_pre").value[0]
        )

    def __repr__(self) -> str:
        after = self._event("forward")
        return f"call {self.number} of {self.layer.name or '(model)'}: " + (
            shape_text(after.shape) if after else "did not finish"
        )

    def _event(self, kind: str) -> Event | None:
        return next((event for event in self.events if event.kind == kind), None)

    def _asked_for(self, option: str) -> None:
        if not self.layer.recording._wants[option]:
            raise RuntimeError(str(NOT_ASKED_FOR.format(option=option)))

    def _finished(self) -> Event:
        event = self._event("forward")
        if event is None:
            raise RuntimeError(str(NOT_FINISHED.format(name=self.layer.name)))
        return event

    def _value(self, event: Event) -> Any:
        if any(isinstance(tensor, Dropped) for tensor in tensors_in(event.value)):
            raise RuntimeError(str(DROPPED.format(name=self.layer.name)))
        self.layer.recording._ready()
        return event.value

    def _gradients(self) -> dict[int, Event]:
        """The last gradient of each tensor of the output. Raises RuntimeError with the reason if none has come."""
        self._asked_for("gradients")
        self._finished()
        recording, key = self.layer.recording, (self.layer.name, self.number)
        found = {event.leaf: event for event in self.events if event.kind == "output_grad"}
        if found:
            return found
        reason = recording._no_gradient.get(key)
        if reason is None and not any(event.kind == "output_grad" for event in recording.events):
            reason = "no backward"
        elif reason is None:
            reason = "view" if key in recording._views else "not reached"
        raise RuntimeError(str(NO_GRADIENT[reason].format(name=self.layer.name)))

    def _like_the_output(self, found: dict[int, Any]) -> Any:
        """The structure of the output with what was found for each of its tensors, None where nothing was."""
        recording, numbers = self.layer.recording, count()
        output = recording._skeletons.get((self.layer.name, self.number), self._finished().value)
        return map_tensors(lambda _: found.get(next(numbers)), output)


def _stats(tensor: torch.Tensor) -> Stats:
    return tensor.stats if isinstance(tensor, Dropped) else Stats(tensor)


NOT_RECORDED = Text(
    zh="没有录制 {name!r}；录制了的里面最接近的有：{known}",
    en="{name!r} was not recorded; of what was, the closest are: {known}",
)
SEVERAL_CALLS = Text(
    zh="`{name}` 被调用了 {n} 次：请选一次，例如 `.calls[0].{what}`",
    en="`{name}` was called {n} times: choose one, for example `.calls[0].{what}`",
)
NOT_ASKED_FOR = Text(
    zh="没有录制这一项：请用 `record(..., {option}=True)`",
    en="this was not recorded: use `record(..., {option}=True)`",
)
NOT_FINISHED = Text(
    zh="`{name}` 的这次调用没有完成：前向传播途中抛出了异常",
    en="this call of `{name}` did not finish: the forward pass raised on the way",
)
CLOSED = Text(
    zh="这个录制已经关闭，其中的张量都已释放", en="this recording is closed, its tensors are released"
)

DROPPED = Text(
    zh="`{name}` 的值超出了 `max_bytes`，没有保留；`.stats()` 仍可用",
    en="the values of `{name}` went past `max_bytes` and were dropped; `.stats()` still works",
)

# Why a call has no gradient. The first four are known when the forward hook runs.
NO_GRADIENT = {
    "inference_mode": Text(
        zh="`{name}` 没有梯度：前向传播是在 `torch.inference_mode()` 里运行的",
        en="`{name}` has no gradient: the forward pass ran under `torch.inference_mode()`",
    ),
    "no_grad": Text(
        zh="`{name}` 没有梯度：前向传播是在 `torch.no_grad()` 里运行的",
        en="`{name}` has no gradient: the forward pass ran under `torch.no_grad()`",
    ),
    "dtype": Text(
        zh="`{name}` 没有梯度：它的输出不是浮点数张量",
        en="`{name}` has no gradient: its output is not a floating-point tensor",
    ),
    "frozen": Text(
        zh="`{name}` 没有梯度：输入和参数都不要求梯度（参数被冻结，或者梯度在前面被 `detach()` 切断）",
        en="`{name}` has no gradient: neither its input nor its parameters require one (they are frozen, or "
        "`detach()` cut the graph before)",
    ),
    "no backward": Text(
        zh="`{name}` 还没有梯度：请先调用 backward",
        en="`{name}` has no gradient yet: call backward first",
    ),
    "not reached": Text(
        zh="`{name}` 没有梯度：反向传播没有经过它的输出",
        en="`{name}` has no gradient: no backward pass went through its output",
    ),
    "view": Text(
        zh="`{name}` 没有梯度：它的输出是一个视图，若之后被就地修改，PyTorch 会重写它的历史并丢掉其上的钩子",
        en="`{name}` has no gradient: its output is a view, and where a view is changed in place later, PyTorch "
        "rewrites its history and drops the hooks on it",
    ),
}
