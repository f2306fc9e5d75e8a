"""Exercise 09.4, `dead_channels(model, relu, batches)`: the channels that no picture activates."""

import random
from typing import Any

import torch
from torch import nn

from hookedu.exercises.exercise import Criterion, Exercise, Mistake
from hookedu.exercises.forward_hooks import REMOVES_OTHERS, Onlooker, none_lost
from hookedu.exercises.lesson_09.shared import (
    CHANGES_MODEL,
    LEAVES_HOOKS,
    RETURNS_NOTHING,
    settings,
    unchanged,
)
from hookedu.exercises.observation import show
from hookedu.exercises.shared import none_left
from hookedu.language import Text

_CALL = "dead_channels(model, relu, batches)"
_BATCHES, _PICTURES = 3, 2
# The behaviours of channels; a weak one is just above 0.
_ROLES: tuple[str, ...] = (
    "dead",
    "dead",
    "weak",
    "only first batch",
    "only last batch",
    "one picture",
    "strong",
)
_WEAK = 2.0**-13


class _Net(nn.Module):
    """A ReLU, an in-place operation and a layer: the output of the ReLU is overwritten."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.head = nn.ReLU(), nn.Conv2d(len(_ROLES), 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.relu(x)
        h += 1
        return self.head(h)


def _case(rng: random.Random) -> tuple[list[str], torch.Tensor]:
    """Return (the role of each channel, x of shape (batch, picture, channel, 2, 2))."""
    roles = rng.sample(_ROLES, len(_ROLES))
    x = -torch.tensor(
        [
            [[[float(rng.randint(1, 5)) for _ in range(4)] for _ in roles] for _ in range(_PICTURES)]
            for _ in range(_BATCHES)
        ]
    )
    for channel, role in enumerate(roles):
        place, value = rng.randrange(4), float(rng.randint(1, 9))
        if role == "strong":
            x[:, :, channel, place] = value
        elif role == "weak":
            x[:, :, channel, place] = _WEAK
        elif role != "dead":
            batch = _BATCHES - 1 if role == "only last batch" else 0
            pictures = 1 if role == "one picture" else slice(None)
            x[batch, pictures, channel, place] = value
    return roles, x.reshape(_BATCHES, _PICTURES, len(roles), 2, 2)


def _probe(dead_channels: Any, rng: random.Random) -> dict[str, Any]:
    _, x = _case(rng)
    net = _Net()
    onlooker, before = Onlooker(net), settings(net)
    found = dead_channels(net, net.relu, [batch.clone() for batch in x])
    return {
        "found": found,
        "unchanged": settings(net) == before,
        "left": onlooker.others(),
        "lost": onlooker.lost(),
    }


def _silent(x: torch.Tensor) -> list[int]:
    """Return the channels of (..., channel, 2, 2) that are nowhere above 0."""
    return (x.relu().flatten(0, -4).amax((0, 2, 3)) == 0).nonzero().flatten().tolist()


def _plain(found: Any) -> Any:
    """Convert channel numbers to a list of ints, whether they are in a tensor or in a list."""
    if isinstance(found, torch.Tensor) and found.dim() == 1 and found.dtype == torch.int64:
        return found.tolist()
    if isinstance(found, list):
        return [v.item() if isinstance(v, torch.Tensor) and v.dim() == 0 else v for v in found]
    return found


def _judge(saw: dict[str, Any], rng: random.Random) -> list[Criterion]:
    roles, x = _case(rng)
    expected, found = _silent(x), _plain(saw["found"])
    right = isinstance(found, list) and found == expected and not any(isinstance(v, bool) for v in found)
    what = "; ".join(f"{channel}: {role}" for channel, role in enumerate(roles))
    return [
        Criterion(
            "finds",
            right,
            points=3,
            essential=True,
            given=f"{_BATCHES} batches of {_PICTURES}; channels {{{what}}}",
            expected=show(expected),
            got=show(found),
            mistake=_mistake(found, roles, x),
        ),
        unchanged(_CALL, saw["unchanged"]),
        none_left("clean", _CALL, saw["left"], "leaves_hooks"),
        none_lost(_CALL, saw["lost"]),
    ]


def _mistake(found: Any, roles: list[str], x: torch.Tensor) -> str | None:
    dead = _silent(x)
    if found is None:
        return "returns_nothing"
    mask = found.tolist() if isinstance(found, torch.Tensor) else found
    if isinstance(mask, list) and len(mask) == len(roles) and all(isinstance(v, bool) for v in mask):
        return "returns_mask"
    if type(found) is int or (isinstance(found, torch.Tensor) and found.dim() == 0):
        return "counts"
    if not isinstance(found, list):
        return None
    if not all(type(v) is int for v in found):
        return None
    quiet_once = sorted({c for batch in x for picture in batch for c in _silent(picture[None])})
    known = {
        "overwritten": [],
        "last_batch_only": _silent(x[-1]),
        "first_batch_only": _silent(x[0]),
        "one_picture_only": _silent(x[0, :1]),  # of the first batch
        "one_picture_each": _silent(x[:, :1]),  # of each batch: the same mistake
        "quiet_somewhere": quiet_once,
        "threshold": sorted([*dead, roles.index("weak")]),
        "smallest": list(range(len(roles))),
        "inverted": [c for c in range(len(roles)) if c not in dead],
    }
    name = next((name for name, channels in known.items() if found == channels), None)
    return "one_picture_only" if name == "one_picture_each" else name


DEAD_CHANNELS = Exercise(
    id="09.4",
    title=Text(zh="找出死掉的通道", en="Find the dead channels"),
    answer="dead_channels",
    points=6,
    probe=_probe,
    judge=_judge,
    hints=(
        Text(
            zh="每一批只要记一个数：每个通道的最大值，`output.amax((0, 2, 3))`。所有批的最大值都是 0，这个通道就死了。",
            en="One number a batch and channel is enough: the largest, `output.amax((0, 2, 3))`. A channel is dead if that is 0 in all batches.",
        ),
        Text(
            zh="在钩子里当场算：`largest.append(output.detach().amax((0, 2, 3)))`。结果是新张量，后面的就地操作碰不到它。",
            en="Compute it inside the hook: `largest.append(output.detach().amax((0, 2, 3)))`. The result is a new tensor, out of reach of "
            "in-place operations.",
        ),
        Text(
            zh="`with relu.register_forward_hook(keep), torch.no_grad():` 里 `for batch in batches: model(batch)`；最后 "
            "`return (torch.stack(largest).amax(0) == 0).nonzero().flatten().tolist()`。",
            en="Inside `with relu.register_forward_hook(keep), torch.no_grad():` `for batch in batches: model(batch)`; then "
            "`return (torch.stack(largest).amax(0) == 0).nonzero().flatten().tolist()`.",
        ),
    ),
    mistakes=(
        Mistake(
            "overwritten",
            Text(
                zh="一个死的也没找到。多半是留下的输出后来被就地加了 1：在钩子里当场算最大值，或者 `clone()`。已经这样做了，就看看钩子是不是挂在 "
                "`relu` 上、看的是不是 `output`、最大值是不是取遍第 0、2、3 维。",
                en="You found none. Probably 1 was later added in place to what you kept: compute the largest value inside the hook, or `clone()`. "
                "If you do, see that the hook is on `relu`, looks at `output` and takes the largest over dimensions 0, 2 and 3.",
            ),
            fails="finds",
        ),
        Mistake(
            "last_batch_only",
            Text(
                zh="只看了最后一批：钩子每批触发一次，`seen[...] = ...` 会盖掉前面的。收进列表。",
                en="Only the last batch counted: the hook fires once a batch, and `seen[...] = ...` overwrites. Collect in a list.",
            ),
            fails="finds",
        ),
        Mistake(
            "first_batch_only",
            Text(
                zh="只看了第一批：在那里沉默的通道，后面也许会醒。每一批都要运行。",
                en="Only the first batch counted: a channel that is silent there may wake later. Run all batches.",
            ),
            fails="finds",
        ),
        Mistake(
            "one_picture_only",
            Text(
                zh="只看了一张图（`output[0]`）：批里的其余图也要看，对第 0 维也取最大值。",
                en="You looked at one picture, `output[0]`: the others of the batch count too, so take the largest over dimension 0 as well.",
            ),
            fails="finds",
        ),
        Mistake(
            "quiet_somewhere",
            Text(
                zh="你把「在某一张图上全是 0」当成了死：要在**所有**图上都是 0 才算。",
                en="You called dead what is 0 all over **some** picture: it must be 0 all over **every** picture.",
            ),
            fails="finds",
        ),
        Mistake(
            "threshold",
            Text(
                zh="很弱的通道也算进去了：它不是 0，就还有梯度，还能学。与 0 比较，不要用阈值。",
                en="A weak channel is among yours: it is not 0, so it gets a gradient and can learn. Compare with 0, without a threshold.",
            ),
            fails="finds",
        ),
        Mistake(
            "smallest",
            Text(
                zh="所有通道都成了死的：多半是取了最小值，或者只要有一个 0 就算。要看**最大**值是不是 0：`amax`，不是 `amin`。",
                en="All channels are dead for you: probably you took the smallest value, or a single 0 was enough. It is the **largest** that must be 0: "
                "`amax`, not `amin`.",
            ),
            fails="finds",
        ),
        Mistake(
            "inverted",
            Text(
                zh="正好反了：这些是活着的通道。",
                en="Just the other way round: these are the living channels.",
            ),
            fails="finds",
        ),
        Mistake(
            "returns_mask",
            Text(
                zh="你返回的是每个通道的 `True` 或 `False`；要的是编号：`mask.nonzero().flatten().tolist()`。",
                en="You returned `True` or `False` for each channel; wanted are their numbers: `mask.nonzero().flatten().tolist()`.",
            ),
            fails="finds",
        ),
        Mistake(
            "counts",
            Text(
                zh="你返回的是个数；要的是哪几个通道，一个列表。",
                en="You returned how many; wanted is which channels, as a list.",
            ),
            fails="finds",
        ),
        Mistake("returns_nothing", RETURNS_NOTHING.says, fails="finds"),
        *(CHANGES_MODEL, LEAVES_HOOKS, REMOVES_OTHERS),
    ),
    insight=Text(
        zh="在钩子里就把输出压成几个数：既省内存，又不怕就地操作。第 10 课看整个训练，用的就是这个办法。",
        en="Reduce an output to a few numbers inside the hook: it saves memory and fears no in-place operation. Lesson 10 watches whole training runs this way.",
    ),
)
