"""Lesson 00: what its tagged cells print."""

FIGURES: dict = {}
