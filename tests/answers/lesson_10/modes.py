"""What strangers tried on lesson 10: a model in eval mode made to train, a setting not restored, gradients set aside."""

from tests.answers import edited, mistake

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


@mistake("10.2", "put_back")
def gradient_means(model, loss):
    """What was set aside takes the place of what this pass wrote."""
    found, handles, old = [], [], {}
    for name, param in model.named_parameters():
        old[param], param.grad = param.grad, None
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: found.append((name, grad.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    for param, grad in old.items():
        param.grad = grad
    return found


@mistake("10.2", "zeroes")
def gradient_means(model, loss):
    """What was set aside is added back only where this pass wrote something."""
    found, handles, old = [], [], {}
    for name, param in model.named_parameters():
        old[param], param.grad = param.grad, None
        if param.requires_grad:
            handles.append(
                param.register_hook(lambda grad, name=name: found.append((name, grad.mean().item())))
            )
    loss.backward()
    for handle in handles:
        handle.remove()
    for param, grad in old.items():
        if param.grad is not None and grad is not None:
            param.grad += grad
    return found
