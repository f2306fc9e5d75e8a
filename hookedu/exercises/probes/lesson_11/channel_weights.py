"""What is observed of 11.1, `channel_weights(model, layer, images, labels)`, at two layers."""

from hookedu.exercises.probes.lesson_11.shared import make_calls, observe
from hookedu.exercises.probing import Probe

PROBE = Probe("11.1", "channel_weights", make_calls, observe)
