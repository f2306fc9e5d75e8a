"""Lesson 02, tensor hooks: watch one gradient, watch many, watch once, and leave nothing behind."""

from hookedu.exercises.lesson_02.observe_once import OBSERVE_ONCE
from hookedu.exercises.lesson_02.watch import WATCH
from hookedu.exercises.lesson_02.watch_many import WATCH_MANY
from hookedu.exercises.lesson_02.watching import WATCHING

EXERCISES = (WATCH, WATCH_MANY, OBSERVE_ONCE, WATCHING)
