"""Exercises of lesson 09, feature maps: keep, tile, log, find dead channels, compare with an extractor."""

from hookedu.exercises.lesson_09.conv_groups import CONV_GROUPS
from hookedu.exercises.lesson_09.dead_channels import DEAD_CHANNELS
from hookedu.exercises.lesson_09.disagreement import DISAGREEMENT
from hookedu.exercises.lesson_09.log_maps import LOG_MAPS
from hookedu.exercises.lesson_09.one_scale import ONE_SCALE

EXERCISES = (CONV_GROUPS, ONE_SCALE, LOG_MAPS, DEAD_CHANNELS, DISAGREEMENT)
