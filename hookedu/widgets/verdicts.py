"""What a model would say with one channel more, or one less, switched off: tried for all of them in a few batches."""

import time
from collections.abc import Sequence

import torch
from torch import nn

from hookedu.hooks.modules import modules_by_name
from hookedu.widgets.grad_cam import Explanation

UNKNOWN = -1
_FIRST = 8  # channels of the first batch; then as many as fit in the time, by the pace of the last
_MOST = 2**22  # numbers of feature maps in a batch
_CLOSE = 1e-3  # of logits, where the same picture is in another batch


class Verdicts:
    """The class with the highest logit for each channel of a layer if it alone is switched: off, or on if it is off.

    A forward hook on the layer returns a batch in which each copy of the feature maps has another channel switched, so that
    only the rest of the model runs on a batch. The last copy is as the model is now, and must give the same logits: not so
    where a model mixes the pictures of a batch, as batch norm does in training mode, or draws random numbers. Then nothing
    is known of any channel.

    Parameters
    ----------
    layer : str
        Name of the layer.
    picture : torch.Tensor
        (C, H, W).
    now : Explanation
        What the model says of it now.
    off : sequence of int
        The channels that are switched off now.

    Attributes
    ----------
    found : torch.Tensor
        (C,): the class, `UNKNOWN` where it has not been tried.
    left : list of int
        The channels still to be tried, those that contribute most first.
    mixed : bool
        Whether it cannot be known.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hookedu.widgets.grad_cam import explain
    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    >>> picture = torch.rand(3, 8, 8)
    >>> verdicts = Verdicts("1", picture, explain(model, "1", picture, None, []), [])
    >>> while verdicts.left:
    ...     verdicts.more(model, seconds=0.03)
    >>> verdicts.found.shape, verdicts.mixed
    (torch.Size([4]), False)
    """

    def __init__(self, layer: str, picture: torch.Tensor, now: Explanation, off: Sequence[int]) -> None:
        self._layer, self._picture, self._logits = layer, picture, now.logits
        self._on = torch.ones(len(now.maps), dtype=torch.bool)
        self._on[list(off)] = False
        self._room = max(_MOST // max(now.maps.numel(), 1) - 1, 1)
        self._pace = 0.0  # channels per second
        self.found = torch.full((len(now.maps),), UNKNOWN)
        self.left: list[int] = now.brings.abs().argsort(descending=True, stable=True).tolist()
        self.mixed = False

    def more(self, model: nn.Module, seconds: float) -> None:
        """Try one batch of channels, of a size that should take no longer than this; model and hooks are put back after."""
        size = max(int(self._pace * seconds), _FIRST if not self._pace else 1)
        tried, begun = self.left[: min(size, self._room)], time.monotonic()
        logits = self._logits_with(model, tried)
        if logits is None or not torch.allclose(logits[-1], self._logits, _CLOSE, _CLOSE, equal_nan=True):
            self.mixed, self.left = True, []
            self.found.fill_(UNKNOWN)
            return
        self.found[tried] = logits[:-1].argmax(dim=1)
        self.left = self.left[len(tried) :]
        self._pace = len(tried) / max(time.monotonic() - begun, 1e-6)

    def _logits_with(self, model: nn.Module, switched: list[int]) -> torch.Tensor | None:
        """Return logits (len(switched) + 1, classes), the last with none of them switched; None if the rest takes no batch."""
        on = self._on.repeat(len(switched) + 1, 1)
        for row, channel in enumerate(switched):
            on[row, channel] = ~on[row, channel]

        def batch(_: nn.Module, args: object, output: torch.Tensor) -> torch.Tensor:
            return torch.where(on.to(output.device)[:, :, None, None], output, 0)

        like = next((p for p in model.parameters() if p.is_floating_point()), self._picture)
        handle = modules_by_name(model)[self._layer].register_forward_hook(batch)
        try:
            with torch.no_grad():
                logits = model(self._picture[None].to(like.device, like.dtype))
        except RuntimeError:  # as where it is joined with what another branch gives for one picture
            return None
        finally:
            handle.remove()
        same = isinstance(logits, torch.Tensor) and logits.shape == (len(on), len(self._logits))
        return logits.float().cpu() if same else None
