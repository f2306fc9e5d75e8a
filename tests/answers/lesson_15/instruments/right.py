"""Right answers to 15.1, `instruments`."""

from contextlib import ExitStack, contextmanager
from functools import partial

import torch

import tests.answers
from hookedu import list_hooks
from tests.answers import alternative


@alternative("15.1")
@contextmanager
def instruments(model):
    rows, handles = [], []

    def begin(model, args):
        rows.append({})

    def note(name, module, args, output):
        entry = rows[-1][name] = [output.norm().item(), None]

        def arrived(grad):
            entry[1] = grad.norm().item()

        if output.requires_grad:
            output.register_hook(arrived)

    try:
        handles.append(model.register_forward_pre_hook(begin))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(note, name)))
        yield rows
    finally:
        for handle in handles:
            handle.remove()


edited = partial(tests.answers.edited, of=instruments)


@alternative("15.1")
class Instruments:
    def __init__(self, model):
        self.model, self.rows, self.handles = model, [], []

    def __enter__(self):
        self.handles.append(self.model.register_forward_pre_hook(self.begin))
        for name, module in self.model.named_modules():
            if not [*module.children()]:
                self.handles.append(module.register_forward_hook(partial(self.look, name)))
        return self.rows

    def begin(self, module, args):
        self.rows.append({})

    def look(self, name, module, args, output):
        pair = [output.detach().norm().item(), None]
        self.rows[-1][name] = pair
        if output.requires_grad:
            output.register_hook(lambda grad: self.arrived(pair, grad))

    @staticmethod
    def arrived(pair, grad):
        pair[1] = float(grad.norm())

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()


@alternative("15.1")
@contextmanager
def instruments(model):
    with ExitStack() as stack:
        rows = []
        stack.enter_context(model.register_forward_pre_hook(lambda *_: rows.append({})))

        def look(module, args, output, name):
            row = rows[-1]
            row[name] = [float(torch.linalg.vector_norm(output.detach())), None]
            if output.grad_fn is not None:
                output.register_hook(lambda g: row[name].__setitem__(1, float(torch.linalg.vector_norm(g))))

        for name, module in model.named_modules():
            if len(list(module.children())) == 0:
                stack.enter_context(module.register_forward_hook(partial(look, name=name)))
        yield rows


@alternative("15.1")
@contextmanager
def instruments(model):
    rows = []

    def hook_for(name):
        def hook(module, args, output):
            values = [output.pow(2).sum().sqrt().item(), None]
            rows[-1][name] = values

            def back(grad):
                values[1] = grad.pow(2).sum().sqrt().item()

            if output.requires_grad:
                output.register_hook(back)

        return hook

    handles = [
        module.register_forward_hook(hook_for(name))
        for name, module in model.named_modules()
        if not module._modules
    ]
    handles += [model.register_forward_pre_hook(lambda module, args: rows.append({}))]
    try:
        yield rows
    finally:
        [handle.remove() for handle in handles]


@alternative("15.1")
@contextmanager
def instruments(model):
    rows, current, handles = [], {}, []

    def begin(module, args):
        nonlocal current
        current = {}
        rows.append(current)

    def note(module, args, output, *, name):
        row = current
        row[name] = [output.detach().clone().flatten().norm().item(), None]
        if torch.is_grad_enabled() and output.requires_grad:

            def arrived(grad, row=row, name=name):
                row[name] = [row[name][0], grad.norm().item()]

            output.register_hook(arrived)

    try:
        handles += [model.register_forward_pre_hook(begin)]
        for name, module in model.named_modules():
            if any(True for _ in module.children()):
                continue
            handles += [module.register_forward_hook(partial(note, name=name))]
        yield rows
    finally:
        while handles:
            handles.pop().remove()


@alternative("15.1")
@contextmanager
def instruments(model):
    # A forward hook of the model comes after those of its layers: it closes the row.
    names = {module: name for name, module in model.named_modules() if not list(module.children())}
    rows = []

    def begin(module, args):
        rows.append({})

    def note(module, args, output):
        entry = rows[-1].setdefault(names[module], [None, None])
        entry[0] = torch.norm(output.detach()).item()
        try:
            output.register_hook(partial(arrived, entry))
        except RuntimeError:
            pass

    def arrived(entry, grad):
        entry[1] = torch.norm(grad).item()

    handles = [model.register_forward_pre_hook(begin)]
    try:
        handles.extend(module.register_forward_hook(note) for module in names)
        yield rows
    finally:
        for handle in handles:
            handle.remove()


@alternative("15.1")
@contextmanager
def instruments(model):
    """Put a global hook on all modules, and sort out those of the model."""
    names = {id(m): n for n, m in model.named_modules() if not list(m.children())}
    rows = []

    def note(module, args, output):
        if id(module) not in names:
            return
        entry = [output.norm().item(), None]
        rows[-1][names[id(module)]] = entry
        if output.requires_grad:
            output.register_hook(lambda grad: entry.__setitem__(1, grad.norm().item()))

    first = torch.nn.modules.module.register_module_forward_hook(note)
    second = model.register_forward_pre_hook(lambda m, a: rows.append({}))
    try:
        yield rows
    finally:
        first.remove()
        second.remove()


@alternative("15.1")
def instruments(model):
    class Manager:
        def __enter__(self):
            self.rows, self.stack = [], ExitStack()
            rows, stack = self.rows, self.stack

            def watch(name, module):
                def look(module, args, kwargs, output):
                    row = rows[-1]
                    row[name] = [output.norm(p=2).item(), None]
                    if output.requires_grad:
                        output.register_hook(
                            lambda grad: row.update({name: [row[name][0], grad.norm(p=2).item()]})
                        )

                stack.callback(module.register_forward_hook(look, with_kwargs=True).remove)

            stack.callback(
                model.register_forward_pre_hook(lambda m, a, k: rows.append({}), with_kwargs=True).remove
            )
            for name, module in model.named_modules():
                if not list(module.children()):
                    watch(name, module)
            return rows

        def __exit__(self, kind, value, trace):
            self.stack.close()
            return False

    return Manager()


@alternative("15.1")
@contextmanager
def instruments(model):
    """Replace `forward` of the leaves for a while, without any forward hook."""
    leaves = {n: m for n, m in model.named_modules() if not list(m.children())}
    rows = []

    def wrapped(name, module, forward):
        def call(*args, **kwargs):
            output = forward(*args, **kwargs)
            entry = rows[-1][name] = [output.norm().item(), None]
            if output.requires_grad:
                output.register_hook(lambda grad: entry.__setitem__(1, grad.norm().item()))
            return output

        return call

    handle = model.register_forward_pre_hook(lambda m, a: rows.append({}))
    for name, module in leaves.items():
        module.forward = wrapped(name, module, module.forward)
    try:
        yield rows
    finally:
        handle.remove()
        for module in leaves.values():
            del module.forward


@alternative("15.1")
@contextmanager
def instruments(model):
    """Note with numpy; the hooks that were there before are told by `list_hooks`."""
    there = {hook.id for hook in list_hooks(model)}
    rows = []

    def norm(tensor):
        values = tensor.detach().double().numpy().ravel()
        return float((values**2).sum() ** 0.5)

    def note(name, module, args, output):
        entry = rows[-1][name] = [norm(output), None]

        def arrived(grad):
            entry[1] = norm(grad)

        if output.requires_grad:
            output.register_hook(arrived)

    model.register_forward_pre_hook(lambda *_: rows.append({}))
    for name, module in model.named_modules():
        if not list(module.children()):
            module.register_forward_hook(partial(note, name))
    try:
        yield rows
    finally:
        for hook in list_hooks(model):
            if hook.id not in there:
                hook.remove()


@alternative("15.1")
@contextmanager
def instruments(model):
    rows = []

    def start(module, args):
        rows.append(dict())

    def forward(module, args, output, name=None):
        row = rows[-1]
        row[name] = (output.norm().item(), None)
        if not output.requires_grad:
            return

        def backward(grad):
            row[name] = (row[name][0], grad.norm().item())

        output.register_hook(backward)

    handles = [model.register_forward_pre_hook(start, prepend=True)]
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Module) and not list(module.children()):
            handles.append(module.register_forward_hook(partial(forward, name=name), always_call=False))
    try:
        yield rows
    except BaseException:
        raise
    finally:
        for handle in handles:
            handle.remove()


edited("15.1", None, ("output.norm().item()", "output.detach().float().norm().cpu().item()"))
edited("15.1", None, ("output.requires_grad", "output.grad_fn"))
edited("15.1", None, ("yield rows", "yield rows  # the caller's block runs here"))
edited("15.1", None, ("    try:\n        handles", "    rows.clear()\n    try:\n        handles"))
edited(
    "15.1",
    None,
    (
        "rows[-1][name] = [output.norm().item(), None]",
        "rows[-1].setdefault(name, [output.norm().item(), None])",
    ),
)
