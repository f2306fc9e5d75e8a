"""What decides about 12.2, `put_away(shelf, at_least)`."""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from hookedu.exercises.checks.lesson_12.shared import ends, put_line, some_of
from hookedu.exercises.criteria import Check, Gives, Of, Saw, Say
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.probes.lesson_12.put_away import PROBE, Case
from hookedu.exercises.tools import copies, same


class Key:
    """What autograd saves and how often it asks for each, from a run with hooks of ours; and the gradients without any."""

    def __init__(self, case: Case) -> None:
        self.case, used = case, []
        self.handed: list[torch.Tensor] = []

        def pack(tensor: torch.Tensor) -> int:
            self.handed.append(tensor.detach())
            return len(self.handed) - 1

        def unpack(number: int) -> torch.Tensor:
            used.append(number)
            return self.handed[number]

        with saved_tensors_hooks(pack, unpack):
            loss = case.loss()
        torch.autograd.grad(loss, case.leaves)
        places = [n for n, tensor in enumerate(self.handed) if tensor.nbytes >= case.at_least]
        self.puts = copies([self.handed[n] for n in places])
        self.gets = sorted(places.index(n) for n in used if n in places)
        self.large = list(range(len(places)))
        # The first operation saves two, and is the last in backward.
        self.midway = [sum(n < 2 for n in places)]
        grads = copies(list(torch.autograd.grad(case.loss(), case.leaves)))
        self.grads = [grads, grads]

    def once(self) -> list[torch.Tensor]:
        """Return what is large without what is saved again."""
        firsts = {t.data_ptr(): t for t in reversed(self.handed)}
        return [t for t in self.handed if t.nbytes >= self.case.at_least and firsts[t.data_ptr()] is t]


def _puts(holds: Callable[[torch.Tensor, int], Any]) -> Of:
    """Return the condition that those tensors were put away for which this holds; its second argument is the bound."""
    return lambda saw, key: same(saw.puts, [t for t in key.handed if holds(t, key.case.at_least)])


def _large(holds: Callable[[torch.Tensor], Any]) -> Of:
    """Return the condition that of the large tensors, those were put away for which this holds."""
    return _puts(lambda tensor, bound: tensor.nbytes >= bound and holds(tensor))


def _once_each(saw: Saw, key: Key) -> bool:
    return 0 < len(saw.puts) < len(key.puts) and some_of(saw.puts, key.once())


def _on_at_once(saw: Saw, key: Key) -> bool:
    return not saw.idle


def _on_the_other(call: str) -> Of:
    """Return the condition that calls are missing, and that the inner shelf got more than the one that belongs there."""

    def misses(saw: Saw, key: Key) -> bool:
        return len(saw.puts if call == "put" else saw.drops) < len(key.large)

    return lambda saw, key: misses(saw, key) and saw.inner.count(call) > 1


def _ignored(part: str) -> Of:
    return lambda saw, key: any(part in one for one in saw.ignored)


def _all_dropped(saw: Saw, key: Key) -> bool:
    return saw.drops == key.large


def _large_alive(saw: Saw, key: Key) -> bool:
    return any(alive and nbytes >= key.case.at_least for nbytes, alive in saw.kept)


def _keeps(saw: Saw, key: Key) -> bool:
    return bool(saw.held)


def _gets(saw: Saw, key: Key) -> list[int]:
    """Return how often something is fetched: before backward, in the first and in the second."""
    return [0, len(key.gets), len(key.gets)]


EXERCISE = Exercise(
    PROBE,
    key=Key,
    given=Say("step", n=lambda saw, key: len(key.handed)),
    checks=[
        Check(
            "puts",
            "puts",
            want=lambda key: key.puts,
            points=2,
            essential=True,
            expected=[Say("not_yet", when=_on_at_once), *put_line(1)],
            got=[Say("there_before", when=_on_at_once), *put_line(2)],
            mistakes={
                "on_at_once": _on_at_once,
                "one_for_all": _on_the_other("put"),
                "nothing_put": lambda saw, key: not saw.puts,
                "strictly": _puts(lambda t, bound: t.nbytes > bound),
                "elements": _puts(lambda t, bound: t.numel() >= bound),
                "storage": _puts(lambda t, bound: t.untyped_storage().nbytes() >= bound),
                "everything": _puts(lambda t, bound: True),
                "small_ones": _puts(lambda t, bound: t.nbytes < bound),
                "floats_only": _large(torch.is_floating_point),
                "float32_only": _large(lambda t: t.dtype == torch.float32),
                "once_each": _once_each,
                "left_out": lambda saw, key: some_of(saw.puts, key.puts),
                "changed": lambda saw, key: [t.numel() for t in saw.puts] == [t.numel() for t in key.puts],
            },
        ),
        Check(
            "gradients",
            "grads",
            want=lambda key: key.grads,
            points=2,
            essential=True,
        ),
        Check(
            "early",
            ok=lambda saw, key: not saw.early + saw.retained,
            points=1,
            given=[
                Say("before_backward", when=lambda saw, key: saw.early),
                "loss.backward(retain_graph=True)",
            ],
            expected=Say("dropped", value=0),
            got=Say("dropped", value=lambda saw, key: len(saw.early + saw.retained)),
            mistakes={"before_use": lambda saw, key: saw.early, "on_use": True},
        ),
        Check(
            "memory",
            ok=lambda saw, key: all(alive == (nbytes < key.case.at_least) for nbytes, alive in saw.kept),
            points=1,
            expected=Say("memory"),
            got=[Say("large_alive", when=_large_alive), Say("small_copied")],
            mistakes={"holds_large": _large_alive, "copies_small": True},
        ),
        Check(
            "rings",
            "rings",
            want=lambda key: [False, False],
            points=1,
            given="y = x.exp(); del x, y",
            expected=Say("let_go"),
            got=Say("stays"),
            mistakes={"attached": Gives(lambda key: [True, False]), "holds_output": True},
        ),
        Check(
            "drops",
            "drops",
            want=lambda key: key.large,
            ok=lambda saw, key: (saw.drops, saw.midway) == (key.large, key.midway),
            points=2,
            given=[Say("midway", when=_all_dropped), "loss.backward()"],
            expected=[
                Say("left", when=_all_dropped, value=lambda saw, key: key.midway[0]),
                Say("dropped_each", value=lambda saw, key: len(key.large)),
            ],
            got=[
                Say("left", when=_all_dropped, value=lambda saw, key: saw.midway[0]),
                Say("failed", when=_ignored(""), error=lambda saw, key: saw.ignored[0]),
                Say("dropped", value=lambda saw, key: len(saw.drops)),
            ],
            mistakes={
                "unhashable": _ignored("unhashable"),
                "compares": _ignored("Boolean value"),
                "fails": _ignored(""),
                "one_for_all": _on_the_other("drop"),
                "never_drops": lambda saw, key: not saw.drops,
                "drops_other": lambda saw, key: -1 in saw.drops,
                "twice": lambda saw, key: len(saw.drops) > len({*saw.drops}),
                "all_at_the_end": _all_dropped,
                "not_all": True,
            },
        ),
        Check(
            "thrown_away",
            ok=lambda saw, key: not (saw.within or saw.thrown_within or saw.thrown),
            points=1,
            given=[
                Say("within", when=lambda saw, key: saw.within),
                Say("thrown_within", when=lambda saw, key: saw.thrown_within and not saw.thrown),
                "del loss",
            ],
            expected=Say("left", value=0),
            got=Say("left", value=lambda saw, key: saw.within or saw.thrown_within or saw.thrown),
            mistakes={
                "within": lambda saw, key: saw.within,
                "only_after_use": True,
            },
        ),
        Check(
            "gets",
            "gets",
            want=lambda key: [[], key.gets, key.gets],
            ok=lambda saw, key: saw.gets == [[], key.gets, key.gets] and not saw.held,
            points=1,
            given=Say("two_backwards"),
            expected=[Say("kept_fetched", when=_keeps, value=0), Say("fetched", counts=_gets)],
            got=[
                Say("kept_fetched", when=_keeps, value=lambda saw, key: saw.held),
                Say("fetched", counts=lambda saw, key: [len(keys) for keys in saw.gets]),
            ],
            mistakes={
                "fetches_early": lambda saw, key: saw.gets[0],
                "keeps_fetched": _keeps,
                "fetches_again": lambda saw, key: len(saw.gets[1]) > len(key.gets),
            },
        ),
        Check(
            "nested",
            "inner",
            want=lambda key: ["put", "get", "drop"],
            ok=lambda saw, key: (
                [call for call in saw.inner if call != "drop"] == ["put", "get"]
                and (saw.inner.count("drop") == 1 or saw.drops != key.large)
            ),
            points=1,
            given=Say("nested"),
            mistakes={"drops_on_both": lambda saw, key: saw.inner.count("drop") > 1, "one_for_all": True},
        ),
        ends("with put_away(shelf, at_least): ..."),
    ],
    raises={
        "arguments": r"missing \d+ required positional argument|takes \d+ positional arguments? but \d+ (was|were) given",
        "unpacks_nothing": r"unpack_hook expected to be a Tensor but got result of type NoneType",
        "unpacks_other": r"unpack_hook expected to be a Tensor",
        "other_key": r"shelf\.put never returned this key",
        "no_weakref": r"cannot create weak reference to",
        "compares_key": r"Boolean value of Tensor",
        "unhashable_key": r"unhashable type",
        "key_for_tensor": r"size of tensor|invalid gradient|expected|index|shape|matrix|matrices|dtype|[Ss]calar",
        "returns_nothing": r"does not support the context manager protocol|^AttributeError: __(enter|exit)__",
    },
)
