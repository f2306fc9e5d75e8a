"""Exercises of lesson 11, Grad-CAM: channel weights, the map, the pointing game, switching a channel off."""

from hookedu.exercises.lesson_11.channel_effect import CHANNEL_EFFECT
from hookedu.exercises.lesson_11.channel_weights import CHANNEL_WEIGHTS
from hookedu.exercises.lesson_11.grad_cam import GRAD_CAM
from hookedu.exercises.lesson_11.hit_rate import HIT_RATE

EXERCISES = (CHANNEL_WEIGHTS, GRAD_CAM, HIT_RATE, CHANNEL_EFFECT)
