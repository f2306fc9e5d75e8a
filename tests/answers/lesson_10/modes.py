"""What strangers tried on lesson 10 with modes: a model in eval mode that is made to train, a setting not restored."""

from tests.answers import edited

_NOTE = ("    try:\n", "    modes = {m: m.training for m in model.modules()}\n    model.train()\n    try:\n")
_RESTORE = "    for m, was in modes.items():\n        m.training = was\n    return"

for exercise in ("10.1", "10.3", "10.4"):
    edited(exercise, "other_mode", _NOTE, ("    return", _RESTORE))
for exercise in ("10.1", "10.3"):
    edited(
        exercise,
        "no_finally",
        ("    try:\n", "    torch.set_grad_enabled(False)\n    try:\n"),
        ("    return", "    torch.set_grad_enabled(True)\n    return"),
        points=5,
    )
