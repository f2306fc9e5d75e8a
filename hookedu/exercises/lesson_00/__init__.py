"""Lesson 00, start here: fix a one-line function."""

from hookedu.exercises.lesson_00.double import DOUBLE

EXERCISES = (DOUBLE,)
