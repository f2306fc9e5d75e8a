"""Lesson 05, forward hooks: capture, prove, extract, steer, and record every call."""
