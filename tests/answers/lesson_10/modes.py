"""What strangers tried on lesson 10: a model in eval mode made to train, a setting not restored, gradients set aside."""

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

# Old gradients are set aside. What was there takes the place of what this pass wrote, or is added only where it wrote something.
_ASIDE = (
    "    for name, param in model",
    "    old = {p: p.grad for p in model.parameters()}\n    model.zero_grad()\n    for name, param in model",
)
_IN_THE_END = "    for p, grad in old.items():\n        {}\n    return"
_ADDED = "if p.grad is not None and grad is not None:\n            p.grad += grad"
edited("10.2", "put_back", _ASIDE, ("    return", _IN_THE_END.format("p.grad = grad")))
edited("10.2", "zeroes", _ASIDE, ("    return", _IN_THE_END.format(_ADDED)))
