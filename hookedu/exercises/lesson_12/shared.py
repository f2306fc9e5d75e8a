"""Helper shared by the exercises of lesson 12."""

from hookedu.exercises.exercise import Mistake
from hookedu.language import Text


def says(id: str, zh: str, en: str, *, fails: str = "", raises: str = "") -> Mistake:
    """Return a mistake from an id and two texts."""
    return Mistake(id, Text(zh=zh, en=en), fails=fails, raises=raises)
