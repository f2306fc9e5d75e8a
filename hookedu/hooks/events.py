"""The event log. `record()` and `timeline()` write the same kind of events; what they show is read from these."""

from dataclasses import dataclass
from typing import Any

import torch

from hookedu.hooks.tensors import Stats, map_tensors


@dataclass(slots=True)
class Event:
    """One thing that a hook saw in a run.

    kind: "forward_pre", "forward", "output_grad" (a Recording has these), and in a timeline also "backward_pre",
    "backward", "input_grad", "param_grad" and "post_accumulate". path: the module's dotted name, "" for the model
    itself. call: the how-manieth call of that module, from 0. value: what was seen, if it was asked for.
    size: its shape, where no value is kept. leaf: which tensor of a nested output, or which parameter.
    """

    order: int
    kind: str
    path: str
    call: int
    value: Any = None
    size: Any = None
    leaf: int | str = 0

    @property
    def shape(self) -> Any:
        """The shape of the value: a tuple, or a structure of tuples."""
        if self.value is None:
            return self.size
        return map_tensors(lambda t: t.stats.shape if isinstance(t, Dropped) else tuple(t.shape), self.value)


class Dropped(torch.Tensor):
    """What stands in the place of a tensor that no longer fitted into `max_bytes`: no elements, only `stats`."""

    stats: Stats

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor) -> "Dropped":
        dropped = torch.empty(0, dtype=tensor.dtype).as_subclass(cls)
        dropped.stats = Stats(tensor)
        return dropped
