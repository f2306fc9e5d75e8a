"""Exercises of lesson 10, diagnosing training: means, gradients in order, nan, vanishing, clipping."""

from hookedu.exercises.lesson_10.child_means import CHILD_MEANS
from hookedu.exercises.lesson_10.clip_before_step import CLIP_BEFORE_STEP
from hookedu.exercises.lesson_10.first_nan import FIRST_NAN
from hookedu.exercises.lesson_10.gradient_means import GRADIENT_MEANS
from hookedu.exercises.lesson_10.vanishing import VANISHING

EXERCISES = (CHILD_MEANS, GRADIENT_MEANS, FIRST_NAN, VANISHING, CLIP_BEFORE_STEP)
