"""What the probes of this lesson share: hooks for saved tensors, what an answer may have left of them, and a shelf."""

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C import _autograd

from hookedu.exercises.tools import copies

KINDS = ("int", "None", "tensor", "tuple", "list", "str", "dict", "empty list")


def hooks_on() -> Any:
    """Return the pair (pack, unpack) that is in force, or None."""
    return _autograd._top_saved_tensors_default_hooks(False)


@contextlib.contextmanager
def taken_off() -> Iterator[None]:
    """Take off, at the end, the hooks that were put in force meanwhile."""
    before = hooks_on()
    try:
        yield
    finally:
        while hooks_on() not in (None, before):
            _autograd._pop_saved_tensors_default_hooks()


def raised(error: type[BaseException], manager: Callable[[], Any]) -> str:
    """Raise an exception inside the manager that is returned; return what became of it and of the hooks."""
    before = hooks_on()
    with taken_off():
        try:
            with manager():
                raise error
        except error:
            return "came through" if hooks_on() == before else "left on"
    return "swallowed"


@contextlib.contextmanager
def drained() -> Iterator[None]:
    """If a backward pass raises, let go of the rest of its graph.

    The queue of the engine would hold it until Python ends, and then crash when it frees the hooks.
    """
    older = torch.zeros(1, requires_grad=True).sum()
    try:
        yield
    except BaseException:
        older.backward()  # the queue takes newer operations first, and drops those of a pass that has failed
        raise


class Shelf:
    """Keeps copies in memory and notes its calls. A copy stays after it was dropped, so that later mistakes are seen, too."""

    def __init__(self, first: int) -> None:
        self._first, self._keys, self._copies = first, [], []
        self.calls: list[tuple[str, int]] = []
        self.fetched: list[Any] = []  # weak references to what was handed out

    def put(self, tensor: torch.Tensor) -> Any:
        number = len(self._keys)
        self.calls.append(("put", number))
        self._copies.append(tensor.detach().clone())
        self._keys.append(self._key(number, _kind_of(self._first, number)))
        return self._keys[-1]

    def get(self, key: Any) -> torch.Tensor:
        number = self._number(key)
        if number is None:
            raise KeyError(f"shelf.put never returned this key: {key!r:.60}")
        self.calls.append(("get", number))
        copy = self._copies[number].clone()
        self.fetched.append(weakref.ref(copy.untyped_storage()))
        return copy

    def drop(self, key: Any) -> None:
        number = self._number(key)
        self.calls.append(("drop", -1 if number is None else number))

    @staticmethod
    def _key(number: int, kind: str) -> Any:
        """Return a key that no other is equal to."""
        if kind == "tensor":
            return torch.tensor([number, -number])
        if kind in ("list", "tuple"):
            return [number] if kind == "list" else (number,)
        if kind in ("None", "empty list"):
            return None if kind == "None" else []
        return {"int": number, "str": f"{number}.pt"}.get(kind, {"number": number})

    def _number(self, key: Any) -> int | None:
        return next((n for n, known in enumerate(self._keys) if known is key), None)

    def copies(self) -> list[torch.Tensor]:
        """Return all that was put here."""
        return copies(self._copies)

    def noted(self, what: str, begin: int = 0, end: int | None = None) -> list[int]:
        """Return the numbers of the keys in the calls of one kind, sorted."""
        return sorted(number for call, number in self.calls[begin:end] if call == what)

    @property
    def left(self) -> int:
        """How many keys were put and not dropped yet."""
        return len({*self.noted("put")} - {*self.noted("drop")})


def _kind_of(first: int, number: int) -> str:
    """Return the kind of a key by its number. `None`, the empty list and 0 are each given once."""
    if number == 0 and first == 0:
        return "int"
    kind = KINDS[(first + number) % len(KINDS)]
    return kind if kind not in ("None", "empty list") or number < len(KINDS) else "int"
