"""Lesson 05, forward hooks: capture, prove, extract, steer, and record every call."""

from hookedu.exercises.lesson_05.capture import CAPTURE
from hookedu.exercises.lesson_05.every_call import EVERY_CALL
from hookedu.exercises.lesson_05.extracting import EXTRACTING
from hookedu.exercises.lesson_05.prove import PROVE
from hookedu.exercises.lesson_05.steer import STEER

EXERCISES = (CAPTURE, PROVE, EXTRACTING, STEER, EVERY_CALL)
