"""Wrong answers to 12.2, `put_away`, that go by something else than autograd letting go."""

import contextlib
import weakref

from torch.autograd.graph import saved_tensors_hooks

from tests.answers import edited, mistake

FINAL = "            weakref.finalize(self, shelf.drop, key)\n"
UNPACK = "return shelf.get(packed.key) if isinstance(packed, Ticket) else packed"
LAST = "return saved_tensors_hooks(pack, unpack)"
INIT = "def __init__(self, key):\n            self.key = key\n" + FINAL
DEL = "def __init__(self, key):\n            self.key = key\n\n        def __del__(self):\n"


edited(
    "12.2",
    "not_all",
    (INIT, f"{DEL}            if self.key is not None:\n                shelf.drop(self.key)\n"),
    points=10,
)
edited(
    "12.2",
    "unhashable",
    (INIT, f"{DEL}            if self.key not in set():\n                shelf.drop(self.key)\n"),
    points=10,
)
edited(
    "12.2",
    "compares",
    (
        INIT,
        f"{DEL}            if self.key or not self.key:\n                shelf.drop(self.key)\n",
    ),
    points=10,
)
edited(
    "12.2",
    "twice",
    (INIT, f"{DEL}            shelf.drop(self.key)\n            shelf.drop(self.key)\n"),
    points=11,
)
edited("12.2", "drops_other", (FINAL, FINAL.replace("drop, key", "drop, (key,)")), points=10)
edited(
    "12.2",
    "fetches_early",
    ("Ticket(shelf.put(tensor))", "[(ticket := Ticket(shelf.put(tensor))), shelf.get(ticket.key)][0]"),
    points=11,
)
edited(
    "12.2",
    "fetches_again",
    (UNPACK, UNPACK.replace("shelf.get(packed.key)", "[shelf.get(packed.key), shelf.get(packed.key)][1]")),
    points=11,
)
edited(
    "12.2",
    "holds_output",
    ("self, key)", "self, key, graph)"),
    ("= key\n", "= key\n            self.graph = graph\n"),
    ("put(tensor))", "put(tensor), tensor.grad_fn)"),
    points=11,
)
edited(
    "12.2",
    "compares_key",
    (
        UNPACK,
        "return shelf.get(packed.key) if isinstance(packed, Ticket) and (packed.key or True) else packed",
    ),
)
edited(
    "12.2",
    "swallows_it",
    (
        LAST,
        "@contextlib.contextmanager\n    def manager():\n        with saved_tensors_hooks(pack, unpack), contextlib.suppress(BaseException):\n            yield\n\n    return manager()",
    ),
    points=12,
)
edited(
    "12.2",
    "stays_on_raised",
    (
        LAST,
        "@contextlib.contextmanager\n    def manager():\n        hooks = saved_tensors_hooks(pack, unpack)\n        hooks.__enter__()\n        yield\n        hooks.__exit__()\n\n    return manager()",
    ),
    points=12,
)
edited(
    "12.2",
    "on_at_once",
    (
        LAST,
        "hooks = saved_tensors_hooks(pack, unpack)\n    hooks.__enter__()\n    stack = contextlib.ExitStack()\n    stack.callback(hooks.__exit__)\n    return stack",
    ),
)
edited(
    "12.2",
    "stays_on",
    (
        LAST,
        "@contextlib.contextmanager\n    def manager():\n        saved_tensors_hooks(pack, unpack).__enter__()\n        yield\n\n    return manager()",
    ),
    points=12,
)
edited(
    "12.2",
    "keeps_fetched",
    (
        UNPACK,
        "if isinstance(packed, Ticket) and not hasattr(packed, 'value'):\n            packed.value = shelf.get(packed.key)\n        return packed.value if isinstance(packed, Ticket) else packed",
    ),
    points=12,
)


@mistake("12.2", "only_after_use", points=12)
def put_away(shelf, at_least):
    class Ticket:
        used = False

        def __init__(self, key):
            self.key = key

        def __del__(self):
            if self.used:
                shelf.drop(self.key)

    def pack(tensor):
        return Ticket(shelf.put(tensor)) if tensor.nbytes >= at_least else tensor.detach()

    def unpack(packed):
        if not isinstance(packed, Ticket):
            return packed
        packed.used = True
        return shelf.get(packed.key)

    return saved_tensors_hooks(pack, unpack)


@mistake("12.2", "within", points=11)
def put_away(shelf, at_least):
    class Ticket:
        def __init__(self, key):
            self.key, self.uses = key, 0

    def pack(tensor):
        return Ticket(shelf.put(tensor)) if tensor.nbytes >= at_least else tensor.detach()

    def unpack(packed):
        if not isinstance(packed, Ticket):
            return packed
        tensor = shelf.get(packed.key)
        packed.uses += 1
        if packed.uses == 2:
            shelf.drop(packed.key)
        return tensor

    return saved_tensors_hooks(pack, unpack)


# One object for all that is saved in one go.
@mistake("12.2", "all_at_the_end", points=11)
def put_away(shelf, at_least):
    class Batch:
        pass

    latest = [None]

    def finish(keys):
        for key in keys:
            shelf.drop(key)

    def pack(tensor):
        if tensor.nbytes < at_least:
            return None, tensor.detach()
        batch = latest[0] and latest[0]()
        if batch is None:
            batch = Batch()
            batch.keys = []
            weakref.finalize(batch, finish, batch.keys)
            latest[0] = weakref.ref(batch)
        batch.keys.append(shelf.put(tensor))
        return batch, len(batch.keys) - 1

    def unpack(packed):
        batch, what = packed
        return what if batch is None else shelf.get(batch.keys[what])

    return saved_tensors_hooks(pack, unpack)


@mistake("12.2", "unhashable_key")
def put_away(shelf, at_least):
    references = {}

    class Ticket:
        def __init__(self, key):
            self.key = key

    def pack(tensor):
        if tensor.nbytes < at_least:
            return tensor.detach()
        ticket = Ticket(shelf.put(tensor))
        references[ticket.key] = weakref.ref(ticket, lambda ref: shelf.drop(ticket.key))
        return ticket

    return saved_tensors_hooks(pack, lambda p: shelf.get(p.key) if isinstance(p, Ticket) else p)


@mistake("12.2", "one_for_all")
def put_away(shelf, at_least):
    global _shelf
    _shelf = shelf

    class Ticket:
        def __init__(self, tensor):
            self.key = _shelf.put(tensor)
            weakref.finalize(self, _shelf.drop, self.key)

    def pack(tensor):
        return Ticket(tensor) if tensor.nbytes >= at_least else tensor.detach()

    return saved_tensors_hooks(pack, lambda p: _shelf.get(p.key) if isinstance(p, Ticket) else p)


# Dropped at the end of the `with`, when nothing has been used yet.
@mistake("12.2", "before_use", points=9)
@contextlib.contextmanager
def put_away(shelf, at_least):
    keys = []

    def pack(tensor):
        if tensor.nbytes < at_least:
            return tensor.detach()
        keys.append(shelf.put(tensor))
        return (keys[-1],)

    with saved_tensors_hooks(pack, lambda p: shelf.get(p[0]) if isinstance(p, tuple) else p):
        yield
    for key in keys:
        shelf.drop(key)


@mistake("12.2", "key_for_tensor")
def put_away(shelf, at_least):
    def pack(tensor):
        return shelf.put(tensor) if tensor.nbytes >= at_least else tensor.detach()

    def unpack(packed):
        return packed if hasattr(packed, "dtype") else shelf.get(packed)

    return saved_tensors_hooks(pack, unpack)


# The list keeps every object.
@mistake("12.2", "never_drops", points=10)
def put_away(shelf, at_least):
    tickets = []

    class Ticket:
        def __init__(self, key):
            self.key = key
            weakref.finalize(self, shelf.drop, key)

    def pack(tensor):
        if tensor.nbytes < at_least:
            return tensor.detach()
        tickets.append(Ticket(shelf.put(tensor)))
        return tickets[-1]

    def unpack(packed):
        return shelf.get(packed.key) if packed in tickets else packed

    return saved_tensors_hooks(pack, unpack)


# What lies where something lay before gets the same object.
@mistake("12.2", "once_each")
def put_away(shelf, at_least):
    class Ticket:
        def __init__(self, key):
            self.key = key
            weakref.finalize(self, shelf.drop, key)

    last = [None, None]

    def pack(tensor):
        if tensor.nbytes < at_least:
            return tensor.detach()
        if last[0] != (tensor.data_ptr(), tensor.shape, tensor.dtype):
            last[:] = (tensor.data_ptr(), tensor.shape, tensor.dtype), Ticket(shelf.put(tensor))
        return last[1]

    return saved_tensors_hooks(pack, lambda p: shelf.get(p.key) if isinstance(p, Ticket) else p)
