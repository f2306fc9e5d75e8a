"""Checks shared by the exercises of lesson 12."""

from typing import Any

from hookedu.exercises.criteria import Check, Line, Of


def must_be(
    id: str, value: Any, given: Line, expected: Line, got: Line, mistake: str, when: bool | Of = True
) -> Check:
    """Require that the observation with the name of the check is this value, or None: it could not be made.

    The mistake is named `when` a condition holds.
    """
    return Check(
        id,
        ok=lambda saw, key: getattr(saw, id) in (value, None),
        points=1,
        given=given,
        expected=expected,
        got=got,
        mistakes={mistake: when},
    )


def detached(given: str) -> Check:
    """Require that what was kept holds no graph."""
    return must_be("detached", True, given, "requires_grad == False", "requires_grad == True", "attached")
