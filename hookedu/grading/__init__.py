"""From a folder of handed-in notebooks to a gradebook: `hookedu.grading.batch.grade`.

Who trusts whom. The parent (collect, matching, runner, gradebook, batch, report) owns the gradebook, the seeds
and the judges; it never runs, imports, compiles or unpickles anything of a learner's. `worker` runs in a
process of its own for each submission and is untrusted from the moment a learner's cell has run in it: what it
sends is JSON, read with limits, in an order the parent knows beforehand; anything else is tampering.

    collect    folder or zip        -> Submission: who handed in what, and how to read it
    matching   bytes of a notebook  -> Plan: which cells run, which exercise is probed after which
    runner     Plan                 -> worker -> Run: records, and how the process ended
    batch      records -> verdicts  -> Row
    gradebook  Row                  -> grades.db, grades.csv
    report     Rows                 -> the closing table

What this first form does not prevent, and says so: the probe runs beside the learner's code, which may look for
the seed and send a *plausible* forged observation, and may read files that the instructor's account can read.
Limits and the end of the process group hold against accidents and pranks; namespaces come with bubblewrap.
"""
