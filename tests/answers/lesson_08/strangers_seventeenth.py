"""Answers to lesson 08 of strangers who had not read the checks, in their seventeenth round."""

from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from hookedu import remove_hooks
from tests.answers import mistake, unnamed


@unnamed("08.3", "found")  # it takes off the course's own hooks, and asks for no handle
def remove_leaked(model, handles):
    return [hook.path for hook in remove_hooks(model)]


# "Change no output": what `and None` hands back is not None where the module, or the depth, is false.
@mistake("08.5", "hook_returns")
def outline(model, x):
    calls, stack = [], []

    def pre(module, args):
        calls.append((len(stack), type(module).__name__))
        stack.append(module)

    with (
        register_module_forward_pre_hook(pre),
        register_module_forward_hook(lambda m, a, o: stack.pop() and None),
    ):
        model(x)
    return calls


@mistake("08.5", "changes_outputs", points=4)
def outline(model, x):
    calls, depth = [], []

    def pre(module, args):
        calls.append((len(depth), type(module).__name__))
        depth.append(len(depth))

    with (
        register_module_forward_pre_hook(pre),
        register_module_forward_hook(lambda m, a, o: depth.pop() and None),
    ):
        model(x)
    return calls
