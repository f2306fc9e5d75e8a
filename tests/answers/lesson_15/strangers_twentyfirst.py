"""Wrong answers to lesson 15 from strangers of the twenty-first round: gradients switched in the block, one list for all.

They had been accepted, but for the one that takes off the hooks of others: it was told of "-7 hooks" and of no cause.
"""

from tests.answers import edited

_STEPS = "        yield steps"
_ROWS = "        yield rows"

# Nobody can train in the block.
edited("15.2", "no_grad_inside", (_STEPS, "        with torch.no_grad():\n            yield steps"))
edited("15.2", "grad_inside", (_STEPS, "        with torch.enable_grad():\n            yield steps"))
edited("15.1", "grad_inside", (_ROWS, "        with torch.enable_grad():\n            yield rows"))

# The readings of one block are gone when the next begins.
edited(
    "15.1",
    "one_list",
    ("def instruments(model):", "def instruments(model, rows=[]):"),
    ("    rows, handles = [], []", "    handles = []\n    rows.clear()"),
)
edited(
    "15.2",
    "one_list",
    ("def update_ratios(model, optimizer):", "def update_ratios(model, optimizer, steps=[]):"),
    ("    steps, before = [], {}", "    before = {}\n    steps.clear()"),
)
edited(
    "15.1",
    "removes_others",
    (
        "            handle.remove()",
        "            handle.remove()\n        for module in model.modules():\n            module._forward_hooks.clear()",
    ),
    points=5,
)
edited("15.2", "rounded", ("moved / size if", "round(moved / size, 6) if"))

# What is bad is found, and put right: the layers behind get other numbers than the model makes.
_FOUND = "found.append((name, bad.nonzero()[0].item()))"
edited(
    "15.3",
    "mends",
    ("if bad.any():", "if bad.any() and not found:"),
    (_FOUND, f"{_FOUND}\n            return output.nan_to_num(0)"),
)
edited("15.3", "mends", (_FOUND, f"{_FOUND}\n            output.nan_to_num_()"))
