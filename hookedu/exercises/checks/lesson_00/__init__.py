"""Lesson 00: a first exercise."""
