"""Answers to lesson 04 of strangers who had not read the checks, in their eleventh round: passes with create_graph=True."""

from tests.answers import edited

_STEP = "    def step(param):\n"

for _condition in ("param.grad.requires_grad", "torch.is_grad_enabled()"):
    edited(
        "04.2", "not_under_graph", (_STEP, f"{_STEP}        if {_condition}:\n            return\n"), points=4
    )
edited(
    "04.2",
    "not_under_graph",
    ("        param.grad = None", "        if not param.grad.requires_grad:\n            param.grad = None"),
    points=4,
)
