"""Lesson 06, forward pre-hooks: refuse an input, change it, log keywords, recompute weights."""
