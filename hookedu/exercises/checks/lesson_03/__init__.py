"""Lesson 03, changing gradients: double, clip, chain, fix in-place hooks, reverse on one path only."""
