"""Hooks on real models: record them, list them, find what is wrong with them. PyTorch only: no pictures, no exercises.

capture      record(): the hooks that make a Recording
recording    what a Recording holds and how it is read
events       the log that capture and timeline write
timeline     every hook event of one forward and backward pass
inspection   list and remove registered hooks
diagnosis    find hooks that leak, stack up or change values
modules      names and choices of a model's modules
tensors      tensors inside nested values, and summary statistics
state        run a model and put back what it changed
scopes       the variables that a function can reach
"""
