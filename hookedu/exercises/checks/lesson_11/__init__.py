"""Lesson 11, Grad-CAM: channel weights, the map, the pointing game, switching a channel off."""
