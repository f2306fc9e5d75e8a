"""What is observed of 11.2, `grad_cam(model, layer, images, labels)`, at two layers and on a single picture."""

import random

from hookedu.exercises.probes.lesson_11.shared import Net, make_calls, observe
from hookedu.exercises.probing import Probe


def _calls(rng: random.Random) -> list[tuple[Net, str]]:
    """Add a call with one picture, where `squeeze()` removes too many dimensions."""
    calls = make_calls(rng)
    model, images, labels = calls[0][0]
    return [*calls, (Net(model, images[:1], labels[:1]), "relu2")]


PROBE = Probe("11.2", "grad_cam", _calls, observe)
