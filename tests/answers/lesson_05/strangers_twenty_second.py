"""Wrong answers to lesson 05 that were accepted from strangers: a new exception of the same type, and old gradients wiped."""

from tests.answers import edited

_ANEW = "    except Exception as e:\n        raise type(e)(*e.args) from None\n    finally:"
edited("05.3", "replaces_error", ("    finally:", _ANEW), points=7)
edited("05.5", "replaces_error", ("    finally:", _ANEW), points=9)
edited("05.2", "grad", ("    seen, handles", "    model.zero_grad()\n    seen, handles"), points=3)
