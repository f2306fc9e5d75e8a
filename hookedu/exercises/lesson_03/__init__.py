"""Lesson 03, changing gradients: double, clip, chain, fix in-place hooks, reverse on one path only."""

from hookedu.exercises.lesson_03.build_chain import BUILD_CHAIN
from hookedu.exercises.lesson_03.clip_by_norm import CLIP_BY_NORM
from hookedu.exercises.lesson_03.double_gradient import DOUBLE_GRADIENT
from hookedu.exercises.lesson_03.reverse_gradient import REVERSE_GRADIENT
from hookedu.exercises.lesson_03.tame import TAME

EXERCISES = (DOUBLE_GRADIENT, CLIP_BY_NORM, BUILD_CHAIN, TAME, REVERSE_GRADIENT)
