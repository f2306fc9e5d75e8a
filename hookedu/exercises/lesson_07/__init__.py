"""Exercises of lesson 07, backward hooks: read shapes, explain zeros, change, repair and stop gradients."""

from hookedu.exercises.lesson_07.grad_shapes import GRAD_SHAPES
from hookedu.exercises.lesson_07.guided_relu import GUIDED_RELU
from hookedu.exercises.lesson_07.pool_mask import POOL_MASK
from hookedu.exercises.lesson_07.stop_gradient import STOP_GRADIENT
from hookedu.exercises.lesson_07.watch_output import WATCH_OUTPUT

EXERCISES = (GRAD_SHAPES, POOL_MASK, GUIDED_RELU, WATCH_OUTPUT, STOP_GRADIENT)
