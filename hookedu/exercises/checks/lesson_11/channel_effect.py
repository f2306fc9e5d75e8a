"""What decides about 11.4, `channel_effect(model, layer, channel, images, labels)`."""

from functools import lru_cache
from typing import Any

import torch

from hookedu.exercises.checks.forward_hooks import CALLS_NOW, WRONG_ARGUMENTS
from hookedu.exercises.checks.lesson_11.shared import (
    NEEDS_INDEX,
    Place,
    logits_from,
    maps_of,
    of_labels,
    right,
)
from hookedu.exercises.conduct import VALUES
from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_sequence
from hookedu.exercises.probes.lesson_11.channel_effect import PROBE
from hookedu.exercises.probes.lesson_11.shared import Net
from hookedu.exercises.tools import close

_BEFORE = {"conv2": "pool", "relu1": "conv1", "mix": "relu2"}  # the layer from which each gets its input


class _Switch(Place):
    """A call with the logits, (N, classes), while the channel is on and while it is off."""

    def __init__(self, net: Net, layer: str, channel: int) -> None:
        self.channel, self.everywhere = channel, (slice(None), channel)
        super().__init__(net, layer, lambda maps, grads: self.fall(self.everywhere))
        self.given += f"; channel = {channel}"
        self.on, self.off = self.logits, self.changed(self.everywhere)
        self.after = of_labels(self.off, self.labels)

    def again(self) -> Place:
        return _Switch(self.net, self.layer, self.channel)

    def changed(self, place: Any, value: Any = 0.0, layer: str = "") -> torch.Tensor:
        """Return the logits if `value` is put at `place` in the maps of the layer, or of another."""
        maps = maps_of(self.net, layer or self.layer)
        maps[place] = value
        return logits_from(self.net, layer or self.layer, maps)

    def fall(self, place: Any, value: Any = 0.0, layer: str = "") -> torch.Tensor:
        """Return how far the labels' logits then fall."""
        return self.own - of_labels(self.changed(place, value, layer), self.labels)


@lru_cache(maxsize=1)  # both `suits` and `key` ask for it
def _of(call: tuple[Net, str, int]) -> _Switch:
    return _Switch(*call)


def _forecasts(at: _Switch) -> list[torch.Tensor]:
    """Return what the gradient forecasts, with one weight for the channel and place by place."""
    maps, grads = at.maps[at.everywhere], at.grads[at.everywhere]
    return [grads.mean(dim=(1, 2)) * maps.sum(dim=(1, 2)), (grads * maps).sum(dim=(1, 2))]


def _is_mixed(call: tuple[Net, str, int]) -> bool:
    """Check whether the channel raises some labels' logits clearly and lowers others, if there are several.

    That of a single picture, of a layer without a ReLU after it, must itself go well above 0 and well below. In front of a
    ReLU its bias is above 0, as a kernel of 0 would be as good as switching it off otherwise.
    """
    at = _of(call)
    effects, channel = at.want, at.maps[at.everywhere]
    if at.layer == "conv2" and at.net.model.get_parameter("conv2.bias")[at.channel] < 0.1:
        return False
    if len(effects) == 1 and min(channel.max(), -channel.min()) < 0.1 * channel.abs().max():
        return False
    return bool(effects.abs().min() > 0.01 and (len(effects) == 1 or effects.min() < 0 < effects.max()))


def _no_effect(saw: Any, at: _Switch) -> bool:
    return close(saw.result, torch.zeros_like(at.want))


_LIKELY = {
    "wrong_sign": lambda at: [-at.want],
    "absolute": lambda at: [at.want.abs()],
    "no_return": lambda at: [torch.zeros_like(at.want)],
    "picture_off": lambda at: [at.fall(at.channel)],
    "only_this_one": lambda at: [at.fall((slice(None), torch.arange(at.maps.shape[1]) != at.channel))],
    "squeezes": lambda at: [at.want.squeeze()],
    "first_picture": lambda at: [at.fall((0, at.channel)), at.want[0]],
    "mean_for_zero": lambda at: [
        at.fall(at.everywhere, at.maps[at.everywhere].mean(dim=dims, keepdim=True))
        for dims in ((1, 2), (0, 1, 2), (0,))
    ],
    "everything_off": lambda at: [at.fall(slice(None))],
    "wrong_class": lambda at: [of_labels(at.on - at.off, at.on.argmax(1)), at.on.amax(1) - at.off.amax(1)],
    "probabilities": lambda at: [of_labels(at.on.softmax(1) - at.off.softmax(1), at.labels)],
    "after_only": lambda at: [at.after],
    "one_number": lambda at: [at.want.mean(), at.want.sum()],
    "ratio": lambda at: [at.want / at.own, at.after / at.own, at.want / at.own.abs()],
    "forecast": _forecasts,
    "all_logits": lambda at: [at.on - at.off],
    "keeps_dim": lambda at: [at.want[:, None]],
    "every_pair": lambda at: [at.own[:, None] - at.after, at.own - at.after[:, None]],
    "crossed": lambda at: [(at.on - at.off)[:, at.labels]],
    "channel_of_input": lambda at: [at.fall(at.everywhere, layer=_BEFORE[at.layer])],
}

EXERCISE = Exercise(
    PROBE,
    key=_of,
    given=lambda saw, at: at.given,
    suits=_is_mixed,
    checks=[
        right(
            "effect",
            points=4,
            describe=lambda effect, picture: show_sequence(effect),
            changes_weights=lambda saw, at: (
                any(kind == VALUES for kind, _ in saw.conduct)
                or (_no_effect(saw, at) and at.layer == "relu1")
            ),
            channel_zero=lambda saw, at: _no_effect(saw, at) and at.channel == 0,
            returns_list=lambda saw, at: isinstance(saw.result, list),
            likely=_LIKELY,
        ),
        Check(
            "others",
            "spoilt",
            want=lambda at: 0,
            points=1,
            given=Say("kept_output"),
            expected=Say("changed", n=0),
            got=Say("changed", n=lambda saw, at: saw.spoilt),
            mistakes={"in_place": True},
        ),
    ],
    raises=NEEDS_INDEX | CALLS_NOW | WRONG_ARGUMENTS,
)
