"""Answers to 05.1, `capture`."""

import torch

from tests.answers import alternative, mistake


@alternative("05.1")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))


@mistake("05.1", "copies_input", points=2)
def capture(module, seen):
    def keep(module, args, output):
        (x,) = args
        seen.append([x.detach().clone(), output.detach().clone()])
        return output

    return module.register_forward_hook(keep)


@alternative("05.1")
def capture(module, seen):
    def keep(module, args, kwargs, output):
        seen.append((*args, output))

    handle = module.register_forward_hook(keep, with_kwargs=True)
    return handle


@mistake("05.1", "keeps_the_tuple")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args, output))

    return module.register_forward_hook(keep)


@mistake("05.1", "not_a_pair")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: seen.append(output))


@mistake("05.1", "not_a_pair")
def capture(module, seen):
    def keep(module, args, output):
        seen.append(args[0])
        seen.append(output)

    return module.register_forward_hook(keep)


@mistake("05.1", "not_a_pair")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((module, args[0], output))

    return module.register_forward_hook(keep)


@mistake("05.1", "wrong_order")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: seen.append((output, args[0])))


@mistake("05.1", "nothing_added")
def capture(module, seen):
    def keep(module, args, output):
        seen = [(args[0], output)]

    return module.register_forward_hook(keep)


@mistake("05.1", "not_registered")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], output))

    return keep


@mistake("05.1", "too_early")
def capture(module, seen):
    x = torch.ones(1, 1, 4, 4)
    seen.append((x, module(x)))


@mistake("05.1", "changes_output")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], output))
        return output / output.max()

    return module.register_forward_hook(keep)


@mistake("05.1", "too_few_arguments")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], output))

    return module.register_forward_pre_hook(keep)


@mistake("05.1", "calls_again")
def capture(module, seen):
    def keep(module, args, output):
        seen.append((args[0], module(args[0])))

    return module.register_forward_hook(keep)


@mistake("05.1", "returns_tuple")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: (seen.append((args[0], output)), output))


@mistake("05.1", "returns_tuple")
def capture(module, seen):
    return module.register_forward_hook(lambda module, args, output: [seen.append((args[0], output)), output])


@mistake("05.1", "cuts_gradient")
def capture(module, seen):
    def keep(module, args, output):
        output = output.detach()
        seen.append((args[0], output))
        return output

    return module.register_forward_hook(keep)


@mistake("05.1", "calls_now")
def capture(module, seen):
    return module.register_forward_hook(seen.extend([]))


@mistake("05.1", "wrong_arguments")
def capture(module, seen):
    def keep(output):
        seen.append(output)

    return module.register_forward_hook(keep)


@mistake("05.1", "wrong_arguments")
def capture(module, seen):
    return module.register_forward_hook(lambda args, output: seen.append((args[0], output)))


@mistake("05.1", "no_handle", points=2)
def capture(module, seen):
    module.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))
