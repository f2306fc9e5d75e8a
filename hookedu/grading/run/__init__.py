"""Run submissions, isolated, and read what they report. Nothing here judges.

runner      a Plan -> a Run: its records, and how the process ended
sandbox     the grader's end: start the warm process in bubblewrap and ask it for forks
bubblewrap  which bwrap program is used
seccomp     the system calls that a submission is refused
warm        the warm process: torch is loaded once, each submission is a fork
namespaces  the namespaces of those forks
keeper      what stands in for them without isolation
worker      the fork: runs the cells and the probes within limits
cluster     the same on the workers of a Dask cluster
"""
