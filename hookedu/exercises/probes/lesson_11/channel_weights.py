"""What is observed of 11.1, `channel_weights(model, layer, images, labels)`, at two layers and on a single picture."""

from hookedu.exercises.conduct import GRAD
from hookedu.exercises.probes.lesson_11.shared import make_call, observe
from hookedu.exercises.probing import Probe

PROBE = Probe("11.1", "channel_weights", make_call, observe, cases=3, leaves=(GRAD,))
