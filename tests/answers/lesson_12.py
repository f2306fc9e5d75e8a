"""Right and wrong answers to the exercises of lesson 12."""

import contextlib
from collections import Counter
from functools import partial

import torch
import torch.distributed as dist
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from tests.answers import alternative, mistake, unnamed

# --- 12.1 ---------------------------------------------------------------------------------------------------


@alternative("12.1")
class HalfSaved(saved_tensors_hooks):
    def __init__(self, counts):
        super().__init__(self.pack, self.unpack)
        self.counts = counts

    def pack(self, tensor):
        self.counts["saved"] += tensor.element_size() * tensor.numel()
        is_float = tensor.dtype is torch.float32
        packed = tensor.to(torch.float16) if is_float else tensor.detach()
        self.counts["kept"] += packed.element_size() * packed.numel()
        return is_float, packed

    def unpack(self, packed):
        is_float, tensor = packed
        return tensor.float() if is_float else tensor


@alternative("12.1")
@contextlib.contextmanager
def half_saved(counts):
    def pack(tensor):
        counts["saved"] += tensor.nbytes
        halved = tensor.dtype == torch.float32
        kept = tensor.half() if halved else tensor.detach()
        counts["kept"] += kept.nbytes
        return {"tensor": kept, "halved": halved}

    def unpack(kept):
        return kept["tensor"].float() if kept["halved"] else kept["tensor"]

    with saved_tensors_hooks(pack, unpack):
        yield


@mistake("12.1", "unchanged")
def half_saved(counts):
    def pack(tensor):
        counts["saved"] += tensor.nbytes
        counts["kept"] += tensor.nbytes
        return tensor.detach()

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "unchanged")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return tensor.detach()

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "all_halved")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "all_halved")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.is_floating_point() else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "not_back")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "not_back")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small

    return saved_tensors_hooks(pack, lambda packed: packed.float())


@mistake("12.1", "no_return")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "no_return")
def half_saved(counts):
    def pack(tensor):
        return tensor.half(), tensor.dtype

    def unpack(packed):
        packed[0].to(packed[1])

    return saved_tensors_hooks(pack, unpack)


@mistake("12.1", "returns_nothing")
def half_saved(counts):
    def pack(tensor):
        return tensor.half(), tensor.dtype

    saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "keeps_both", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1].dtype))


@mistake("12.1", "keeps_both", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small.to(tensor.dtype)

    return saved_tensors_hooks(pack, lambda packed: packed)


@mistake("12.1", "never_counts", points=5)
def half_saved(counts):
    def pack(tensor):
        return (tensor.half() if tensor.dtype == torch.float32 else tensor), tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "swapped", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["kept"] += tensor.nbytes
        counts["saved"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "elements", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.numel()
        counts["kept"] += small.numel()
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "tensors", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += 1
        counts["kept"] += 1
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "same_twice", points=5)
def half_saved(counts):
    def pack(tensor):
        dtype = tensor.dtype
        if dtype == torch.float32:
            tensor = tensor.half()
        counts["saved"] += tensor.nbytes
        counts["kept"] += tensor.nbytes
        return tensor, dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "last_only", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] = tensor.nbytes
        counts["kept"] = small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "other_keys", points=5)
def half_saved(counts):
    counts.update(before=0, after=0)

    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["before"] += tensor.nbytes
        counts["after"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "stays_on", points=6)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1])).__enter__()
    return contextlib.nullcontext()


@mistake("12.1", "grows", points=7)
@contextlib.contextmanager
def half_saved(counts):
    def pack(tensor):
        counts["saved"] += tensor.nbytes
        if tensor.dtype == torch.float32:
            tensor = tensor.half()
        counts["kept"] += tensor.nbytes
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda kept: kept.float() if kept.dtype == torch.float16 else kept):
        yield


@mistake("12.1", "attached", points=7)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "bfloat16")
def half_saved(counts):
    def pack(tensor):
        small = tensor.to(torch.bfloat16) if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "arguments")
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda small, dtype: small.to(dtype))


@mistake("12.1", "arguments")
def half_saved(counts):
    return saved_tensors_hooks(lambda: None, lambda packed: packed)


@mistake("12.1", "before_twice", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += tensor.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "element_size", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.element_size()
        counts["kept"] += small.element_size()
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "wrong_kept", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] = small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "wrong_kept", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.numel()
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "wrong_saved", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] = tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "wrong_counts", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        counts["saved"] += 2 * tensor.nbytes
        counts["kept"] += 2 * small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "others_left_out", points=5)
def half_saved(counts):
    def pack(tensor):
        small = tensor.half() if tensor.dtype == torch.float32 else tensor
        if tensor.dtype == torch.float32:
            counts["saved"] += tensor.nbytes
            counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


@mistake("12.1", "weights_left_out")
def half_saved(counts):
    def pack(tensor):
        halved = tensor.dtype == torch.float32 and not isinstance(tensor, torch.nn.Parameter)
        small = tensor.half() if halved else tensor.detach()
        counts["saved"] += tensor.nbytes
        counts["kept"] += small.nbytes
        return small, tensor.dtype

    return saved_tensors_hooks(pack, lambda packed: packed[0].to(packed[1]))


# --- 12.2 ---------------------------------------------------------------------------------------------------


@alternative("12.2")
def count_recomputed(model, x):
    names = {child: name for name, child in model.named_children()}
    counts, again = dict.fromkeys(names.values(), 0), [False]

    def note(module, args):
        counts[names[module]] += again[0]

    with contextlib.ExitStack() as stack:
        for child in names:
            stack.enter_context(child.register_forward_pre_hook(note))
        loss = checkpoint(model, x, use_reentrant=False).sum()
        again[0] = True
        loss.backward()
    return counts


@alternative("12.2")
def count_recomputed(model, x):
    counts = {name: 0 for name, _ in model.named_children()}

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y = checkpoint(model, x, use_reentrant=False)
    first = dict(counts)
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return {name: counts[name] - first[name] for name in counts}


@unnamed("12.2", "counts")
def count_recomputed(model, x):
    return {name: torch.ones(2) for name, _ in model.named_children()}


@unnamed("12.2", "counts")
def count_recomputed(model, x):
    return {name: "1" for name, _ in model.named_children()}


@mistake("12.2", "counts_both")
def count_recomputed(model, x):
    counts = {
        name: -1 for name, _ in model.named_children()
    }  # taken for one run a layer in the first forward pass

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "counts_both")
def count_recomputed(model, x):
    counts = Counter()

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "counts_both")
def count_recomputed(model, x):
    counts = Counter()

    def note(name, module, args, output):
        counts[name] += 1

    handles = [c.register_forward_hook(partial(note, n)) for n, c in model.named_children()]
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "after_hooks")
def count_recomputed(model, x):
    counts = Counter()

    def note(name, module, args, output):
        counts[name] += 1

    handles = [c.register_forward_hook(partial(note, n)) for n, c in model.named_children()]
    y = checkpoint(model, x, use_reentrant=False)
    counts.clear()
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return {name: counts[name] for name, _ in model.named_children()}


@mistake("12.2", "not_checkpointed")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = model(x)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "no_early_stop")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=True)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "no_early_stop")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    with set_checkpoint_early_stop(False):
        y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "no_backward")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    checkpoint(model, x, use_reentrant=False)
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "off_too_early")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y = checkpoint(model, x, use_reentrant=False)
    for handle in handles:
        handle.remove()
    counts = dict.fromkeys(counts, 0)
    y.sum().backward()
    return counts


@mistake("12.2", "zeros_missing")
def count_recomputed(model, x):
    counts = Counter()

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "returns_nothing")
def count_recomputed(model, x):
    counts = Counter()

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    print(counts)


@mistake("12.2", "returns_total")
def count_recomputed(model, x):
    started = []
    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(lambda module, args: started.append(1)) for c in model.children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return len(started)


@mistake("12.2", "leaves_hooks", points=3)
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    for name, child in model.named_children():
        child.register_forward_pre_hook(partial(note, name))
    y.sum().backward()
    return counts


@mistake("12.2", "calls_now")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name):
        counts[name] += 1

    for name, child in model.named_children():
        child.register_forward_pre_hook(note(name))
    checkpoint(model, x, use_reentrant=False).sum().backward()
    return counts


@mistake("12.2", "counts_first")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y = checkpoint(model, x, use_reentrant=False)
    for handle in handles:
        handle.remove()
    y.sum().backward()
    return counts


@mistake("12.2", "late_binding")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)
    handles = []
    for name, child in model.named_children():

        def note(module, args):
            counts[name] += 1

        handles.append(child.register_forward_pre_hook(note))
    y = checkpoint(model, x, use_reentrant=False)
    counts.update(dict.fromkeys(counts, 0))
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "late_binding")
def count_recomputed(model, x):
    counts, handles = Counter(), []
    for name, child in model.named_children():
        handles.append(child.register_forward_pre_hook(lambda module, args: counts.update([name])))
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "other_names")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_modules()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [m.register_forward_pre_hook(partial(note, n)) for n, m in model.named_modules()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "other_names")
def count_recomputed(model, x):
    counts = Counter()
    y = checkpoint(model, x, use_reentrant=False)
    handles = [
        c.register_forward_pre_hook(lambda module, args: counts.update([type(module).__name__]))
        for c in model.children()
    ]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "not_a_dict")
def count_recomputed(model, x):
    counts = Counter()

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return [counts[name] for name, _ in model.named_children()]


@mistake("12.2", "only_whether")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] = 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "counts_both")
def count_recomputed(model, x):
    counts = Counter()

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for handle in handles:
        handle.remove()
    return {name: n // 2 for name, n in counts.items()}  # taken for forward and backward having run the same


@mistake("12.2", "in_pieces")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = x
    for child in model.children():
        y = checkpoint(child, y, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "no_such_key")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y = checkpoint(model, x, use_reentrant=False)
    counts.clear()
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "wrong_arguments")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args, output):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.sum().backward()
    for handle in handles:
        handle.remove()
    return counts


@mistake("12.2", "not_a_sum")
def count_recomputed(model, x):
    counts = dict.fromkeys([name for name, _ in model.named_children()], 0)

    def note(name, module, args):
        counts[name] += 1

    y = checkpoint(model, x, use_reentrant=False)
    handles = [c.register_forward_pre_hook(partial(note, n)) for n, c in model.named_children()]
    y.backward()
    for handle in handles:
        handle.remove()
    return counts


# --- 12.3 ---------------------------------------------------------------------------------------------------


@alternative("12.3")
def layer_output(compiled, name, x):
    seen = []
    layer = dict(compiled.named_modules())["_orig_mod." + name]
    handle = layer.register_forward_hook(lambda module, args, output: seen.append(output))
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            compiled(x)
    finally:
        handle.remove()
    return seen[0]


@alternative("12.3")
def layer_output(compiled, name, x):
    seen, model = {}, compiled._orig_mod
    with model.get_submodule(name).register_forward_hook(lambda m, args, out: seen.update(out=out.detach())):
        model(x)
    return seen["out"]


@alternative("12.3")
def layer_output(compiled, name, x):
    seen = []

    @torch.compiler.set_stance("force_eager")
    def run():
        compiled(x)

    with compiled.get_submodule(name).register_forward_hook(lambda m, args, out: seen.append(out.detach())):
        run()
    return seen.pop()


@mistake("12.3", "never_fired")
def layer_output(compiled, name, x):
    seen = {}
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.update(out=out.detach())):
        compiled(x)
    return seen.get("out")


@mistake("12.3", "never_fired")
def layer_output(compiled, name, x):
    seen = {}
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.update(out=out.detach())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)


@mistake("12.3", "nothing_kept")
def layer_output(compiled, name, x):
    seen = {}
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.update(out=out.detach())):
        compiled(x)
    return seen["out"]


@mistake("12.3", "nothing_kept")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.append(out.detach())):
        compiled(x)
    return seen[-1]


@mistake("12.3", "prefix")
def layer_output(compiled, name, x):
    seen = []
    layer = dict(compiled.named_modules())[name]
    with layer.register_forward_hook(lambda m, a, out: seen.append(out.detach())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("12.3", "stance_stays", points=7)
def layer_output(compiled, name, x):
    seen = []
    torch.compiler.set_stance("force_eager")
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.append(out.detach())):
        compiled(x)
    return seen[0]


@mistake("12.3", "compiles_anew", points=7)
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.append(out.detach())):
        torch.compiler.reset()
        compiled(x)
    return seen[0]


@mistake("12.3", "leaves_hook", points=7)
def layer_output(compiled, name, x):
    seen = []
    compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.append(out.detach()))
    with torch.compiler.set_stance("force_eager"):
        compiled(x)
    return seen[0]


@mistake("12.3", "attached", points=7)
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.append(out)):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("12.3", "models_output")
def layer_output(compiled, name, x):
    return compiled(x).detach()


@mistake("12.3", "its_input")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(
        lambda m, args, out: seen.append(args[0].detach())
    ):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("12.3", "a_list")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(lambda m, args, out: seen.append(out.detach())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen


@mistake("12.3", "calls_now")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(seen.append("output")):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("12.3", "wrong_arguments")
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(lambda out: seen.append(out.detach())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


@mistake("12.3", "prefix")
def layer_output(compiled, name, x):
    seen = {}
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.update({name: out})):
        compiled(x)
    return seen[name]


@mistake("12.3", "compiles_anew", points=7)
def layer_output(compiled, name, x):
    seen = []
    with compiled.get_submodule(name).register_forward_hook(lambda m, a, out: seen.append(out.detach())):
        torch.compile(compiled._orig_mod, backend="eager")(x)
    return seen[0]


@mistake("12.3", "layer_alone")
def layer_output(compiled, name, x):
    return compiled.get_submodule(name)(x).detach()


@mistake("12.3", "switches_mode", points=7)
def layer_output(compiled, name, x):
    seen = []
    compiled.eval()
    with compiled.get_submodule(name).register_forward_hook(lambda m, args, out: seen.append(out.detach())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return seen[0]


# --- 12.4 ---------------------------------------------------------------------------------------------------


@alternative("12.4")
def half_hook(group, bucket):
    buffer = bucket.buffer()
    half = buffer.to(torch.float16).div_(group.size())
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: buffer.copy_(done.value()[0]))


@alternative("12.4")
def half_hook(group, bucket):
    half = (bucket.buffer() / dist.get_world_size(group)).half()
    dist.all_reduce(half, group=group)
    done = torch.futures.Future()
    done.set_result(half.float())
    return done


@alternative("12.4")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    work = dist.all_reduce(half, group=group, async_op=True)
    return work.get_future().then(lambda done: done.wait()[0]).then(lambda done: done.value().float())


@alternative("12.4")
def half_hook(group, bucket):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    return fp16_compress_hook(group, bucket)


@mistake("12.4", "returns_nothing")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    future.then(lambda done: done.value()[0].float())


@mistake("12.4", "returns_work")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    return dist.all_reduce(half, group=group, async_op=True)


@mistake("12.4", "returns_tensor")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    dist.all_reduce(half, group=group)
    return half.float()


@mistake("12.4", "value_is_list")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    return dist.all_reduce(half, group=group, async_op=True).get_future()


@mistake("12.4", "value_is_list")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value().float())


@mistake("12.4", "never_done")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    dist.all_reduce(half, group=group)
    return torch.futures.Future()


@mistake("12.4", "overflow")
def half_hook(group, bucket):
    future = dist.all_reduce(bucket.buffer().half(), group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float() / group.size())


@mistake("12.4", "no_average")
def half_hook(group, bucket):
    future = dist.all_reduce(bucket.buffer().half(), group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("12.4", "divided_twice")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float() / group.size())


@mistake("12.4", "never_sends")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    done = torch.futures.Future()
    done.set_result(half.float())
    return done


@mistake("12.4", "never_sends")
def half_hook(group, bucket):
    done = torch.futures.Future()
    done.set_result(bucket.buffer().half().float())
    return done


@mistake("12.4", "reads_too_early")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    dist.all_reduce(half, group=group, async_op=True)
    done = torch.futures.Future()
    done.set_result(half.float())
    return done


@mistake("12.4", "reads_too_early")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    result = half.float()
    return future.then(lambda done: result)


@mistake("12.4", "sends_float32", points=4)
def half_hook(group, bucket):
    sent = bucket.buffer() / group.size()
    future = dist.all_reduce(sent, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


@mistake("12.4", "sends_float32", points=4)
def half_hook(group, bucket):
    rounded = bucket.buffer().half().float() / group.size()
    future = dist.all_reduce(rounded, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].half().float())


@mistake("12.4", "not_async")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("12.4", "no_group")
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("12.4", "average_operation")
def half_hook(group, bucket):
    half = bucket.buffer().half()
    future = dist.all_reduce(half, op=dist.ReduceOp.AVG, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("12.4", "bucket_is_no_tensor")
def half_hook(group, bucket):
    half = bucket.half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("12.4", "stays_half", points=5)
def half_hook(group, bucket):
    half = bucket.buffer().half() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


@mistake("12.4", "fixed_size")
def half_hook(group, bucket):
    half = bucket.buffer().half() / 2
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("12.4", "bfloat16")
def half_hook(group, bucket):
    half = bucket.buffer().bfloat16() / group.size()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("12.4", "then_returns_nothing")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()

    def back(done):
        done.value()[0].float()

    return dist.all_reduce(half, group=group, async_op=True).get_future().then(back)


@mistake("12.4", "other_shape")
def half_hook(group, bucket):
    half = (bucket.gradients()[0] / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.value()[0].float())


@mistake("12.4", "future_is_no_list")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done[0].float())


@mistake("12.4", "future_is_no_list")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.then(lambda done: done.float())


@mistake("12.4", "returns_work")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    work = dist.all_reduce(half, group=group, async_op=True)
    return work.then(lambda done: done.value()[0].float())


@mistake("12.4", "returns_nothing")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    return dist.all_reduce(half, group=group)


@mistake("12.4", "reads_too_early")
def half_hook(group, bucket):
    half = (bucket.buffer() / group.size()).half()
    future = dist.all_reduce(half, group=group, async_op=True).get_future()
    return future.value()[0].float()
