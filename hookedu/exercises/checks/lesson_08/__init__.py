"""Lesson 08, order and lifetime: order events, name layers, find and prevent leaked hooks, outline a run."""
