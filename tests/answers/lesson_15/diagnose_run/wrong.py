"""Wrong answers to 15.4, `diagnose_run`."""

import math
import statistics

import torch
import torch.nn.functional as F

from hookedu.models.ward import HEALTHY, train
from tests.answers import edited, mistake, unnamed
from tests.answers.lesson_15.diagnose_run.right import by_hand


@mistake("15.4", "loss_only")
def diagnose_run(build, data):
    model, optimizer = build()
    losses = train(model, optimizer, data)
    guess, end = math.log(int(torch.cat([y for _, y in data]).max()) + 1), sum(losses[-8:]) / 8
    if not losses[0] < 5 * guess:
        return "exploding"
    if max(loss for loss in losses if math.isfinite(loss)) > 4 * guess:
        return "rate_too_high"
    if not math.isfinite(end):
        return "bad_sample"
    if end > 0.9 * guess:
        return "vanishing" if statistics.pstdev(losses[-10:]) < 0.02 else "shuffled_labels"
    return HEALTHY


@mistake("15.4", "always_the_same")
def diagnose_run(build, data):
    model, optimizer = build()
    train(model, optimizer, data)
    return HEALTHY


@mistake("15.4", "returns_nothing")
def diagnose_run(build, data):
    model, optimizer = build()
    losses = train(model, optimizer, data)
    verdict = HEALTHY if losses[-1] < losses[0] else "shuffled_labels"


edited(
    "15.4",
    "sometimes_nothing",
    (
        'return "shuffled_labels" if sum(losses[-8:]) / 8 > 0.85 * guessing else HEALTHY',
        'if sum(losses[-8:]) / 8 > 0.85 * guessing:\n        return "shuffled_labels"',
    ),
    of=by_hand,
    points=7,
)
edited("15.4", "other_names", ('return "dying_relus"', 'return "dead_relus"'), of=by_hand, points=7)
edited("15.4", "leaves_hooks", ("            handle.remove()", "            pass"), of=by_hand, points=8)
edited(
    "15.4",
    "wakes_norm",
    ("    model, optimizer = build()", "    model, optimizer = build()\n    model.train()"),
    of=by_hand,
    points=8,
)
edited(
    "15.4",
    "hooks_that_look",
    (
        '    return "shuffled_labels" if',
        '    if any(m._forward_hooks for m in model.modules()):\n        return "forgotten_hook"\n    return "shuffled_labels" if',
    ),
    of=by_hand,
    points=8,
)
edited("15.4", "hooks_frozen", ("        if output.requires_grad:", "        if True:"), of=by_hand)
edited(
    "15.4",
    "none_grad",
    (
        "m.weight.requires_grad and m.weight.grad is None for m in layers",
        "m.weight.grad.norm() == 0 for m in layers",
    ),
    of=by_hand,
)
edited("15.4", "cries_wolf", ("> 0.85 * guessing", "> 0.001 * guessing"), of=by_hand, points=8)
edited(
    "15.4",
    "never_named",
    ('    if max(dead, default=0) > 0.6:\n        return "dying_relus"\n', ""),
    of=by_hand,
    points=8,
)
edited(
    "15.4",
    "too_large",
    ('min(start):\n        return "exploding"', 'min(start):\n        return "rate_too_high"'),
    ('of its length\n        return "rate_too_high"', 'of its length\n        return "exploding"'),
    of=by_hand,
    points=6,
)
edited(
    "15.4",
    "too_small",
    ('return "dying_relus"', 'return "vanishing"'),
    ('return "detached_branch"', 'return "frozen_layer"'),
    of=by_hand,
    points=6,
)
edited(
    "15.4",
    "keeps_state",
    ("def diagnose_run(build, data):", "def diagnose_run(build, data, seen=[]):"),
    (
        "    model, optimizer = build()",
        "    seen.append(data)\n    if len(seen) > 30:\n        return HEALTHY\n    model, optimizer = build()",
    ),
    of=by_hand,
    points=8,
)

# Compares a loss with those of the patients before.
edited(
    "15.4",
    "keeps_state",
    ("def diagnose_run(build, data):", "def diagnose_run(build, data, late=[]):"),
    (
        '    return "shuffled_labels" if sum(losses[-8:]) / 8 > 0.85 * guessing else HEALTHY',
        "    late.append(sum(losses[-8:]) / 8 / guessing)\n"
        '    return "shuffled_labels" if late[-1] > (min(late) + max(late)) / 2 else HEALTHY',
    ),
    of=by_hand,
    points=8,
)

# Compares gradients with those of the patients before: nothing stands out in the first.
edited(
    "15.4",
    "keeps_state",
    ("def diagnose_run(build, data):", "def diagnose_run(build, data, seen=[]):"),
    (
        "    if start[0] > 15 * min(start):",
        "    seen.append(start[0] / min(start))\n    if seen[-1] > 15 * sorted(seen)[len(seen) // 2]:",
    ),
    of=by_hand,
    points=8,
)

# Trains with an optimizer of its own: what the given one lacks and how far it goes is not seen.
edited(
    "15.4",
    "never_named",
    (
        "    model, optimizer = build()",
        "    model, _ = build()\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)",
    ),
    of=by_hand,
    points=6,
)

# Mends the data before training: nothing is left to find in them.
edited(
    "15.4",
    "never_named",
    (
        "    model, optimizer = build()",
        "    model, optimizer = build()\n    data = [(x.nan_to_num(0, 0, 0) + 1e-3 * torch.arange(x[0].numel()).view_as(x[0]), y) for x, y in data]",
    ),
    of=by_hand,
    points=8,
)

# Mends the very data of the caller.
edited(
    "15.4",
    "argument",
    (
        "    model, optimizer = build()",
        "    model, optimizer = build()\n    for x, _ in data:\n        x.add_(0.001)",
    ),
    of=by_hand,
    points=8,
)
edited(
    "15.4",
    "rng",
    ("    model, optimizer = build()", "    torch.manual_seed(0)\n    model, optimizer = build()"),
    of=by_hand,
    points=8,
)


# Stops at the first nan with an error.
@unnamed("15.4", "raised")
def diagnose_run(build, data):
    model, optimizer = build()
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if loss.isnan():
            raise ValueError("the loss is nan")
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return HEALTHY if losses[-1] < losses[0] else "shuffled_labels"


# One fault is never named, and all healthy runs are called sick, which comes first.
edited(
    "15.4",
    "cries_wolf",
    ('return "vanishing"', 'return "dying_relus"'),
    (
        'return "shuffled_labels" if sum(losses[-8:]) / 8 > 0.85 * guessing else HEALTHY',
        'return "shuffled_labels"',
    ),
    points=5,
)
