"""Answers to lesson 12 that were told a cause that was not theirs, found in the seventh reading."""

from tests.answers import edited

# Gradients were added to x, but to no parameter.
edited("12.3", "not_added", ("y.sum().backward()", "y.sum().backward(inputs=[x])"))
# It is not the hook that lacks an argument.
edited("12.3", "wrong_arguments", ("checkpoint(model, x, ", "checkpoint(model, "))
# Model and input are on one device, until the model is moved.
edited(
    "12.4", "no_values", ("    with saved_tensors_hooks", '    model.to("cpu")\n    with saved_tensors_hooks')
)


# A Counter gives 0 for a child that it lacks: it can be looked up by its name.
edited("12.3", None, ("return {name: counts[name] for name, _ in model.named_children()}", "return counts"))
_MODES = "    modes = [(module, module.training) for module in model.modules()]\n    model.eval()\n    try:\n"
_BACK = "        for module, mode in modes:\n            module.training = mode\n"
edited(
    "12.3", "switches_mode", ("    try:\n", _MODES), ("    finally:\n", "    finally:\n" + _BACK), points=4
)
