"""What the fifth stranger tried on lesson 05: a wrong answer that had been accepted, and right ones."""

from contextlib import contextmanager

from tests.answers import alternative, edited, mistake


@mistake("05.2", "hides_nan")
def prove(model, x, skip):
    seen = []
    hs = [
        c.register_forward_hook(lambda m, a, o: seen.append((type(m).__name__, o.detach().clone())))
        for c in model.children()
        if not isinstance(c, skip)
    ]
    try:
        out, returned = model(x)
    finally:
        for h in hs:
            h.remove()
    return [(n, max([0.0] + (o - r).abs().flatten().tolist())) for (n, o), r in zip(seen, returned)]


edited("05.2", "hides_nan", ("(output - own).abs()", "(output - own).abs().nan_to_num(0, float('inf'))"))


@alternative("05.2")
def prove(model, x, skip):  # the list is its caller's: only tensors must stay as they are
    seen = []
    hs = [
        c.register_forward_hook(lambda m, a, o: seen.append((type(m).__name__, o.detach())))
        for c in model.children()
        if not isinstance(c, skip)
    ]
    out, returned = model(x)
    for h in hs:
        h.remove()
    return [(n, (o - returned.pop(0)).abs().max().item()) for n, o in seen]


@alternative("05.3")
@contextmanager
def extracting(model, names):  # each name is another module's, so none is missing here
    seen, hs, mods = {}, [], dict(model.named_modules())
    try:
        for n in names:
            hs.append(mods[n].register_forward_hook(lambda m, a, o, n=n: seen.__setitem__(n, o.detach())))
        yield seen
    finally:
        for h in hs:
            h.remove()
