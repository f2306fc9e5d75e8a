"""A small classification task that needs no download: rendered shapes, and a network trained on them.

from hookedu.models.shapes import Shapes, load_model
sample = Shapes(500, seed=11)[0]          # image, label, box, mask, distractors
logits = load_model()(sample.image[None])
"""

from hookedu.models.shapes.canvas import draw_shapes
from hookedu.models.shapes.data import Sample, Shapes
from hookedu.models.shapes.drawing import CLASSES
from hookedu.models.shapes.patient import Patient
from hookedu.models.shapes.small_cnn import SmallCNN, load_model

__all__ = ["CLASSES", "Patient", "Sample", "Shapes", "SmallCNN", "draw_shapes", "load_model"]
