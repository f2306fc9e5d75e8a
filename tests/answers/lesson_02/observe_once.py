"""Answers to 02.3, `observe_once`."""

import torch
from torch.autograd.graph import register_multi_grad_hook

from tests.answers import alternative, edited, mistake, unnamed


@alternative("02.3")
def observe_once(y, seen):
    handle = y.register_hook(lambda grad: (seen.append(grad), handle.remove()) and None)
    return handle


@alternative("02.3")
def observe_once(y, seen):
    handles = []

    def keep(grad):
        seen.append(grad.clone())
        for handle in handles:
            handle.remove()

    handles.append(y.register_hook(keep))
    return handles[0]


@alternative("02.3")
def observe_once(y, seen):
    class Once:
        def __call__(self, grad):
            self.handle.remove()
            seen.append(grad)

    once = Once()
    once.handle = y.register_hook(once)
    return once.handle


@mistake("02.3", "asks_too_early")
def observe_once(y, seen):
    seen.append(y.grad)


@mistake("02.3", "removes_at_once")
def observe_once(y, seen):
    handle = y.register_hook(seen.append)
    handle.remove()
    return handle


@mistake("02.3", "removes_at_once")
def observe_once(y, seen):
    with y.register_hook(seen.append) as handle:
        return handle


@mistake("02.3", "keeps_nothing")
def observe_once(y, seen):
    def keep(grad):
        seen = [grad]
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "never_removes")
def observe_once(y, seen):
    return y.register_hook(seen.append)


@mistake("02.3", "only_ignores", points=3)
def observe_once(y, seen):
    done = []

    def keep(grad):
        if not done:
            seen.append(grad)
            done.append(True)

    return y.register_hook(keep)


@mistake("02.3", "only_ignores", points=2)
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)
    return y.register_hook(lambda grad: None)  # stays, and takes off nothing


@mistake("02.3", "asks_seen")
def observe_once(y, seen):
    def keep(grad):
        if not seen:
            seen.append(grad)

    return y.register_hook(keep)


@mistake("02.3", "asks_seen")
def observe_once(y, seen):
    def keep(grad):
        if not seen:
            seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "overwrites")
def observe_once(y, seen):
    def keep(grad):
        seen[:] = [grad]
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "cancels_half", points=3)
def observe_once(y, seen):
    def take_off(grad):
        watcher.remove()
        remover.remove()

    watcher = y.register_hook(seen.append)
    remover = y.register_hook(take_off)
    return watcher


@mistake("02.3", "cancels_half", points=3)
def observe_once(y, seen):
    def take_off(grad):
        watcher.remove()
        remover.remove()

    watcher = y.register_hook(seen.append)
    remover = y.register_hook(take_off)
    return remover


@mistake("02.3", "clears_everybody")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        y._backward_hooks.clear()

    return y.register_hook(keep)


@mistake("02.3", "shared_flag")
def observe_once(y, seen, done=[]):
    def keep(grad):
        if not done:
            seen.append(grad)
            done.append(True)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "returns_a_tuple")
def observe_once(y, seen):
    handle = y.register_hook(lambda grad: (seen.append(grad), handle.remove()))
    return handle


@mistake("02.3", "no_argument")
def observe_once(y, seen):
    def keep():
        seen.append(y)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "calls_now")
def observe_once(y, seen):
    handle = y.register_hook(seen.clear())
    return handle


@mistake("02.3", "handle_not_kept")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()  # noqa: F821

    return y.register_hook(keep)


@mistake("02.3", "no_handle", points=3)
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()

    handle = register_multi_grad_hook((y,), keep, mode="any")  # it has no hooks_dict_ref
    return handle


@mistake("02.3", "no_handle", points=3)
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)


@mistake("02.3", "changes_gradient")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()
        return torch.zeros_like(grad)

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "shared_handle")
def observe_once(y, seen):
    global handle

    def keep(grad):
        seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "too_early")
def observe_once(y, seen):
    def keep(grad, handle=handle):  # noqa: F823
        seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "handle_not_kept")
def observe_once(y, seen):
    def keep(grad, handle=hook_handle):  # noqa: F821
        seen.append(grad)
        handle.remove()

    return y.register_hook(keep)


@mistake("02.3", "local_seen")
def observe_once(y, seen):
    def keep(grad):
        seen += [grad]  # noqa: F823
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "inserts_in_front")
def observe_once(y, seen):
    def keep(grad):
        seen.insert(0, grad)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "keeps_the_last")
def observe_once(y, seen):
    start = len(seen)

    def keep(grad):
        seen[start:] = [grad]

    return y.register_hook(keep)


@mistake("02.3", "runs_backward")
def observe_once(y, seen):
    with y.register_hook(seen.append) as handle:
        y.sum().backward(retain_graph=True)
    return handle


@mistake("02.3", "keeps_nothing")
def observe_once(y, seen):
    def keep(grad):
        handle.remove()
        print(grad)

    handle = y.register_hook(keep)
    return handle


@unnamed("02.3", "sees")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad.sum())
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@unnamed("02.3", "sees")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad.nan_to_num(0, 0, 0).relu())
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.3", "only_ignores", points=3)
def observe_once(y, seen):
    count = 0

    def keep(grad):
        nonlocal count
        if count == 0:
            seen.append(grad)
        count += 1

    return y.register_hook(keep)


@mistake("02.3", "no_handle", points=3)
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)
    return keep


@mistake("02.3", "clears_everybody")
def observe_once(y, seen):
    def keep(grad):
        seen.append(grad)
        y._backward_hooks.popitem()  # the newest hook, whose ever it is

    return y.register_hook(keep)


@mistake("02.3", "cancels_half")
def observe_once(y, seen, handles=[]):
    def keep(grad):
        seen.append(grad)
        handles[0].remove()

    handles.append(y.register_hook(keep))
    return handles[0]


edited(
    "02.3",
    "skips_zero",
    ("seen.append(grad)", "if not grad.any():\n            return\n        seen.append(grad)"),
)
