"""An answer to lesson 08 of strangers who had not read the checks, in their eleventh round."""

from tests.answers import edited

# A child that a configuration leaves out is None.
edited("08.2", "raised", ("model.named_children()", "model._modules.items()"), named=False)
