"""Further wrong answers to the exercises of lesson 12 that readers wrote without knowing the checks."""
