"""Right answers to 14.2, `logit_lens`."""

import contextlib
import functools
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from hookedu import record
from tests.answers import alternative, edited


@alternative("14.2")
def logit_lens(model, ids):
    with record(model, ["blocks.*"], inputs=True) as recording, torch.no_grad():
        model(ids)
    stream = [recording["blocks.0"].input[0]] + [
        recording[f"blocks.{n}"].activation for n in range(len(model.blocks))
    ]
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in stream])


@alternative("14.2")
def logit_lens(model, ids):
    with record(model, ["embed", "position", "blocks.*"]) as recording:
        model(ids)
    x = recording["embed"].activation + recording["position"].activation
    stream = [x]
    for number in range(len(model.blocks)):
        stream.append(recording[f"blocks.{number}"].activation)
    return torch.cat([model.unembed(model.norm(x))[None, :, -1] for x in stream])


@alternative("14.2")
def logit_lens(model, ids):
    stream, handles = [], []
    try:
        handles.append(model.blocks[0].register_forward_pre_hook(lambda m, args: stream.append(args[0])))
        for block in model.blocks:
            handles.append(block.register_forward_hook(lambda m, args, out: stream.append(out)))
        model(ids)
    finally:
        for handle in handles:
            handle.remove()
    return model.unembed(model.norm(torch.stack(stream)))[:, :, -1]


@alternative("14.2")
@torch.no_grad()
def logit_lens(model, ids):
    x = model.embed(ids) + model.position(torch.arange(ids.shape[1]))
    depths = [x]
    for block in model.blocks:
        x = block(x)
        depths.append(x)
    return torch.stack([model.unembed(model.norm(x)[:, -1]) for x in depths], dim=0)


@alternative("14.2")
def logit_lens(model, ids):
    class Lens:
        def __init__(self):
            self.rows = []

        def look(self, x):
            self.rows.append(F.linear(model.norm(x[:, -1]), model.unembed.weight))

        def __call__(self, module, args, output):
            self.look(output)

        def before(self, module, args):
            self.look(args[0])

    lens = Lens()
    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(lens.before))
        for block in model.blocks:
            stack.enter_context(block.register_forward_hook(lens))
        model(ids)
    return torch.stack(lens.rows)


@alternative("14.2")
def logit_lens(model, ids):
    @contextmanager
    def hooked(handles):
        try:
            yield
        finally:
            [handle.remove() for handle in handles]

    stream = {}

    def keep(number, module, args, output):
        if number == 0:
            stream[0] = args[0].detach().clone()
        stream[number + 1] = output.detach().clone()

    with hooked([b.register_forward_hook(partial(keep, n)) for n, b in enumerate(model.blocks)]):
        model(ids)
    return torch.stack([model.unembed(model.norm(stream[n]))[:, -1, :] for n in sorted(stream)])


@alternative("14.2")
def logit_lens(model, ids):
    """All inputs of the blocks, and the input of the final norm."""
    inputs = []

    def keep(module, args):
        inputs.append(args[0].detach())

    modules = [*model.blocks, model.norm]
    handles = [module.register_forward_pre_hook(keep) for module in modules]
    try:
        model(ids)
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack([model.unembed(model.norm(x)) for x in inputs])[..., -1, :]


@alternative("14.2")
def logit_lens(model, ids):
    outputs = torch.empty(len(model.blocks) + 1, len(ids), model.unembed.out_features)

    def write(depth, x):
        with torch.no_grad():
            outputs[depth] = model.unembed(model.norm(x[:, -1]))

    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(lambda module, args: write(0, args[0])))
        for depth, block in enumerate(model.blocks, 1):
            stack.enter_context(
                block.register_forward_hook(lambda module, args, output, depth=depth: write(depth, output))
            )
        model(ids)
    return outputs


@alternative("14.2")
def logit_lens(model, ids):
    stream, originals = [], []

    def watched(forward, x, cache=None):
        if not stream:
            stream.append(x)
        stream.append(out := forward(x, cache))
        return out

    try:
        for block in model.blocks:
            originals.append(block)
            block.forward = functools.partial(watched, block.forward)
        model(ids)
    finally:
        for block in originals:
            del block.forward
    return model.unembed(model.norm(torch.stack([x[:, -1] for x in stream])))


@alternative("14.2")
def logit_lens(model, ids):
    stream = []

    def hook(module, args, kwargs, output):
        if module is model.blocks[0]:
            stream.append(args[0])
        stream.append(output)

    handles = [
        block.register_forward_hook(hook, with_kwargs=True, always_call=True) for block in model.blocks
    ]
    try:
        model(ids)
    finally:
        while handles:
            handles.pop().remove()
    final = nn.Sequential(model.norm, model.unembed)
    return final(torch.stack(stream)[:, :, -1])


@alternative("14.2")
def logit_lens(model, ids):
    stream = []
    modules = set(model.blocks)

    def everywhere(module, args, output):
        if module in modules:
            if len(stream) == 0:
                stream.append(args[0])
            stream.append(output)

    with nn.modules.module.register_module_forward_hook(everywhere):
        model(ids)
    return torch.stack([model.unembed(model.norm(x)) for x in stream]).select(2, -1)


@alternative("14.2")
def logit_lens(model, ids):
    stream = []
    with contextlib.ExitStack() as stack:
        for n, block in enumerate(model.blocks):
            if n == 0:
                handle = block.register_forward_pre_hook(lambda m, a: stream.append(a[0][:, -1].detach()))
                stack.callback(handle.remove)
            handle = block.register_forward_hook(lambda m, a, o: stream.append(o[:, -1].detach()))
            stack.callback(handle.remove)
        logits = model(ids)[:, -1]
    rows = [model.unembed(model.norm(x)) for x in stream[:-1]]
    return torch.stack([*rows, logits])


@alternative("14.2")
def logit_lens(model, ids):
    kept = dict.fromkeys(range(len(model.blocks) + 1))

    def keep(module, args, output, *, number):
        kept[number] = args[0]
        kept[number + 1] = output

    handles = []
    try:
        for number, block in enumerate(model.blocks):
            handles.append(block.register_forward_hook(partial(keep, number=number)))
        with torch.inference_mode():
            model(ids)
            return torch.stack([model.unembed(model.norm(x))[:, -1] for x in kept.values()]).clone()
    finally:
        for handle in handles:
            handle.remove()


@alternative("14.2")
def logit_lens(model, ids):
    rows = []

    def read(x):
        rows.append(model.unembed(model.norm(x))[:, -1].detach().numpy().copy())

    handles = [model.blocks[0].register_forward_pre_hook(lambda module, args: read(args[0]))]
    handles += [block.register_forward_hook(lambda module, args, out: read(out)) for block in model.blocks]
    try:
        model(ids)
    finally:
        for h in handles:
            h.remove()
    return torch.stack([torch.from_numpy(row) for row in rows])


@alternative("14.2")
def logit_lens(model, ids):
    def lens(x):
        return model.unembed(model.norm(x[:, -1]))

    def collect():
        stream = []
        with model.blocks[0].register_forward_pre_hook(lambda module, args: stream.append(lens(args[0]))):
            with ExitStack() as stack:
                for block in model.blocks:
                    stack.enter_context(
                        block.register_forward_hook(lambda module, args, out: stream.append(lens(out)))
                    )
                model(ids)
        yield from stream

    return torch.stack(list(collect()))


@alternative("14.2")
def logit_lens(model, ids):
    result = None

    def add(x):
        nonlocal result
        row = model.unembed(model.norm(x))[:, -1].unsqueeze(0)
        result = row if result is None else torch.cat([result, row])

    def first(module, args):
        add(args[0])

    def each(module, args, output):
        add(output)

    handles = [model.blocks[0].register_forward_pre_hook(first)]
    try:
        handles.extend(block.register_forward_hook(each) for block in model.blocks)
        model(ids)
    finally:
        for handle in handles:
            handle.remove()
    return result


@alternative("14.2")
def logit_lens(model, ids):
    """The stream is what was there before, plus what attention and MLP add."""
    added, start = [], []

    def attention(module, args, output):
        added.append(output[0])

    def mlp(module, args, output):
        added[-1] = added[-1] + output

    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(lambda m, args: start.append(args[0])))
        for block in model.blocks:
            stack.enter_context(block.attention.register_forward_hook(attention))
            stack.enter_context(block.mlp.register_forward_hook(mlp))
        model(ids)
    stream = torch.stack([*start, *added]).cumsum(dim=0)
    return model.unembed(model.norm(stream[:, :, -1]))


@alternative("14.2")
def logit_lens(model, ids):
    stream = []
    hooks = [lambda module, args: stream.append(args[0]), lambda module, args, output: stream.append(output)]
    with ExitStack() as stack:
        stack.enter_context(model.blocks[0].register_forward_pre_hook(hooks[0], prepend=True))
        for name, module in model.named_modules():
            if name.startswith("blocks.") and name.count(".") == 1:
                stack.enter_context(module.register_forward_hook(hooks[1]))
        model.forward(ids)
    return torch.stack([(model.norm(x) @ model.unembed.weight.T)[:, -1] for x in stream])


@alternative("14.2")
def logit_lens(model, ids):
    stream = []
    handles = [
        m.register_forward_hook(lambda m, a, o: stream.append(o))
        for m in (model.embed, model.position, *model.blocks)
    ]
    try:
        model(ids)
    finally:
        for handle in handles:
            handle.remove()
    words, places, *after = stream
    return torch.stack([model.unembed(model.norm(x[:, -1])) for x in (words + places, *after)])


@alternative("14.2")
def logit_lens(model, ids):
    stream = [None] * (1 + len(model.blocks))
    stack = ExitStack()

    def after(place, module, args, output):
        stream[place] = output
        if place == 1:
            (stream[0], *_) = args

    for place, block in enumerate(model.blocks, start=1):
        stack.enter_context(block.register_forward_hook(partial(after, place)))
    with stack:
        _ = model(ids)
    return torch.stack(list(map(model.unembed, map(model.norm, (x[:, -1] for x in stream)))))


edited("14.2", None, ("x[:, -1]", "x[:, ids.shape[1] - 1]"))
edited("14.2", None, ("stream.append(output)", "stream.append(output.clone())"))
edited("14.2", None, ("x[:, -1])) for x in stream]", "x))[:, -1] for x in stream]"))
