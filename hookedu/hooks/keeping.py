"""How a recorder keeps one tensor: a clone, an alias, a copy on another device, or only statistics past a limit."""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from hookedu.hooks.stats import Stats, Waiting
from hookedu.hooks.tensors import map_tensors
from hookedu.language import Text


def clone(tensor: Tensor) -> Tensor:
    """Return a detached clone.

    Case 1: detach() alone shares memory, so that a later ReLU(inplace=True) or `out += identity` would show
    through. On small tensors detach() costs a third of what clone() costs, so it is called only where there
    is a graph.
    """
    return tensor.detach().clone() if tensor.requires_grad else tensor.clone()


class Keeper:
    """The function that keeps one tensor; what it returns is always detached.

    An attached tensor would hold its whole graph in memory.
    """

    def __init__(
        self,
        copy: bool,
        device: torch.device | None,
        max_bytes: int | None,
        keep: Callable[[Tensor], Any] | str | None,
    ) -> None:
        self.copy, self.device, self.max_bytes, self.keep = copy, device, max_bytes, keep
        self.plain = copy and device is None and max_bytes is None and keep is None
        self.pending: set[torch.device] = set()  # the GPUs from which copies are perhaps still under way
        self._versions: dict[int, int] = {}  # copy=False: id of an alias -> its _version in the hook
        self._held, self._warned = 0, False
        self._waiting = Waiting()

    def __call__(self, tensor: Tensor) -> Any:
        if self.plain:
            return clone(tensor)
        if self.keep == "stats":
            return Stats(tensor, self._waiting)
        if callable(self.keep):  # case 36
            # Entering no_grad() once more would cost as much as the mean of a small tensor.
            with torch.no_grad() if torch.is_grad_enabled() else nullcontext():
                kept = self.keep(tensor.detach())
            if kept is None or isinstance(kept, int | float | str):
                return kept
            return map_tensors(partial(self._own, tensor), kept, arrays=True)
        return self._within_bounds(tensor)

    @property
    def quick(self) -> Callable[[Tensor], Tensor] | None:
        """The function that does the same for a tensor of no subclass, where it is one operation that never raises."""
        if self.plain:
            return clone
        return None if self.copy or self.max_bytes is not None else self._alias

    def __reduce__(self) -> tuple[Any, ...]:
        """Case 22: the keeper of a copied recording keeps nothing more; a function may be one that cannot be pickled."""
        return Keeper, (self.copy, self.device, self.max_bytes, None if callable(self.keep) else self.keep)

    def clear(self) -> None:
        """Count what is kept from zero again, after everything has been released."""
        self._held = 0
        self._versions.clear()
        self._waiting.clear()

    def overwritten(self, alias: Tensor) -> bool:
        """Check whether an in-place operation has changed an alias (copy=False) since its hook ran."""
        return id(alias) in self._versions and self._versions[id(alias)] != alias._version

    def _own(self, tensor: Tensor, kept: Tensor) -> Tensor | Stats:
        """Keep a tensor that the user's function has made of another one; a view is copied."""
        kept = kept.detach() if kept.requires_grad else kept
        own = self.device is None and not _may_share(kept, tensor)
        return self._within_bounds(kept, kept if own else None)

    def _within_bounds(self, tensor: Tensor, own: Tensor | None = None) -> Tensor | Stats:
        """Keep a tensor, or `own` in its place if that is a copy already; past `max_bytes` only statistics."""
        if self.max_bytes is not None:  # case 24
            size = tensor.numel() * tensor.element_size()
            if self._held + size > self.max_bytes:
                if not self._warned:
                    warnings.warn(str(PAST_MAX_BYTES.format(max_bytes=self.max_bytes)), stacklevel=2)
                    self._warned = True
                return Stats(tensor, self._waiting)
            self._held += size
        return self._copied(tensor) if own is None else own

    def _alias(self, tensor: Tensor) -> Tensor:
        alias = tensor.detach()
        if not alias.is_inference():  # inference tensors have no version counter
            self._versions[id(alias)] = alias._version
        return alias

    def _copied(self, tensor: Tensor) -> Tensor:
        if not self.copy:
            return self._alias(tensor)
        if self.device is None:
            return clone(tensor)
        # Case 25: a copy even if the tensor is already on that device.
        moved = tensor.detach().to(self.device, non_blocking=True, copy=True)
        if tensor.device.type not in ("cpu", self.device.type):
            self.pending.add(tensor.device)  # a hook never waits for a GPU; reading a value does, once
        return moved


def _may_share(kept: Tensor, tensor: Tensor) -> bool:
    """Check whether two tensors share memory; also True where their storage does not tell.

    Sparse tensors have none, and that of a wrapper (a jagged tensor, a DTensor) is not that of the tensors in it.
    """
    if is_traceable_wrapper_subclass(kept):
        return True
    try:
        return kept.untyped_storage()._cdata == tensor.untyped_storage()._cdata
    except NotImplementedError:
        return True


PAST_MAX_BYTES = Text(
    zh="超出 max_bytes={max_bytes}：之后的值不再保留，只留统计量",
    en="past max_bytes={max_bytes}: further values are dropped, only their statistics are kept",
)
