"""Lesson 04, which gradient: predict four values, SGD inside backward, freeze rows, norms in backward order."""

from hookedu.exercises.lesson_04.freeze_rows import FREEZE_ROWS
from hookedu.exercises.lesson_04.predict import PREDICT
from hookedu.exercises.lesson_04.sgd_in_backward import SGD_IN_BACKWARD
from hookedu.exercises.lesson_04.watch_norms import WATCH_NORMS

EXERCISES = (PREDICT, SGD_IN_BACKWARD, FREEZE_ROWS, WATCH_NORMS)
