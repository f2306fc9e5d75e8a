"""Lesson 04, which gradient: predict four values, SGD inside backward, freeze rows, norms in backward order."""
