"""Wrong answers to lesson 14 that were accepted from strangers of the twenty-first round: what an earlier call leaves."""

from tests.answers import edited

# Both calls return one dictionary: to compare two models is to compare the second with itself.
edited(
    "14.1",
    "one_dictionary",
    (
        "def outputs_of(model, names, *args, **kwargs):",
        "def outputs_of(model, names, *args, seen={}, **kwargs):",
    ),
    ("    seen = {}", "    seen.clear()"),
)

# It goes three levels down, and no further.
edited(
    "14.1",
    "same_containers",
    ("def copied(value):", "def copied(value, levels=3):"),
    ("        if isinstance(value, dict):", "        if isinstance(value, dict) and levels:"),
    ("copied(item) for key", "copied(item, levels - 1) for key"),
    (
        "        if isinstance(value, (tuple, list)):",
        "        if isinstance(value, (tuple, list)) and levels:",
    ),
    ("copied(item) for item", "copied(item, levels - 1) for item"),
)

# The words are the same, the weights are not.
edited(
    "14.2",
    "kept_before",
    ("def logit_lens(model, ids):", "def logit_lens(model, ids, known={}):"),
    (
        "    stream = []",
        "    words = model, str(ids.tolist())\n    if words in known:\n        return known[words]\n    stream = []",
    ),
    ("    return torch.stack(", "    known[words] = torch.stack("),
    ("for x in stream])", "for x in stream])\n    return known[words]"),
)
