"""Lesson 10, a check-up for training: means, gradients in order, the first nan, vanishing gradients, clipping."""

from hookedu.exercises.lesson_10.child_means import CHILD_MEANS
from hookedu.exercises.lesson_10.clip_before_step import CLIP_BEFORE_STEP
from hookedu.exercises.lesson_10.first_nan import FIRST_NAN
from hookedu.exercises.lesson_10.gradient_means import GRADIENT_MEANS
from hookedu.exercises.lesson_10.vanishing import VANISHING

EXERCISES = (CHILD_MEANS, GRADIENT_MEANS, FIRST_NAN, VANISHING, CLIP_BEFORE_STEP)
