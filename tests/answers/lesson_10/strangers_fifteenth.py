"""What the fifteenth strangers tried on lesson 10: outputs that are kept, and looked at when the model has run."""

from functools import partial

from tests.answers import alternative, edited, mistake


@mistake("10.3", "looks_too_late")
def first_nan(model, x):
    kept, handles = [], []
    for name, module in model.named_modules():
        if not list(module.children()):

            def keep(module, args, output, name=name):
                kept.append((name, args[0].detach(), output.detach()))

            handles.append(module.register_forward_hook(keep))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return next((name for name, a, b in kept if b.isnan().any() and not a.isnan().any()), None)


@mistake("10.3", "looks_too_late")
def first_nan(model, x):
    """Only whether the input is clean is noted at once."""
    kept, handles = [], []

    def look(name, module, args, output):
        if not args[0].isnan().any():
            kept.append((name, output))

    try:
        for name, module in model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(partial(look, name)))
        model(x)
        return next((name for name, output in kept if output.isnan().any()), None)
    finally:
        for handle in handles:
            handle.remove()


@alternative("10.3")
def first_nan(model, x):
    kept, handles = [], []
    for name, module in model.named_modules():
        if not list(module.children()):

            def keep(module, args, output, name=name):
                kept.append((name, args[0].clone(), output.clone()))

            handles.append(module.register_forward_hook(keep))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return next((name for name, a, b in kept if b.isnan().any() and not a.isnan().any()), None)


edited(
    "10.3",
    "looks_too_late",
    (
        "        if output.isnan().any() and not args[0].isnan().any():\n            found.append(name)",
        "        if not args[0].isnan().any():\n            found.append((name, output))",
    ),
    (
        "    return found[0] if found else None",
        "    found = [name for name, output in found if output.isnan().any()]\n    return found[0] if found else None",
    ),
)
