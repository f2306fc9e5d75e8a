"""What the fourteenth strangers tried on lesson 10: other leaves, two names, half precision, and a nan elsewhere."""

from tests.answers import edited

edited(
    "10.2",
    "x_grad",
    (
        "        loss.backward()\n",
        "        loss.backward(inputs=[p for p in model.parameters() if p.requires_grad])\n",
    ),
    named=False,
)
edited(
    "10.2",
    "names",
    ("in model.named_parameters():", "in model.named_parameters(remove_duplicate=False):"),
    named=False,
)
edited(
    "10.2",
    "names",
    ("        arrived.append", "        if grad.any():\n            arrived.append"),
    named=False,
)
edited(
    "10.3",
    "other_row",
    (
        "if output.isnan().any() and not args[0].isnan().any():",
        "if (output.isnan().any(-1) & ~args[0].isnan().any(-1)).any():",
    ),
    named=False,
)
edited("10.4", "other_measure", ("grad.abs().mean().item()", "grad.half().abs().mean()"))
