"""More answers to 05.1, `capture`: other styles, and what strangers got past the check."""

import weakref
from collections import namedtuple
from functools import partial

import torch

from tests.answers import alternative, edited, mistake, unnamed


@alternative("05.1")
def capture(module, seen):
    def keep(kept, module, args, output):
        kept += [(args[0], output)]

    return module.register_forward_hook(partial(keep, seen))


@alternative("05.1")
def capture(module, seen):
    class Keeper:
        def __init__(self, kept):
            self.kept = kept

        def __call__(self, module, args, output):
            self.kept.append((args[0], output))

    return module.register_forward_hook(Keeper(seen))


@alternative("05.1")
def capture(module, seen, /):
    Pair = namedtuple("Pair", ["x", "output"])

    def keep(module, args, output):
        x, *_ = args
        seen.append(Pair(x, output.detach()))

    return module.register_forward_hook(keep, always_call=True)


@alternative("05.1")
def capture(module, seen):
    waiting = []

    def before(module, args):
        waiting.append(args[0])

    def after(module, args, output):
        seen.append((waiting.pop(), output))

    first, last = module.register_forward_pre_hook(before), module.register_forward_hook(after)
    remove = last.remove

    def both():
        first.remove()
        remove()

    last.remove = both
    return last


@alternative("05.1")
def capture(module, seen):
    def keep(*hooked):
        if (pair := (hooked[1][0], hooked[2])) is not None:
            seen.extend([pair])

    return module.register_forward_hook(keep)


@alternative("05.1")
def capture(module, seen):
    there = weakref.ref(module)

    def keep(module, args, output):
        assert there() is module
        seen.insert(len(seen), tuple([*args, output]))

    return module.register_forward_hook(hook=keep)


@mistake("05.1", "copies_input", points=2)
def capture(module, seen):
    return module.register_forward_hook(lambda m, args, output: seen.append((args[0].clone(), output)))


@mistake("05.1", "copies_input", points=2)
def capture(module, seen):
    return module.register_forward_hook(lambda m, args, output: seen.append((args[0].detach(), output)))


@mistake("05.1", "computes_again", points=2)
def capture(module, seen):
    return module.register_forward_hook(lambda m, args, o: seen.append((args[0], module.forward(args[0]))))


@mistake("05.1", "removed_at_once")
def capture(module, seen):
    handle = module.register_forward_hook(lambda m, args, output: seen.append((args[0], output)))
    handle.remove()
    return handle


@mistake("05.1", "removed_at_once")
def capture(module, seen):
    with module.register_forward_hook(lambda m, args, output: seen.append((args[0], output))) as handle:
        return handle


@mistake("05.1", "first_only")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], output))
        handle.remove()

    handle = module.register_forward_hook(keep)
    return handle


@mistake("05.1", "nothing_added")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: print(args[0], output))


@mistake("05.1", "nothing_added")
def capture(module, seen):
    seen = []
    return module.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))


@mistake("05.1", "overwrites")
def capture(module, seen):
    def keep(module, args, output):
        seen[:] = [(args[0], output)]

    return module.register_forward_hook(keep)


@mistake("05.1", "overwrites")
def capture(module, seen):
    seen.clear()
    return module.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))


@mistake("05.1", "at_the_front")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: seen.insert(0, (args[0], output)))


@mistake("05.1", "registered_twice")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], output))

    module.register_forward_hook(keep)
    return module.register_forward_hook(keep)


@mistake("05.1", "registered_twice")
def capture(module, seen):
    for part in module.modules():
        handle = part.register_forward_hook(lambda m, args, output: seen.append((args[0], output)))
    return handle


@mistake("05.1", "too_few_arguments")
def capture(module, seen):
    def keep(module, args, kwargs, output):
        seen.append((args[0], output))

    return module.register_forward_hook(keep)


@mistake("05.1", "keeps_the_tuple")
def capture(module, seen):
    return module.register_forward_hook(lambda module, *rest: seen.append(rest))


@mistake("05.1", "mode", points=2)
def capture(module, seen):
    module.train(False)
    return module.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))


@mistake("05.1", "others", points=2)
def capture(module, seen):
    module._forward_hooks.clear()
    return module.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))


@mistake("05.1", "too_early")
def capture(module, seen):
    seen.append(None)

    def keep(module, args, output):
        seen[-1] = (args[0], output)

    return module.register_forward_hook(keep)


@unnamed("05.1", "sees")
def capture(module, seen):
    return module.register_forward_hook(lambda m, args, output: seen.append({"x": args[0], "output": output}))


@unnamed("05.1", "sees")
def capture(module, seen):
    return module.register_forward_hook(lambda m, args, output: seen.append((args[0], output[0])))


@mistake("05.1", "only_training")
def capture(module, seen):
    def keep(module, args, output):
        if module.training:
            seen.append((args[0], output))

    return module.register_forward_hook(keep)


@mistake("05.1", "only_with_grad")
def capture(module, seen):
    def keep(module, args, output):
        if torch.is_grad_enabled():
            seen.append((args[0], output))

    return module.register_forward_hook(keep)


edited(
    "05.1",
    "replaces_output",
    ("(args[0], output))", "(args[0], output))\n        return output.clone()"),
    points=2,
)
edited("05.1", "tracks_input", ("args[0], output", "args[0].requires_grad_(), output"), points=2)
edited("05.1", "detaches_in_place", ("args[0], output", "args[0], output.detach_()"))
edited("05.1", "grad", ("    def keep", "    module.zero_grad()\n\n    def keep"), points=2)
edited(
    "05.1",
    "sees",
    (
        "        seen.append(",
        "        if not any(pair[0] is args[0] for pair in seen):\n            seen.append(",
    ),
    named=False,
)
edited(
    "05.1",
    "sees",
    ("        seen.append(", "        if len(seen) < 3:\n            seen.append("),
    named=False,
)
edited("05.1", None, ("args[0], output", "args[0], output.clone()"))
edited("05.1", None, ("(args[0], output))", "(args[0], output))\n        return output"))
edited("05.1", "fires_backward", ("register_forward_hook", "register_full_backward_hook"))
edited("05.1", "only_evaluation", ("        seen", "        if not module.training:\n            seen"))
edited("05.1", "sees", ("args[0], output)", "args[0], output.detach().squeeze())"), named=False)
edited("05.1", "sees", ("seen.append((args[0], output))", "seen.extend(zip(args[0], output))"), named=False)
