"""What is observed of 09.4, `dead_channels(model, relu, batches)`."""

from typing import Any, NamedTuple

import torch
from torch import nn

from hookedu.exercises.probes.lesson_09.shared import is_number, look_on
from hookedu.exercises.probing import Draw, Probe

# Where a channel is above 0: everywhere, in one batch, or in one picture. A weak one is just above 0.
ROLES = ("weak", "first", "last", "once", "strong")
WEAK = 2.0**-140  # not a normal float32 any more; its square is 0
# Pictures in each batch, and silent channels.
_TURNS = (((2, 2, 2), 2), ((1, 4, 1), 2), ((3, 2, 1), 1), ((2, 1, 3), 0))


class _Net(nn.Module):
    """A layer, a ReLU that runs once or twice, an in-place operation that wakes a silent channel, and more layers.

    The first layer changes the sign and the order of the channels: what goes in tells nothing about the ReLU. Two more
    ReLUs have as many channels, one before it among the modules and one after it; no channel of theirs is silent.
    """

    def __init__(self, channels: int, woken: int | None, calls: int) -> None:
        super().__init__()
        conv = nn.Conv2d(channels, channels, 1, bias=False)
        with torch.no_grad():
            conv.weight.copy_(-torch.eye(channels).flip(0)[..., None, None])
        mix = nn.Conv2d(channels, channels, 1, bias=False)
        nn.init.ones_(mix.weight)
        self.head = nn.Sequential(mix, nn.ReLU())
        self.body, self.drop, self.end = nn.Sequential(conv, nn.ReLU()), nn.Dropout().eval(), nn.ReLU()
        shift = torch.zeros(channels, 1, 1)
        if woken is not None:
            shift[woken] = 1
        self.register_buffer("shift", shift)
        self.runs, self.calls = 0, calls

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        total = torch.zeros(())
        for n, maps in enumerate(in_turns(self.body[0](x), self.calls)):
            # The same numbers, in wider maps at a later call.
            output = self.body[1](maps.repeat(1, 1, 1, 1 + n))
            output += self.shift
            total = total + output[..., : x.shape[-1]]
        return self.end(self.head(self.drop(total)))


def in_turns(maps: torch.Tensor, calls: int) -> list[torch.Tensor]:
    """Return what goes into each of so many calls of a ReLU: every channel has its numbers in one of them."""
    turns = torch.arange(maps.shape[-3])[:, None, None] % calls
    return [torch.where(turns == n, maps, -1.0) for n in range(calls)]


class Case(NamedTuple):
    """The role of each channel, what goes into the ReLU batch by batch, the silent channel that is woken later.

    In the last place, how often the ReLU runs in each run of the model.
    """

    roles: list[str]
    maps: list[torch.Tensor]
    woken: int | None
    calls: int


def _case(rng: Draw) -> Case:
    """Return a case in which the input of silent channels is negative.

    In turn 1 a 0 is among it, and there are more than ten channels, of which silent ones have one digit and two; in turn 3 the first batch
    already wakes all, and the maps are wider: a strong channel is above 0 in a corner, others near the middle.
    """
    sizes, silent = _TURNS[rng.turn]
    others = [role for role in ROLES if role != "last" or rng.turn != 3] + ["strong"] * 5 * (rng.turn == 1)
    if rng.turn == 1:
        roles = rng.sample(others, len(others))
        roles.insert(rng.randint(3, 7), "silent")  # a small set of ints gives 10 before 3 to 7, as strings do
        roles.insert(10, "silent")
    else:
        roles = rng.sample(["silent"] * silent + others, silent + len(others))
    numbers = [-float(rng.randint(1, 5)) for _ in range(24 * len(roles))]
    maps = torch.tensor(numbers).reshape(6, len(roles), 4)
    active = {"weak": slice(0, 6), "strong": slice(0, 6), "once": slice(1, 2)}
    active |= {"first": slice(0, sizes[0]), "last": slice(6 - sizes[-1], 6)}
    for channel, role in enumerate(roles):
        place, value = rng.randrange(4), float(rng.randint(1, 9))
        if role in active:
            # In turn 0 a strong one is the same everywhere, as where a bias alone is left: it does not vary, and lives.
            where = slice(None) if role == "strong" and rng.turn == 0 else place
            maps[active[role], channel, where] = WEAK if role == "weak" else value
        elif rng.turn == 1:
            maps[rng.randrange(6), channel, place] = 0.0
    woken = roles.index("silent") if silent else None
    maps = maps.unflatten(-1, (2, 2))
    if rng.turn == 3:
        maps = nn.functional.pad(maps, (2, 3, 2, 3), value=-1.0)
        strong = maps[:, roles.index("strong")]
        corner = strong.amax((-2, -1))
        strong.fill_(-1.0)[:, 0, 0] = corner
    return Case(roles, list(maps.split(sizes)), woken, 1 + (rng.turn == 2))


def observe(dead_channels: Any, case: Case) -> dict[str, Any]:
    """Call it twice, and observe the first result. Tensors of channel numbers, or of one number each, are observed as a list of ints.

    In the second call the silent channels are awake and all others silent: a third, when the case is observed again, shows if
    something of that is kept.
    """
    net = _Net(len(case.roles), case.woken, case.calls)
    calls = look_on(net)
    result = dead_channels(net, net.body[1], [-batch.flip(1) for batch in case.maps])
    if isinstance(result, torch.Tensor) and result.dim() == 1 and result.dtype in (torch.int64, torch.bool):
        result = result.tolist()
    if isinstance(result, list):
        result = [v.item() if is_number(v) and not v.shape else v for v in result]
    awake = torch.tensor([1.0 if role == "silent" else -1.0 for role in case.roles])[:, None, None]
    another = _Net(len(case.roles), case.woken, case.calls)
    dead_channels(another, another.body[1], [-awake.expand_as(batch).flip(1) for batch in case.maps])
    return {"result": result, "runs": calls[net], "forwards": net.runs}


PROBE = Probe("09.4", "dead_channels", _case, observe, cases=len(_TURNS), restores=True)
