"""Lesson 01, graph and leaves: classify tensors, accumulate and zero gradients, retain_grad, backward(vector)."""
