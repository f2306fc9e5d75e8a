"""What is observed of 00.1, `double(grad)`."""

from hookedu.exercises.probing import Probe, call
from hookedu.exercises.tools import whole

PROBE = Probe("00.1", "double", case=lambda rng: (whole(rng, 3),), observe=call)
