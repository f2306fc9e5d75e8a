"""Right answers to 15.4, `diagnose_run`."""

import math
import statistics
from collections import defaultdict
from contextlib import ExitStack

import torch
import torch.nn.functional as F
from torch import nn

from hookedu import record
from hookedu.models.ward import HEALTHY, train
from tests.answers import alternative


@alternative("15.4")
def diagnose_run(build, data):  # noqa: C901
    def first_pass(model):
        inputs, labels = data[0]
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        return [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]

    # A hook that only looks may stay: one is at fault if loss or gradients differ without it.
    (hooked, _), (bare, _) = build(), build()
    for module in bare.modules():
        for table in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            getattr(module, table).clear()
    if not all(map(torch.allclose, first_pass(hooked), first_pass(bare))):
        return "forgotten_hook"

    model, optimizer = build()
    layers = [m for m in model.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    relus = [m for m in model.modules() if isinstance(m, nn.ReLU)]
    grads, moves, alive, old = defaultdict(list), defaultdict(list), defaultdict(list), {}
    broken, unlike = [], [0.0]

    def watch_layer(module, args, output):
        if not output.isfinite().all():
            broken.append(module)
        if output.requires_grad:
            output.register_hook(lambda grad: grads[module].append(grad.norm().item()))

    def watch_norm(module, args, output):
        by_batch = F.batch_norm(args[0], None, None, module.weight, module.bias, training=True)
        unlike.append((output - by_batch).abs().mean().item())

    def watch_relu(module, args, output):
        alive[module].append((output > 0).transpose(0, 1).flatten(1).any(1))

    def before_step(*args):
        old.update((m, m.weight.detach().clone()) for m in layers)

    def after_step(*args):
        for m in layers:
            moves[m].append(((m.weight.detach() - old[m]).norm() / old[m].norm()).item())

    pairs = [(layers, watch_layer), (norms, watch_norm), (relus, watch_relu)]
    handles = [m.register_forward_hook(hook) for modules, hook in pairs for m in modules]
    handles += [optimizer.register_step_pre_hook(before_step), optimizer.register_step_post_hook(after_step)]
    try:
        losses = train(model, optimizer, data)
    finally:
        for handle in handles:
            handle.remove()

    start = [grads[m][0] for m in layers if grads[m]]  # before any update, so no rate is to blame
    early = max(sorted(step)[len(step) // 2] for step in zip(*(moves[m][:8] for m in layers)))
    dead = [1 - torch.stack(a[len(a) // 2 :]).any(0).float().mean().item() for a in alive.values()]
    guessing = math.log(len(torch.cat([labels for _, labels in data]).unique()))
    if max(unlike) > 0.05:  # what a normalisation puts out does not have the batch's mean and spread
        return "norm_in_eval"
    if start[0] > 15 * min(start):
        return "exploding"
    if early > 0.2:  # a healthy step moves a layer by a few hundredths of its length
        return "rate_too_high"
    if broken:  # though gradients and updates were of ordinary size
        return "bad_sample"
    if any(m.weight.requires_grad and m.weight.grad is None for m in layers):
        return "detached_branch"
    if any(max(moves[m]) == 0 and (m.weight.grad is None or m.weight.grad.any()) for m in layers):
        return "frozen_layer"  # does not move, though it is not for want of a gradient
    if start[0] < start[-1] / 50:
        return "vanishing"
    if max(dead, default=0) > 0.6:
        return "dying_relus"
    return "shuffled_labels" if sum(losses[-8:]) / 8 > 0.85 * guessing else HEALTHY


by_hand = diagnose_run


@alternative("15.4")
def diagnose_run(build, data):  # noqa: C901
    layer_types, batch_norms = (nn.Linear, nn.Conv2d), (nn.BatchNorm1d, nn.BatchNorm2d)

    class Panel:
        """Watches a model and its optimizer while it is trained."""

        def __init__(self, model, optimizer):
            self.model, self.optimizer = model, optimizer
            self.layers = [m for m in model.modules() if isinstance(m, layer_types)]
            self.rows, self.asleep, self.bad = [], False, 0
            self.fired = {}

        def __enter__(self):
            self.handles = [self.model.register_forward_pre_hook(self.begin)]
            for module in self.model.modules():
                if isinstance(module, (*layer_types, *batch_norms, nn.ReLU)):
                    self.handles.append(module.register_forward_hook(self.look))
            self.handles.append(self.optimizer.register_step_pre_hook(self.remember))
            self.handles.append(self.optimizer.register_step_post_hook(self.compare))
            return self

        def __exit__(self, *error):
            for handle in self.handles:
                handle.remove()

        def begin(self, module, args):
            self.rows.append({"grad": {}, "move": {}})

        def look(self, module, args, output):
            values, row = output.detach(), self.rows[-1]
            if isinstance(module, batch_norms):
                x = args[0].detach().transpose(0, 1).flatten(1)
                z = (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + module.eps).sqrt()
                here = z * module.weight.detach()[:, None] + module.bias.detach()[:, None]
                self.asleep |= bool(((values.transpose(0, 1).flatten(1) - here).abs() > 0.1).any())
            elif isinstance(module, nn.ReLU):
                on = (values > 0).transpose(0, 1).flatten(1).any(1)
                self.fired.setdefault(module, []).append(on)
            else:
                self.bad += int((~values.flatten(1).isfinite().all(1)).sum()) == 1
                if output.requires_grad:
                    output.register_hook(lambda grad: row["grad"].update({module: grad.norm().item()}))

        def remember(self, *args):
            self.old = {m: m.weight.detach().clone() for m in self.layers}

        def compare(self, *args):
            for m, old in self.old.items():
                self.rows[-1]["move"][m] = ((m.weight.detach() - old).norm() / old.norm()).item()

    def same(one, other):
        return all(
            (a is None) == (b is None) and (a is None or torch.equal(a, b)) for a, b in zip(one, other)
        )

    def gradients(strip):
        model, _ = build()
        for module in model.modules() if strip else ():
            for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks"):
                getattr(module, name).clear()
        loss = F.cross_entropy(model(data[0][0]), data[0][1])
        loss.backward()
        return [loss.detach(), *(p.grad for p in model.parameters())]

    if not same(gradients(False), gradients(True)):
        return "forgotten_hook"
    model, optimizer = build()
    with Panel(model, optimizer) as panel:
        losses = train(model, optimizer, data)
    first = panel.rows[0]
    sizes = [first["grad"][m] for m in panel.layers if m in first["grad"]]
    moves = {m: [row["move"][m] for row in panel.rows] for m in panel.layers}
    if panel.asleep:
        return "norm_in_eval"
    if sizes[0] / min(sizes) > 14:
        return "exploding"
    if max(statistics.median(row["move"].values()) for row in panel.rows[:8]) > 0.2:
        return "rate_too_high"
    if panel.bad:
        return "bad_sample"
    for m in panel.layers:
        if m.weight.grad is None and m.weight.requires_grad:
            return "detached_branch"
        if not any(moves[m]) and (not m.weight.requires_grad or m.weight.grad.norm() > 0):
            return "frozen_layer"
    if sizes[-1] / (sizes[0] + 1e-30) > 60:
        return "vanishing"
    if any(torch.stack(on[15:]).any(0).float().mean() < 0.4 for on in panel.fired.values()):
        return "dying_relus"
    return (
        HEALTHY
        if statistics.mean(losses[-6:]) < 0.85 * math.log(model(data[0][0]).shape[1])
        else "shuffled_labels"
    )


@alternative("15.4")
def diagnose_run(build, data):  # noqa: C901
    kinds = (nn.Linear, nn.Conv2d)

    def size(tensor):
        return tensor.norm().item()

    # Does any hook change something? Once before and once behind all other hooks of a layer, seen at its input and output.
    model, _ = build()
    notes, found = {}, []

    def early(module, args, output=None):
        notes[module, output is None] = args if output is None else output

    def late(module, args, output=None):
        now, was = (args if output is None else output), notes[module, output is None]
        found.append(now is not was)

    def early_back(module, grad_input, grad_output):
        notes[module, "back"] = grad_input

    def late_back(module, grad_input, grad_output):
        pairs = zip(notes[module, "back"], grad_input)
        found.extend(a is not None and not torch.equal(a, b) for a, b in pairs)

    with ExitStack() as stack:
        for module in model.modules():
            for hook, first in ((early, True), (late, False)):
                stack.callback(module.register_forward_hook(hook, prepend=first).remove)
                stack.callback(module.register_forward_pre_hook(hook, prepend=first).remove)
            if isinstance(module, kinds) and module is not next(
                m for m in model.modules() if isinstance(m, kinds)
            ):
                stack.callback(module.register_full_backward_hook(early_back, prepend=True).remove)
                stack.callback(module.register_full_backward_hook(late_back).remove)
        F.cross_entropy(model(data[0][0]), data[0][1]).backward()
    if any(found):
        return "forgotten_hook"

    model, optimizer = build()
    layers = {name: m for name, m in model.named_modules() if isinstance(m, kinds)}
    if any(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) and not m.training for m in model.modules()):
        return "norm_in_eval"
    before = {name: m.weight.detach().clone() for name, m in layers.items()}
    path = []  # how far each layer went in each step

    def after_step(step):
        path.append({n: size(m.weight.detach() - before[n]) / size(before[n]) for n, m in layers.items()})
        before.update((n, m.weight.detach().clone()) for n, m in layers.items())

    def size_of_gradient(name):
        try:
            return [rec[name].calls[0].gradient[0]]
        except RuntimeError:  # none arrived
            return []

    def watched(name, module):
        return isinstance(module, (*kinds, nn.ReLU))

    def sums(t):
        return t.norm().item(), t.isfinite().all().item(), (t > 0).transpose(0, 1).flatten(1).any(1)

    with record(model, layers=watched, gradients=True, keep=sums) as rec:
        losses = train(model, optimizer, data, after_step)
    first = [size for n in layers for size in size_of_gradient(n)]
    fine = all(entry.activation[1] for n in layers for entry in rec[n].calls)
    if first[0] > 15 * min(first):
        return "exploding"
    if max(sorted(step.values())[len(layers) // 2] for step in path[:8]) > 0.2:
        return "rate_too_high"
    if not fine:
        return "bad_sample"
    still = [n for n in layers if all(step[n] == 0 for step in path)]
    if any(layers[n].weight.grad is None and layers[n].weight.requires_grad for n in still):
        return "detached_branch"
    if any(layers[n].weight.grad is None or layers[n].weight.grad.any() for n in still):
        return "frozen_layer"
    if first[0] < first[-1] / 50:
        return "vanishing"
    for name, module in model.named_modules():
        if isinstance(module, nn.ReLU):
            on = torch.stack([entry.activation[2] for entry in rec[name].calls[len(data) // 2 :]])
            if on.any(0).float().mean() < 0.4:
                return "dying_relus"
    return HEALTHY if sum(losses[-8:]) / 8 < 0.85 * math.log(model[-1].out_features) else "shuffled_labels"


@alternative("15.4")
def diagnose_run(build, data):  # noqa: C901
    signs = dict(dead=0.0, longest=0.0, spoilt=False, cut=False, still=False)

    def first_loss(quiet):
        model, _ = build()
        for module in model.modules():
            if quiet:
                module._forward_hooks.clear()
                module._forward_pre_hooks.clear()
                module._backward_hooks.clear()
        loss = F.cross_entropy(model(data[0][0]), data[0][1])
        loss.backward()
        return torch.cat(
            [loss.detach().reshape(1), *(p.grad.flatten() for p in model.parameters() if p.grad is not None)]
        )

    signs["hooked"] = not torch.equal(first_loss(True), first_loss(False))
    model, optimizer = build()
    signs["asleep"] = any("BatchNorm" in type(m).__name__ and not m.training for m in model.modules())
    weights = {m: m.weight for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv2d))}
    start = {m: w.detach().clone() for m, w in weights.items()}
    outputs, lively, sizes, handles = {}, {}, [], []

    def keep(module, args, output):
        outputs[module] = output
        if output.requires_grad:
            output.retain_grad()
        if not torch.isfinite(output).all():
            signs["spoilt"] = True

    def count(module, args, output):
        now = (output > 0).transpose(0, 1).flatten(1).any(1)
        seen = lively.setdefault(module, [])
        seen.append(now)

    def after_step(step):
        if step == 0:
            sizes.extend(o.grad.norm().item() for o in outputs.values() if o.grad is not None)
        if step == 5:
            lengths = [((w.detach() - start[m]).norm() / start[m].norm()).item() for m, w in weights.items()]
            signs["longest"] = statistics.median(lengths)

    handles += [m.register_forward_hook(keep) for m in weights]
    handles += [m.register_forward_hook(count) for m in model.modules() if isinstance(m, nn.ReLU)]
    try:
        losses = train(model, optimizer, data, after_step)
    finally:
        while handles:
            handles.pop().remove()
    for module, w in weights.items():
        if torch.equal(w, start[module]):
            signs["cut"] |= w.requires_grad and w.grad is None
            signs["still"] |= w.grad is None or bool(w.grad.any())
    for on in lively.values():
        signs["dead"] = max(signs["dead"], 1 - torch.stack(on[-12:]).any(0).float().mean().item())
    signs["flat"] = statistics.fmean(losses[-8:]) > 0.85 * math.log(model[-1].out_features)
    signs["grows"], signs["shrinks"] = sizes[0] / (min(sizes) + 1e-30), sizes[-1] / (sizes[0] + 1e-30)
    table = [
        ("forgotten_hook", lambda s: s["hooked"]),
        ("norm_in_eval", lambda s: s["asleep"]),
        ("exploding", lambda s: s["grows"] > 15),
        ("rate_too_high", lambda s: not s["longest"] < 0.6),
        ("bad_sample", lambda s: s["spoilt"]),
        ("detached_branch", lambda s: s["cut"]),
        ("frozen_layer", lambda s: s["still"]),
        ("vanishing", lambda s: s["shrinks"] > 50),
        ("dying_relus", lambda s: s["dead"] > 0.6),
        ("shuffled_labels", lambda s: s["flat"]),
    ]
    return next((name for name, rule in table if rule(signs)), HEALTHY)
