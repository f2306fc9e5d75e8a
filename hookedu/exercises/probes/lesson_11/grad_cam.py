"""What is observed of 11.2, `grad_cam(model, layer, images, labels)`, at three layers and on a single picture."""

from functools import partial

from hookedu.exercises.conduct import GRAD
from hookedu.exercises.probes.lesson_11.shared import OVERWRITTEN, make_call, observe
from hookedu.exercises.probing import Probe

# The second case overwrites maps that were kept without a copy, and tensors that were kept have another gradient. On a single picture `squeeze()` removes too many dimensions.
PROBE = Probe("11.2", "grad_cam", partial(make_call, second=OVERWRITTEN), observe, cases=3, leaves=(GRAD,))
