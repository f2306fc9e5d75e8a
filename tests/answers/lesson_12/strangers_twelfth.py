"""Answers to lesson 12 of strangers who had not read the checks, in their twelfth round."""

from tests.answers import edited

# What comes back lies in memory in another order, as if every tensor were contiguous.
edited(
    "12.1",
    "transposed",
    ("return small.to(dtype)", "return small.as_strided(small.shape, small.contiguous().stride()).to(dtype)"),
    named=False,
)
edited(
    "12.1",
    "on_at_once",
    (
        "return saved_tensors_hooks(pack, unpack)",
        "hooks = saved_tensors_hooks(pack, unpack)\n    hooks.__enter__()\n\n"
        "    class Manager:\n        def __enter__(self):\n            return self\n\n"
        "        def __exit__(self, *error):\n            hooks.__exit__(*error)\n\n"
        "    return Manager()",
    ),
    points=8,
)
