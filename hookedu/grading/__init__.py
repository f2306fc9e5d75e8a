"""Grade a folder of submitted notebooks into a gradebook; the entry point is `hookedu.grading.batch.grade`.

Trust model: the grader process (everything below except warm, namespaces, keeper and worker) owns the gradebook, the
seeds and the judges. It never runs, imports, compiles or unpickles anything that a learner wrote. Each submission runs
in a fork of a warm process, inside bubblewrap and in its own namespaces, and is untrusted from the moment its first
cell has run: it may only send JSON, read with limits, in an order that the grader knows beforehand; anything else
counts as tampering. THREATS.md lists what is promised, what is not, and which test proves it.

    rows.py             data that the modules pass to each other: Status, Limits, Result, Row
    found.py            Found: one file, what it is, and how its bytes are read
    files.py            folder or zip -> Found of every file in it, also in zips within it
    layout.py           Found -> Owned: whose each file is
    collect.py          Owned -> Submission: one per notebook, and how to read it
    reading.py          bytes of a notebook -> its cells, within bounds
    matching.py         cells of a notebook -> Plan: which cells run, which exercise is probed after which cell
    run/                run submissions in isolation and read what they report; nothing in it judges
      runner.py         Plan -> Run: the records, and how the process ended
      sandbox.py        starts the warm process in bubblewrap and requests forks from it
      bubblewrap.py     selects the bwrap program
      seccomp.py        the system calls that submissions are refused
      warm.py           the warm process: forks and supervises the workers
      namespaces.py     the Linux namespaces of a worker
      keeper.py         replaces the namespaces when running without isolation
      worker.py         the fork: runs the cells and the probes within limits
      backstage.py      tells what a submission reaches for behind the scenes, and puts hookedu's modules back
      shell.py          the silent IPython shell for the cells
      cluster.py        the same on a Dask cluster, with one sandbox per Dask worker
    batch.py            records -> verdicts -> Row
    book/               the gradebook and the rules
      gradebook.py      Row -> grades.db
      schema.py         its tables
      written.py        what learners wrote, a table of it
      grades.py         Rows, adjustments, rules -> Grade: which attempt counts, how many points it is worth
    watching.py         grades whatever arrives in a folder
    lexing.py           source -> tokens that new names and comments do not change
    similar.py          gradebook -> pairs of submissions that agree in what is rare
    out/                everything made from a gradebook
      exports.py        Grades -> grades.csv, canvas.csv, moodle.csv, Gradescope's results.json
      pages.py          Grades -> one HTML page per student, one class report (templates/)
      overview.py       Grades -> statistics of the class report
      pictures.py       figures of the class report
      comparison.py     pairs -> similar.html and a table
      terminal.py       Rows -> progress bar and summary table
    explain.py          repeats one verdict for the instructor
    command.py          the commands `hookedu grade`, `report`, `similar`, `adjust` and `forget`
"""
