"""What the checks of this lesson share: tensors that were put somewhere, and what is true of a context manager."""

from collections import Counter
from typing import Any

import torch

from hookedu.exercises.criteria import Check, Of, Saw, Say
from hookedu.exercises.tools import same


def ends(given: str) -> Check:
    """Require that hooks go with the `with`, and that exceptions come through; observes `ends` and `raised`.

    Its exercise has the mistakes and the lines that are named here.
    """
    return Check(
        "ends",
        ok=lambda saw, key: saw.ends and set(saw.raised) == {"came through"},
        points=1,
        given=[given],
        expected=[
            Say("gone", when=lambda saw, key: not saw.ends),
            Say("gone_raised"),
        ],
        got=[
            Say("there", when=lambda saw, key: not saw.ends or "left on" in saw.raised),
            Say("swallowed"),
        ],
        mistakes={
            "stays_on": lambda saw, key: not saw.ends,
            "stays_on_raised": lambda saw, key: "left on" in saw.raised,
            "swallows_it": True,
        },
    )


def some_of(puts: list[torch.Tensor], wanted: list[torch.Tensor]) -> bool:
    """Check whether these are some of the wanted ones, in their order."""
    rest = iter(wanted)
    return all(any(same(tensor, one) for one in rest) for tensor in puts)


def _described(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}, nbytes {tensor.nbytes}"


def _first_difference(saw: Saw, key: Any) -> tuple[str, int, int] | None:
    """Return a tensor that was put away too rarely, or else too often, with how often it should be and how often it was."""
    got, want = (Counter(map(_described, tensors)) for tensors in (saw.puts, key.puts))
    differ = [*(want - got), *(got - want)]
    return (differ[0], want[differ[0]], got[differ[0]]) if differ else None


def put_line(place: int) -> list[str | Of | Say]:
    """Return a line that says how often a tensor was put away, or, if that is right, the values."""
    return [
        Say(
            "times",
            when=_first_difference,
            tensor=lambda saw, key: (_first_difference(saw, key) or ("",))[0],
            times=lambda saw, key: (_first_difference(saw, key) or ("", 0, 0))[place],
        ),
        "shelf.put: {want}" if place == 1 else "shelf.put: {saw.puts}",
    ]
