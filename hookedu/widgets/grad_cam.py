"""Grad-CAM of one picture, by hooks that also switch channels off, and the program that computes the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import get_gradient_edge

from hookedu.hooks.modules import modules_by_name, why_never_called
from hookedu.hooks.tensors import shape_of, shape_text
from hookedu.language import Text

_OPACITY = 0.8  # of a heat map over a picture, where it is brightest


@dataclass(frozen=True)
class Explanation:
    """What a model says of a picture, and Grad-CAM for one class.

    Attributes
    ----------
    logits : torch.Tensor
        (classes,): the answer of the model, with channels switched off.
    explained : int
        The class that the rest is about.
    maps : torch.Tensor
        (C, h, w): the feature maps of the layer, before any is switched off.
    weights : torch.Tensor
        (C,): the mean gradient of each channel.
    heat : torch.Tensor
        (H, W): Grad-CAM, as large as the picture.
    """

    logits: torch.Tensor
    explained: int
    maps: torch.Tensor
    weights: torch.Tensor
    heat: torch.Tensor

    @property
    def brings(self) -> torch.Tensor:
        """What each channel contributes to the logit if the gradient is right: (C,)."""
        return self.weights * self.maps.sum(dim=(1, 2))

    @property
    def peak(self) -> tuple[int, int]:
        """Column and row of the highest place of the heat map."""
        row, column = divmod(int(self.heat.argmax()), self.heat.shape[1])
        return column, row


def explain(
    model: nn.Module, layer: str, picture: torch.Tensor, explained: int | None, off: Sequence[int]
) -> Explanation:
    """Run a model on a picture (C, H, W) with these channels of a layer switched off, and compute Grad-CAM.

    Without a class, the one with the highest logit is explained. The hooks come off again, and nothing is added to any
    `.grad`; what the model itself changes is for the caller to restore.
    """
    module = modules_by_name(model)[layer]
    seen: dict[str, Any] = {}

    def keep(_: nn.Module, args: Any, output: Any) -> torch.Tensor:
        if not isinstance(output, torch.Tensor) or output.dim() != 4:
            raise ValueError(str(NO_MAPS.format(layer=layer, shape=shape_text(shape_of(output)))))
        if seen:
            raise ValueError(str(TWICE.format(layer=layer)))
        on = output.clone()
        on[:, off] = 0
        # The edge, as an operation in place may change `on` later. Backward goes no further than that, which takes half as
        # long as to go on to the picture.
        seen.update(maps=output.detach().clone(), on=on.detach().clone(), edge=get_gradient_edge(on))
        return on

    like = next((p for p in model.parameters() if p.is_floating_point()), picture)
    # So that there is a gradient where all parameters are frozen.
    x = picture.detach()[None].to(like.device, like.dtype, copy=True).requires_grad_()
    with torch.enable_grad():
        handle = module.register_forward_hook(keep)
        try:
            logits = model(x)
        finally:
            handle.remove()
        if not seen:
            raise ValueError(str(why_never_called(modules_by_name(model), module, layer)))
        if not isinstance(logits, torch.Tensor) or logits.dim() != 2 or len(logits) != 1:
            raise ValueError(str(NO_LOGITS.format(shape=shape_text(shape_of(logits)))))
        chosen = int(logits[0].argmax()) if explained is None else explained
        [grads] = torch.autograd.grad(logits[0, chosen], seen["edge"])
    weights = grads.mean(dim=(2, 3), keepdim=True)
    cam = (weights * seen["on"]).sum(dim=1, keepdim=True).relu()
    heat = F.interpolate(cam, size=picture.shape[-2:], mode="bilinear")[0, 0]
    found = logits.detach()[0], seen["maps"][0], weights.flatten(), heat
    values, maps, weights, heat = (tensor.float().cpu() for tensor in found)
    return Explanation(values, chosen, maps, weights, heat)


def overlay(picture: torch.Tensor, heat: torch.Tensor, high: float) -> torch.Tensor:
    """Return a picture under a heat map as pixels, (H, W, 3) uint8; `high` is the value of the brightest colour."""
    from matplotlib import colormaps

    share = (heat / high).nan_to_num(0, 0, 0).clamp(0, 1)[..., None] if high > 0 else torch.zeros(1, 1, 1)
    colours = torch.from_numpy(colormaps["inferno"](share[..., 0].numpy())[..., :3]).float()
    below = picture.movedim(0, -1)
    return (255 * (below + (colours - below) * _OPACITY * share)).clamp(0, 255).round().to(torch.uint8)


def program(layer: str, explained: int, off: Sequence[int]) -> str:
    """Return a plain PyTorch program that computes the logits and the heat map."""
    switched = _SWITCHED.format(off=list(off)) if off else ""
    returned = _RETURNED if off else ""
    return _PROGRAM.format(layer=layer, explained=explained, switched=switched, returned=returned)


_SWITCHED = """\
    output = output.clone()
    output[:, {off}] = 0  # channels that are off
"""
_RETURNED = """\
    return output
"""
_PROGRAM = """\
# model: what the widget was given; x: its picture, playground.picture[None]
import torch.nn.functional as F

seen = {{}}

def keep(module, args, output):
{switched}\
    seen["maps"] = output.detach().clone()
    output.register_hook(lambda grad: seen.update(grads=grad))
{returned}\

handle = model.get_submodule({layer!r}).register_forward_hook(keep)
try:
    logits = model(x)
finally:
    handle.remove()
logits[0, {explained}].backward()  # adds to the .grad of every parameter, too

weights = seen["grads"].mean(dim=(2, 3), keepdim=True)
cam = (weights * seen["maps"]).sum(dim=1, keepdim=True).relu()
heat = F.interpolate(cam, size=x.shape[-2:], mode="bilinear")[0, 0]
"""

NO_MAPS = Text(
    zh="`{layer}` 的输出不是一批特征图（N×C×H×W），而是 {shape}；请选一个卷积层或卷积块。",
    en="The output of `{layer}` is no batch of feature maps (N×C×H×W) but {shape}; choose a layer or block of convolutions.",
)
TWICE = Text(
    zh="`{layer}` 在一次前向传播里运行了不止一次，说不清该看哪一次；请换一层。",
    en="`{layer}` runs more than once in a forward pass, so there is no telling which call is meant; choose another layer.",
)
NO_LOGITS = Text(
    zh="模型应当为一张图给出 1×类别 的 logit，得到的却是 {shape}。",
    en="For a picture the model should give logits of shape 1×classes, but it gave {shape}.",
)
