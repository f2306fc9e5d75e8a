"""The printed message of every known wrong answer, in one golden file per lesson: tests/answers/lesson_NN/messages.txt.

    python -m tests.answers.messages            rewrite all of them
    python -m tests.answers.messages 02 05      rewrite those of these lessons

Read the difference before you commit it: each changed line is what a learner will read.
"""

import contextlib
import io
import math
import random
import re
import sys
import warnings
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import torch

from hookedu.catalog import CourseError
from hookedu.exercises import find, lessons
from hookedu.exercises.feedback import ShownVerdict
from hookedu.language import preference
from tests.answers import Answer, answers, verdict_on

SEED = 0
# What differs from run to run: addresses, and where in a recursion the limit was reached.
_UNSTEADY = re.compile(r"(?<=\b0x)[0-9a-f]+|(?<=recursion depth exceeded).*|(?<=File .).*")
_LONG = re.compile(r"\b\d+\.\d{4,}(e-?\d+)?\b")
_EPS = torch.finfo(torch.float32).eps
_NUMBER = re.compile(r"-?\b\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def golden(lesson: str) -> Path:
    """Return the path of a lesson's golden file."""
    return Path(__file__).with_name(f"lesson_{lesson}") / "messages.txt"


def stored(lesson: str) -> str:
    """Return what is in the golden file; nothing if it has not been written yet."""
    path = golden(lesson)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def messages(lesson: str) -> str:
    """Return the messages of a lesson, as its golden file should hold them."""
    return "\n".join(message(answer, verdict(answer)) for answer in wrong(lesson))


def renew(lesson: str) -> str:
    """Say how to write the golden file again."""
    return f"if the new messages are better: python -m tests.answers.messages {lesson}"


@cache
def kept(lesson: str) -> dict[Answer, str]:
    """Return the messages in a golden file by answer; those of the same heading stand in the order of the answers."""
    found: dict[str, list[str]] = {}
    for text in re.split(r"\n(?==== )", stored(lesson)):
        found.setdefault(text.partition("\n")[0], []).append(text)
    rest = {head: iter(texts) for head, texts in found.items()}
    return {answer: next(rest.get(heading(answer), iter(())), "") for answer in wrong(lesson)}


def as_kept(said: str, golden: str) -> str:
    """Return the messages with the numbers of the golden file, where they are nearly the same.

    Another processor adds in another order, so the last digits of a number are no part of what a message says; beside
    1e36 it may be all digits of a number, which is what is left of a difference.
    """
    lines, before = said.splitlines(keepends=True), golden.splitlines(keepends=True)
    forms = [[_NUMBER.sub("#", line) for line in text] for text in (lines, before)]
    for here, there, length in SequenceMatcher(None, *forms, autojunk=False).get_matching_blocks():
        for i in range(length):
            numbers = _NUMBER.findall(before[there + i])
            close = max([1e-6, *(_EPS * abs(float(number)) for number in numbers)])
            lines[here + i] = _NUMBER.sub(
                lambda new, old=iter(numbers), close=close: _nearly(new[0], next(old), close), lines[here + i]
            )
    return "".join(lines)


def _nearly(new: str, old: str, close: float) -> str:
    return old if math.isclose(float(new), float(old), rel_tol=5e-3, abs_tol=close) else new


def verdict(answer: Answer, seed: int = SEED) -> ShownVerdict:
    """Return the verdict on a known answer."""
    # Some answers print, some do what torch warns of, and some wrong ones draw random numbers.
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        random.seed(seed), torch.manual_seed(seed)
        return verdict_on(find(answer.exercise), answer.fresh(), seed)


def message(answer: Answer, verdict: ShownVerdict) -> str:
    """Return what a learner reads of a verdict, under the heading that it has in the golden file."""
    text = _LONG.sub(lambda number: f"{float(number[0]):.3g}…", _UNSTEADY.sub("…", repr(verdict)))
    return f"{heading(answer)}\n{text}\n"


def heading(answer: Answer) -> str:
    """Return the line above the message of an answer."""
    return f"=== {answer.exercise} {answer.mistake}"


def wrong(lesson: str) -> list[Answer]:
    """Return the wrong answers to the exercises of a lesson, in the order of the golden file."""
    return [answer for answer in answers() if answer.mistake and answer.exercise.startswith(f"{lesson}.")]


if __name__ == "__main__":
    preference.language = "both"  # whatever this machine's learner chose
    try:
        for lesson in sys.argv[1:] or lessons():
            golden(lesson).write_text(as_kept(messages(lesson), stored(lesson)), encoding="utf-8")
            print(golden(lesson))
    except CourseError as error:
        sys.exit(str(error))
