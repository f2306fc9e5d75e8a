"""Answers to lesson 03 of strangers who had not read the checks, in their eleventh round."""

from tests.answers import edited, mistake


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
edited(
    "03.1",
    "again",
    ("return grad * 2", "return grad * 2 if grad.abs().max() >= 1e-6 else None"),
    named=False,
)
# The ratio of whole numbers is a whole one; or ratios are rounded.
edited(
    "03.3",
    "looks",
    ("factor / previous", "factor // previous if isinstance(factor, int) else factor / previous"),
    named=False,
)
edited("03.3", "looks", ("factor / previous", "round(factor / previous, 4)"), named=False)
