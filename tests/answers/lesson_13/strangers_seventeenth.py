"""What the seventeenth strangers tried on lesson 13: what a hook calls is compiled, the number of all processes."""

from tests.answers import edited

edited("13.3", "no_group", ("group.size()", "dist.get_world_size()"))
edited(
    "13.1",
    "recompiles",
    ("torch.compiler.disable(hook)", "torch.compiler.disable(hook, recursive=False)"),
    points=9,
)
