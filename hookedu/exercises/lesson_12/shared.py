"""What the exercises of lesson 12 share."""

from hookedu.exercises.exercise import Mistake
from hookedu.language import Text


def says(id: str, zh: str, en: str, *, fails: str = "", raises: str = "") -> Mistake:
    """A named mistake, in one breath."""
    return Mistake(id, Text(zh=zh, en=en), fails=fails, raises=raises)
