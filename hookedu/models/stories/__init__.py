"""A small language and a transformer trained on it: a language model that needs no download.

from hookedu.models.stories import encode, load_model
model = load_model()
logits = model(torch.tensor([encode("Anna and Ben went to the park . Ben gave the ball to")]))
"""

from hookedu.models.stories.grammar import NAMES, PLACES, THINGS, WORDS, Story, decode, encode, tell
from hookedu.models.stories.transformer import Cache, StoryModel, load_model

__all__ = [
    "NAMES",
    "PLACES",
    "THINGS",
    "WORDS",
    "Cache",
    "Story",
    "StoryModel",
    "decode",
    "encode",
    "load_model",
    "tell",
]
