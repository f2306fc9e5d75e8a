"""Wrong answers to 14.2, `logit_lens`."""

from contextlib import ExitStack

import torch
from torch import nn

from hookedu import record
from tests.answers import edited, mistake, unnamed

edited("14.2", "no_norm", ("model.unembed(model.norm(x[:, -1]))", "model.unembed(x[:, -1])"))
edited("14.2", "no_unembed", ("model.unembed(model.norm(x[:, -1]))", "model.norm(x[:, -1])"))
edited("14.2", "a_list", ("torch.stack([model", "([model"))
edited("14.2", "one_row", ("torch.stack([model", "torch.cat([model"))
edited("14.2", "batch_first", ("for x in stream]", "for x in stream], dim=1"))
edited("14.2", "all_positions", ("x[:, -1]", "x"))
edited("14.2", "first_position", ("x[:, -1]", "x[:, 0]"))
edited("14.2", "last_prompt", ("x[:, -1]", "x[-1]"))
edited("14.2", "backwards", ("for x in stream]", "for x in stream[::-1]]"))
edited("14.2", "no_return", ("return torch", "torch"))
edited("14.2", "probabilities", ("x[:, -1]))", "x[:, -1])).softmax(dim=-1)"))
edited("14.2", "probabilities", ("x[:, -1]))", "x[:, -1])).log_softmax(dim=-1)"))
edited("14.2", "likeliest", ("x[:, -1]))", "x[:, -1])).argmax(dim=-1)"))
edited("14.2", "args_is_tuple", ("args[0]", "args"))
edited("14.2", "pre_hook_arguments", ("before(module, args)", "before(module, args, output)"))
edited("14.2", "wrong_arguments", ("after(module, args, output)", "after(module, output)"))
edited("14.2", "plain_norm", ("model.norm(x[:, -1])", "nn.functional.layer_norm(x[:, -1], x.shape[-1:])"))
edited("14.2", "only_added", ("block.register", "block.mlp.register"))
edited("14.2", "between", ("block.register", "block.middle.register"))
edited("14.2", "runs_twice", ("        model(ids)\n", "        model(ids)\n    model(ids)\n"), points=4)
edited(
    "14.2",
    "others",
    ("        model(ids)\n", "        model(ids)\n    model.norm._forward_hooks.clear()\n"),
    points=4,
)
edited("14.2", "mode", ("    stream = []\n", "    stream = []\n    model.eval()\n"), points=4)
edited("14.2", "lens", ("x[:, -1]", "x[:, -2]"), named=False)
edited("14.2", "lens", ("x[:, -1]", "x.mean(dim=1)"), named=False)
edited("14.2", "lens", ("model.norm(x[:, -1])", "model.norm(model.norm(x[:, -1]))"), named=False)
edited("14.2", "lens", ("stream.append(output)", "stream.append(args[0])"), named=False)
edited("14.2", "lens", ("model.norm(x[:, -1])", "model.blocks[-1].norm2(x[:, -1])"), named=False)
edited(
    "14.2",
    "no_embedding",
    ("        stack.enter_context(model.blocks[0].register_forward_pre_hook(before))\n", ""),
)


@mistake("14.2", "no_embedding")
def logit_lens(model, ids):
    with record(model, ["blocks.*"]) as recording:
        model(ids)
    return torch.stack([model.unembed(model.norm(layer.activation[:, -1])) for layer in recording.values()])


@mistake("14.2", "no_last_block")
def logit_lens(model, ids):
    stream = []
    handles = [b.register_forward_pre_hook(lambda m, args: stream.append(args[0])) for b in model.blocks]
    try:
        model(ids)
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])


@mistake("14.2", "ends_twice")
def logit_lens(model, ids):
    stream = []
    handles = [model.blocks[0].register_forward_pre_hook(lambda m, args: stream.append(args[0]))]
    handles += [b.register_forward_hook(lambda m, args, out: stream.append(out)) for b in model.blocks]
    try:
        logits = model(ids)
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack([*(model.unembed(model.norm(x[:, -1])) for x in stream), logits[:, -1]])


@mistake("14.2", "no_positions")
def logit_lens(model, ids):
    stream = []
    with ExitStack() as stack:
        for module in (model.embed, *model.blocks):
            stack.enter_context(module.register_forward_hook(lambda m, args, out: stream.append(out)))
        model(ids)
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])


@mistake("14.2", "no_norm_but_last")
def logit_lens(model, ids):
    stream = []
    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(lambda m, args: stream.append(args[0])))
        for block in model.blocks[:-1]:
            stack.enter_context(block.register_forward_hook(lambda m, args, out: stream.append(out)))
        logits = model(ids)
    return torch.stack([*(model.unembed(x[:, -1]) for x in stream), logits[:, -1]])


@mistake("14.2", "always_the_end")
def logit_lens(model, ids):
    rows = []
    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(lambda m, args: rows.append(args[0])))
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(lambda m, args, out: rows.append(out)))
        logits = model(ids)
    return torch.stack([logits[:, -1] for _ in rows])


@mistake("14.2", "hooks", points=4)
def logit_lens(model, ids):
    stream = []
    model.blocks[0].register_forward_pre_hook(lambda m, args: stream.append(args[0]))
    for block in model.blocks:
        block.register_forward_hook(lambda m, args, out: stream.append(out))
    model(ids)
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream[: len(model.blocks) + 1]])


@mistake("14.2", "unrestored", points=4)
def logit_lens(model, ids):
    stream = []
    handles = [model.blocks[0].register_forward_pre_hook(lambda m, args: stream.append(args[0]))]
    handles += [b.register_forward_hook(lambda m, args, out: stream.append(out)) for b in model.blocks]
    model(ids)
    for handle in handles:
        handle.remove()
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])


@mistake("14.2", "runs_twice", points=4)
def logit_lens(model, ids):
    first, rest = [], []
    with model.blocks[0].register_forward_pre_hook(lambda m, args: first.append(args[0])):
        model(ids)
    with ExitStack() as stack:
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(lambda m, args, out: rest.append(out)))
        model(ids)
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in first + rest])


@mistake("14.2", "runs_twice", points=4)
def logit_lens(model, ids):
    stream = []
    for depth in range(len(model.blocks) + 1):
        seen = []
        if depth == 0:
            handle = model.blocks[0].register_forward_pre_hook(lambda m, args: seen.append(args[0]))
        else:
            handle = model.blocks[depth - 1].register_forward_hook(lambda m, args, out: seen.append(out))
        with handle:
            model(ids)
        stream += seen
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])


@mistake("14.2", "calls_now")
def logit_lens(model, ids):
    stream = []

    def keep(module, args, output):
        stream.append(output)

    with model.blocks[0].register_forward_hook(keep(model.blocks[0], (), ids)):
        model(ids)
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])


@mistake("14.2", "only_added")
def logit_lens(model, ids):
    with record(model, ["embed", "blocks.*.mlp"]) as recording:
        model(ids)
    return torch.stack([model.unembed(model.norm(layer.activation[:, -1])) for layer in recording.values()])


@mistake("14.2", "state")
def logit_lens(model, ids, stream=[]):  # noqa: B006
    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(lambda m, args: stream.append(args[0])))
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(lambda m, args, out: stream.append(out)))
        model(ids)
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])


@unnamed("14.2", "lens")
def logit_lens(model, ids):
    """The lens looks through each block's last normalisation."""
    stream = []
    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(lambda m, args: stream.append(args[0])))
        for block in model.blocks:
            stack.enter_context(block.norm2.register_forward_hook(lambda m, args, out: stream.append(out)))
        model(ids)
    return torch.stack([model.unembed(x[:, -1]) for x in stream])


edited("14.2", "squeezed", ("for x in stream])", "for x in stream]).squeeze()"))
edited(
    "14.2",
    "never_runs",
    ("        model(ids)\n", "        __import__('copy').deepcopy(model)(ids)\n"),
    points=4,
)


@mistake("14.2", "never_runs", points=4)
def logit_lens(model, ids):
    x = model.embed(ids) + model.position(torch.arange(ids.shape[1]))
    rows = [model.unembed(model.norm(x[:, -1]))]
    for block in model.blocks:
        x = block.forward(x)
        rows.append(model.unembed(model.norm(x[:, -1])))
    return torch.stack(rows)


@mistake("14.2", "runs_twice", points=4)
def logit_lens(model, ids):
    rows = []
    for depth in range(len(model.blocks) + 1):
        x = model.embed(ids) + model.position(torch.arange(ids.shape[1]))
        for block in model.blocks[:depth]:
            x = block(x)
        rows.append(model.unembed(model.norm(x[:, -1])))
    return torch.stack(rows)


@unnamed("14.2", "lens")
def logit_lens(model, ids):
    """The last word without those before it."""
    x = model.embed(ids[:, -1:]) + model.position(torch.tensor([ids.shape[1] - 1]))
    rows = [model.unembed(model.norm(x[:, -1]))]
    for block in model.blocks:
        x = block(x)
        rows.append(model.unembed(model.norm(x[:, -1])))
    return torch.stack(rows)


@unnamed("14.2", "lens")
def logit_lens(model, ids):
    """The normalised stream goes on through the model."""
    rows = []

    def before(module, args):
        rows.append(model.unembed(model.norm(args[0])))

    def after(module, args, output):
        output = model.norm(output)
        rows.append(model.unembed(output))
        return output

    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(before))
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(after))
        model(ids)
    return torch.stack(rows)[:, :, -1]


@mistake("14.2", "attributes", points=4)
def logit_lens(model, ids):
    stream = []

    class Kept(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block = block

        def forward(self, x, cache=None):
            stream.extend([] if stream else [x])
            stream.append(self.block(x, cache))
            return stream[-1]

    model.blocks = nn.ModuleList(Kept(block) for block in model.blocks)
    model(ids)
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])


# As the lesson itself writes it, for a single prompt.
edited(
    "14.2",
    "first_prompt",
    ("model.unembed(model.norm(x[:, -1])) for", "model.unembed(model.norm(x))[0, -1] for"),
)


@mistake("14.2", "by_hand")
def logit_lens(model, ids):
    x = model.embed(ids)
    stream = [x]
    for block in model.blocks:
        x = block(x)
        stream.append(x)
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])
