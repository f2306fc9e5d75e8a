"""Exercises of lesson 00, start here."""

from hookedu.exercises.lesson_00.double import DOUBLE

EXERCISES = (DOUBLE,)
