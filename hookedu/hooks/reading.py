"""A recording read layer by layer and call by call.

Nothing is stored here: a `Layer` and a `Call` look into the recording's log whenever they are asked.
"""

from collections.abc import Mapping
from itertools import count
from typing import Any

import torch

from hookedu.hooks.events import Event
from hookedu.hooks.log import Log
from hookedu.hooks.modules import why_never_called
from hookedu.hooks.stats import Stats
from hookedu.hooks.tensors import map_tensors, shape_text, storage_bytes, tensors_in
from hookedu.language import Text
from hookedu.tables import size_text


class Call:
    """One call of a recorded module.

    Reading a value that was not recorded raises RuntimeError with the reason.

    Attributes
    ----------
    layer : Layer
        The module.
    number : int
        Zero-based index of the call, in the order in which calls started.
    activation : object
        What the module returned: a tensor, or a structure of the same type with copied tensors.
    gradient : object
        Gradient of the loss with respect to the output, in the output's structure and shapes.
    input : tuple
        The positional arguments, as they were before forward.
    kwargs : dict
        The keyword arguments, as they were before forward.
    n_backward : int
        Number of backward passes that reached the output.
    finished : bool
        Whether the module returned.
    events : list of Event
        The events of this call, in order.
    """

    def __init__(self, layer: "Layer", number: int) -> None:
        self.layer, self.number = layer, number

    @property
    def events(self) -> list[Event]:
        """The events of this call, in order."""
        return self.layer.recording._calls_of(self.layer.name)[self.number]

    @property
    def finished(self) -> bool:
        """Whether the module returned; a call that raised did not, nor a recomputation that checkpointing ended early."""
        return self._event("forward") is not None

    @property
    def n_backward(self) -> int:
        """Number of backward passes that reached this call's output; `gradient` is that of the last one."""
        fired = [event.leaf for event in self.events if event.kind == "output_grad"]
        return max(map(fired.count, fired), default=0)

    @property
    def activation(self) -> Any:
        """What the module returned, as it was when the hook ran."""
        return self._value(self._asked_for("outputs", "forward"))

    @property
    def input(self) -> tuple[Any, ...]:
        """The positional arguments, before forward could change them."""
        return self._value(self._asked_for("inputs", "forward_pre"))[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments, before forward could change them."""
        return self._value(self._asked_for("inputs", "forward_pre"))[1]

    @property
    def gradient(self) -> Any:
        """Gradient of the loss with respect to the output, in its structure; None where there is none."""
        return self._like_the_output({leaf: self._value(event) for leaf, event in self._gradients().items()})

    def stats(self, of: str = "activation") -> Any:
        """Return the `Stats` of each tensor of the activation, gradient or input.

        They are available for dropped values, too (see max_bytes of `record`).

        Parameters
        ----------
        of : {"activation", "gradient", "input"}
            The value to describe.

        Returns
        -------
        Stats or a structure of them
            One `Stats` in the place of each tensor of the value.

        Raises
        ------
        ValueError
            If `of` is none of these.
        RuntimeError
            If the value was not recorded.
        """
        return map_tensors(stats_of, self.described(of))

    def __repr__(self) -> str:
        after = self._event("forward")
        return f"call {self.number} of {self.layer.name or '(model)'}: " + (
            shape_text(after.shape) if after else "did not finish"
        )

    def described(self, of: str) -> Any:
        """Return the value that `stats` describes; in the place of a tensor may be its `Stats`."""
        self.layer.recording._ready()
        if of == "gradient":
            return self._like_the_output({leaf: event.value for leaf, event in self._gradients().items()})
        if of == "activation":
            return self._asked_for("outputs", "forward").value
        if of == "input":
            return self._asked_for("inputs", "forward_pre").value[0]
        raise ValueError(f"of must be one of activation, gradient, input, got {of!r}")

    def _event(self, kind: str) -> Event | None:
        return next((event for event in self.events if event.kind == kind), None)

    def _asked_for(self, option: str, kind: str | None = None) -> Any:
        """Return the event that holds the arguments or the output, if the option of `record` asked for it.

        That of the arguments is missing if only the pre-hook was removed, for example by `remove_hooks(model,
        kind="forward_pre")`.
        """
        if not self.layer.recording._wants[option]:
            raise RuntimeError(str(NOT_ASKED_FOR.format(option=option)))
        event = self._event(kind or "forward")
        if event is None:
            missing = NO_ARGUMENTS if kind == "forward_pre" else NOT_FINISHED
            raise RuntimeError(str(missing.format(name=self.layer.name)))
        return event

    def _value(self, event: Event) -> Any:
        if any(isinstance(tensor, Stats) for tensor in tensors_in(event.value)):
            raise RuntimeError(str(DROPPED.format(name=self.layer.name)))
        self.layer.recording._ready()
        return event.value

    def _gradients(self) -> dict[int | str, Event]:
        """Return the last gradient of each tensor of the output, by index.

        Raises RuntimeError with the reason if there is none.
        """
        recording, returned = self.layer.recording, self._asked_for("gradients")
        found = {event.leaf: event for event in self.events if event.kind == "output_grad"}
        if found:
            return found
        ran = recording._backward_ran or returned.otherwise == "leaf"
        reason = returned.reason or (returned.otherwise if ran else "no backward")
        raise RuntimeError(str(NO_GRADIENT[reason].format(name=self.layer.name)))

    def _like_the_output(self, found: Mapping[int | str, Any]) -> Any:
        """Return the output's structure with the item of `found` for each tensor, or None."""
        numbers, returned = count(), self._asked_for("gradients")
        output = returned.value if returned.skeleton is None else returned.skeleton
        return map_tensors(lambda _: found.get(next(numbers)), output)


def _of_the_only_call(what: str) -> property:
    """Return the property of a `Layer` that reads the property `what` of its call, if that is the only one."""

    def read(layer: "Layer") -> Any:
        first, *others = layer.calls
        if others:
            raise ValueError(str(SEVERAL_CALLS.format(name=layer.name, n=1 + len(others), what=what)))
        return getattr(first, what)

    return property(read, doc=getattr(Call, what).__doc__)


class Layer:
    """One recorded module.

    If the module was called exactly once, the values of that call can be read here. With several calls,
    reading them raises ValueError: choose one of `calls`. With none, it raises RuntimeError with the reason.

    Attributes
    ----------
    name : str
        Dotted name of the module, "" for the model itself.
    aliases : tuple of str
        Other names of the same module.
    module : torch.nn.Module
        The module itself.
    type : str
        Name of the module's class.
    calls : tuple of Call
        Every call of the module, in the order in which they started.
    activation, gradient, input, kwargs
        As for `Call`.
    """

    def __init__(self, recording: Log, name: str) -> None:
        self.recording, self.name = recording, name
        self.module, self.aliases = recording._chosen[name]
        self.type = type(self.module).__name__

    @property
    def calls(self) -> tuple["Call", ...]:
        """Every call of the module, in order; at least one, or RuntimeError with the reason is raised."""
        numbers = self.recording._calls_of(self.name)
        if not numbers:
            raise RuntimeError(str(self.why_missed()))
        return tuple(Call(self, number) for number in sorted(numbers))

    activation = _of_the_only_call("activation")
    gradient = _of_the_only_call("gradient")
    input = _of_the_only_call("input")
    kwargs = _of_the_only_call("kwargs")

    def stats(self, of: str = "activation") -> Any:
        """Return the statistics over all calls together; see `Call.stats`.

        Raises ValueError if the calls differ in the number of tensors.
        """
        first, *others = [call.described(of) for call in self.calls]
        together = [list(tensors_in(value)) for value in (first, *others)]
        if len({len(tensors) for tensors in together}) > 1:
            raise ValueError(str(SEVERAL_CALLS.format(name=self.name, n=len(together), what="stats")))
        merged = map(
            Stats.merged, zip(*([stats_of(t) for t in tensors] for tensors in together), strict=True)
        )
        return map_tensors(lambda _: next(merged), first)

    def why_missed(self) -> Text:
        """Return why the module was never called, as far as the model's structure tells."""
        recording = self.recording
        if self.name in recording._traced:
            return TRACED.format(name=self.name or "(model)")
        return why_never_called(recording._named, self.module, self.name, recording.failed_at)

    def __repr__(self) -> str:
        return " ".join(str(cell) for cell in self._row() if cell not in (None, ""))

    def _row(self) -> list[Any]:
        calls = [events for _, events in sorted(self.recording._calls_of(self.name).items())]
        tensors = [tensor for events in calls for event in events for tensor in tensors_in(event.value)]
        last = next((e for events in reversed(calls) for e in events if e.kind == "forward"), None)
        dtypes = {str(t.dtype).removeprefix("torch.") for t in tensors_in(last.value)} if last else set()
        notes = [f"also {', '.join(self.aliases)}"] if self.aliases else []
        notes += [] if calls else [self.why_missed().en]
        overwritten = any(self.recording._keep.overwritten(tensor) for tensor in tensors)
        notes += ["overwritten since by an in-place op"] if overwritten else []
        dropped = any(isinstance(tensor, Stats) for tensor in tensors)
        why = "statistics only" if self.recording._keep.keep == "stats" else "values dropped: max_bytes"
        notes += [why] if dropped else []
        notes += ["calls of a tracer left out"] if calls and self.name in self.recording._traced else []
        notes += ["could not be copied: later changes show"] if self.name in self.recording._uncopied else []
        return [
            self.name or "(model)",
            self.type,
            len(calls),
            shape_text(last.shape) if last else "",
            ", ".join(sorted(dtypes)),
            size_text(storage_bytes(iter(tensors))) if tensors else "",
            "; ".join(notes),
        ]


def stats_of(tensor: torch.Tensor | Stats) -> Stats:
    """Return the statistics of a tensor, or those that were kept in its place."""
    return tensor if isinstance(tensor, Stats) else Stats(tensor)


SEVERAL_CALLS = Text(
    zh="`{name}` 被调用了 {n} 次：请选一次，例如 `.calls[0].{what}`",
    en="`{name}` was called {n} times: choose one, for example `.calls[0].{what}`",
)
TRACED = Text(
    zh="`{name}` 只被追踪过（`torch.fx`、`torch.export` 或 `torch.jit.trace`）：钩子里的运算会进入追踪得到的图，"
    "所以这样的调用不录制；请运行模型本身",
    en="`{name}` was only traced (by `torch.fx`, `torch.export` or `torch.jit.trace`), and such calls are not recorded, as "
    "what a hook does would become part of the graph: run the model itself",
)
NOT_ASKED_FOR = Text(
    zh="没有录制这一项：请用 `record(..., {option}=True)`",
    en="this was not recorded: use `record(..., {option}=True)`",
)
NO_ARGUMENTS = Text(
    zh="`{name}` 的这次调用没有录下参数：当时它的 forward_pre 钩子已被取下",
    en="this call of `{name}` has no recorded arguments: its forward_pre hook had been removed",
)
NOT_FINISHED = Text(
    zh="`{name}` 的这次调用没有完成：前向传播途中抛出了异常，或者检查点的重算提前停下了",
    en="this call of `{name}` did not finish: the forward pass raised on the way, or checkpointing ended its "
    "recomputation early",
)
DROPPED = Text(
    zh='没有保留 `{name}` 的值（超出了 `max_bytes`，或者 `keep="stats"`）；`.stats()` 仍可用',
    en='the values of `{name}` were not kept (past `max_bytes`, or `keep="stats"`); `.stats()` still works',
)

# Why a call has no gradient. The first four reasons are known when the forward hook runs.
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
    "leaf": Text(
        zh="`{name}` 没有梯度：它的输出是叶子张量（参数或模型的输入），上面的钩子在 with 块结束时取下；请在块内调用 backward",
        en="`{name}` has no gradient: its output is a leaf (a parameter, or an input of the model), and the hook on it "
        "is removed at the end of the with-block; call backward inside",
    ),
    "view": Text(
        zh="`{name}` 没有梯度：它的输出是一个视图，若之后被就地修改，PyTorch 会重写它的历史并丢掉其上的钩子",
        en="`{name}` has no gradient: its output is a view, and where a view is changed in place later, PyTorch "
        "rewrites its history and drops the hooks on it",
    ),
}
