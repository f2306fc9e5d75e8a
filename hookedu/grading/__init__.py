"""From a folder of handed-in notebooks to a gradebook: `hookedu.grading.batch.grade`.

Who trusts whom. The parent (collect, matching, runner, sandbox, gradebook, batch, report) owns the gradebook,
the seeds and the judges; it never runs, imports, compiles or unpickles anything of a learner's. Each submission
runs in a fork of a warm process, inside bubblewrap and in namespaces of its own, and is untrusted from the moment
its first cell has run: what it sends is JSON, read with limits, in an order the parent knows beforehand; anything
else is tampering. THREATS.md says what is promised, what is not, and which test proves it.

    collect    folder or zip        -> Submission: who handed in what, and how to read it
    matching   bytes of a notebook  -> Plan: which cells run, which exercise is probed after which
    runner     Plan                 -> Run: records, and how the process ended
      sandbox    starts the warm process and asks it for forks
      warm       the warm process; namespaces and ends of its forks (keeper: without isolation)
      worker     the fork that runs the cells and the probes, within limits
      cluster    the same on a Dask cluster: each of its workers has a sandbox
    batch      records -> verdicts  -> Row
    gradebook  Row                  -> grades.db
    grades     Rows, adjustments, rules -> Grade: which attempt counts, what it is worth
      exports    Grades             -> grades.csv, canvas.csv, moodle.csv, Gradescope's results.json
      pages      Grades             -> a page for each student, one on the class (overview, pictures, templates)
    report     Rows                 -> the closing table
    explain    one verdict again, for the instructor
"""
