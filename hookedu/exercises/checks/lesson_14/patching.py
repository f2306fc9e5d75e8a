"""The residual stream of two prompts, and what becomes of a patch in it: computed block by block, without hooks."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from hookedu.exercises.criteria import Check, Say
from hookedu.exercises.observation import show_kind
from hookedu.exercises.probes.lesson_14.patching import make_mixed
from hookedu.exercises.probes.lesson_14.shared import Sizes
from hookedu.exercises.tools import other_weights

At = tuple[int, torch.Tensor]  # after so many blocks, this stream

# Mistakes recognised by what the answer raises.
RAISES = {
    "returns_tuple": r"must be Tensor, not \w+",
    "row_for_place": r"^IndexError: index \d+ is out of bounds for dimension 0",
    "nothing_kept": r"^KeyError|^IndexError: list index|^UnboundLocalError|cannot access free variable|"
    r"^NameError|'NoneType' object is not subscriptable",
}


class Streams:
    """The stream before the blocks and after each, for both prompts: sequences of (batch, words, width).

    Place n + 1 in these is what block n puts out.
    """

    def __init__(self, sizes: Sizes, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
        self.model, self.ids = make_mixed(sizes), (clean, corrupted)
        self.words = clean.shape[1]
        self.clean: Sequence[torch.Tensor] = ()
        self.bad: Sequence[torch.Tensor] = ()
        self.read()

    def read(self) -> None:
        """Read both prompts with the weights that the model has now."""
        with torch.no_grad():
            both = self._stream(torch.cat(self.ids))
        self.clean, self.bad = zip(*(x.chunk(2) for x in both), strict=True)

    @torch.no_grad()
    def bare(self, number: int, place: int) -> At:
        """Patch a block of a model whose words have no positions, as one gets that is put together by hand."""
        clean, bad = (self._stream(ids, 0) for ids in self.ids)
        bad[number + 1][:, place] = clean[number + 1][:, place]
        return number + 1, bad[number + 1]

    def _stream(self, ids: torch.Tensor, positions: int = 1) -> list[torch.Tensor]:
        stream = [self.model.embed(ids) + positions * self.model.position(torch.arange(self.words))]
        for block in self.model.blocks:
            stream.append(block(stream[-1]))
        return stream

    def stale(self) -> list[torch.Tensor]:
        """Return the stream for `clean` of the call before, when the model had other weights."""
        with other_weights(self.model), torch.no_grad():
            return self._stream(self.ids[0])

    @torch.no_grad()
    def through(self, depth: int, x: torch.Tensor) -> torch.Tensor:
        """Return the stream after the last block if it is `x` after so many blocks."""
        for block in list(self.model.blocks)[depth:]:
            x = block(x)
        return x

    @torch.no_grad()
    def logits(self, depth: int, x: torch.Tensor) -> torch.Tensor:
        """Return the logits that follow if the stream is `x` after so many blocks."""
        return self.model.unembed(self.model.norm(self.through(depth, x)))

    def mixed(self, depth: int, where: Any, source: Sequence[torch.Tensor] | None = None) -> torch.Tensor:
        """Return the stream for `corrupted` at a depth, with that for `clean`, or another, put in at `where`."""
        x = self.bad[depth].clone()
        x[where] = (self.clean if source is None else source)[depth][where]
        return x

    def patch(self, number: int, where: Any) -> torch.Tensor:
        """Return the logits if what block `number` puts out is patched at `where`."""
        return self.logits(*self.output(number, where))

    def patches(self) -> torch.Tensor:
        """Return the logits of all patches of single words: (blocks, words patched, batch, words, vocabulary)."""
        found = []
        for depth in range(1, len(self.bad)):
            x = self.bad[depth].repeat(self.words, 1, 1, 1)
            for place in range(self.words):
                x[place, :, place] = self.clean[depth][:, place]
            found.append(self.logits(depth, x.flatten(0, 1)).unflatten(0, (self.words, -1)))
        return torch.stack(found)

    # Each of the following returns (depth, stream there), from which `logits` goes on.

    def with_patches(self, places: set[tuple[int, int]]) -> At:
        """Patch all these (block, word) at once."""
        x = self.bad[0]
        with torch.no_grad():
            for number, block in enumerate(self.model.blocks):
                x = block(x)
                for place in (p for n, p in places if n == number):
                    x[:, place] = self.clean[number + 1][:, place]
        return len(self.model.blocks), x

    def output(self, number: int, where: Any) -> At:
        """Patch what a block puts out at `where`."""
        return number + 1, self.mixed(number + 1, where)

    def input(self, number: int, place: int) -> At:
        """Patch what goes into a block."""
        return number, self.mixed(number, (slice(None), place))

    def word(self, number: int, place: int) -> At:
        """Patch what goes into block 0."""
        return self.input(0, place)

    def kept_input(self, number: int, place: int) -> At:
        """Put the block's input for `clean` into its output."""
        x = self.bad[number + 1].clone()
        x[:, place] = self.clean[number][:, place]
        return number + 1, x

    def into_input(self, number: int, place: int) -> At:
        """Put the block's output for `clean` into its input."""
        x = self.bad[number].clone()
        x[:, place] = self.clean[number + 1][:, place]
        return number, x

    def again(self, number: int, place: int) -> At:
        """Let what block `number` puts out, patched, go through the same block once more."""
        return number, self.output(number, (slice(None), place))[1]

    def swapped(self, number: int, place: int) -> At:
        """Take the patch from `corrupted` while the model reads `clean`."""
        x = self.clean[number + 1].clone()
        x[:, place] = self.bad[number + 1][:, place]
        return number + 1, x

    def with_value(self, number: int, place: int, value: Callable[..., Any]) -> At:
        """Put ``value(corrupted, clean)`` there, computed from both at that place."""
        x = self.bad[number + 1].clone()
        x[:, place] = value(x[:, place].clone(), self.clean[number + 1][:, place])
        return number + 1, x

    def skipping(self, number: int, place: int) -> At:
        """Skip the blocks after the patch."""
        return len(self.model.blocks), self.mixed(number + 1, (slice(None), place))

    @torch.no_grad()
    def part(self, number: int, place: int, name: str) -> At:
        """Patch only what one part of the block adds."""
        block: Any = self.model.blocks[number]
        (of_clean, _), (added, middle) = (
            self._added(number, name, x[number]) for x in (self.clean, self.bad)
        )
        added = added.clone()
        added[:, place] = of_clean[:, place]
        if name == "mlp":
            return number + 1, middle + added
        x = self.bad[number] + added
        return number + 1, x + block.mlp(block.norm2(x))

    def _added(self, number: int, name: str, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what a part of a block adds to the stream, and the stream before its MLP."""
        block: Any = self.model.blocks[number]
        added = block.attention(block.norm1(x))[0]
        middle = x + added
        return (added if name == "attention" else block.mlp(block.norm2(middle))), middle


def _left_by_error(saw: Any, key: Any) -> bool:
    """Check whether hooks are left by a call that fails; of those that every call leaves, the check of conduct says so."""
    return saw.left == 0 and saw.left_after_error > 0


def _call(saw: Any, key: Any) -> Any:
    return key.call


# What somebody else's hook kept of the blocks has not changed; observes `spoilt`.
UNTOUCHED = Check(
    "others",
    "spoilt",
    want=lambda key: 0,
    points=1,
    given=Say("kept_outputs", given=_call),
    expected=Say("spoilt_outputs", n=0),
    got=Say("spoilt_outputs", n=lambda saw, key: saw.spoilt),
    mistakes={"in_place": True},
)
# A call that fails leaves no hook, and the exception comes through; for `probes` `after_error`.
CLEAN_AFTER_ERROR = Check(
    "after_error",
    ok=lambda saw, key: not _left_by_error(saw, key) and not saw.swallowed,
    points=1,
    given=[Say("interrupted", when=_left_by_error, given=_call), Say("fails", given=_call)],
    expected=[Say("hooks_left", when=_left_by_error, value=0), Say("comes_through")],
    got=[
        Say("hooks_left", when=_left_by_error, value=lambda saw, key: saw.left_after_error),
        Say("returns_all_the_same"),
    ],
    mistakes={"left_after_error": _left_by_error, "swallows_error": lambda saw, key: saw.swallowed},
)


def shares_line(name: str) -> Any:
    """Return the line `expected` or `got`: the map, or what is wrong about a value that is none of this shape."""

    def line(saw: Any, key: Any) -> str:
        got = saw.result
        shown = {"expected": key.want, "got": got}[name]
        if not isinstance(got, torch.Tensor):
            return "type(shares) == torch.Tensor" if name == "expected" else f"shares == {show_kind(got)}"
        if got.shape != key.want.shape:
            return f"shares.shape == {tuple(shown.shape)}"
        if not got.is_floating_point():
            return f"shares.dtype == {shown.dtype}"
        rows = ", ".join(
            "[" + ", ".join(f"{round(v, 3) + 0.0:.3f}" for v in row) + "]" for row in shown.tolist()
        )
        return f"shares == [{rows}]"

    return line


def near_shares(got: Any, want: torch.Tensor, tolerance: float = 1e-3) -> bool:
    """Check whether a map has these shares; that it is one of floats is all that is asked of its dtype."""
    return (
        isinstance(got, torch.Tensor)
        and got.is_floating_point()
        and got.shape == want.shape
        and torch.allclose(got.double(), want.double(), tolerance, tolerance)
    )
