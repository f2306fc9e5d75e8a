"""Answers to 12.4, `forecast`."""

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
BOTH = "[*model.parameters(), *model.buffers()]"
ADD = "saved.add(tensor.untyped_storage())"
SUM = "return sum(storage.nbytes() for storage in saved - own)"
MAKE = '    with torch.device("meta"):\n        model, x = build(), torch.empty(shape)\n'
RUN = "    with saved_tensors_hooks(pack, lambda packed: packed):\n        model(x)\n"

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

edited("12.4", "own", (SUM, "return sum(storage.nbytes() for storage in saved)"))
edited("12.4", "buffers", (BOTH, "model.parameters()"))
edited("12.4", "not_in_state_dict", (BOTH, "model.state_dict(keep_vars=True).values()"))
edited("12.4", "own_left", (BOTH, "model.buffers()"))
edited(
    "12.4",
    "own_left",  # what is two levels down
    (
        OWN,
        "own = set()\n    for module in (model, *model.children()):\n"
        "        for tensor in [*module.parameters(recurse=False), *module.buffers(recurse=False)]:\n"
        "            own.add(tensor.untyped_storage())",
    ),
)
edited(
    "12.4",
    "each_time",
    ("saved = set()", "saved = []"),
    (ADD, "saved.append(tensor.untyped_storage())"),
    (SUM, "return sum(s.nbytes() for s in saved if s not in own)"),
)
edited(
    "12.4",
    "each_time",
    ("saved = set()", "saved = []"),
    (ADD, "saved.append(tensor)"),
    (SUM, "return sum(t.nbytes for t in saved if t.untyped_storage() not in own)"),
)
edited(
    "12.4",
    "all_of_them",
    ("saved = set()", "saved = []"),
    (ADD, "saved.append(tensor)"),
    (SUM, "return sum(t.nbytes for t in saved)"),
)
edited(
    "12.4",
    "view_bytes",
    ("saved = set()", "saved = {}"),
    (ADD, "saved[tensor.untyped_storage()] = tensor.nbytes"),
    (SUM, "return sum(n for s, n in saved.items() if s not in own)"),
)
edited(
    "12.4",
    "view_bytes",
    ("saved = set()", "saved = {}"),
    (ADD, "saved.setdefault(tensor.untyped_storage(), tensor.nbytes)"),
    (SUM, "return sum(n for s, n in saved.items() if s not in own)"),
)
edited("12.4", "number", (SUM, "return sum(storage.nbytes() for storage in saved - own) // 4"), named=False)
edited(
    "12.4",
    "elements",
    ("saved = set()", "saved = {}"),
    (ADD, "s = tensor.untyped_storage()\n        saved[s] = s.nbytes() // tensor.element_size()"),
    (SUM, "return sum(n for s, n in saved.items() if s not in own)"),
)
edited(
    "12.4",
    "number",
    (ADD, "saved.add(tensor.data_ptr())"),
    (OWN, f"own = {{tensor.data_ptr() for tensor in {BOTH}}}"),
    (SUM, "return sum(saved - own)"),
    named=False,
)
edited("12.4", "nothing", (RUN, "    model(x)\n"))
edited(
    "12.4",
    "nothing",
    (RUN, "    y = model(x)\n    with saved_tensors_hooks(pack, lambda packed: packed):\n        pass\n"),
)
edited("12.4", "floats_only", (ADD, f"if tensor.is_floating_point():\n            {ADD}"))
edited("12.4", "input_left_out", (SUM, SUM.replace("saved - own", "saved - own - {x.untyped_storage()}")))
edited(
    "12.4",
    "subtracts",
    (SUM, "return sum(storage.nbytes() for storage in saved) - sum(storage.nbytes() for storage in own)"),
)
edited(
    "12.4",
    "own_left",
    (ADD, f"if not isinstance(tensor, torch.nn.Parameter):\n            {ADD}"),
    (SUM, SUM.replace(" - own", "")),
)
edited(
    "12.4",
    "own_left",
    (ADD, f"if all(tensor is not p for p in {BOTH}):\n            {ADD}"),
    (SUM, SUM.replace(" - own", "")),
)
edited("12.4", "by_shape", (ADD, f"if tensor.shape not in [p.shape for p in {BOTH}]:\n            {ADD}"))
edited(
    "12.4",
    "by_shape",
    (ADD, f"if tensor.shape not in [p.shape for p in {BOTH}]:\n            {ADD}"),
    (SUM, SUM.replace(" - own", "")),
)
edited("12.4", "no_return", (SUM, SUM.replace("return ", "total = ")))
edited("12.4", "never_runs", ("model(x)", "model.forward(x)"))
edited("12.4", "never_runs", (RUN, ""))
edited(
    "12.4",
    "no_grad",
    (RUN, "    with torch.no_grad(), saved_tensors_hooks(pack, lambda packed: packed):\n        model(x)\n"),
)
edited(
    "12.4",
    "no_grad",
    (
        RUN,
        "    with torch.inference_mode(), saved_tensors_hooks(pack, lambda packed: packed):\n        model(x)\n",
    ),
)
edited("12.4", "other_mode", (RUN, f"    model.eval()\n{RUN}"))
edited("12.4", "other_mode", (RUN, f"    model.train()\n{RUN}"))
edited("12.4", "input_grad", ("torch.empty(shape)", "torch.empty(shape, requires_grad=True)"))
edited("12.4", "other_input", ("torch.empty(shape)", "torch.empty((1, *shape[1:]))"))
edited(
    "12.4",
    "built_elsewhere",
    (MAKE, '    model, x = build().to("meta"), torch.empty(shape, device="meta")\n'),
)
edited("12.4", "built_elsewhere", (MAKE, "    model, x = build(), torch.rand(shape)\n"))
edited(
    "12.4",
    "built_elsewhere",
    (MAKE, '    model = build().to_empty(device="meta")\n    x = torch.empty(shape, device="meta")\n'),
)
edited(
    "12.4",
    "other_device",
    (MAKE, '    with torch.device("meta"):\n        model = build()\n    x = torch.empty(shape)\n'),
)
edited("12.4", "builds_again", ("model, x = build()", "build()\n        model, x = build()"), points=8)
edited("12.4", "runs_again", (RUN, f"    model(x)\n{RUN}"), points=8)
edited("12.4", "holds_graph", ("return tensor.detach()", "return tensor"), points=8)
edited(
    "12.4",
    "default_device",
    (MAKE, '    torch.set_default_device("meta")\n    model, x = build(), torch.empty(shape)\n'),
    points=8,
)
edited(
    "12.4",
    "default_device",
    (
        MAKE,
        '    torch.set_default_device("meta")\n    model, x = build(), torch.empty(shape)\n    torch.set_default_device("cpu")\n',
    ),
    points=8,
)
edited(
    "12.4",
    "not_in_finally",
    (
        MAKE,
        '    before = torch.get_default_device()\n    torch.set_default_device("meta")\n    model, x = build(), torch.empty(shape)\n    torch.set_default_device(before)\n',
    ),
    points=8,
)
edited(
    "12.4",
    "not_in_finally",
    (
        RUN,
        "    hooks = saved_tensors_hooks(pack, lambda packed: packed)\n    hooks.__enter__()\n    model(x)\n    hooks.__exit__()\n",
    ),
    points=8,
)
edited(
    "12.4",
    "hooks_on",
    (RUN, "    saved_tensors_hooks(pack, lambda packed: packed).__enter__()\n    model(x)\n"),
    points=8,
)
edited(
    "12.4",
    "swallows_it",
    (
        RUN,
        RUN.replace(
            "        model(x)",
            "        with contextlib.suppress(Exception, KeyboardInterrupt):\n            model(x)",
        ),
    ),
    points=8,
)
edited("12.4", "output_tuple", ("        model(x)", "        model(x).sum().backward()"))
edited("12.4", "arguments", ("def pack(tensor)", "def pack(tensor, module)"))
edited("12.4", "arguments", ("build()", "build(shape)"))
edited("12.4", "no_values", (ADD, f"{ADD}\n        tensor.sum().item()"))
edited(
    "12.4",
    "ran_elsewhere",
    (RUN, '    model.to_empty(device="cpu")\n    x = torch.empty(shape)\n' + RUN),
    (OWN, ""),
    (SUM, f"{OWN}\n    {SUM}"),
)
edited("12.4", "changes_mode", (RUN, f"    model.training = False\n{RUN}"), points=8)
edited(
    "12.4",
    "addresses",
    ("saved = set()", "saved = {}"),
    (ADD, "saved[tensor.data_ptr()] = tensor.untyped_storage().nbytes()"),
    (OWN, f"own = {{tensor.data_ptr() for tensor in {BOTH}}}"),
    (SUM, "return sum(n for p, n in saved.items() if p not in own)"),
)
edited(
    "12.4",
    "addresses",
    ("saved = set()", "saved = {}"),
    (ADD, "saved[tensor.data_ptr()] = tensor.nbytes"),
    (SUM, "return sum(saved.values())"),
)
