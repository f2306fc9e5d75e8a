"""What decides about 15.4, `diagnose_run(build, data)`."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hookedu.exercises.checks.common import none_left
from hookedu.exercises.criteria import Check, Gives, Of, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_15.diagnose_run import PROBE, firsts
from hookedu.models.ward import FAULTS, HEALTHY, admit
from hookedu.models.ward.patient import fault_of

_NAMES = (HEALTHY, *FAULTS)
_QUIET = (
    "dying_relus",
    "frozen_layer",
    "detached_branch",
    "norm_in_eval",
    "forgotten_hook",
)  # most losses fall
_LARGE = ("exploding", "rate_too_high", "bad_sample")  # what may end in nan
_SMALL = (
    "vanishing",
    "dying_relus",
    "frozen_layer",
    "detached_branch",
)  # where little or no gradient arrives
_SHOWN = 6  # pairs that a message lists
_OF_QUIET = 0.8  # a network whose ReLUs are dead may be seen by its loss all the same


class _Key:
    """What each patient has."""

    def __init__(self, seeds: list[int]) -> None:
        self.seeds, self.kinds = seeds, [fault_of(seed) for seed in seeds]
        self.n = len(seeds)

    def right(self, saw: Any) -> int:
        return sum(map(str.__eq__, self.kinds, map(_name, saw.said)))

    def confused(self, saw: Any) -> Counter[tuple[str, str]]:
        """Return how often which kind was called what else."""
        pairs = zip(self.kinds, map(_name, saw.said), strict=True)
        return Counter(pair for pair in pairs if pair[0] != pair[1])

    def called(self, saw: Any, kind: str) -> list[str]:
        """Return what the patients of a kind were called."""
        return [_name(said) for truth, said in zip(self.kinds, saw.said, strict=True) if truth == kind]

    def unseen(self, saw: Any) -> list[str]:
        """Return the faults that were recognised in no patient."""
        return [kind for kind in FAULTS if kind not in self.called(saw, kind)]

    def needed(self, share: float) -> int:
        return math.ceil(share * self.n)


def _varied(seeds: list[int]) -> bool:
    """Check that frozen layers are of both kinds, one the first of its network, and that hooks look on at healthy runs."""
    patients = [admit(seed) for seed in seeds if fault_of(seed) in ("frozen_layer", HEALTHY)]
    if sum(patient.fault == HEALTHY and patient.chart.watched for patient in patients) < 2:
        return False
    sick = [patient.build()[0] for patient in patients if patient.fault != HEALTHY]
    frozen = [[p.requires_grad for p in model.parameters()] for model in sick]
    return any(map(all, frozen)) and any(not first for first, *_ in frozen)


def _name(said: Any) -> str:
    return said if type(said) is str else show_kind(said)


def _list(saw: Any, key: _Key) -> str:
    """Return the confusions as words that both languages share, the most frequent first."""
    pairs = sorted(key.confused(saw).items(), key=lambda item: (-item[1], item[0]))
    told = [f"`{kind}` → `{said[:30]}`" + f" ×{n}" * (n > 1) for (kind, said), n in pairs[:_SHOWN]]
    return ", ".join(told) + ", …" * (len(pairs) > _SHOWN)


def _only_among(kinds: tuple[str, ...]) -> Of:
    """Return the condition that all confusions are among some kinds, and that there are several."""

    def holds(saw: Any, key: _Key) -> bool:
        confused = key.confused(saw)
        return confused.total() > 1 and all(kind in kinds and said in kinds for kind, said in confused)

    return holds


def _loss_only(saw: Any, key: _Key) -> bool:
    called = [said for kind in _QUIET for said in key.called(saw, kind)]
    return called.count(HEALTHY) >= _OF_QUIET * len(called)


def _wakes_norm(saw: Any, key: _Key) -> bool:
    return saw.modes > 0 and "norm_in_eval" in key.unseen(saw)


def _hooks_that_look(saw: Any, key: _Key) -> bool:
    return {said for _, said in key.confused(saw)} == {"forgotten_hook"}


def _never_named(saw: Any, key: _Key) -> bool:
    return any(kind not in saw.said for kind in key.unseen(saw))


def _sick_in_health(saw: Any, key: _Key) -> int:
    return sum(said != HEALTHY for said in key.called(saw, HEALTHY))


def _same_again(saw: Any, key: _Key) -> bool:
    return saw.again == [saw.said[key.seeds.index(seed)] for seed in firsts(key.seeds)]


_MISTAKES: Mapping[str, bool | Of | Gives] = {
    "always_the_same": lambda saw, key: len({*map(_name, saw.said)}) == 1,
    "keeps_state": lambda saw, key: not _same_again(saw, key),
    "wakes_norm": _wakes_norm,
    "loss_only": _loss_only,
    "hooks_that_look": _hooks_that_look,
    "too_large": _only_among(_LARGE),
    "too_small": _only_among(_SMALL),
    "cries_wolf": lambda saw, key: _sick_in_health(saw, key) > 1,
    "never_named": _never_named,
}


def _share(id: str, share: float, points: int, essential: bool = False) -> Check:
    """Require that the answer is right about a share of the patients."""
    return Check(
        id,
        ok=lambda saw, key: key.right(saw) >= key.needed(share),
        points=points,
        essential=essential,
        expected=Say("right_of", right=lambda saw, key: key.needed(share)),
        got=Say("confused", right=lambda saw, key: key.right(saw), list=_list),
        mistakes=_MISTAKES,
    )


def _wrong_name(saw: Any) -> Any:
    return next(said for said in saw.said if said not in _NAMES)


EXERCISE = Exercise(
    PROBE,
    key=_Key,
    suits=_varied,
    given=Say("ward"),
    checks=[
        Check(
            "names",
            ok=lambda saw, key: all(type(said) is str and said in _NAMES for said in saw.said),
            points=1,
            expected=Say("a_name"),
            got=lambda saw, key: show_kind(_wrong_name(saw)),
            mistakes={
                "returns_nothing": lambda saw, key: {*map(type, saw.said)} == {type(None)},
                "sometimes_nothing": lambda saw, key: _wrong_name(saw) is None,
                "other_names": True,
            },
        ),
        _share("half", 0.5, 1, essential=True),
        _share("most", 0.75, 1),
        _share("nine_in_ten", 0.9, 2),
        Check(
            "healthy",
            ok=lambda saw, key: _sick_in_health(saw, key) < 2,
            points=1,
            expected=Say("healthy_ones"),
            got=Say("confused", right=lambda saw, key: key.right(saw), list=_list),
            mistakes={"hooks_that_look": _hooks_that_look, "cries_wolf": True},
        ),
        Check(
            "every_kind",
            ok=lambda saw, key: not key.unseen(saw),
            points=1,
            expected=Say("each_once", kind=lambda saw, key: key.unseen(saw)[0]),
            got=Say("confused", right=lambda saw, key: key.right(saw), list=_list),
            mistakes={
                "wakes_norm": _wakes_norm,
                "never_named": _never_named,
            },
        ),
        Check(
            "again",
            ok=_same_again,
            points=1,
            expected=Say("same_again"),
            got=Say("other_again"),
            mistakes={"keeps_state": True},
        ),
        none_left("diagnose_run(build, data)", "leaves_hooks"),
    ],
    raises={
        "hooks_frozen": r"cannot register a hook on a tensor that doesn't require gradient",
        "none_grad": r"'NoneType' object has no attribute|unsupported operand.*NoneType|expected Tensor.*NoneType",
    },
)
