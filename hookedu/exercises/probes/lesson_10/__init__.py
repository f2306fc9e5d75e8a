"""Lesson 10, diagnosing training: means, gradients in order, nan, vanishing gradients, clipping."""
