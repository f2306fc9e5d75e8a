"""Run submissions in isolation and read what they report; nothing in this package judges.

runner      Plan -> Run: the records, and how the process ended
sandbox     the grader's side: starts the warm process in bubblewrap and requests forks from it
bubblewrap  selects the bwrap program
seccomp     the system calls denied to a submission
warm        the warm process: loads torch once and forks for each submission
cgroups     a control group for each fork, where the machine allows it
namespaces  the namespaces of those forks
keeper      replaces the namespaces when running without isolation
worker      the fork: runs the cells and the probes within limits
shell       the silent IPython shell in which the cells run
backstage   tells, in that fork, what a submission reaches for behind the scenes; puts hookedu's modules back
cluster     the same on the workers of a Dask cluster
"""
