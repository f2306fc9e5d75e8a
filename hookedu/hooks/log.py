"""What a recorder's hooks write and what a recording reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle
from torch.utils.weak import WeakTensorKeyDictionary

from hookedu.hooks.events import Event
from hookedu.hooks.keeping import Keeper
from hookedu.language import Text

LATER = -1  # the order of an event before `Log.events` numbers it


@dataclass(slots=True)
class Returned(Event):
    """The event of an output whose gradient is recorded, with what reading the gradient needs to know of it."""

    skeleton: Any = None  # the output's structure with empty tensors, if it is not kept as it was
    reason: str | None = None  # a key of NO_GRADIENT that is known already when the forward hook runs
    otherwise: str = "not reached"  # the key if the gradient has not come although other gradients have


class Log:
    """The events of a recording in the order of the hooks, an index of them by layer and call, and the hooks' handles.

    `Recording` describes the public attributes.
    """

    def __init__(
        self,
        named: dict[str, nn.Module],
        chosen: dict[str, tuple[nn.Module, tuple[str, ...]]],
        wants: dict[str, bool],
        keep: Keeper,
    ) -> None:
        self._log: list[Event] = []
        self.failed_at: str | None = None
        self.closed = False
        self._named, self._chosen, self._wants, self._keep = named, chosen, wants, keep
        self._aliases = {other: name for name, (_, others) in chosen.items() for other in others}
        self._only_outputs = wants == {"outputs": True, "inputs": False, "gradients": False}
        # An index of the log by layer and call. Layer and Call objects are made on access and not stored: a
        # reference cycle would keep the tensors alive until Python's garbage collector runs.
        self._by_call: dict[str, dict[int, list[Event]]] = {}
        self._read = 0  # number of events of the log that are in the index
        self._numbered = 0  # number of events that know their position
        self._backward_ran = False  # whether there is a gradient among those events
        self._uncopied: set[str] = set()  # layers with values that could not be copied
        self._traced: set[str] = set()  # layers with calls that only went into a graph (case 39)
        self._handles: list[RemovableHandle] = []
        self._gradient_handles: list[RemovableHandle] = []
        self._leaves = WeakTensorKeyDictionary()  # case 33: a leaf that a layer returned -> its hook
        self._compile_again: Callable[[], object] = lambda: None

    @property
    def events(self) -> list[Event]:
        """The log, in the order in which the hooks fired."""
        # Case 38: while other threads run the model, a hook does not know at which position its event will be.
        for order in range(self._numbered, len(self._log)):
            self._log[order].order = order
            self._numbered = order + 1
        return self._log

    def _calls_of(self, name: str) -> dict[int, list[Event]]:
        """Bring the index up to date and return the events of one layer, by call index."""
        if self.closed:
            raise RuntimeError(str(CLOSED))
        for event in self.events[self._read :]:
            self._by_call.setdefault(event.path, {}).setdefault(event.call, []).append(event)
            self._backward_ran |= event.kind == "output_grad"
            self._read += 1
        return self._by_call.get(name, {})

    def _ready(self) -> None:
        """Wait for pending copies from GPUs. Called when a value is read; the hooks themselves never wait."""
        while self._keep.pending:
            torch.accelerator.synchronize(self._keep.pending.pop())

    def _forget(self) -> None:
        """Release every tensor, and record no more gradients of what has run so far."""
        while self._gradient_handles:
            self._gradient_handles.pop().remove()
        for hook in self._leaves.values():
            hook.calls.clear()
        for event in self.events:  # releases the tensors even if a caller holds an Event or a Call
            event.value = None
        self.events.clear()
        self._by_call.clear()
        self._uncopied.clear()
        self._traced.clear()
        self._keep.clear()
        self._read = self._numbered = 0
        self._backward_ran, self.failed_at = False, None


CLOSED = Text(
    zh="这个录制已经关闭，其中的张量都已释放", en="this recording is closed, its tensors are released"
)
