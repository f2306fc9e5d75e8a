"""Right answers to 12.2, `put_away`."""

import contextlib
import dataclasses
import functools
import operator
import types
import weakref
from collections import namedtuple
from functools import partial

import torch
from torch.autograd.graph import saved_tensors_hooks

from tests.answers import alternative, edited


@alternative("12.2")
def put_away(shelf, at_least):
    class Ticket:
        def __init__(self, key):
            self.key = key

        def __del__(self):
            shelf.drop(self.key)

    def pack(tensor):
        if tensor.nbytes >= at_least:
            return Ticket(shelf.put(tensor))
        return tensor.detach()

    def unpack(packed):
        if isinstance(packed, Ticket):
            return shelf.get(packed.key)
        return packed

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


@alternative("12.2")
def put_away(shelf, at_least):
    def pack(tensor):
        if tensor.nbytes < at_least:
            kept = tensor.detach()
            return lambda: kept
        key = shelf.put(tensor)
        fetch = partial(shelf.get, key)
        weakref.finalize(fetch, shelf.drop, key)
        return fetch

    return saved_tensors_hooks(pack, lambda fetch: fetch())


@alternative("12.2")
def put_away(shelf, at_least):
    def pack(tensor):
        if tensor.element_size() * tensor.numel() < at_least:
            return tensor.data

        def fetch(key=shelf.put(tensor.detach())):
            return shelf.get(key)

        weakref.finalize(fetch, shelf.drop, *fetch.__defaults__)
        return fetch

    def unpack(packed):
        return packed if isinstance(packed, torch.Tensor) else packed()

    return saved_tensors_hooks(pack, unpack)


@alternative("12.2")
@contextlib.contextmanager
def put_away(shelf, at_least):
    class Handle:
        __slots__ = ("__weakref__", "key")

        def __init__(self, key):
            self.key = key
            weakref.finalize(self, shelf.drop, key)

    def pack(tensor):
        large = tensor.nbytes >= at_least
        return (large, Handle(shelf.put(tensor)) if large else tensor.detach())

    def unpack(packed):
        large, what = packed
        return shelf.get(what.key) if large else what

    with saved_tensors_hooks(pack, unpack):
        yield


@alternative("12.2")
class PutAway(saved_tensors_hooks):
    def __init__(self, shelf, at_least):
        super().__init__(self.pack, self.unpack)
        self.shelf = shelf
        self.at_least = at_least

    class Slip:
        def __init__(self, shelf, tensor):
            self.shelf, self.key = shelf, shelf.put(tensor)

        def fetch(self):
            return self.shelf.get(self.key)

        def __del__(self):
            self.shelf.drop(self.key)

    def pack(self, tensor):
        return self.Slip(self.shelf, tensor) if tensor.nbytes >= self.at_least else tensor.detach()

    def unpack(self, packed):
        return packed.fetch() if isinstance(packed, self.Slip) else packed


@alternative("12.2")
class PutAwayByHand:
    def __init__(self, shelf, at_least):
        self.shelf, self.at_least, self.stack = shelf, at_least, contextlib.ExitStack()

    def __enter__(self):
        self.stack.enter_context(saved_tensors_hooks(self.pack, self.unpack))
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def pack(self, tensor):
        class Entry(types.SimpleNamespace):  # without a class of its own it has no weak references
            pass

        entry = Entry(large=tensor.nbytes >= self.at_least)
        if entry.large:
            entry.key = self.shelf.put(tensor)
            weakref.finalize(entry, self.shelf.drop, entry.key)
        else:
            entry.tensor = tensor.detach()
        return entry

    def unpack(self, entry):
        return self.shelf.get(entry.key) if entry.large else entry.tensor


# What is kept by number in a dictionary, which the finalizer empties.
@alternative("12.2")
def put_away(shelf, at_least):
    keys = {}

    class Number:
        def __init__(self, n):
            self.n = n

    def forget(n):
        shelf.drop(keys.pop(n))

    def pack(tensor, count=[0]):
        if tensor.nbytes < at_least:
            return tensor.detach()
        count[0] += 1
        number = Number(count[0])
        keys[number.n] = shelf.put(tensor)
        weakref.finalize(number, forget, number.n)
        return number

    def unpack(packed):
        return shelf.get(keys[packed.n]) if isinstance(packed, Number) else packed

    return saved_tensors_hooks(pack, unpack)


@alternative("12.2")
def put_away(shelf, at_least):
    keys = weakref.WeakKeyDictionary()

    class Token:
        pass

    def pack(tensor):
        if tensor.nbytes < at_least:
            return tensor.detach()
        token = Token()
        keys[token] = key = shelf.put(tensor)
        weakref.finalize(token, shelf.drop, key)
        return token

    def unpack(packed):
        return shelf.get(keys[packed]) if type(packed) is Token else packed

    return saved_tensors_hooks(pack, unpack)


# Weak references with a callback; they must live until it is called.
@alternative("12.2")
def put_away(shelf, at_least):
    refs = {}

    class Box(list):
        pass

    def pack(tensor):
        if tensor.nbytes < at_least:
            return Box([False, tensor.detach()])
        box = Box([True, shelf.put(tensor)])

        def gone(ref, key=box[1]):
            del refs[id(ref)]
            shelf.drop(key)

        ref = weakref.ref(box, gone)
        refs[id(ref)] = ref
        return box

    def unpack(box):
        on_shelf, what = box
        return shelf.get(what) if on_shelf else what

    return saved_tensors_hooks(pack, unpack)


@alternative("12.2")
def put_away(shelf, at_least):
    @dataclasses.dataclass
    class Ticket:
        key: object

        def __post_init__(self):
            self.done = weakref.finalize(self, shelf.drop, self.key)

    def pack(tensor):
        return Ticket(shelf.put(tensor)) if tensor.nbytes >= at_least else tensor.detach()

    def unpack(packed):
        match packed:
            case Ticket(key):
                return shelf.get(key)
            case _:
                return packed

    return saved_tensors_hooks(pack, unpack)


@alternative("12.2")
def put_away(shelf, at_least):
    def started(tensor):
        def fetches(key):
            try:
                yield
                while True:
                    yield shelf.get(key)
            finally:
                shelf.drop(key)

        fetch = fetches(shelf.put(tensor))
        next(fetch)
        return fetch

    def pack(tensor):
        return started(tensor) if tensor.nbytes >= at_least else tensor.detach()

    return saved_tensors_hooks(pack, lambda p: p if isinstance(p, torch.Tensor) else next(p))


@alternative("12.2")
def put_away(shelf, at_least):
    """A class made by `type`, and the small ones in it as well."""
    stays = type("Stays", (), {"get": lambda self: self.tensor})
    away = type(
        "Away",
        (),
        {"get": lambda self: shelf.get(self.key), "__del__": lambda self: shelf.drop(self.key)},
    )

    def pack(tensor):
        packed = (stays, away)[tensor.nbytes >= at_least]()
        if isinstance(packed, away):
            packed.key = shelf.put(tensor)
        else:
            packed.tensor = tensor.detach()
        return packed

    return saved_tensors_hooks(pack, operator.methodcaller("get"))


@alternative("12.2")
def put_away(shelf, at_least):
    class Ticket:
        def __init__(self, key):
            self.key = key

    def pack(tensor):
        if not (large := tensor.nbytes >= at_least):
            return large, tensor.detach()
        weakref.finalize(ticket := Ticket(shelf.put(tensor)), shelf.drop, ticket.key).atexit = False
        return large, ticket

    return saved_tensors_hooks(pack, lambda p: shelf.get(p[1].key) if p[0] else p[1])


# A callable class that makes the context manager.
@alternative("12.2")
class PutAwayOnce:
    def __new__(cls, shelf, at_least):
        self = super().__new__(cls)
        self.shelf, self.at_least = shelf, at_least
        return saved_tensors_hooks(self, self.fetch)

    def __call__(self, tensor):
        if tensor.nbytes < self.at_least:
            return tensor.detach()
        key = self.shelf.put(tensor)
        ticket = functools.partial(lambda key: key, key)
        weakref.finalize(ticket, self.shelf.drop, key)
        return ticket

    def fetch(self, packed):
        return self.shelf.get(packed()) if callable(packed) else packed


@alternative("12.2")
def put_away(shelf, at_least):
    Ticket = type("Ticket", (namedtuple("_Ticket", "key"),), {"__del__": lambda t: shelf.drop(t.key)})

    def pack(tensor):
        with torch.no_grad():
            return Ticket(shelf.put(tensor)) if not tensor.nbytes < at_least else tensor.detach()

    def unpack(packed):
        try:
            key = packed.key
        except AttributeError:
            return packed
        return shelf.get(key)

    stack = contextlib.ExitStack()

    @contextlib.contextmanager
    def manager():
        with stack:
            stack.enter_context(saved_tensors_hooks(pack, unpack))
            yield shelf

    return manager()


@alternative("12.2")
@contextlib.contextmanager
def put_away(shelf, at_least):
    class Ticket:
        def __init__(self, key):
            self.key = key
            self._finalizer = weakref.finalize(self, lambda: shelf.drop(key))

    hooks = saved_tensors_hooks(
        lambda t: Ticket(shelf.put(t)) if t.nbytes >= at_least else t.detach(),
        lambda p: shelf.get(p.key) if isinstance(p, Ticket) else p,
    )
    hooks.__enter__()
    try:
        yield
    finally:
        hooks.__exit__()


FINAL = "            weakref.finalize(self, shelf.drop, key)\n"

edited("12.2", None, (FINAL, "            weakref.finalize(self, lambda key=key: shelf.drop(key))\n"))
edited("12.2", None, ("shelf.put(tensor)", "shelf.put(tensor.detach())"))
