"""The printed message of every known wrong answer, in one golden file per lesson: tests/answers/lesson_NN/messages.txt.

    python -m tests.answers.messages            rewrite all of them
    python -m tests.answers.messages 02 05      rewrite those of these lessons

Read the difference before you commit it: each changed line is what a learner will read.
"""

import contextlib
import io
import random
import re
import sys
import warnings
from pathlib import Path

import torch

from hookedu.catalog import CourseError
from hookedu.exercises import find, lessons
from hookedu.exercises.feedback import ShownVerdict
from hookedu.exercises.judging import judge
from hookedu.exercises.observation import dumps, loads
from hookedu.exercises.probing import observe
from tests.answers import Answer, answers

SEED = 0
# What differs from run to run: addresses, and where in a recursion the limit was reached; from machine to machine, the
# last digits of numbers.
_UNSTEADY = re.compile(r"(?<=\b0x)[0-9a-f]+|(?<=recursion depth exceeded).*")
_LONG = re.compile(r"\b\d+\.\d{4,}(e-?\d+)?\b")


def golden(lesson: str) -> Path:
    """Return the path of a lesson's golden file."""
    return Path(__file__).with_name(f"lesson_{lesson}") / "messages.txt"


def messages(lesson: str) -> str:
    """Return the messages of a lesson, as its golden file should hold them."""
    return "\n".join(_message(a) for a in answers() if a.mistake and a.exercise.startswith(f"{lesson}."))


def _message(answer: Answer) -> str:
    exercise = find(answer.exercise)
    # Some answers print, and some do what torch warns of.
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seeds = exercise.seeds(SEED)
        random.seed(SEED), torch.manual_seed(SEED)  # some wrong answers draw random numbers
        record = loads(dumps(observe(exercise.probe, answer.fresh(), seeds)))
    said = ShownVerdict.of(judge(exercise, record, seeds))
    text = _LONG.sub(lambda number: f"{float(number[0]):.3g}…", _UNSTEADY.sub("…", repr(said)))
    return f"=== {answer.exercise} {answer.mistake}\n{text}\n"


if __name__ == "__main__":
    try:
        for lesson in sys.argv[1:] or lessons():
            golden(lesson).write_text(messages(lesson), encoding="utf-8")
            print(golden(lesson))
    except CourseError as error:
        sys.exit(str(error))
