"""Expected output of the tagged cells of lesson 00."""

FIGURES: dict = {}
