"""Answers to 14.4, `patching_map`."""

import itertools
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import torch
from torch import nn

from hookedu import record
from tests.answers import alternative, edited, mistake


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    kept, handles = {}, []
    for n, block in enumerate(model.blocks):
        handles.append(
            block.register_forward_hook(lambda m, a, out, n=n: kept.update({n: out.detach().clone()}))
        )
    try:
        good = model(clean)[0, -1]
    finally:
        for handle in handles:
            handle.remove()
    bad = model(corrupted)[0, -1]
    gap = (good[right] - good[wrong]) - (bad[right] - bad[wrong])
    rows = []
    for n, block in enumerate(model.blocks):
        row = []
        for p in range(clean.shape[1]):

            def patch(module, args, output, n=n, p=p):
                output = output.clone()
                output[:, p] = kept[n][:, p]
                return output

            handle = block.register_forward_hook(patch)
            try:
                now = model(corrupted)[0, -1]
            finally:
                handle.remove()
            row.append(((now[right] - now[wrong]) - (bad[right] - bad[wrong])) / gap)
        rows.append(torch.stack(row))
    return torch.stack(rows)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # All words of a block in one batch.
    words = clean.shape[1]

    def difference(logits):
        return logits[:, -1, right] - logits[:, -1, wrong]

    with record(model, ["blocks.*"]) as recording, torch.no_grad():
        good = difference(model(clean))
    with torch.no_grad():
        bad = difference(model(corrupted))
    rows, diagonal = [], torch.arange(words)
    for number, block in enumerate(model.blocks):
        value = recording[f"blocks.{number}"].activation[0]

        def patch(module, args, output):
            output = output.clone()
            output[diagonal, diagonal] = value
            return output

        with block.register_forward_hook(patch), torch.no_grad():
            rows.append((difference(model(corrupted.expand(words, -1))) - bad) / (good - bad))
    return torch.stack(rows)


@alternative("14.4")
@torch.no_grad()
def patching_map(model, clean, corrupted, right, wrong):
    # Without hooks: the blocks by hand.
    def stream(ids):
        x = model.embed(ids) + model.position(torch.arange(ids.shape[1]))
        found = []
        for block in model.blocks:
            x = block(x)
            found.append(x)
        return found

    def difference(x):
        logits = model.unembed(model.norm(x[0, -1]))
        return (logits[right] - logits[wrong]).item()

    clean_stream, bad_stream = stream(clean), stream(corrupted)
    good, bad = difference(clean_stream[-1]), difference(bad_stream[-1])
    shares = torch.empty(len(model.blocks), clean.shape[1])
    for n, p in itertools.product(range(len(model.blocks)), range(clean.shape[1])):
        x = bad_stream[n].clone()
        x[:, p] = clean_stream[n][:, p]
        for block in model.blocks[n + 1 :]:
            x = block(x)
        shares[n, p] = (difference(x) - bad) / (good - bad)
    return shares


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    class Patch:
        def __init__(self, value, place):
            self.value, self.place = value, place

        def __call__(self, module, args, output):
            mask = torch.arange(output.shape[1]).view(1, -1, 1) == self.place
            return torch.where(mask, self.value, output)

    def score(ids):
        with torch.no_grad():
            last = model(ids)[0, -1]
        return float(last[right] - last[wrong])

    values = []
    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(
                block.register_forward_hook(lambda m, a, o: values.append(o.detach().clone()))
            )
        good = score(clean)
    bad = score(corrupted)
    result = np.zeros((len(model.blocks), clean.size(1)))
    for n, (block, value) in enumerate(zip(model.blocks, values)):
        for place in range(clean.size(1)):
            with block.register_forward_hook(Patch(value, place)):
                result[n, place] = (score(corrupted) - bad) / (good - bad)
    return torch.from_numpy(result)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    @contextmanager
    def hooked(module, hook):
        handle = module.register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def put(value, place, module, args, output):
        return torch.cat([output[:, :place], value[:, place : place + 1], output[:, place + 1 :]], 1)

    def diff(logits):
        return logits[0, -1].log_softmax(-1)[[right, wrong]].diff().neg().item()

    names = [f"blocks.{n}" for n in range(len(model.blocks))]
    with record(model, names) as recording:
        good = diff(model(clean))
    bad = diff(model(corrupted))

    def share(name, place):
        with hooked(model.get_submodule(name), partial(put, recording[name].activation, place)):
            return (diff(model(corrupted)) - bad) / (good - bad)

    return torch.tensor([[share(name, place) for place in range(clean.shape[-1])] for name in names])


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # Hooks that stay on for the whole map and look up which place it is the turn of.
    kept, turn = {}, None

    def hook(number, module, args, output):
        if turn is None:
            kept.setdefault(number, output.detach().clone())
        elif turn[0] == number:
            changed = output.clone()
            changed[:, turn[1]] = kept[number][:, turn[1]]
            return changed

    def difference(ids):
        logits = model(ids)[0, -1].tolist()
        return logits[right] - logits[wrong]

    with ExitStack() as stack:
        for number, block in enumerate(model.blocks):
            stack.enter_context(block.register_forward_hook(partial(hook, number)))
        good = difference(clean)
        turn = (-1, -1)
        bad = difference(corrupted)
        values = []
        for turn in itertools.product(range(len(model.blocks)), range(clean.shape[1])):
            values.append((difference(corrupted) - bad) / (good - bad))
    return torch.tensor(values).view(len(model.blocks), -1)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # Wrong and right exchanged everywhere: signs cancel.
    outputs = []
    handles = [
        b.register_forward_hook(lambda m, a, o: outputs.append(o.clone().detach())) for b in model.blocks
    ]
    try:
        logits = model(clean)
    finally:
        [handle.remove() for handle in handles]
    good = logits[0, -1, wrong] - logits[0, -1, right]
    logits = model(corrupted)
    bad = logits[0, -1, wrong] - logits[0, -1, right]
    shares = torch.zeros(len(outputs), clean.shape[1], dtype=torch.float64)
    for n, kept in enumerate(outputs):
        for p in range(clean.shape[1]):

            def patch(module, args, output):
                new = output.detach().clone()
                new[0, p] = kept[0, p]
                return new

            with model.blocks[n].register_forward_hook(patch):
                logits = model(corrupted)
            shares[n, p] = ((logits[0, -1, wrong] - logits[0, -1, right] - bad) / (good - bad)).detach()
    return shares


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # One batch for good and bad; row 0 is clean, row 1 corrupted, and patches go from one row to the next.
    both = torch.cat([clean, corrupted])
    with record(model, ["blocks.*"]) as recording:
        logits = model(both)[:, -1]
    good, bad = (logits[:, right] - logits[:, wrong]).tolist()
    kept = [layer.activation[0] for layer in recording.values()]
    shares = []
    for number, block in enumerate(model.blocks):
        for place in range(both.shape[1]):
            with block.register_forward_hook(
                lambda module, args, output: output.index_put(
                    (torch.tensor([0]), torch.tensor([place])), kept[number][place]
                )
            ):
                last = model(corrupted)[0, -1]
            shares.append((last[right].item() - last[wrong].item() - bad) / (good - bad))
    return torch.tensor(shares).reshape(len(model.blocks), both.shape[1])


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    class Switch(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block, self.kept, self.place = block, None, None

        def forward(self, x, cache=None):
            out = self.block(x, cache)
            if self.kept is None:
                self.kept = out.detach().clone()
            elif self.place is not None:
                out = out.clone()
                out[:, self.place] = self.kept[:, self.place]
            return out

    def difference(ids):
        logits = model(ids)
        return (logits[0, -1, right] - logits[0, -1, wrong]).item()

    original = model.blocks
    model.blocks = nn.ModuleList(Switch(block) for block in original)
    try:
        good, bad = difference(clean), difference(corrupted)
        shares = torch.zeros(len(original), clean.shape[1])
        for n, switch in enumerate(model.blocks):
            for switch.place in range(clean.shape[1]):
                shares[n, switch.place] = (difference(corrupted) - bad) / (good - bad)
            switch.place = None
    finally:
        model.blocks = original
    return shares


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # The bad difference is measured anew each time, which nothing forbids.
    def difference(logits):
        return logits[0, -1, right].item() - logits[0, -1, wrong].item()

    kept = []
    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(
                block.register_forward_hook(lambda m, a, out: kept.append(out.numpy(force=True).copy()))
            )
        logits = model(clean)

    def share(number, place):
        def patch(module, args, output):
            array = output.numpy(force=True).copy()
            array[:, place] = kept[number][:, place]
            return torch.as_tensor(array)

        low = difference(model(corrupted))
        with model.blocks[number].register_forward_hook(patch):
            now = difference(model(corrupted))
        return (now - low) / (difference(logits) - low)

    rows = (tuple(share(n, p) for p in range(corrupted.shape[1])) for n in range(len(model.blocks)))
    return torch.tensor(tuple(rows))


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # Patches what goes into the next module.
    behind = [*model.blocks[1:], model.norm]
    kept = []

    def keep(module, args):
        kept.append(args[0].detach().clone())

    def difference(ids):
        return (model(ids)[0, -1, [right, wrong]] @ torch.tensor([1.0, -1.0])).item()

    handles = [module.register_forward_pre_hook(keep) for module in behind]
    try:
        good = difference(clean)
    finally:
        while handles:
            handles.pop().remove()
    bad = difference(corrupted)
    shares = torch.full((len(behind), clean.shape[1]), float("nan"))
    for n, module in enumerate(behind):
        for p in range(clean.shape[1]):

            def patch(module, args):
                x = args[0].clone()
                x[:, p] = kept[n][:, p]
                return (x, *args[1:])

            with module.register_forward_pre_hook(patch):
                shares[n, p] = (difference(corrupted) - bad) / (good - bad + 1e-9)
    return shares


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    everything = {"good": {}, "now": None}

    def difference(logits):
        return logits[0, -1, right] - logits[0, -1, wrong]

    def hook(module, args, output):
        for number, block in enumerate(model.blocks):
            if block is module and everything["now"] is None:
                everything["good"][number] = output.detach().clone()
            elif block is module and everything["now"][0] == number:
                output = output.clone()
                output[:, everything["now"][1]] = everything["good"][number][:, everything["now"][1]]
        return output

    with torch.no_grad(), nn.modules.module.register_module_forward_hook(hook):
        good = difference(model(clean))
        everything["now"] = (None, None)
        bad = difference(model(corrupted))
        shares = torch.zeros(len(model.blocks), clean.shape[1])
        for n in range(shares.shape[0]):
            for p in range(shares.shape[1]):
                everything["now"] = (n, p)
                shares[n, p] = difference(model(corrupted))
    return (shares - bad) / (good - bad)


edited(
    "14.4",
    None,
    ("(difference(corrupted) - bad) / (good - bad)", "1 - (good - difference(corrupted)) / (good - bad)"),
)
edited("14.4", None, ("(logits[right] - logits[wrong])", "(logits[wrong] - logits[right])"))
edited("14.4", None, ("output.clone()", "output + 0"))
edited(
    "14.4",
    None,
    ("(difference(corrupted) - bad)", "(bad - difference(corrupted))"),
    ("(good - bad)", "(bad - good)"),
)

edited("14.4", "no_effect", ("        return output\n", ""))
edited("14.4", "all_places", ("output[:, place] = kept[:, place]", "output[:] = kept"))
edited(
    "14.4",
    "all_places",
    ("shares[number, place] = (difference(corrupted)", "shares[number, place] = (difference(clean)"),
)
edited("14.4", "not_divided", ("(difference(corrupted) - bad) / (good - bad)", "difference(corrupted) - bad"))
edited("14.4", "not_divided", ("(difference(corrupted) - bad) / (good - bad)", "difference(corrupted)"))
edited(
    "14.4", "other_ratio", ("(difference(corrupted) - bad) / (good - bad)", "difference(corrupted) / good")
)
edited(
    "14.4",
    "other_ratio",
    ("(difference(corrupted) - bad) / (good - bad)", "(difference(corrupted) - bad) / good"),
)
edited("14.4", "lost_share", ("difference(corrupted) - bad)", "good - difference(corrupted))"))
edited("14.4", "wrong_sign", ("difference(corrupted) - bad)", "bad - difference(corrupted))"))
edited(
    "14.4",
    "wrong_sign",
    ("(difference(corrupted) - bad)", "abs(difference(corrupted) - bad)"),
    ("/ (good - bad)", "/ abs(good - bad)"),
)
edited("14.4", "wrong_sign", ("/ (good - bad)", "/ abs(good - bad)"))
edited("14.4", "transposed", ("return shares", "return shares.T"))
edited("14.4", "clamped", ("return shares", "return shares.clamp(0, 1)"))
edited("14.4", "clamped", ("return shares", "return shares.relu()"))
edited("14.4", "percent", ("return shares", "return 100 * shares"))
edited("14.4", "rounded", ("return shares", "return shares.round(decimals=1)"))
edited("14.4", "one_word", ("(logits[right] - logits[wrong])", "logits[right]"))
edited("14.4", "probabilities", ("model(ids)[0, -1]", "model(ids)[0, -1].softmax(dim=-1)"))
edited("14.4", "other_position", ("model(ids)[0, -1]", "model(ids)[0, -2]"))
edited("14.4", "other_position", ("model(ids)[0, -1]", "model(ids)[0].mean(dim=0)"))
edited(
    "14.4",
    "swapped_prompts",
    ("good = difference(clean)", "good = difference(corrupted)"),
    ("bad = difference(corrupted)", "bad = difference(clean)"),
    ("(difference(corrupted) -", "(difference(clean) -"),
)
edited(
    "14.4",
    "patches_input",
    (
        "def patch(module, args, output):\n        output = output.clone()",
        "def patch(module, args):\n        output = args[0].clone()",
    ),
    ("        return output\n", "        return (output, *args[1:])\n"),
    ("block.register_forward_hook", "block.register_forward_pre_hook"),
    (
        'kept = recording[f"blocks.{number}"].activation',
        'kept = recording["embed"].activation + model.position(torch.arange(clean.shape[1])) if number == 0 else recording[f"blocks.{number - 1}"].activation',
    ),
    ('["blocks.*"]', '["embed", "blocks.*"]'),
)
edited("14.4", "several_places", ("output[:, place] = kept[:, place]", "output[:, place:] = kept[:, place:]"))
edited(
    "14.4", "adds_up", ("output[:, place] = kept[:, place]", "output[:, : place + 1] = kept[:, : place + 1]")
)
edited("14.4", "feature", ("output[:, place] = kept[:, place]", "output[:, :, place] = kept[:, :, place]"))
edited("14.4", "zeros", ("= kept[:, place]", "= 0"))
edited("14.4", "adds", ("= kept[:, place]", "+= kept[:, place]"))
edited("14.4", "shifted", ("return shares", "return shares.roll(1, dims=1)"))
edited("14.4", "shifted", ("shares[number, place]", "shares[-1 - number, place]"))
edited("14.4", "returns_nothing", ("    return shares", "    shares"))
edited("14.4", "returns_list", ("return shares", "return shares.tolist()"))
edited("14.4", "returns_list", ("return shares", "return shares.numpy()"))
edited("14.4", "not_floats", ("clean.shape[1])\n    for", "clean.shape[1], dtype=torch.long)\n    for"))
edited("14.4", "row_missing", ("return shares", "return shares[:-1]"))
edited("14.4", "row_too_many", ("torch.zeros(len(model.blocks)", "torch.zeros(len(model.blocks) + 1"))
edited("14.4", "other_shape", ("return shares", "return shares[None]"))
edited("14.4", "other_shape", ("return shares", "return shares.flatten()"))
edited("14.4", "not_finite", ("bad = difference(corrupted)", "bad = difference(corrupted)\n    good = bad"))
edited("14.4", "in_place", ("        output = output.clone()\n", ""), points=5)
edited("14.4", "reads_again", ("        for place", "        difference(clean)\n        for place"), points=5)
edited(
    "14.4",
    "only_differing",
    (
        "            with block",
        "            if clean[0, place] == corrupted[0, place]:\n                continue\n            with block",
    ),
)
edited("14.4", "wrong_arguments", ("def patch(module, args, output)", "def patch(output)"))
edited("14.4", "returns_tuple", ("        return output\n", "        return output, kept\n"))
edited("14.4", "calls_now", ("hook(patch)", "hook(print())"))
edited(
    "14.4",
    "nothing_kept",
    ('recording[f"blocks.{number}"].activation', "layers[number + 1]"),
    ("    bad =", "    layers = [layer.activation for layer in recording.values()]\n    bad ="),
)
edited(
    "14.4",
    "not_finite",
    ("bad = difference(corrupted)", "bad = difference(corrupted)\n    good = bad"),
    ("(logits[right] - logits[wrong]).item()", "logits[right] - logits[wrong]"),
)


@mistake("14.4", "reads_again", points=5)
def patching_map(model, clean, corrupted, right, wrong):
    def patched(number, place):
        block, kept = model.blocks[number], {}

        def keep(module, args, output):
            kept["clean"] = output.detach().clone()

        def patch(module, args, output):
            output = output.clone()
            output[:, place] = kept["clean"][:, place]
            return output

        with block.register_forward_hook(keep):
            model(clean)
        with block.register_forward_hook(patch):
            return model(corrupted)

    def difference(logits):
        return (logits[0, -1, right] - logits[0, -1, wrong]).item()

    good, bad = difference(model(clean)), difference(model(corrupted))
    return torch.tensor(
        [
            [(difference(patched(n, p)) - bad) / (good - bad) for p in range(clean.shape[1])]
            for n in range(len(model.blocks))
        ]
    )


@mistake("14.4", "adds_up")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(number, place, module, args, output):
        output = output.clone()
        output[:, place] = recording[f"blocks.{number}"].activation[:, place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    with ExitStack() as stack:
        for number, block in enumerate(model.blocks):
            for place in range(clean.shape[1]):
                stack.enter_context(block.register_forward_hook(partial(patch, number, place)))
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "every_block")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(number, place, module, args, output):
        output = output.clone()
        output[:, place] = recording[f"blocks.{number}"].activation[:, place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number in range(len(model.blocks)):
        for place in range(clean.shape[1]):
            with ExitStack() as stack:
                for n, block in enumerate(model.blocks):
                    stack.enter_context(block.register_forward_hook(partial(patch, n, place)))
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "patches_word")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    good, bad = difference(clean), difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number in range(len(model.blocks)):
        for place in range(clean.shape[1]):
            mixed = corrupted.clone()
            mixed[0, place] = clean[0, place]
            shares[number, place] = (difference(mixed) - bad) / (good - bad)
    return shares


@mistake("14.4", "keeps_input")
def patching_map(model, clean, corrupted, right, wrong):
    kept = []

    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(
                block.register_forward_pre_hook(lambda m, args: kept.append(args[0].detach().clone()))
            )
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        for place in range(clean.shape[1]):

            def patch(module, args, output):
                output = output.clone()
                output[:, place] = kept[number][:, place]
                return output

            with block.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "part_of_block")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept[:, place]
        return output

    with record(model, ["blocks.*.mlp"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        kept = recording[f"blocks.{number}.mlp"].activation
        for place in range(clean.shape[1]):
            with block.mlp.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "stops_early")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(logits):
        return (logits[0, -1, right] - logits[0, -1, wrong]).item()

    with record(model, ["blocks.*"]) as recording:
        good, bad = difference(model(clean)), difference(model(corrupted))
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, layer in enumerate(recording.values()):
        for place in range(clean.shape[1]):
            x = layer.calls[1].activation.clone()
            x[:, place] = layer.calls[0].activation[:, place]
            shares[number, place] = (difference(model.unembed(model.norm(x))) - bad) / (good - bad)
    return shares


@mistake("14.4", "stale")
def patching_map(model, clean, corrupted, right, wrong, kept={}):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept[name][:, place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        name = str(clean.tolist()), number
        kept.setdefault(name, recording[f"blocks.{number}"].activation)
        for place in range(clean.shape[1]):
            with block.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "row_for_place")
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(module, args, output):
        output = output.clone()
        output[place] = kept[place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        kept = recording[f"blocks.{number}"].activation
        for place in range(clean.shape[1]):
            with block.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "left_after_error", points=5)
def patching_map(model, clean, corrupted, right, wrong):
    kept = []

    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    handles = [
        b.register_forward_hook(lambda m, a, out: kept.append(out.detach().clone())) for b in model.blocks
    ]
    good = difference(clean)
    for handle in handles:
        handle.remove()
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        for place in range(clean.shape[1]):

            def patch(module, args, output):
                output = output.clone()
                output[:, place] = kept[number][:, place]
                return output

            with block.register_forward_hook(patch):
                shares[number, place] = (difference(corrupted) - bad) / (good - bad)
    return shares


@mistake("14.4", "unrestored", points=5)
def patching_map(model, clean, corrupted, right, wrong):
    def difference(ids):
        logits = model(ids)[0, -1]
        return (logits[right] - logits[wrong]).item()

    def patch(module, args, output):
        output = output.clone()
        output[:, place] = kept[:, place]
        return output

    with record(model, ["blocks.*"]) as recording:
        good = difference(clean)
    bad = difference(corrupted)
    shares = torch.zeros(len(model.blocks), clean.shape[1])
    for number, block in enumerate(model.blocks):
        kept = recording[f"blocks.{number}"].activation
        for place in range(clean.shape[1]):
            handle = block.register_forward_hook(patch)
            shares[number, place] = (difference(corrupted) - bad) / (good - bad)
            handle.remove()
    return shares


edited(
    "14.4",
    "swallows_error",
    (
        "        good = difference(clean)",
        "        try:\n            good = difference(clean)\n        except Exception:\n            good = 1.0",
    ),
    points=5,
)


edited(
    "14.4",
    "absolute",
    ("return (logits[right] - logits[wrong]).item()", "return abs(logits[right] - logits[wrong]).item()"),
)
edited("14.4", "entries_missing", ("for place in range(", "for place in range(1, "))
edited("14.4", "entries_missing", ("range(clean.shape[1]):", "range(clean.shape[1] - 1):"))
edited(
    "14.4",
    "hooks_stay",
    ("            with block", "            block"),
    ("(patch):\n                shares", "(patch)\n            shares"),
)
edited(
    "14.4",
    "no_effect",
    (
        "    shares = torch",
        "    if good <= bad:\n        return torch.zeros(len(model.blocks), clean.shape[1])\n    shares = torch",
    ),
)
edited("14.4", "shares", ("return shares", "return shares / shares.sum(dim=1, keepdim=True)"), named=False)
edited("14.4", "shares", ("return shares", "return shares.softmax(dim=1)"), named=False)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    class Patch:
        def __init__(self, block, place, value):
            self.block, self.place, self.value = block, place, value

        def __enter__(self):
            self.handle = self.block.register_forward_hook(self.put)

        def __exit__(self, *error):
            self.handle.remove()

        def put(self, module, args, output):
            rows = list(output.unbind(dim=1))
            rows[self.place] = self.value[:, self.place]
            return torch.stack(rows, dim=1)

    kept = []
    with ExitStack() as stack:
        for block in model.blocks:
            handle = block.register_forward_hook(lambda m, a, out: kept.append(out.detach().clone()))
            stack.callback(handle.remove)
        top = model(clean)[0, -1].detach()
    low = model(corrupted)[0, -1].detach()
    low, top = low[right] - low[wrong], top[right] - top[wrong]
    shares = []
    for block, value in zip(model.blocks, kept, strict=True):
        shares.append([])
        for place in range(value.shape[1]):
            with Patch(block, place, value):
                now = model(corrupted)[0, -1].detach()
            shares[-1].append((now[right] - now[wrong]).sub(low).div(top - low).item())
    return torch.tensor(shares)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # In inference mode, with a generator that yields the entries.
    def entries():
        with record(model, ["blocks.*"]) as recording:
            yield model(clean)
        yield model(corrupted)
        for number, block in enumerate(model.blocks):
            value = recording[f"blocks.{number}"].activation
            for place in range(clean.shape[1]):

                def put(module, args, output, value=value, place=place):
                    (new := output.clone())[:, place] = value[:, place]
                    return new

                with block.register_forward_hook(put):
                    logits = model(corrupted)
                yield logits

    with torch.inference_mode():
        good, bad, *rest = ((x[0, -1, right] - x[0, -1, wrong]).item() for x in entries())
    return torch.tensor([(one - bad) / (good - bad) for one in rest]).unflatten(0, (len(model.blocks), -1))


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # Hooks on the last thing that a block does: its MLP, which is given what is missing.
    kept, streams = [], {}

    def keep(module, args, output):
        kept.append(output.detach().clone())

    def score(logits):
        return np.subtract(*logits[0, -1, [right, wrong]].detach().numpy().astype(float))

    handles = [block.register_forward_hook(keep) for block in model.blocks]
    try:
        good = score(model(clean))
    finally:
        for handle in handles:
            handle.remove()
    bad = score(model(corrupted))

    def middle(module, args, output):
        streams["x"] = output.detach()

    shares = np.zeros((len(kept), clean.shape[1]), dtype=np.float32)
    for (number, place), _ in np.ndenumerate(shares):

        def mlp(module, args, output):
            output = output.clone()
            output[:, place] = kept[number][:, place] - streams["x"][:, place]
            return output

        block = model.blocks[number]
        with block.middle.register_forward_hook(middle), block.mlp.register_forward_hook(mlp):
            shares[number, place] = (score(model(corrupted)) - bad) / (good - bad)
    return torch.from_numpy(shares)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # One run for everything: each row of the batch is one patch.
    blocks, words = len(model.blocks), clean.shape[1]
    kept = []
    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(lambda m, a, out: kept.append(out[0].detach())))
        good = model(clean)[0, -1]
    batch = corrupted.repeat(blocks * words + 1, 1)

    def put(number, module, args, output):
        output = output.clone()
        for place in range(words):
            output[number * words + place, place] = kept[number][place]
        return output

    with ExitStack() as stack:
        for number, block in enumerate(model.blocks):
            stack.enter_context(block.register_forward_hook(partial(put, number)))
        logits = model(batch)[:, -1]
    scores = logits[:, right] - logits[:, wrong]
    shares = (scores - scores[-1]) / (good[right] - good[wrong] - scores[-1])
    return shares[:-1].view(blocks, words)


@alternative("14.4")
def patching_map(model, clean, corrupted, right, wrong):
    # The forward of a block is replaced for the time being.
    originals, kept = [block.forward for block in model.blocks], []

    def looking(forward):
        def call(*args):
            kept.append(forward(*args).detach())
            return kept[-1]

        return call

    def putting(forward, value, place):
        def call(*args):
            out = forward(*args).clone()
            out[:, place] = value[:, place]
            return out

        return call

    def difference(ids):
        right_one, wrong_one = model(ids)[0, -1, [right, wrong]].tolist()
        return right_one - wrong_one

    try:
        for block, forward in zip(model.blocks, originals):
            block.forward = looking(forward)
        good = difference(clean)
    finally:
        for block in model.blocks:
            del block.forward
    bad = difference(corrupted)
    shares = torch.zeros(len(kept), clean.shape[1])
    for n, (block, forward) in enumerate(zip(model.blocks, originals)):
        try:
            for p in range(clean.shape[1]):
                block.forward = putting(forward, kept[n], p)
                shares[n, p] = (difference(corrupted) - bad) / (good - bad)
        finally:
            del block.forward
    return shares


edited("14.4", "fixed_words", ("[right] - logits[wrong]", "[encode('Anna')[0]] - logits[encode('Ben')[0]]"))


@mistake("14.4", "no_positions")
def patching_map(model, clean, corrupted, right, wrong):
    def run(ids, number=-1, place=0):
        x, outputs = model.embed(ids), []
        for n, block in enumerate(model.blocks):
            x = block(x)
            if n == number:
                x = torch.cat([x[:, :place], kept[n][:, place : place + 1], x[:, place + 1 :]], dim=1)
            outputs.append(x)
        logits = model.unembed(model.norm(x))[0, -1]
        return outputs, logits[right] - logits[wrong]

    kept, good = run(clean)
    bad = run(corrupted)[1]
    places = range(clean.shape[1])
    rows = [[(run(corrupted, n, p)[1] - bad) / (good - bad) for p in places] for n in range(len(kept))]
    return torch.tensor(rows)
