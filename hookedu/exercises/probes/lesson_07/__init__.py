"""Lesson 07, backward hooks: read shapes, explain zeros, change, repair and stop gradients."""
