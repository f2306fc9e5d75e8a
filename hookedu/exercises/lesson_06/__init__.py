"""Exercises of lesson 06, forward pre-hooks: refuse an input, change it, log keywords, recompute weights."""

from hookedu.exercises.lesson_06.log_kwargs import LOG_KWARGS
from hookedu.exercises.lesson_06.normalise import NORMALISE
from hookedu.exercises.lesson_06.refuse_nan import REFUSE_NAN
from hookedu.exercises.lesson_06.standardise import STANDARDISE

EXERCISES = (REFUSE_NAN, NORMALISE, LOG_KWARGS, STANDARDISE)
