"""The patient of lesson 10 whose illness nobody has written down. Diagnose it before you read on."""

import torch

from hookedu.models.shapes.small_cnn import SmallCNN


class Patient(SmallCNN):
    """A `SmallCNN` in which one line of `forward` is wrong; its loss falls nevertheless."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map images (N, 3, H, W) to logits (N, classes)."""
        # The fault: whoever wrote this wanted to save memory while only the last blocks were fine-tuned.
        x = self.block2(self.block1(x)).detach()
        return self.head(self.avgpool(self.block4(self.block3(x))).flatten(1))
