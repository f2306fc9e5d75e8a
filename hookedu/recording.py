"""A Recording: the event log that the hooks of `record()` write, read by layer and call."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import torch

from hookedu.events import Dropped, Event
from hookedu.language import Text
from hookedu.modules import LayerNotFound, closest, why_never_called
from hookedu.tables import Table, size_text
from hookedu.tensors import Stats, map_tensors, shape_text, storage_bytes, tensors_in


class Recording:
    """What `record` saw: `rec["layer1.0.conv1"].activation`. Iterates over the layers' names.

    events: the log, in the order in which things happened. missed: chosen layers that never ran, with the reason.
    nbytes: bytes of all kept tensors. failed_at: the module in which the forward pass raised inside the block.
    """

    def __init__(self, layers: dict[str, "Layer"], aliases: dict[str, str], wants: dict[str, bool]) -> None:
        self.events: list[Event] = []
        self.failed_at: str | None = None
        self.closed = False
        self._layers, self._aliases, self._wants = layers, aliases, wants
        self._read = 0  # how many events `_calls` has sorted in so far
        self._no_gradient: dict[tuple[str, int], str] = {}  # (layer, call) -> a key of NO_GRADIENT
        self._skeletons: dict[
            tuple[str, int], Any
        ] = {}  # outputs=False: the form of the output, tensors empty
        self._views: set[tuple[str, int]] = set()
        self._pending: set[torch.device] = set()  # GPUs whose copies to the CPU may still be on their way
        self._versions: dict[
            int, int
        ] = {}  # copy=False: id of a kept tensor -> its _version when the hook saw it

    def __getitem__(self, name: str) -> "Layer":
        name = self._aliases.get(name, name)
        if name not in self._layers:
            raise LayerNotFound(
                Text(
                    zh="没有录制 {name!r}；录制了的里面最接近的有：{known}",
                    en="{name!r} was not recorded; of what was, the closest are: {known}",
                ).format(name=name, known=closest(name, [*self._layers, *self._aliases]))
            )
        return self._layers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def __contains__(self, name: object) -> bool:
        return name in self._layers or name in self._aliases

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the kept tensors occupy; shared storage (copy=False) counts once."""
        return storage_bytes(tensor for event in self.events for tensor in tensors_in(event.value))

    @property
    def missed(self) -> dict[str, Text]:
        """Chosen layers without a call, by name, and why: a Text in both languages."""
        return {name: layer.why_missed() for name, layer in self._layers.items() if not layer._calls_now()}

    def summary(self) -> Table:
        """One row a layer: calls, output shape of the last call, dtype, bytes, and what to know about it."""
        rows = [layer._row() for layer in self._layers.values()]
        return Table(
            ["layer", "type", "calls", "output", "dtype", "memory", "note"],
            rows,
            f"total {size_text(self.nbytes)}",
        )

    def __repr__(self) -> str:
        return "Recording (closed)" if self.closed else str(self.summary())

    def _repr_html_(self) -> str:
        return repr(self) if self.closed else self.summary()._repr_html_()

    def _sort_in(self) -> None:
        """Hand new events to the layer and call that they belong to."""
        for event in self.events[self._read :]:
            self._layers[event.path]._add(event)
        self._read = len(self.events)

    def _ready(self) -> None:
        """Wait for copies from a GPU, once, when somebody reads; the hooks themselves never wait."""
        while self._pending:
            torch.accelerator.synchronize(self._pending.pop())

    def _overwritten(self, value: Any) -> bool:
        """copy=False only: whether an in-place op has changed the tensor since its hook saw it."""
        versions = self._versions
        return any(id(t) in versions and versions[id(t)] != t._version for t in tensors_in(value))


class Layer:
    """One recorded module. With exactly one call, its values can be read here; with more, from `calls`.

    name, aliases (other names of the same module), type (its class's name).
    """

    def __init__(
        self, name: str, aliases: tuple[str, ...], module: torch.nn.Module, model: torch.nn.Module
    ) -> None:
        self.name, self.aliases, self.type = name, aliases, type(module).__name__
        self._module, self._model = module, model
        self._calls: list[Call] = []
        self._by_number: dict[int, Call] = {}
        self._recording: Recording | None = None

    @property
    def calls(self) -> tuple["Call", ...]:
        """Every call of the module, in order. Raises RuntimeError with the reason where it never ran."""
        calls = self._calls_now()
        if not calls:
            raise RuntimeError(str(self.why_missed()))
        return tuple(calls)

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
        return why_never_called(self._model, self._module, self.name)

    def __repr__(self) -> str:
        return " ".join(str(cell) for cell in self._row() if cell not in (None, ""))

    def _calls_now(self) -> list["Call"]:
        if self._recording.closed:
            raise RuntimeError(str(CLOSED))
        self._recording._sort_in()
        return self._calls

    def _only(self, what: str) -> "Call":
        calls = self.calls
        if len(calls) > 1:
            raise ValueError(
                str(
                    Text(
                        zh="`{name}` 被调用了 {n} 次：请选一次，例如 `.calls[0].{what}`",
                        en="`{name}` was called {n} times: choose one, for example `.calls[0].{what}`",
                    ).format(name=self.name, n=len(calls), what=what)
                )
            )
        return calls[0]

    def _add(self, event: Event) -> None:
        call = self._by_number.get(event.call)
        if call is None:
            call = self._by_number[event.call] = Call(self, event.call)
            self._calls.append(call)
        if event.kind == "output_grad":
            call.gradients[event.leaf] = event
            call.fired[event.leaf] = call.fired.get(event.leaf, 0) + 1
        else:
            setattr(call, "before" if event.kind == "forward_pre" else "after", event)

    def _row(self) -> list[Any]:
        calls = self._calls_now()
        events = [event for call in calls for event in call.events()]
        tensors = [tensor for event in events for tensor in tensors_in(event.value)]
        last = next((call.after for call in reversed(calls) if call.after), None)
        dtypes = {str(t.dtype).removeprefix("torch.") for t in tensors_in(last.value)} if last else set()
        notes = [f"also {', '.join(self.aliases)}"] if self.aliases else []
        notes += [] if calls else [self.why_missed().en]
        notes += (
            ["overwritten since by an in-place op"] if any(map(self._recording._overwritten, tensors)) else []
        )
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
        self.before: Event | None = None  # of kind "forward_pre"
        self.after: Event | None = None  # of kind "forward"
        self.gradients: dict[
            int, Event
        ] = {}  # of kind "output_grad": the last one of each tensor of the output
        self.fired: dict[int, int] = {}  # how often each of them came

    def events(self) -> list[Event]:
        """What the log holds about this call, in order."""
        found = [e for e in (self.before, self.after, *self.gradients.values()) if e is not None]
        return sorted(found, key=lambda event: event.order)

    @property
    def n_backward(self) -> int:
        """How many backward passes reached this call's output; `.gradient` is the last one's."""
        self.layer._calls_now()
        return max(self.fired.values(), default=0)

    @property
    def activation(self) -> Any:
        self._asked_for("outputs")
        return self._value(self._finished())

    @property
    def input(self) -> tuple[Any, ...]:
        self._asked_for("inputs")
        return self._value(self.before)[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        self._asked_for("inputs")
        return self._value(self.before)[1]

    @property
    def gradient(self) -> Any:
        self._asked_for("gradients")
        self._need_gradient()
        return self._in_place_of_tensors({leaf: self._value(event) for leaf, event in self.gradients.items()})

    def stats(self, of: str = "activation") -> Any:
        """`Stats` of "activation", "gradient" or "input": one for a tensor, else a structure of them."""
        wanted = {"activation": "outputs", "gradient": "gradients", "input": "inputs"}
        if of not in wanted:
            raise ValueError(f"of must be one of {', '.join(wanted)}, got {of!r}")
        self._asked_for(wanted[of])
        if of == "gradient":
            self._need_gradient()
            return self._in_place_of_tensors({leaf: _stats(e.value) for leaf, e in self.gradients.items()})
        self.layer._recording._ready()
        return map_tensors(_stats, self._finished().value if of == "activation" else self.before.value[0])

    def __repr__(self) -> str:
        shape = shape_text(self.after.shape) if self.after else "did not finish"
        return f"call {self.number} of {self.layer.name or '(model)'}: {shape}"

    def _asked_for(self, option: str) -> None:
        self.layer._calls_now()
        if not self.layer._recording._wants[option]:
            raise RuntimeError(
                str(
                    Text(
                        zh="没有录制这一项：请用 `record(..., {option}=True)`",
                        en="this was not recorded: use `record(..., {option}=True)`",
                    ).format(option=option)
                )
            )

    def _finished(self) -> Event:
        self.layer._calls_now()
        if self.after is None:
            raise RuntimeError(
                str(
                    Text(
                        zh="`{name}` 的这次调用没有完成：前向传播途中抛出了异常",
                        en="this call of `{name}` did not finish: the forward pass raised on the way",
                    ).format(name=self.layer.name)
                )
            )
        return self.after

    def _value(self, event: Event) -> Any:
        recording = self.layer._recording
        if any(isinstance(tensor, Dropped) for tensor in tensors_in(event.value)):
            raise RuntimeError(str(DROPPED.format(name=self.layer.name)))
        recording._ready()
        return event.value

    def _need_gradient(self) -> None:
        """Raise RuntimeError with the reason where no gradient has come."""
        self._finished()
        if self.gradients:
            return
        recording, key = self.layer._recording, (self.layer.name, self.number)
        if key in recording._no_gradient:
            reason = NO_GRADIENT[recording._no_gradient[key]]
        elif not any(event.kind == "output_grad" for event in recording.events):
            reason = NO_GRADIENT["no backward"]
        else:
            reason = NO_GRADIENT["view" if key in recording._views else "not reached"]
        raise RuntimeError(str(reason.format(name=self.layer.name)))

    def _in_place_of_tensors(self, found: dict[int, Any]) -> Any:
        """The structure of the output with what was found for each of its tensors, None where nothing was."""
        recording, numbers = self.layer._recording, count()
        kept = recording._skeletons.get((self.layer.name, self.number), self.after.value)
        return map_tensors(lambda _: found.get(next(numbers)), kept)


def _stats(tensor: torch.Tensor) -> Stats:
    return tensor.stats if isinstance(tensor, Dropped) else Stats(tensor)


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
