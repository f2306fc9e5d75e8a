"""Lesson 15, the emergency room: an instrument panel, update ratios, the source of a nan, and a diagnosis."""
