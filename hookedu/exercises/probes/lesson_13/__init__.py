"""Lesson 12, beyond: saved tensors, checkpointing, compiled models, and communication between ranks."""
