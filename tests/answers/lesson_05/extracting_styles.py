"""More answers to 05.3, `extracting`: other styles, and what strangers got past the check."""

from collections import OrderedDict
from contextlib import AbstractContextManager, ContextDecorator, ExitStack, contextmanager
from functools import partial, reduce
from operator import attrgetter

import torch
from torch import nn

from tests.answers import alternative, edited, mistake


@alternative("05.3")
class AsStack(ExitStack):
    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def __enter__(self):
        super().__enter__()
        seen = OrderedDict()
        modules = [(name, self.model.get_submodule(name)) for name in self.names]
        for name, module in modules:
            self.enter_context(module.register_forward_hook(partial(self.keep, seen, name)))
        return seen

    @staticmethod
    def keep(seen, name, module, args, output):
        seen[name] = output.detach()


@alternative("05.3")
class AsDecorator(ContextDecorator, AbstractContextManager):
    def __init__(self, model, names):
        self.model, self.names, self.handles = model, names, []

    def __enter__(self):
        seen = {}

        def keeper(name):
            return lambda module, args, output: seen.update({name: output.detach()})

        try:
            for name in self.names:
                module = self.model.get_submodule(name)
                self.handles.append(module.register_forward_hook(keeper(name)))
        except AttributeError:
            self.__exit__(None, None, None)
            raise
        return seen

    def __exit__(self, *error):
        while self.handles:
            self.handles.pop().remove()
        return False


@alternative("05.3")
@contextmanager
def extracting(model, names):
    wanted = {attrgetter(name)(model): name for name in names}
    seen = dict.fromkeys(names)

    def keep(module, args, output):
        if (name := wanted.get(module)) is not None:
            seen[name] = output.detach()

    with nn.modules.module.register_module_forward_hook(keep):
        yield seen


@alternative("05.3")
@contextmanager
def extracting(model, names):
    class Seen(dict):
        def keeper(self, name):
            return lambda module, args, output: self.__setitem__(name, output.detach().clone())

    seen, handles = Seen(), {}
    try:
        for name in names:
            module = reduce(getattr, name.split("."), model)
            handles[name] = module.register_forward_hook(seen.keeper(name))
        yield seen
    finally:
        for name, handle in handles.items():
            handle.remove()


@alternative("05.3")
@contextmanager
def extracting(model, names):
    seen = {}

    def keep(module, args, output):
        for name, known in modules.items():
            if known is module:
                seen[name] = torch.from_numpy(output.detach().numpy().copy())

    modules = {name: model.get_submodule(name) for name in names}
    handles = {module.register_forward_hook(keep) for module in modules.values()}
    try:
        yield seen
    except BaseException:
        raise
    finally:
        [*map(torch.utils.hooks.RemovableHandle.remove, handles)]


@mistake("05.3", "shared_dict")
@contextmanager
def extracting(model, names, seen={}):
    handles = []

    def keep(name, module, args, output):
        seen[name] = output.detach()

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


edited(
    "05.3",
    "swallows_error",
    ("    finally:", "    except RuntimeError as error:\n        print(error)\n    finally:"),
    points=7,
)
edited(
    "05.3",
    "swallows_error",
    ("    finally:", "    except KeyboardInterrupt:\n        pass\n    finally:"),
    points=7,
)
edited(
    "05.3",
    "swallows_error",
    ("            handle.remove()", "            handle.remove()\n        return"),
    points=6,
)
edited(
    "05.3",
    "clears_seen",
    ("            handle.remove()", "            handle.remove()\n        seen.clear()"),
    points=7,
)
edited(
    "05.3", "changes_names", ("for name in names:", "while names:\n            name = names.pop(0)"), points=7
)
edited("05.3", "calls_now", ("partial(keep, name)", "keep(name, module, (), torch.ones(1))"))
edited(
    "05.3",
    "attached",
    ("output.detach()", "output"),
    (
        "    finally:",
        "    finally:\n        seen.update({name: kept.detach() for name, kept in seen.items()})",
    ),
    points=7,
)
edited("05.3", "switches_mode", ("    try:", "    model.eval()\n    try:"), points=7)
edited("05.3", "no_grad_inside", ("    try:", "    torch.set_grad_enabled(False)\n    try:"))
edited(
    "05.3", "no_grad_inside", ("        yield seen", "        with torch.no_grad():\n            yield seen")
)
edited(
    "05.3",
    "leaves_no_grad",
    ("    finally:", "        torch.set_grad_enabled(False)\n    finally:"),
    points=7,
)
edited("05.3", "first_only", ("seen[name] = output.detach()", "seen.setdefault(name, output.detach())"))
edited("05.3", "clears_gradients", ("    finally:", "    finally:\n        model.zero_grad()"), points=7)
edited("05.3", "other_dtype", ("output.detach()", "torch.tensor(output.tolist())"))
edited("05.3", "detaches_in_place", ("output.detach()", "output.detach_()"))
edited("05.3", "freezes", ("    try:", "    model.requires_grad_(False)\n    try:"))
edited(
    "05.3",
    "only_training",
    ("        seen[name] =", "        if module.training:\n            seen[name] ="),
)
edited(
    "05.3",
    "replaces_error",
    (
        "    finally:",
        "    except RuntimeError as e:\n        raise RuntimeError('failed') from e\n    finally:",
    ),
    points=7,
)
edited("05.3", "sees", ("in names:", "in names[:1]:"), named=False)
edited(
    "05.3", "adds_up", ("seen[name] = output.detach()", "seen[name] = seen.get(name, 0) + output.detach()")
)
edited("05.3", "lists", ("seen[name] = output.detach()", "seen.setdefault(name, []).append(output.detach())"))
edited("05.3", "lists", ("seen[name] = output.detach()", "seen[name] = [output.detach()]"))
edited("05.3", "too_many_names", ("for name in names:", "for name, _ in model.named_modules():"))
edited("05.3", "wrong_keys", ("partial(keep, name)", "partial(keep, name.split('.')[-1])"))
edited("05.3", "wrong_keys", ("partial(keep, name)", "partial(keep, module)"))
edited("05.3", "keeps_input", ("output.detach()", "args[0].detach()"))
edited("05.3", "never_removes", ("            handle.remove()", "            pass"), points=5)
edited(
    "05.3",
    "never_removes",
    ("            handle.remove()", "            pass\n        handle.remove()"),
    points=4,
)
edited(
    "05.3",
    "yields_twice",
    ("    finally:", "    except Exception:\n        yield seen\n    finally:"),
    points=6,
)
edited(
    "05.3",
    "ignores_bad_name",
    (
        "            module = model.get_submodule(name)\n",
        "            try:\n                module = model.get_submodule(name)\n            except AttributeError:\n                continue\n",
    ),
    points=7,
)
edited("05.3", "not_tensors", ("output.detach()", "output.detach().tolist()"))


@mistake("05.3", "misses_interrupt", points=7)
@contextmanager
def extracting(model, names):
    seen, handles = {}, []

    def keep(name, module, args, output):
        seen[name] = output.detach()

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(partial(keep, name)))
        yield seen
    except Exception:
        for handle in handles:
            handle.remove()
        raise
    for handle in handles:
        handle.remove()


@mistake("05.3", "hooks", points=7)
class Early:
    def __init__(self, model, names):
        self.seen, self.stack = {}, ExitStack()
        with ExitStack() as stack:
            for name in names:
                keep = partial(self.keep, name)
                stack.enter_context(model.get_submodule(name).register_forward_hook(keep))
            self.stack = stack.pop_all()

    def keep(self, name, module, args, output):
        self.seen[name] = output.detach()

    def __enter__(self):
        return self.seen

    def __exit__(self, *error):
        self.stack.close()


@mistake("05.3", "swallows_error", points=7)
class Quiet:
    def __init__(self, model, names):
        self.modules = {name: model.get_submodule(name) for name in names}

    def __enter__(self):
        self.seen = {}
        self.handles = [m.register_forward_hook(partial(self.keep, n)) for n, m in self.modules.items()]
        return self.seen

    def keep(self, name, module, args, output):
        self.seen[name] = output.detach()

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()
        return True


@mistake("05.3", "like_named")
@contextmanager
def extracting(model, names):
    seen, handles = {}, []
    try:
        for name in names:
            module = next((m for n, m in model.named_modules() if n.endswith(name)), None)
            if module is None:
                raise AttributeError(name)
            handles.append(
                module.register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.detach()}))
            )
        yield seen
    finally:
        for handle in handles:
            handle.remove()


edited(
    "05.3",
    "never_removes",
    ("            handle.remove()", "            handle.remove()\n            handles.remove(handle)"),
    points=5,
)
edited(
    "05.3",
    "no_grad_inside",
    ("    try:", "    torch.set_grad_enabled(False)\n    try:"),
    ("seen[name] = output.detach()", "seen.setdefault(name, output.detach())"),
)
