"""Lesson 01, graph and leaves: classify tensors, accumulate and zero gradients, retain_grad, backward(vector)."""

from hookedu.exercises.lesson_01.choose_vector import CHOOSE_VECTOR
from hookedu.exercises.lesson_01.classify import CLASSIFY
from hookedu.exercises.lesson_01.keep_all import KEEP_ALL
from hookedu.exercises.lesson_01.sum_gradients import SUM_GRADIENTS

EXERCISES = (CLASSIFY, SUM_GRADIENTS, KEEP_ALL, CHOOSE_VECTOR)
