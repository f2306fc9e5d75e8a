"""Write down the verdict on every known answer, to compare the course before and after a change.

    python -m tests.answers.verdicts before.tsv
    ... the change ...
    python -m tests.answers.verdicts after.tsv && diff before.tsv after.tsv

One row per answer and seed: exercise, how the answer is known, seed, outcome, points, message id. The printed message is
left out: some answers draw random numbers or iterate over sets, and what they compute is different in every process.
"""

import sys
import warnings
from pathlib import Path

from hookedu.exercises import find
from tests.answers import answers, verdict_on

SEEDS = (0, 1, 2, 2**31, 987654321)


def main(path: Path) -> None:
    """Write the table as tab-separated values."""
    rows = []
    for answer in answers():
        exercise = find(answer.exercise)
        for seed in SEEDS:
            verdict = verdict_on(exercise, answer.fresh(), seed)
            rows.append(
                (
                    exercise.id,
                    answer.known_as,
                    seed,
                    verdict.outcome.value,
                    verdict.points,
                    verdict.message_id,
                )
            )
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} verdicts in {path}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # what answers do wrong
    main(Path(sys.argv[1]))
