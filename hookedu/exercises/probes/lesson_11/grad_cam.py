"""What is observed of 11.2, `grad_cam(model, layer, images, labels)`, at two layers and on a single picture."""

from hookedu.exercises.conduct import GRAD
from hookedu.exercises.probes.lesson_11.shared import make_call, observe
from hookedu.exercises.probing import Probe

# On a single picture `squeeze()` removes too many dimensions.
PROBE = Probe("11.2", "grad_cam", make_call, observe, cases=3, leaves=(GRAD,))
