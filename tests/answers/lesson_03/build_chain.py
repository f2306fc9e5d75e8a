"""Answers to 03.3, `build_chain`."""

from tests.answers import alternative, mistake


@alternative("03.3")
def build_chain(y, factors, seen):
    def step(ratio):
        def hook(grad):
            seen.append(grad * ratio)
            return seen[-1]

        return hook

    ratios = [factors[0]] + [b / a for a, b in zip(factors, factors[1:])]
    return [y.register_hook(step(ratio)) for ratio in ratios]


@alternative("03.3")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: grad * ratio))
        handles.append(y.register_hook(lambda grad: seen.append(grad)))
        previous = factor
    return handles


@alternative("03.3")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: seen.append(grad * ratio)))
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: grad * ratio))
        previous = factor
    return handles


@mistake("03.3", "one_for_all", points=3)
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    return [y.register_hook(all_of_it)]


@mistake("03.3", "one_for_all", points=3)
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    return [y.register_hook(all_of_it)] * len(factors)


@mistake("03.3", "one_for_all", points=3)
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    def nothing(grad):
        pass

    return [y.register_hook(all_of_it), y.register_hook(nothing), y.register_hook(nothing)]


@alternative("03.3")
def build_chain(y, factors, seen):
    original = []

    def start(grad):
        original.append(grad)

    def look(factor, grad):
        seen.append(factor * original[-1])
        return seen[-1]

    from functools import partial

    return (y.register_hook(start), *(y.register_hook(partial(look, factor)) for factor in factors))


@mistake("03.3", "forgets_carry")
def build_chain(y, factors, seen):
    handles = []
    for factor in factors:

        def step(grad, factor=factor):
            new = grad * factor
            seen.append(new)
            return new

        handles.append(y.register_hook(step))
    return handles


@mistake("03.3", "late_binding")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        ratio = factor / previous

        def step(grad):
            new = grad * ratio
            seen.append(new)
            return new

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "late_binding")
def build_chain(y, factors, seen):
    handles = []
    for factor in factors:

        def step(grad):
            seen.append(grad * factor)
            return seen[-1]

        handles.append(y.register_hook(step))
    return handles


@mistake("03.3", "looks_first")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append(grad)
            return grad * ratio

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "in_place")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            grad *= ratio
            seen.append(grad)

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "in_place")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append(grad.mul_(ratio).clone())

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "forgot_return")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        ratio = factor / previous

        def change(grad, ratio=ratio):
            grad * ratio

        handles.append(y.register_hook(change))
        handles.append(y.register_hook(seen.append))
        previous = factor
    return handles


@mistake("03.3", "only_notes")
def build_chain(y, factors, seen):
    return [y.register_hook(lambda grad, f=factor: seen.append(grad * f)) for factor in factors]


@mistake("03.3", "keeps_nothing")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: grad * ratio))
        previous = factor
    return handles


@mistake("03.3", "asks_too_early")
def build_chain(y, factors, seen):
    for factor in factors:
        seen.append(factor * y)


@mistake("03.3", "some_handles", points=3)
def build_chain(y, factors, seen):
    previous = 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append(grad * ratio)
            return seen[-1]

        handle = y.register_hook(step)
        previous = factor
    return handle


@mistake("03.3", "some_handles", points=3)
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: grad * ratio))
        y.register_hook(lambda grad: seen.append(grad))
        previous = factor
    return handles[1:]


@mistake("03.3", "no_handle", points=3)
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    y.register_hook(all_of_it)


@mistake("03.3", "not_registered")
def build_chain(y, factors, seen):
    def all_of_it(grad):
        seen.extend(factor * grad for factor in factors)
        return seen[-1]

    return [all_of_it]


@mistake("03.3", "wrong_tensor")
def build_chain(y, factors, seen):
    handles = []
    for factor in factors:
        y = y * 1
        handles.append(y.register_hook(lambda grad, factor=factor: seen.append(grad * factor)))
    return handles


@mistake("03.3", "reads_dot_grad")
def build_chain(y, factors, seen):
    return [y.register_hook(lambda grad, f=factor: seen.append(y.grad * f)) for factor in factors]


@mistake("03.3", "returns_no_tensor")
def build_chain(y, factors, seen):
    return [y.register_hook(lambda grad, f=f: (seen.append(grad * f), grad * f)) for f in factors]


@mistake("03.3", "calls_now")
def build_chain(y, factors, seen):
    def step(factor):
        def hook(grad):
            return grad * factor

        # forgot to return the hook

    return [y.register_hook(step(factor)) for factor in factors]


@mistake("03.3", "forgot_return")  # late binding of two values that end up equal, not of one
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad):
            new = grad * (factor / previous)
            seen.append(new)
            return new

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "ratio_not_returned")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append(grad * ratio)

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "difference")
def build_chain(y, factors, seen):
    handles, previous = [], 0
    for factor in factors:

        def step(grad, change=factor - previous):
            seen.append(grad * change)
            return seen[-1]

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "difference")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, change=factor - previous):
            seen.append(grad * change)
            return seen[-1]

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "passes_tensor")
def build_chain(y, factors, seen):
    def step(grad, ratio):
        return grad * ratio

    return [y.register_hook(step(y, factor)) for factor in factors]


@mistake("03.3", "no_argument")
def build_chain(y, factors, seen):
    return [y.register_hook(lambda: seen.append(factor * y.grad)) for factor in factors]


@mistake("03.3", "two_arguments")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio):
            seen.append(grad * ratio)
            return seen[-1]

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "one_for_all", points=3)
def build_chain(y, factors, seen):
    def step(grad):
        seen.extend(grad * factor for factor in factors)
        return seen[-1]

    return y.register_hook(step)


@mistake("03.3", "replaces")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.insert(0, grad * ratio)
            return seen[0]

        handles.append(y.register_hook(step))
        previous = factor
    return handles
