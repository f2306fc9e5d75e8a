"""Answers to 15.1, `instruments`."""

from contextlib import ExitStack, contextmanager
from functools import partial

import torch

import tests.answers
from hookedu import list_hooks
from tests.answers import alternative, mistake, unnamed


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

edited("15.1", "yields_nothing", ("yield rows", "yield"))
edited("15.1", "no_manager", ("        yield rows", "        return rows"), ("@contextmanager\n", ""))
edited("15.1", "not_a_list", ("yield rows", "yield rows[0] if rows else 0"))
edited(
    "15.1",
    "changes_output",
    ("output.register_hook(arrived)", "output.register_hook(arrived)\n        return output * 2"),
)
edited("15.1", "changes_output", ("entry = rows", "output.data.mul_(2)\n        entry = rows"))
edited(
    "15.1",
    "changes_gradient",
    ("entry[1] = grad.norm().item()", "entry[1] = grad.norm().item()\n            return grad / 2"),
)
edited(
    "15.1",
    "not_on_inside",
    (
        "        yield rows\n    finally:\n        for handle in handles:\n            handle.remove()",
        "        pass\n    finally:\n        for handle in handles:\n            handle.remove()\n    yield rows",
    ),
)
edited(
    "15.1",
    "keeps_tensors",
    ("output.norm().item()", "output.detach().norm()"),
    ("grad.norm().item()", "grad.norm()"),
)
edited("15.1", "not_python", ("output.norm().item()", "output.norm().detach().numpy()[()]"))
edited("15.1", "no_rows", ("rows.append({})", "nonlocal rows\n        rows = [*rows, {}]"))
edited(
    "15.1",
    "row_per_layer",
    (
        "entry = rows[-1][name] = [output.norm().item(), None]",
        "entry = [output.norm().item(), None]\n        rows.append({name: entry})",
    ),
    ("rows.append({})", "pass"),
)
edited(
    "15.1",
    "late_binding",
    ("note(name, module, args, output)", "note(module, args, output)"),
    ("partial(note, name)", "note"),
)
edited("15.1", "counts_containers", ("if not list(module.children())", "if True"))
edited(
    "15.1",
    "counts_containers",
    ("model.named_modules()", "model.named_children()"),
    ("if not list(module.children())", "if True"),
)
edited(
    "15.1",
    "counts_unused",
    (
        "rows.append({})",
        "rows.append({n: [None, None] for n, m in model.named_modules() if not list(m.children())})",
    ),
)
edited("15.1", "of_the_input", ("[output.norm().item(), None]", "[args[0].norm().item(), None]"))
edited(
    "15.1", "other_measure", ("output.norm()", "output.abs().mean()"), ("grad.norm()", "grad.abs().mean()")
)
edited("15.1", "other_measure", ("output.norm()", "output.std()"))
edited(
    "15.1",
    "other_measure",
    ("output.norm()", "output.square().sum()"),
    ("grad.norm()", "grad.square().sum()"),
)
edited("15.1", "other_gradient", ("grad.norm()", "grad.abs().mean()"))
edited("15.1", "other_gradient", ("grad.norm()", "(2 * grad).norm()"))
edited("15.1", "zero_for_none", ("[output.norm().item(), None]", "[output.norm().item(), 0.0]"))
edited("15.1", "no_gradients", ("output.requires_grad:", "output.requires_grad and False:"))
edited(
    "15.1",
    "no_gradients",
    ("entry[1] = grad.norm().item()", "entry = [entry[0], grad.norm().item()]"),
    ("def arrived(grad):", "def arrived(grad, entry=entry):"),
)
edited("15.1", "latest_row", ("entry[1] = grad", "rows[-1][name][1] = grad"))
edited("15.1", "one_row", ("rows.append({})", "rows[:] = [{}]"))
edited("15.1", "one_row", ("rows.append({})", "rows or rows.append({})"))
edited(
    "15.1",
    "skips_no_grad",
    ("rows.append({})", "torch.is_grad_enabled() and rows.append({})"),
    (
        "entry = rows[-1][name] =",
        "if not torch.is_grad_enabled():\n            return\n        entry = rows[-1][name] =",
    ),
)
edited("15.1", "no_gradient_to_hook", ("if output.requires_grad:", "if True:"))
edited("15.1", "leaves_hooks", ("            handle.remove()", "            pass"), points=5)
edited("15.1", "leaves_hooks", ("in handles", "in handles[1:]"), points=5)
edited(
    "15.1",
    "no_finally",
    (
        "    finally:\n        for handle in handles:\n            handle.remove()",
        "    except ZeroDivisionError:\n        pass\n    for handle in handles:\n        handle.remove()",
    ),
    points=5,
)
edited(
    "15.1", "swallows", ("    finally:", "    except BaseException:\n        pass\n    finally:"), points=5
)
edited(
    "15.1",
    "swallows",
    ("            handle.remove()", "            handle.remove()\n        return"),
    points=5,
)
edited("15.1", "calls_now", ("partial(note, name)", "print(name)"))
edited("15.1", "wrong_arguments", ("note(name, module, args, output)", "note(name, module, output)"))
edited(
    "15.1",
    "returns_tuple",
    ("output.register_hook(arrived)", "output.register_hook(arrived)\n        return entry, name"),
)
edited("15.1", "no_manager_error", ("        yield rows\n", "        rows\n"))


@mistake("15.1", "too_late")
@contextmanager
def instruments(model):
    kept, handles = [], []

    class Pair(list):
        def __getitem__(self, place):
            return list(self)[place]

        def __iter__(self):
            return iter([self.output.detach().norm().item(), self.grad])

        def __len__(self):
            return 2

    def note(name, module, args, output):
        pair = kept[-1][name] = Pair()
        pair.output, pair.grad = output, None
        if output.requires_grad:
            output.register_hook(lambda grad: setattr(pair, "grad", grad.norm().item()))

    try:
        handles.append(model.register_forward_pre_hook(lambda *_: kept.append({})))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(note, name)))
        yield kept
    finally:
        for handle in handles:
            handle.remove()


@mistake("15.1", "too_late")
@contextmanager
def instruments(model):
    rows, handles, outputs = [], [], {}

    def keep(name, module, args, output):
        outputs[name] = output

    def end(module, args, output):
        row = {}
        for name, kept in outputs.items():
            entry = row[name] = [kept.norm().item(), None]
            if kept.requires_grad:
                kept.register_hook(lambda grad, entry=entry: entry.__setitem__(1, grad.norm().item()))
        outputs.clear()
        rows.append(row)

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(keep, name)))
        handles.append(model.register_forward_hook(end))
        yield rows
    finally:
        for handle in handles:
            handle.remove()


@mistake("15.1", "full_backward")
@contextmanager
def instruments(model):
    rows, handles = [], []

    def note(name, module, args, output):
        rows[-1][name] = [output.norm().item(), None]

    def back(name, module, grad_input, grad_output):
        rows[-1][name][1] = grad_output[0].norm().item()

    try:
        handles.append(model.register_forward_pre_hook(lambda *_: rows.append({})))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(note, name)))
                handles.append(module.register_full_backward_hook(partial(back, name)))
        yield rows
    finally:
        for handle in handles:
            handle.remove()


@mistake("15.1", "model_order")
@contextmanager
def instruments(model):
    rows, handles = [], []
    names = [name for name, module in model.named_modules() if not list(module.children())]

    def note(name, module, args, output):
        entry = rows[-1][name] = [output.norm().item(), None]
        if output.requires_grad:
            output.register_hook(lambda grad: entry.__setitem__(1, grad.norm().item()))

    def end(module, args, output):
        rows[-1] = {name: rows[-1][name] for name in names if name in rows[-1]}

    try:
        handles.append(model.register_forward_pre_hook(lambda *_: rows.append({})))
        handles.append(model.register_forward_hook(end))
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(partial(note, name)))
        yield rows
    finally:
        for handle in handles:
            handle.remove()


@mistake("15.1", "every_model")
@contextmanager
def instruments(model):
    rows = []
    names = {module: name for name, module in model.named_modules()}

    def begin(module, args):
        if list(module.children()) and names.get(module, "") == "":
            rows.append({})

    def note(module, args, output):
        if not list(module.children()):
            entry = rows[-1][names.get(module, "other")] = [output.norm().item(), None]
            if output.requires_grad:
                output.register_hook(lambda grad: entry.__setitem__(1, grad.norm().item()))

    handles = [
        torch.nn.modules.module.register_module_forward_pre_hook(begin),
        torch.nn.modules.module.register_module_forward_hook(note),
    ]
    try:
        yield rows
    finally:
        for handle in handles:
            handle.remove()


@mistake("15.1", "not_at_once")
@contextmanager
def instruments(model):
    rows, handles, current = [], [], []

    def begin(module, args):
        if current and current[0] not in rows:
            rows.append(current[0])
        current[:] = [{}]

    def note(name, module, args, output):
        row = current[0]
        entry = row[name] = [output.norm().item(), None]

        def arrived(grad):
            entry[1] = grad.norm().item()
            if not any(row is known for known in rows):
                rows.append(row)

        if output.requires_grad:
            output.register_hook(arrived)

    try:
        handles.append(model.register_forward_pre_hook(begin))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(note, name)))
        yield rows
    finally:
        rows += [row for row in current if not any(row is known for known in rows)]
        for handle in handles:
            handle.remove()


@mistake("15.1", "other_gradient")
@contextmanager
def instruments(model):
    rows, handles = [], []

    def note(name, module, args, output):
        entry = rows[-1][name] = [output.norm().item(), None]

        def arrived(grad):
            entry[1] = grad.norm().item()

        if args[0].requires_grad:
            args[0].register_hook(arrived)

    try:
        handles.append(model.register_forward_pre_hook(lambda *_: rows.append({})))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(note, name)))
        yield rows
    finally:
        for handle in handles:
            handle.remove()


@mistake("15.1", "no_gradients")
@contextmanager
def instruments(model):
    rows, handles = [], []

    def note(name, module, args, output):
        grad = output.grad_fn and getattr(module, "weight", output).grad if output.is_leaf else None
        rows[-1][name] = [output.norm().item(), grad]

    try:
        handles.append(model.register_forward_pre_hook(lambda *_: rows.append({})))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(note, name)))
        yield rows
    finally:
        for handle in handles:
            handle.remove()


@mistake("15.1", "other_rows")
@contextmanager
def instruments(model):
    rows, handles = [{}], []

    def note(name, module, args, output):
        if name in rows[-1] and len(rows) < 3:
            rows.append({})
        entry = rows[-1][name] = [output.norm().item(), None]
        if output.requires_grad:
            output.register_hook(lambda grad: entry.__setitem__(1, grad.norm().item()))

    rows.clear()
    try:
        handles.append(model.register_forward_pre_hook(lambda *_: None if rows else rows.append({})))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(note, name)))
        yield rows
    finally:
        for handle in handles:
            handle.remove()


@unnamed("15.1", "first")
@contextmanager
def instruments(model):
    rows, handles = [], []

    def note(name, module, args, output):
        rows[-1][name] = output.norm().item()

    try:
        handles.append(model.register_forward_pre_hook(lambda *_: rows.append({})))
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(note, name)))
        yield rows
    finally:
        for handle in handles:
            handle.remove()


# The norms are computed when the block ends.
edited(
    "15.1",
    "at_exit",
    ("rows, handles = [], []", "rows, kept, handles = [], [], []"),
    ("rows[-1][name] = [output.norm().item(), None]", "kept[-1][name] = [output.detach().clone(), None]"),
    ("entry[1] = grad.norm().item()", "entry[1] = grad"),
    ("rows.append({})", "kept.append({})"),
    (
        "    finally:\n",
        "    finally:\n"
        "        for row in kept:\n"
        "            rows.append(\n"
        "                {n: [t if t is None else t.norm().item() for t in pair] for n, pair in row.items()}\n"
        "            )\n",
    ),
)
edited(
    "15.1",
    "whole_tensors",
    ("[output.norm().item(), None]", "[output.detach().clone(), None]"),
    ("entry[1] = grad.norm().item()", "entry[1] = grad"),
    (
        "    finally:\n",
        "    finally:\n"
        "        for pair in [pair for row in rows for pair in row.values()]:\n"
        "            pair[:] = [t if t is None else t.norm().item() for t in pair]\n",
    ),
)
