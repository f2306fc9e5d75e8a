"""Wrong answers to lesson 15 that were accepted from a stranger in the seventeenth round."""

from tests.answers import edited

LEAF = "if not list(module.children()):"

# Chosen by type: a container with a forward of its own is taken for a layer, and layers of other types are missing.
edited("15.1", "containers_too", (LEAF, "if module is not model and not isinstance(module, nn.Sequential):"))
edited("15.1", "some_types", (LEAF, "if isinstance(module, (nn.Linear, nn.ReLU)):"))
edited("15.1", "some_types", (LEAF, "if not list(module.children()) and not isinstance(module, nn.Dropout):"))
# Only in training; only of layers that learn; with two decimals; of matrices alone.
edited(
    "15.1",
    "unusual",
    ("if output.requires_grad:", "if module.training and output.requires_grad:"),
    named=False,
)
edited(
    "15.1",
    "unusual",
    (
        "if output.requires_grad:",
        "if output.requires_grad and all(p.requires_grad for p in module.parameters()):",
    ),
    named=False,
)
edited("15.1", "other_gradient", ("1, grad.norm().item()", "1, round(grad.norm().item(), 2)"))
edited("15.3", "only_containers", (LEAF, "if module is not model and not isinstance(module, nn.Sequential):"))
# A sample need not be contiguous.
edited("15.3", "raised", ("flatten(1)", "view(output.shape[0], -1)"), named=False)
# The numbers of a parameter may cancel.
edited(
    "15.2",
    "none_too_often",
    ("moved / size if size else None", "moved / size if before[name].sum() else None"),
)
