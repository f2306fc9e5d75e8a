"""What decides about 11.2, `grad_cam(model, layer, images, labels)`."""

from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import torch
from torch.nn import functional as F

from hookedu.exercises.checks.common import all_detached
from hookedu.exercises.checks.lesson_11.shared import NO_GRADIENT, OTHER_SCORES, Place, right, sizes
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import Opaque, show, type_name
from hookedu.exercises.probes.lesson_11.grad_cam import PROBE
from hookedu.exercises.probes.lesson_11.shared import AFTER, OVERWRITTEN, Net
from hookedu.exercises.tools import close

_CALL = "grad_cam(model, layer, images, labels)"
_LAYERS = ("conv1", "relu1", "pool", "conv2", "relu2", "mix")


def _up(cam: torch.Tensor, mode: str = "bilinear", size: Any = (7, 10), **how: Any) -> torch.Tensor:
    """Resize (N, h, w) to (N, *size)."""
    return F.interpolate(cam[:, None], size=size, mode=mode, **how)[:, 0]


def _cam(maps: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return _up((weights * maps).sum(dim=1).relu())


class _Cam(Place):
    """A call with its weights, its weighted sum before and after the ReLU, and the range of each wanted map.

    With `maps`, all is as if the maps were these.
    """

    def __init__(self, net: Net, layer: str, maps: torch.Tensor | None = None) -> None:
        super().__init__(net, layer, lambda maps, grads: _cam(maps, grads.mean(dim=(2, 3), keepdim=True)))
        if maps is not None:
            self.maps, self.want = maps, self._result(maps, self.grads)
        self.weights = self.grads.mean(dim=(2, 3), keepdim=True)
        self.raw = (self.weights * self.maps).sum(dim=1)
        self.small = self.raw.relu()
        self.low, self.high = (f(self.want, dim=(1, 2), keepdim=True) for f in (torch.amin, torch.amax))
        self.span = self.high - self.low

    @cached_property
    def overwritten(self) -> "list[_Cam]":
        """As if the maps were what the ReLU after the layer has left in their memory, with the gradient before and behind it."""
        if self.layer != OVERWRITTEN:
            return []
        return [_Cam(self.net, self.layer, self.maps.relu()), _Cam(self.net, AFTER)]

    @cached_property
    def behind(self) -> "list[_Cam]":
        """As if the gradient were that behind the ReLU after the layer."""
        return [_Cam(self.net, AFTER, self.maps)] if self.layer == OVERWRITTEN else []

    def again(self) -> Place:
        return _Cam(self.net, self.layer)

    def ways(self) -> list[Place]:
        return [self, *self.overwritten, *self.behind]


@lru_cache(maxsize=1)  # both `suits` and `key` ask for it
def _of(call: tuple[Net, str]) -> _Cam:
    return _Cam(*call)


def _has_fixed_size(got: Any, at: _Cam) -> bool:
    """Check whether a map has the size of the lesson's pictures, or 8 times that of the layer's maps."""
    if isinstance(got, Opaque):  # 64×64 is too large for `encode`
        return got.type.startswith("Tensor of float32")
    height, width = at.maps.shape[2:]
    return any(close(got, _up(at.small, size=size)) for size in (16, 32, 64, (8 * height, 8 * width)))


def _describe(cam: Any, picture: int) -> str:
    """Describe the shape, and the range and a row of one map: a whole map is too long for a line."""
    if not isinstance(cam, torch.Tensor) or cam.numel() == 0:
        return (
            f"cam: {type_name(cam)}; len(cam) == {len(cam)}" if isinstance(cam, list) else f"cam: {show(cam)}"
        )
    many = cam.ndim == 3 and picture < len(cam)
    name, shown = (f"cam[{picture}]", cam[picture]) if many else ("cam", cam)
    ends = f"cam: {sizes(cam)}; {name}.min() == {shown.min():.4g}; {name}.max() == {shown.max():.4g}"
    row = cam.shape[1] // 2
    return f"{ends}; cam[{picture}, {row}] == {show(shown[row])}" if many else ends


def _is_mixed(call: tuple[Net, str]) -> bool:
    """Check whether the weighted sum of each picture goes well above 0 and well below: else no ReLU would show.

    Of several pictures, the map of the likeliest class must not be 0 either: it would look as if there was no gradient.
    A single picture's map must go above 1 as well, not look normalised when cut off there, and be another one if a ReLU cuts
    the maps first. Overwritten maps must give
    another result, and so must the gradient behind the ReLU that overwrites them, and both.
    """
    at = _of(call)
    if any(close(a.want, b.want, tolerance=0.01) for a, b in combinations(at.ways(), 2)):
        return False
    raw = at.raw.flatten(1)
    high, low = raw.amax(dim=1), raw.amin(dim=1)
    mixed = (torch.minimum(high, -low) > 0.03 * torch.maximum(high, -low)).all()
    if len(raw) > 1:
        return bool(mixed and at.results(at.logits.amax(dim=1).sum())[0].any(dim=2).any(dim=1).all())
    cut, normalised = at.small.clamp(max=1), at.small / at.small.max()
    looks_alike = close(cut, normalised, tolerance=0.01) or close(
        _cam(at.maps.relu(), at.weights), at.want, 0.01
    )
    return bool(mixed) and bool(high > 2) and not looks_alike


_LIKELY = {
    "no_relu": lambda at: [_up(at.raw)],
    "relu_late": lambda at: [_up(at.raw).relu()],
    "absolute": lambda at: [_up(at.raw.abs()), _up(at.raw).abs()],
    "relu_on_weights": lambda at: [_cam(at.maps, w) for w in (at.weights.relu(), at.weights.abs())],
    "relu_on_products": lambda at: [_up((at.weights * at.maps).relu().sum(dim=1))],
    "relu_on_maps": lambda at: [_cam(at.maps.relu(), at.weights)],
    "not_upsampled": lambda at: [at.small, at.small[:, None]],
    "nearest": lambda at: [_up(at.small, mode) for mode in ("nearest", "area")],
    "align_corners": lambda at: [_up(at.small, align_corners=True)],
    "bicubic": lambda at: [_up(at.small, "bicubic")],
    "square": lambda at: [_up(at.small, size=side) for side in (7, 10)],
    "squeezes": lambda at: [at.want.squeeze()],
    "height_and_width": lambda at: [_up(at.small, size=(10, 7))],
    "keeps_dim": lambda at: [at.want[:, None]],
    "normalised": lambda at: [
        at.want / at.high,
        (at.want - at.low) / at.span,
        at.want / at.want.max(),
        at.want / at.small.max(),
        at.want / at.small.amax(dim=(1, 2), keepdim=True),
    ],
    "sums_gradient": lambda at: [at.want * at.places],
    "mean_of_weights": lambda at: [_cam(at.maps, at.weights.mean(dim=0, keepdim=True))],
    "no_average": lambda at: [_cam(at.maps, at.grads)],
    "unweighted": lambda at: [
        _up(cut(f(at.maps, dim=1))) for f in (torch.sum, torch.mean) for cut in (torch.relu, torch.clone)
    ],
    "averages_channels": lambda at: [at.want / at.maps.shape[1]],
    "gradient_only": lambda at: [_up(f(at.grads, dim=1).relu()) for f in (torch.sum, torch.mean)],
    **OTHER_SCORES,
    "wrong_layer": lambda at: [_Cam(at.net, other).want for other in _LAYERS if other != at.layer],
}

EXERCISE = Exercise(
    PROBE,
    key=_of,
    given=lambda saw, at: at.given,
    suits=_is_mixed,
    checks=[
        right(
            "cam",
            points=5,
            describe=_describe,
            returns_list=lambda saw, at: isinstance(saw.result, list),
            overwritten=lambda saw, at: any(close(saw.result, one.want) for one in at.overwritten),
            behind=lambda saw, at: any(close(saw.result, one.want) for one in at.behind),
            fixed_size=lambda saw, at: _has_fixed_size(saw.result, at),
            likely=_LIKELY,
        ),
        all_detached(_CALL),
    ],
    raises={
        "broadcast": r"The size of tensor a \(\d+\) must match the size of tensor b",
        "needs_four_dimensions": r"Got 3D input, but bilinear|the same number of spatial dimensions",
        "full_hook": r"is a view and is being modified inplace",
        **NO_GRADIENT,
    },
)
