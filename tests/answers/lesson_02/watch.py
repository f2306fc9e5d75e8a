"""Answers to 02.1, `watch`."""

import torch
from torch.autograd.graph import register_multi_grad_hook

from tests.answers import alternative, edited, mistake, unnamed


@alternative("02.1")
def watch(y, seen):
    return y.register_hook(seen.append)


@alternative("02.1")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(grad.detach().clone()))


@alternative("02.1")
def watch(y, seen):
    def keep(grad):
        seen.append(grad)
        return grad  # the same tensor: nothing changes

    handle = y.register_hook(keep)
    return handle


@alternative("02.1")
def watch(y, seen):
    class Keeper:
        def __call__(self, grad):
            seen.extend([grad])

    return y.register_hook(Keeper())


@mistake("02.1", "no_handle", points=2)
def watch(y, seen):
    y.register_hook(seen.append)


@mistake("02.1", "no_handle", points=2)
def watch(y, seen):
    def keep(grad):
        seen.append(grad)

    y.register_hook(keep)
    return keep


@mistake("02.1", "no_handle", points=2)
def watch(y, seen):
    return register_multi_grad_hook((y,), seen.append, mode="any")  # a handle without hooks_dict_ref


@mistake("02.1", "asks_too_early")
def watch(y, seen):
    seen.append(y.grad)


@mistake("02.1", "runs_backward")
def watch(y, seen):
    handle = y.register_hook(seen.append)
    y.sum().backward(retain_graph=True)
    return handle


@mistake("02.1", "reads_dot_grad")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(y.grad))


@mistake("02.1", "keeps_nothing")
def watch(y, seen):
    def keep(grad):
        seen = [grad]

    return y.register_hook(keep)


@mistake("02.1", "not_registered")
def watch(y, seen):
    def keep(grad):
        seen.append(grad)

    return keep


@mistake("02.1", "not_registered")
def watch(y, seen):
    pass


@mistake("02.1", "watches_a_copy")
def watch(y, seen):
    y = y.detach().requires_grad_()
    return y.register_hook(seen.append)


@mistake("02.1", "watches_a_copy")
def watch(y, seen):
    return y.clone().register_hook(seen.append)


@mistake("02.1", "keeps_a_summary")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(grad.mean().item()))


@mistake("02.1", "changes_gradient")
def watch(y, seen):
    def keep(grad):
        seen.append(grad.clone())
        grad.zero_()

    return y.register_hook(keep)


@mistake("02.1", "changes_gradient")
def watch(y, seen):
    def keep(grad):
        seen.append(grad)
        return 2 * grad

    return y.register_hook(keep)


@mistake("02.1", "calls_now")
def watch(y, seen):
    def keep(grad):
        pass

    return y.register_hook(keep(y))


@mistake("02.1", "no_argument")
def watch(y, seen):
    def keep():
        seen.append(y.grad)

    return y.register_hook(keep)


@mistake("02.1", "retains_grad")
def watch(y, seen):
    y.retain_grad()
    return y.register_hook(lambda grad: seen.append(y.grad))


@mistake("02.1", "keeps_the_last")
def watch(y, seen):
    def keep(grad):
        seen.clear()
        seen.append(grad)

    return y.register_hook(keep)


@mistake("02.1", "keeps_the_last")
def watch(y, seen):
    def keep(grad):
        seen[:] = [grad]

    return y.register_hook(keep)


@mistake("02.1", "keeps_nothing")
def watch(y, seen):
    return y.register_hook(print)


@mistake("02.1", "removes_at_once")
def watch(y, seen):
    handle = y.register_hook(seen.append)
    handle.remove()
    return handle


@mistake("02.1", "removes_at_once")
def watch(y, seen):
    with y.register_hook(seen.append) as handle:
        return handle


@mistake("02.1", "inserts_in_front")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.insert(0, grad))


@mistake("02.1", "local_seen")
def watch(y, seen):
    def keep(grad):
        seen += [grad]  # noqa: F823

    return y.register_hook(keep)


@mistake("02.1", "keeps_a_summary")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(grad.flatten().tolist()))


@mistake("02.1", "keeps_a_summary")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(grad.numpy()))


@unnamed("02.1", "sees")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(grad.double()))


@unnamed("02.1", "sees")
def watch(y, seen):
    return y.register_hook(lambda grad: seen.append(grad.abs()))


@unnamed("02.1", "sees")
def watch(y, seen):
    return y.register_hook(lambda grad: None if seen else seen.append(grad))


@unnamed("02.1", "sees")
def watch(y, seen):
    def keep(grad):  # keeps what is new only
        if not any(g.equal(grad) for g in seen):
            seen.append(grad)

    return y.register_hook(keep)


@mistake("02.1", "keeps_the_first")
def watch(y, seen):
    def keep(grad):
        seen.append(grad)
        handle.remove()

    handle = y.register_hook(keep)
    return handle


@mistake("02.1", "runs_backward")
def watch(y, seen):
    y.sum().backward(retain_graph=True)
    return y.register_hook(seen.append)


@mistake("02.1", "changes_gradient")
def watch(y, seen):
    return y.register_hook(lambda grad: [seen.append(grad.clone()), grad.relu_()][1])


@mistake("02.1", "takes_off_earlier")
def watch(y, seen):
    y._backward_hooks.clear()
    return y.register_hook(seen.append)


@unnamed("02.1", "handle", points=2)
def watch(y, seen):
    y.register_hook(seen.append)
    return y.register_hook(lambda grad: None)


@mistake("02.1", "hooks", points=2)
def watch(y, seen):
    y.register_hook(lambda grad: print("grad:", grad))
    return y.register_hook(seen.append)


@mistake("02.1", "no_handle", points=2)
def watch(y, seen):
    return (y.register_hook(seen.append),)


@mistake("02.1", "attributes", points=2)
def watch(y, seen):
    y.retain_grad()
    return y.register_hook(seen.append)


@mistake("02.1", "process", points=2)
def watch(y, seen):
    torch.set_printoptions(precision=2)
    torch.autograd.set_detect_anomaly(True)
    return y.register_hook(seen.append)


# A leaf has no grad_fn; and of one of several outputs another tensor's gradient would arrive.
@unnamed("02.1", "raised")
def watch(y, seen):
    return y.grad_fn.register_prehook(lambda gradients: seen.append(gradients[0]))


@mistake("02.1", "shared_seen")
def watch(y, seen):
    y.seen = seen
    return y.register_hook(lambda grad: y.seen.append(grad))


@unnamed("02.1", "sees")
def watch(y, seen):
    return y.register_hook(lambda grad: None if any(grad is one for one in seen) else seen.append(grad))


edited("02.1", "keeps_nothing", ("seen.append(grad)", "seen.extend([grad] if grad.sum() > 0 else [])"))
edited("02.1", "sees", ("seen.append(grad)", "seen.extend([grad] if grad.any() else [])"), named=False)
