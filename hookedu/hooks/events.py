"""The events that `record()` and `timeline()` log; everything they show is read from these."""

from dataclasses import dataclass
from typing import Any

from hookedu.hooks.stats import Stats
from hookedu.hooks.tensors import map_tensors, sizes


@dataclass(slots=True)
class Event:
    """What one hook saw at one moment of a run.

    Attributes
    ----------
    order : int
        Zero-based position in the log.
    kind : str
        "forward_pre", "forward" or "output_grad" in a Recording; in a Timeline also "backward_pre",
        "backward", "input_grad", "param_grad" and "post_accumulate".
    path : str
        Dotted name of the module, "" for the model itself.
    call : int
        Zero-based call index of that module.
    value : object
        What the hook saw, or None if no value is kept. In the place of a tensor that was not kept are its `Stats`.
    size : object
        The shape of what the hook saw, if no value is kept; see `shape`.
    leaf : int or str
        Zero-based index of the tensor within a nested input or output, or the name of the parameter.
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
        """Shape of the value: a tuple, or a structure with a tuple for each tensor."""
        if self.value is None:
            return self.size
        return map_tensors(lambda t: t.shape if isinstance(t, Stats) else sizes(t), self.value)
