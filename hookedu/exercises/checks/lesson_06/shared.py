"""Exceptions by which mistakes with a pre-hook are recognised."""

from hookedu.exercises.checks.common import CALLS_NOW

MISREGISTERED = CALLS_NOW | {"one_argument": r"takes 1 positional argument but 2 were given"}
