"""Wrong answers to lesson 15 that were accepted from strangers in the twentieth round: what comes late, nan put away."""

from tests.answers import edited

_NORM = "[output.norm().item(), None]"
_ARRIVED = "lambda grad: entry.__setitem__(1, grad.norm().item())"

# The row is added when the model has run.
edited(
    "15.1",
    "only_at_the_end",
    ("    rows, handles = [], []", "    rows, handles, row = [], [], {}"),
    ("rows[-1][name]", "row[name]"),
    ("rows.append({})", "row.clear()"),
    (
        "        yield rows",
        "        handles.append(model.register_forward_hook(lambda *_: rows.append(dict(row))))\n        yield rows",
    ),
)
edited("15.1", "hides_nan", (_NORM, _NORM.replace("norm", "nan_to_num().norm")))
edited("15.1", "changes_gradient", (_ARRIVED, f"{_ARRIVED} or grad.nan_to_num()"))
edited(
    "15.2",
    "names_at_entry",
    ("    steps, before = [], {}", "    steps, before, named = [], {}, list(model.named_parameters())"),
    (
        "in model.named_parameters():\n            size",
        "in named:\n            size",
    ),
)
edited("15.2", "none_for_nan", ("if size else None", "if size and moved == moved else None"))
