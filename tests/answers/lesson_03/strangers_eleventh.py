"""Answers to lesson 03 of strangers who had not read the checks, in their eleventh round."""

from tests.answers import mistake, unnamed


# The second hook halves what the first one kept in an earlier pass, once that one is off.
@mistake("03.4", "other_job", points=3)
def tame(branch):
    store = {}

    def keep_positive(grad):
        store["grad"] = grad.clamp(min=0)
        return store["grad"]

    def halve(grad):
        return store.get("grad", grad) / 2

    return [branch.register_hook(keep_positive), branch.register_hook(halve)]


# Leaves tiny gradients as they are.
@unnamed("03.1", "again")
def double_gradient(y):
    def hook(grad):
        if grad.abs().max() < 1e-6:
            return None
        return grad * 2

    return y.register_hook(hook)


# The ratio of whole numbers is a whole one.
@unnamed("03.3", "looks")
def build_chain(y, factors, seen):
    handles, before = [], 1
    for factor in factors:
        whole = isinstance(factor, int) and isinstance(before, int) and abs(factor) >= abs(before)

        def hook(grad, ratio=factor // before if whole else factor / before):
            out = grad * ratio
            seen.append(out)
            return out

        handles.append(y.register_hook(hook))
        before = factor
    return handles


# The ratios are rounded.
@unnamed("03.3", "looks")
def build_chain(y, factors, seen):
    def make(ratio):
        def hook(grad):
            out = grad * ratio
            seen.append(out)
            return out

        return hook

    ratios = [round(after / before, 4) for before, after in zip([1, *factors], factors, strict=False)]
    return [y.register_hook(make(ratio)) for ratio in ratios]
