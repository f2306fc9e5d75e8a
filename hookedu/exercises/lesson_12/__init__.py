"""Exercises of lesson 12, advanced hooks: saved tensors, checkpointing, compilation, communication."""

from hookedu.exercises.lesson_12.count_recomputed import COUNT_RECOMPUTED
from hookedu.exercises.lesson_12.half_hook import HALF_HOOK
from hookedu.exercises.lesson_12.half_saved import HALF_SAVED
from hookedu.exercises.lesson_12.layer_output import LAYER_OUTPUT

EXERCISES = (HALF_SAVED, COUNT_RECOMPUTED, LAYER_OUTPUT, HALF_HOOK)
