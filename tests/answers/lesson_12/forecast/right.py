"""Right answers to 12.4, `forecast`."""

import contextlib
import itertools
import weakref

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.weak import WeakIdKeyDictionary

from tests.answers import alternative, edited


@alternative("12.4")
def forecast(build, shape):
    with torch.device("meta"):
        model = build()
        x = torch.empty(shape, dtype=torch.float32)
    own = [t.untyped_storage() for t in itertools.chain(model.parameters(), model.buffers())]
    storages = []

    def pack(tensor):
        storage = tensor.untyped_storage()
        if not any(storage is other for other in own + storages):
            storages.append(storage)
        return tensor.detach()

    def unpack(packed):
        return packed

    with saved_tensors_hooks(pack, unpack):
        model(x)
    return sum(storage.nbytes() for storage in storages)


# All inside of both contexts; `pack` keeps nothing for backward.
@alternative("12.4")
def forecast(build, shape):
    seen = {}
    with torch.device("meta"):
        model, x = build(), torch.zeros(*shape)
        with saved_tensors_hooks(lambda t: seen.setdefault(t.untyped_storage()), lambda p: p):
            y = model(x)
    for tensor in [*model.parameters(), *model.buffers()]:
        seen.pop(tensor.untyped_storage(), None)
    del y
    return sum(map(torch.UntypedStorage.nbytes, seen))


@alternative("12.4")
def forecast(build, shape):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.device("meta"))
        model = build()
        known = {id(s): s for s in (t.untyped_storage() for t in [*model.parameters(), *model.buffers()])}
        total = 0

        def pack(tensor):
            nonlocal total
            if id(storage := tensor.untyped_storage()) not in known:
                known[id(storage)] = storage
                total += storage.nbytes()
            return tensor.data

        stack.enter_context(saved_tensors_hooks(pack, lambda tensor: tensor))
        model(torch.rand(shape))
    return total


@alternative("12.4")
class Forecast:
    def __new__(cls, build, shape):
        self = super().__new__(cls)
        self.storages = set()
        with torch.device("meta"):
            self.model = build()
            self.run(torch.empty(shape))
        return self.total()

    def run(self, x):
        with saved_tensors_hooks(self.pack, self.unpack):
            self.model(x)

    def pack(self, tensor):
        self.storages.add(tensor.untyped_storage())
        return tensor.detach()

    def unpack(self, packed):
        return packed

    def total(self):
        for tensor in self.model.parameters():
            self.storages.discard(tensor.untyped_storage())
        for tensor in self.model.buffers():
            self.storages.discard(tensor.untyped_storage())
        return sum(storage.nbytes() for storage in self.storages)


@alternative("12.4")
class ForecastHooks(saved_tensors_hooks):
    def __new__(cls, build, shape):
        with torch.device("meta"):
            model = build()
            x = torch.empty(shape)
        hooks = super().__new__(cls)
        hooks.seen = {}
        super().__init__(hooks, hooks.pack, hooks.unpack)
        with hooks:
            y = model(x)
        for t in [*model.parameters(), *model.buffers()]:
            hooks.seen.pop(t.untyped_storage()._cdata, None)
        return sum(t.untyped_storage().nbytes() for t in hooks.seen.values())

    def pack(self, tensor):
        tensor = tensor.detach()
        self.seen[tensor.untyped_storage()._cdata] = tensor
        return tensor

    def unpack(self, tensor):
        return tensor


@alternative("12.4")
def forecast(build, shape):
    before = torch.get_default_device()
    torch.set_default_device("meta")
    try:
        model, x = build(), torch.empty(shape)
    finally:
        torch.set_default_device(before)
    saved = []
    with saved_tensors_hooks(lambda t: saved.append(t.detach()) or saved[-1], lambda t: t):
        model(x)
    sizes = {t.untyped_storage(): t.untyped_storage().nbytes() for t in saved}
    for tensor in model.buffers():
        sizes[tensor.untyped_storage()] = 0
    for tensor in model.parameters():
        sizes[tensor.untyped_storage()] = 0
    return sum(sizes.values())


# Counted after the forward pass: what is still alive then.
@alternative("12.4")
def forecast(build, shape):
    with torch.device("meta"):
        model, x = build(), torch.empty(size=shape)
    alive = weakref.WeakSet()

    def pack(tensor):
        alive.add(tensor.untyped_storage())
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda packed: packed):
        output = model(x)
    own = weakref.WeakSet(t.untyped_storage() for t in [*model.parameters(), *model.buffers()])
    total = sum(storage.nbytes() for storage in alive if storage not in own)
    del output
    return total


@alternative("12.4")
def forecast(build, shape):
    """The walk over all modules, and the default device set and reset."""

    def make(*steps):
        before = torch.get_default_device()
        torch.set_default_device("meta")
        try:
            return [step() for step in steps]
        finally:
            torch.set_default_device(before)

    model, x = make(build, lambda: torch.ones(shape))
    saved, own = set(), set()
    for module in model.modules():
        own.update(p.untyped_storage() for p in module.parameters(recurse=False))
        own.update(b.untyped_storage() for b in module.buffers(recurse=False))

    @contextlib.contextmanager
    def watching():
        def pack(tensor):
            saved.add(tensor.untyped_storage())
            return tensor.detach()

        with saved_tensors_hooks(pack, lambda packed: packed):
            yield

    with watching():
        model(x)
    return sum(s.nbytes() for s in saved.difference(own))


@alternative("12.4")
def forecast(build, shape):
    with torch.device("meta"):
        model = build()
    x = torch.empty(shape, device="meta")
    own = {t.untyped_storage() for t in (*model.parameters(), *model.buffers())}
    bytes_of = {}

    class Counter:
        def __call__(self, tensor):
            storage = tensor.untyped_storage()
            if storage not in own:
                bytes_of[storage] = storage.size()
            return None

    with torch.autograd.graph.saved_tensors_hooks(Counter(), lambda nothing: x):
        model(x)
    return sum(bytes_of.values())


@alternative("12.4")
def forecast(build, shape):
    with torch.device("meta"):
        model, x = build(), torch.empty(shape)
    saved = WeakIdKeyDictionary()

    def note(tensor):
        saved[tensor.untyped_storage()] = True
        return tensor.detach()

    with saved_tensors_hooks(note, note):
        out = model(x)
        for own in [*model.parameters(), *model.buffers()]:
            saved[own.untyped_storage()] = False
    total = sum(storage.nbytes() for storage, counts in saved.items() if counts)
    return total if out is not None else 0


# Walks the graph afterwards; no hooks at all.
@alternative("12.4")
def forecast(build, shape):
    with torch.device("meta"):
        model, x = build(), torch.empty(shape)
    out = []

    def pack(tensor):
        out.append(tensor.untyped_storage())
        return tensor.detach()

    hooks = saved_tensors_hooks(pack, lambda p: p)
    hooks.__enter__()
    try:
        model(x)
    finally:
        hooks.__exit__()
    own = {s._cdata for s in [t.untyped_storage() for t in [*model.parameters(), *model.buffers()]]}
    by_address = {s._cdata: s.nbytes() for s in out}
    return sum(n for address, n in by_address.items() if address not in own)


OWN = "own = {tensor.untyped_storage() for tensor in [*model.parameters(), *model.buffers()]}"
SUM = "return sum(storage.nbytes() for storage in saved - own)"

edited(
    "12.4",
    None,
    (OWN, "own = {t.untyped_storage() for t in itertools.chain(model.buffers(), model.parameters())}"),
)
edited("12.4", None, ("return tensor.detach()", "return None"))
edited("12.4", None, ("return tensor.detach()", "return tensor.shape"))
edited("12.4", None, (SUM, "return sum(s.nbytes() for s in saved if s not in own)"))
edited(
    "12.4", None, (SUM, "return sum([s.nbytes() for s in saved]) - sum([s.nbytes() for s in saved & own])")
)
