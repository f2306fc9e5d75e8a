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
