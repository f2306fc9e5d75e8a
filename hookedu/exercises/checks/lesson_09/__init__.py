"""Lesson 09, feature maps: keep, tile, log, find dead channels, compare with an extractor."""
