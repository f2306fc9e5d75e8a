"""What the pictures of a lesson show, in words, for those who hear them: course/NN_name.pictures.yml.

A cell whose output holds a picture names its words, ``# %% picture="chain"``; the file has them in both languages:

    chain:
      zh: 计算图，从左到右……
      en: A graph from left to right …
"""

from pathlib import Path

import yaml

from hookedu.catalog import Lesson


def file_of(lesson: Lesson) -> Path:
    """Return the file of the words, which need not exist."""
    return lesson.source.with_suffix(".pictures.yml")


def load(lesson: Lesson) -> dict[str, dict[str, str]]:
    """Return what each picture shows, by name and language."""
    path = file_of(lesson)
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}
