"""Exercises of lesson 08, order and lifetime: order events, name layers, find and prevent leaked hooks."""

from hookedu.exercises.lesson_08.count_calls import COUNT_CALLS
from hookedu.exercises.lesson_08.in_order import IN_ORDER
from hookedu.exercises.lesson_08.output_shapes import OUTPUT_SHAPES
from hookedu.exercises.lesson_08.register_once import REGISTER_ONCE
from hookedu.exercises.lesson_08.remove_leaked import REMOVE_LEAKED

EXERCISES = (IN_ORDER, OUTPUT_SHAPES, REMOVE_LEAKED, REGISTER_ONCE, COUNT_CALLS)
