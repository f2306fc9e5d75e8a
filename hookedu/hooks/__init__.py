"""Record, list and diagnose hooks on real models. Depends on PyTorch only: no figures, no exercises.

capture      record(): the hooks that make a Recording
keeping      keep one tensor: a clone, an alias, a copy on another device, or its statistics
recording    what a Recording holds and how it is read
events       the event log that capture and timeline write
timeline     every hook event of one forward and backward pass
inspection   list and remove registered hooks
diagnosis    find hooks that leak, are registered twice or change values
watching     run a model with its hooks watched
memory       which memory operations write to, and who refers to it
reach        what a run can change, noted and put back
modules      names and selection of a model's modules
tensors      tensors inside nested values, and summary statistics
state        the state of single objects; running a model as its hooks need it

CASES.md lists what record() does in each of 39 cases.
"""
