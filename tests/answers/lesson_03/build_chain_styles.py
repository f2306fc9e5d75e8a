"""More wrong answers to 03.3, `build_chain`."""

from tests.answers import edited, mistake, unnamed


@mistake("03.3", "used_up")
def build_chain(y, factors, seen):
    it = iter(factors)

    def step(grad, ratio):
        seen.append(next(it) * original[0])
        return seen[-1]

    original = []
    first = y.register_hook(lambda grad: original.append(grad))
    return [first] + [y.register_hook(lambda grad: step(grad, 1)) for _ in factors]


@mistake("03.3", "used_up")
def build_chain(y, factors, seen):
    ratios = iter([b / a for a, b in zip([1, *factors], factors, strict=False)])

    def step(grad):
        for ratio in ratios:
            seen.append(grad * ratio)
            return seen[-1]

    return [y.register_hook(step) for _ in factors]


@mistake("03.3", "first_gradient")
def build_chain(y, factors, seen):
    first = []

    def step(grad, factor):
        first.append(grad)
        seen.append(factor * first[0])
        return seen[-1]

    return [y.register_hook(lambda grad, factor=factor: step(grad, factor)) for factor in factors]


@mistake("03.3", "replaces")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for n, factor in enumerate(factors):

        def step(grad, n=n, ratio=factor / previous):
            seen[n:] = [grad * ratio]
            return seen[n]

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "removes_itself")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for n, factor in enumerate(factors):

        def step(grad, n=n, ratio=factor / previous):
            handles[n].remove()
            seen.append(grad * ratio)
            return seen[-1]

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@mistake("03.3", "argument", points=3)
def build_chain(y, factors, seen):
    factors.insert(0, 1)
    handles = []
    for before, after in zip(factors, factors[1:]):

        def step(grad, ratio=after / before):
            seen.append(grad * ratio)
            return seen[-1]

        handles.append(y.register_hook(step))
    return handles


edited("03.3", "reversed_handles", ("return handles", "return handles[::-1]"), points=3)
edited("03.3", "some_handles", ("return handles", "return handles[:-1]"), points=3)
edited(
    "03.3",
    "some_handles",
    ("    return handles", "    y.register_hook(lambda grad: None)\n    return handles"),
    points=3,
)
edited(
    "03.3",
    "late_binding",
    ("grad, ratio=factor / previous", "grad"),
    ("grad * ratio", "grad * factor"),
    ("return new", ""),
)
edited("03.3", "in_place", ("new = grad * ratio", "new = grad.mul_(ratio)"))
edited(
    "03.3",
    "removed_at_once",
    ("    return handles", "    for handle in handles:\n        handle.remove()\n    return handles"),
)


@mistake("03.3", "keeps_lists")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append((grad * ratio).tolist())
            return grad * ratio

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@unnamed("03.3", "looks")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor / previous):
            seen.append((grad * ratio).double())
            return grad * ratio

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@unnamed("03.3", "looks")
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:

        def step(grad, ratio=factor // previous):
            seen.append(grad * ratio)
            return seen[-1]

        handles.append(y.register_hook(step))
        previous = factor
    return handles


@unnamed("03.3", "handle", points=3)
def build_chain(y, factors, seen):
    handles, previous = {}, 1
    for n, factor in enumerate(factors):

        def step(grad, ratio=factor / previous):
            seen.append(grad * ratio)
            return seen[-1]

        handles[n] = y.register_hook(step)
        previous = factor
    return handles


@unnamed("03.3", "again")
def build_chain(y, factors, seen):
    previous = 1

    def step(grad, factor):
        nonlocal previous
        seen.append(grad * (factor / previous))
        previous = factor
        return seen[-1]

    return [y.register_hook(lambda grad, factor=factor: step(grad, factor)) for factor in factors]


@unnamed("03.3", "again")
def build_chain(y, factors, seen):
    previous = 1

    def step(grad, factor):
        nonlocal previous
        seen.append(grad * (factor / previous))
        previous = factor
        return seen[-1]

    return [y.register_hook(lambda grad, factor=factor: step(grad, factor)) for factor in factors]


@mistake("03.3", "some_handles", points=3)
def build_chain(y, factors, seen):
    handles, previous = [], 1
    for factor in factors:
        handles.append(y.register_hook(lambda grad, ratio=factor / previous: grad * ratio))
        y.register_hook(seen.append)
        previous = factor
    return handles
