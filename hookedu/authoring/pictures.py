"""What the pictures of a lesson show, in words, for those who hear them: course/NN_name.pictures.yml.

A cell whose output holds a picture names its words, ``# %% picture="chain"``; the file has them in both languages:

    chain:
      zh: 计算图，从左到右……
      en: A graph from left to right …
"""

from pathlib import Path

from hookedu import yaml_files
from hookedu.catalog import Lesson


def file_of(lesson: Lesson) -> Path:
    """Return the file of the words, which need not exist."""
    return lesson.source.with_suffix(".pictures.yml")


def load(lesson: Lesson) -> dict[str, dict[str, str]]:
    """Return what each picture shows, by name and language."""
    return yaml_files.load(file_of(lesson))
