"""An answer to lesson 02 of strangers who had not read the checks, in their eleventh round."""

from tests.answers import edited

# Nothing can be read after an exception in the block.
edited(
    "02.4",
    "after_error",
    ("    finally:", "    except BaseException:\n        seen.clear()\n        raise\n    finally:"),
    named=False,
)
