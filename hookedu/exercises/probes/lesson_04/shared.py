"""Helpers shared by the probes of lesson 04."""

from typing import Any

import torch

from hookedu.exercises.probing import hooks_on, remove_handle


def all_hooks_on(tensor: torch.Tensor) -> int:
    """Return the number of tensor hooks and post-accumulate hooks registered on a tensor."""
    return hooks_on(tensor) + len(tensor._post_accumulate_grad_hooks or ())


def remove_handles(handles: Any) -> None:
    """Remove one handle or every handle in a list or tuple; ignore anything else."""
    for handle in handles if isinstance(handles, (list, tuple)) else [handles]:
        remove_handle(handle)
