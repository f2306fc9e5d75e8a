"""Lesson 02, tensor hooks: watch one gradient, watch many, watch once, and leave nothing behind."""
