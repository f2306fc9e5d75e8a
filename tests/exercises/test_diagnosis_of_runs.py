"""How well the ward of lesson 15 can be diagnosed: by the reference of 15.4, and by one who sees only the loss.

    python -m tests.exercises.test_diagnosis_of_runs            print the figures on all held-out runs

Ward and thresholds were made on the seeds from 500 to 4100; those here decided nothing.
"""

import math
import statistics
from collections import Counter

import pytest

from hookedu.models.ward import FAULTS, HEALTHY, admit, train
from tests.answers import answers

RUNS, WELL = range(20_000, 20_200), range(30_000, 30_100)  # of all kinds, as the seed decides; healthy ones


def by_hand():
    """Return the reference."""
    return next(a for a in answers() if a.exercise == "15.4" and a.mistake is None).fresh()


def by_the_loss(build, data):
    """Diagnose as well as we could from the curve of the loss alone."""
    losses = train(*build(), data)
    guessing = math.log(len({int(label) for _, labels in data for label in labels}))
    finite, end = [loss for loss in losses if math.isfinite(loss)], statistics.fmean(losses[-8:])
    if not losses[0] < 5 * guessing:
        return "exploding"
    if max(finite) > 4 * guessing:
        return "rate_too_high"
    if not math.isfinite(end):
        return "bad_sample"
    if end > 0.9 * guessing:
        return "vanishing" if statistics.pstdev(losses[-10:]) < 0.02 else "shuffled_labels"
    return "frozen_layer" if end > 0.45 * guessing else HEALTHY


def scored(diagnose, patients):
    """Return the share that is called what it is, and how often which kind is called what else."""
    confused = Counter()
    for patient in patients:
        said = diagnose(patient.build, patient.data)
        confused[patient.fault, said] += said != patient.fault
    return 1 - confused.total() / len(patients), +confused


def all_figures(every):
    """Score the reference on runs of all kinds and on healthy ones, and the loss alone on all those of all kinds."""
    runs, well = [*map(admit, RUNS)], [admit(seed, HEALTHY) for seed in WELL[::every]]
    return scored(by_hand(), runs[::every]), scored(by_hand(), well), scored(by_the_loss, runs)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.scale)])
def test_the_reference_knows_the_ward_and_the_loss_does_not(every):
    (right, confused), (healthy, alarms), (naive, _) = all_figures(every)
    assert right >= 0.95, confused
    assert healthy >= 0.98, alarms
    assert naive < 0.5


def test_no_single_answer_scores():
    kinds = Counter(admit(seed).fault for seed in RUNS)
    assert kinds.keys() == {HEALTHY, *FAULTS} and max(kinds.values()) < 0.2 * len(RUNS)


if __name__ == "__main__":
    (right, confused), (healthy, alarms), (naive, _) = all_figures(1)
    print(f"reference: {right:.1%} of {len(RUNS)} held-out runs right; confused: {dict(confused)}")
    print(f"reference: {1 - healthy:.1%} of {len(WELL)} healthy runs called sick: {dict(alarms)}")
    print(f"loss only: {naive:.1%} of {len(RUNS)} held-out runs right")
