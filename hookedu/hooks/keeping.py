"""How a recorder keeps one tensor: a clone, an alias, a copy on another device, or only statistics past a limit."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from hookedu.hooks.events import Dropped
from hookedu.language import Text


def clone(tensor: Tensor) -> Tensor:
    """Return a detached clone.

    Case 1: detach() alone shares memory, so that a later ReLU(inplace=True) or `out += identity` would show
    through. On small tensors detach() costs a third of what clone() costs, so it is called only where there
    is a graph.
    """
    return tensor.detach().clone() if tensor.requires_grad else tensor.clone()


def keeper(
    copy: bool,
    device: torch.device | None,
    max_bytes: int | None,
    versions: dict[int, int],
    pending: set[torch.device],
) -> Callable[[Tensor], Tensor]:
    """Return the function that keeps one tensor; what it returns is always detached.

    An attached tensor would hold its whole graph in memory. The function notes the version of each alias in
    `versions`, and in `pending` each GPU from which an asynchronous copy has started.
    """
    if not copy:

        def keep(tensor: Tensor) -> Tensor:
            alias = tensor.detach()
            if not alias.is_inference():  # inference tensors have no version counter
                versions[id(alias)] = alias._version
            return alias

    elif device is None:
        keep = clone

    else:

        def keep(tensor: Tensor) -> Tensor:
            if tensor.device.type not in ("cpu", device.type):
                pending.add(tensor.device)  # a hook never waits for a GPU; reading a value does, once
            # Case 25: a copy even if the tensor is already on that device.
            return tensor.detach().to(device, non_blocking=True, copy=True)

    if max_bytes is None:
        return keep
    held, warned = 0, False

    def keep_within_bounds(tensor: Tensor) -> Tensor:
        nonlocal held, warned  # case 24
        size = tensor.numel() * tensor.element_size()
        if held + size <= max_bytes:
            held += size
            return keep(tensor)
        if not warned:
            warnings.warn(str(PAST_MAX_BYTES.format(max_bytes=max_bytes)), stacklevel=2)
            warned = True
        return Dropped.from_tensor(tensor)

    return keep_within_bounds


PAST_MAX_BYTES = Text(
    zh="超出 max_bytes={max_bytes}：之后的值不再保留，只留统计量",
    en="past max_bytes={max_bytes}: further values are dropped, only their statistics are kept",
)
