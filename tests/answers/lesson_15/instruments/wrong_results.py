"""Wrong answers to 15.1, `instruments`: what comes out is not what was asked for."""

from contextlib import contextmanager
from functools import partial

from tests.answers import mistake, unnamed
from tests.answers.lesson_15.instruments.right import edited

edited("15.1", "yields_nothing", ("yield rows", "yield"))
edited("15.1", "no_manager", ("        yield rows", "        return rows"), ("@contextmanager\n", ""))
edited("15.1", "not_a_list", ("yield rows", "yield rows[0] if rows else 0"))
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
edited("15.1", "calls_now", ("partial(note, name)", "print(name)"))
edited("15.1", "wrong_arguments", ("note(name, module, args, output)", "note(name, module, output)"))
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
