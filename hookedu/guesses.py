"""The guesses of the lessons, whose words stand in course/NN_name.guesses.yml.

One entry per guess, in the order of the lesson; the ids are those of the calls, `guess("02.a")`:

    "02.a":
      question: {zh: ..., en: ...}
      kind: choice                  number, choice or text
      choices:                      of a choice: ids and words
        none: {zh: ..., en: ...}
      truth: "'none' if y.grad is None else 'ones'"     evaluated in the notebook after the cell that follows has run
      because: {zh: ..., en: ...}   one sentence, optional

`truth` gives the number, the id of the choice, or the text.
"""

import contextlib
import io
import math
import re
import unicodedata
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from hookedu import catalog, storage, yaml_files
from hookedu.language import Text

KINDS = ("number", "choice", "text")
ID = re.compile(r"\d\d\.[a-z]")
_CELL = re.compile(rf'guess\("({ID.pattern})"\)')
_CLOSE = 0.005  # of the truth: as far off a number may be, so that rounding does no harm
_LOG = "guesses"

Value = float | str


@dataclass(frozen=True)
class Question:
    """One question and how its answer is found."""

    id: str
    question: Text
    kind: str
    truth: str  # a Python expression
    choices: Mapping[str, Text]
    because: Text | None

    def truth_in(self, namespace: dict[str, Any]) -> Value:
        """Evaluate `truth` in a notebook's namespace, without its output and warnings.

        Raises whatever it raises, and TypeError for a value of the wrong type.
        """
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            value = eval(self.truth, namespace)
        if self.kind == "number":
            return float(value)
        if not isinstance(value, str) or (self.kind == "choice" and value not in self.choices):
            raise TypeError(f"the truth of guess {self.id} is {value!r}")
        return value

    def read(self, written: str) -> Value | None:
        """Return what a learner has written or chosen, or None where it is no answer to this kind of question."""
        written = written.strip()
        if self.kind == "number":
            try:
                plain = written.replace("−", "-").replace("／", "/").replace(" ", "")
                # Not Fraction("2e7000000"), which computes all seven million digits.
                value = float(Fraction(plain)) if "/" in plain else float(plain)
                return value if math.isfinite(value) else None
            except (ValueError, ZeroDivisionError, OverflowError):
                return None
        if self.kind == "choice":
            return written if written in self.choices else None
        return written or None

    def is_right(self, said: Value, truth: Value) -> bool:
        """Check an answer, as `read` returns it."""
        if isinstance(said, float) and isinstance(truth, float):
            return abs(said - truth) <= _CLOSE * abs(truth)
        return _bare(str(said)) == _bare(str(truth))

    def show(self, value: Value) -> Text:
        """Return an answer in words."""
        if self.kind == "choice":
            return self.choices[str(value)]
        said = value if isinstance(value, str) else f"{value:.6g}"
        return Text(zh=said, en=said)


def asked_in(code: str) -> str | None:
    """Return the id of the guess that a cell with this code asks for, or None."""
    found = _CELL.fullmatch(code.strip())
    return found[1] if found else None


class GuessError(catalog.CourseError):
    """Raised for an entry of a file of guesses that cannot be used; names the file and the id."""

    def __init__(self, file: str, id: str, says: Text) -> None:
        super().__init__(Text(zh=f"course/{file}：{id}：{says.zh}", en=f"course/{file}: {id}: {says.en}"))


def file_of(lesson: catalog.Lesson) -> Path:
    """Return the file with the guesses of a lesson, which need not exist."""
    return lesson.source.with_suffix(".guesses.yml")


def load(path: Path) -> dict[str, Question]:
    """Return the guesses of a file by id, in order; {} if there is no such file. GuessError for a wrong entry."""
    import yaml

    if not path.exists():
        return {}
    tree, found = yaml_files.compose(path), {}
    ids = [key.value for key, _ in tree.value] if isinstance(tree, yaml.MappingNode) else []
    for id, node in yaml_files.load(path).items():
        if ids.count(id) > 1 or not ID.fullmatch(str(id)) or not path.name.startswith(str(id)[:2]):
            raise GuessError(path.name, str(id), _ID)
        found[id] = _guess(path.name, id, node)
    return found


class UnknownGuess(catalog.CourseError):
    """Raised for an id that no guess has."""


def find(id: object) -> Question:
    """Return the guess with this id, such as "02.a"; raise UnknownGuess if there is none."""
    # Chinese input methods type full-width digits and letters.
    plain = unicodedata.normalize("NFKC", id).strip() if isinstance(id, str) else ""
    for lesson in catalog.lessons():
        if plain.startswith(f"{lesson.id}.") and (found := _loaded(file_of(lesson)).get(plain)):
            return found
    if isinstance(id, str) and plain:
        raise UnknownGuess(_UNKNOWN.format(id=plain[:60]))
    raise UnknownGuess(_NO_ID)


_loaded = cache(load)


def note(guess: Question, said: Value, truth: Value, right: bool) -> None:
    """Save a guess in the user's own data folder."""
    storage.append_record(_LOG, {"guess": guess.id, "said": said, "truth": truth, "right": right})


def score() -> dict[str, bool]:
    """Return by id whether the first guess was right, for each guess that the course still asks."""
    found: dict[str, bool] = {}
    for record in storage.read_records(_LOG):
        id, right = record.get("guess"), record.get("right")
        if isinstance(id, str) and isinstance(right, bool) and id not in found and _known(id):
            found[id] = right
    return found


def _known(id: str) -> bool:
    try:
        return bool(find(id))
    except catalog.CourseError:
        return False


def _guess(file: str, id: str, node: Any) -> Question:
    def text(what: str, sides: Any) -> Text:
        return yaml_files.bilingual(sides, lambda says: GuessError(file, f"{id}: {what}", says))

    if not isinstance(node, dict) or node.keys() - {"question", "kind", "choices", "truth", "because"}:
        raise GuessError(file, id, _FIELDS)
    choices = {name: text(f"choices: {name}", words) for name, words in (node.get("choices") or {}).items()}
    if (
        node.get("kind") not in KINDS
        or not isinstance(node.get("truth"), str)
        or (node["kind"] == "choice") != (len(choices) > 1)
    ):
        raise GuessError(file, id, _FIELDS)
    # YAML reads a bare no, yes, on, off or 1 as no text.
    if not all(isinstance(name, str) for name in choices):
        raise GuessError(file, id, _CHOICE)
    because = text("because", node["because"]) if "because" in node else None
    return Question(id, text("question", node.get("question")), node["kind"], node["truth"], choices, because)


def _bare(written: str) -> str:
    """Return a text without what does not count: spaces, quotes, backticks, capitals."""
    return re.sub(r"[\s`'\"‘’“”]", "", written).casefold()


_ID = Text(
    zh="编号要像 `02.a`：先是这一课，再是一个字母；每个编号只能用一次。",
    en="An id reads like `02.a`, the lesson and then a letter, and may be used once.",
)
_UNKNOWN = Text(
    zh="没有编号为 `{id}` 的猜一猜。编号像 `02.a`：先是这一课，再是一个字母。",
    en="There is no guess `{id}`. An id reads like `02.a`, the lesson and then a letter.",
)
_NO_ID = Text(
    zh='要写是哪一个猜一猜，加上引号：`guess("02.a")` 是第 02 课的第一个。',
    en='Say which guess, in quotes: `guess("02.a")` is the first of lesson 02.',
)
_CHOICE = Text(
    zh="每个选项的名字要是文字：YAML 把不带引号的 `no`、`yes`、`on`、`off` 和数字读成别的东西。",
    en="The id of a choice must be text: YAML reads a bare `no`, `yes`, `on`, `off` or number as something else.",
)
_FIELDS = Text(
    zh="要有 `question`、`kind`（`number`、`choice` 或 `text`）和 `truth`，可以有 `because`；`choice` 至少要有两个 `choices`，别的没有。",
    en="It needs `question`, `kind` (`number`, `choice` or `text`) and `truth`, and may have `because`; a `choice` has two "
    "`choices` at least, the others none.",
)
