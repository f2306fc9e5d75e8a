"""What decides about 01.4, `choose_vector(x, y, wanted)`."""

from typing import Any

import torch

from hookedu.exercises.criteria import Check, Gives
from hookedu.exercises.exercise import Exercise
from hookedu.exercises.observation import show
from hookedu.exercises.probes.lesson_01.choose_vector import PROBE, Case
from hookedu.exercises.tools import close


def _slope(case: Case) -> torch.Tensor:
    return case.k * case.power * case.x.detach() ** (case.power - 1)


def _vector(case: Case) -> torch.Tensor:
    return case.wanted / _slope(case)


def _given(saw: Any, case: Case) -> str:
    y = f"{case.k:g} * x**{case.power}"
    if case.c:
        y += f" {'-' if case.c < 0 else '+'} {abs(case.c):g}"
    return f"x = {show(case.x)}; y = {y}; v = choose_vector(x, y, {show(case.wanted)}); y.backward(v)"


def _alike(got: Any, value: torch.Tensor) -> bool:
    """Check whether two tensors are equal in proportion: where slopes are tiny, 0 is another value."""
    same_kind = (got.dtype, got.shape) == (value.dtype, value.shape)
    return same_kind and torch.allclose(got, value.detach(), rtol=1e-4, atol=0)


def _got(saw: Any, case: Case) -> str:
    ran = isinstance(saw.vector, torch.Tensor) and saw.vector.shape == case.wanted.shape
    after = f"; x.grad == {show(saw.after)}" if ran else ""
    return f"v == {show(saw.vector).strip('<>')}{after}"


EXERCISE = Exercise(
    PROBE,
    given=_given,
    checks=[
        Check(
            "yields",
            "vector",
            ok=lambda saw, case: close(saw.after, case.wanted),
            equal=_alike,
            points=2,
            essential=True,
            expected="x.grad == {case.wanted}",
            got=_got,
            mistakes={
                "returns_nothing": lambda saw, case: saw.vector is None,
                "not_a_tensor": lambda saw, case: not isinstance(saw.vector, torch.Tensor),
                "wrong_shape": lambda saw, case: saw.vector.shape != _vector(case).shape,
                "divides_by_zero": lambda saw, case: not torch.isfinite(saw.vector).any(),
                # The right vector, but x.grad was not empty.
                "runs_backward": lambda saw, case: (
                    close(saw.vector, _vector(case)) and close(saw.before, case.wanted)
                ),
                "leaves_a_rest": lambda saw, case: close(saw.vector, _vector(case)) and saw.before.any(),
                "returns_wanted": Gives(lambda case: case.wanted),
                "multiplies": Gives(lambda case: case.wanted * _slope(case)),
                "only_ones": Gives(lambda case: torch.ones_like(case.wanted)),
                "returns_slope": Gives(_slope),
                "upside_down": Gives(lambda case: _slope(case) / case.wanted),
                "guesses_formula": Gives(lambda case: case.wanted / (2 * case.x.detach())),
            },
        ),
        Check(
            "empty",
            "before",
            want=lambda case: None,
            points=1,
            given=lambda saw, case: _given(saw, case).removesuffix("; y.backward(v)"),
            label="x.grad",
            mistakes={"leaves_a_rest": lambda saw, case: saw.before is not None},
        ),
    ],
    raises={
        "frees_graph": r"backward through the graph a second time",
        "needs_a_vector": r"grad can be implicitly created only for scalar outputs",
        "three_ones": r"Mismatch in shape: grad_output\[0\] has a shape of torch\.Size\(\[3\]\)",
        "divides_by_tuple": r"unsupported operand type\(s\) for .*('Tensor' and 'tuple'|'tuple' and 'Tensor')",
    },
)
