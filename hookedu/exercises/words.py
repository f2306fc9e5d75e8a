"""The words of the exercises, which stand in course/NN_name.yml beside the lesson.

A file holds one entry per exercise, and under `shared` what several of its exercises say; course/shared_words.yml holds
what exercises of several lessons say, and what breaches of conduct teach:

    "02.1":
      title: {zh: ..., en: ...}
      hints: [{zh: ..., en: ...}, ...]
      lines:                      words of the rows "input", "expected" and "got", by the ids that `Say` uses
        hooks_left: {zh: ..., en: ...}
      mistakes:                   what each mistake teaches
        no_return: {zh: ..., en: ...}
        calls_now: tensor_hook.calls_now      the name of a shared explanation
      insight: {zh: ..., en: ...}
    shared:
      lines: ...
      mistakes: ...
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hookedu import catalog, yaml_files
from hookedu.language import Text

SHARED = "shared_words.yml"

NO_LINES = Text(
    zh="消息里没有东西可显示：要么写 `want`，要么写 `expected` 和 `got`；输入写在 `given` 里。",
    en="Its message has nothing to show: give `want`, or `expected` and `got`; and the input as `given`.",
)
UNDECIDED = Text(
    zh="它判不了：要么写 `ok`，要么写观察的名字和 `want`；用 `Gives` 也要写观察的名字；编号不能重复。",
    en="It decides nothing: give `ok`, or the name of an observation and `want`; `Gives` needs that name as well; and ids "
    "must differ.",
)
_NO_FILE = Text(
    zh="这个文件不在：练习的标题、提示和消息都写在里面。",
    en="There is no such file; it holds the titles, hints and messages of the exercises.",
)
_NO_ENTRY = Text(
    zh="这里没有它的文字。照别的练习的样子加上。",
    en="Its words are missing here. Add them, as other exercises have them.",
)
_NO_SHARED = Text(
    zh="没有叫 `{name}` 的共用文字，`shared` 和 `{file}` 里都没有。",
    en="There are no shared words named `{name}`, neither under `shared` nor in `{file}`.",
)
_UNUSED = Text(
    zh="练习的代码里没有这个编号。写错了，还是已经不用了？",
    en="The code of the exercise has no such id. Is it misspelt, or no longer used?",
)
_UNSAID = Text(
    zh="代码里用了这个编号，这里却没有它的文字。两种语言都加上，照别的样子。",
    en="The code of the exercise uses this id, but there are no words for it here. Add them in both languages, as the "
    "others have them.",
)
_TWICE = Text(zh="这个编号出现了两次。", en="This id stands here twice.")


class WordsError(catalog.CourseError):
    """Raised for words that are missing, or that no exercise uses; names the file and the id."""

    def __init__(self, file: str, id: str, what: str, says: Text) -> None:
        where = ": ".join(filter(None, (f"course/{file}", id, what)))
        super().__init__(Text(zh=f"{where}：{says.zh}", en=f"{where}: {says.en}"))


@dataclass(frozen=True)
class Words:
    """The words of one exercise.

    Attributes
    ----------
    file, id : str
        Name of the file in course/, and the exercise.
    title, insight : Text
        Title, and one sentence for those who solved it.
    hints : tuple of Text
        Hints, in order.
    mistakes : dict of str to Text
        What each mistake teaches.
    lines : dict of str to Text
        Words of the rows of a message, the shared ones included.
    conduct : dict of str to Text
        What breaches of conduct teach, the same for all exercises.
    """

    file: str
    id: str
    title: Text
    hints: tuple[Text, ...]
    mistakes: dict[str, Text]
    insight: Text
    lines: dict[str, Text]
    conduct: dict[str, Text]
    _own_lines: tuple[str, ...] = field(repr=False)

    def must_match(self, mistakes: Iterable[str], lines: Iterable[str]) -> None:
        """Raise WordsError unless exactly these ids of mistakes and lines have words here."""
        pairs = (
            ("mistakes", set(mistakes), self.mistakes, set(self.mistakes)),
            ("lines", set(lines), self.lines, set(self._own_lines)),
        )
        for kind, used, known, own in pairs:
            for id in sorted(used - set(known)):
                raise WordsError(self.file, self.id, f"{kind}: {id}", _UNSAID)
            for id in sorted(own - used):
                raise WordsError(self.file, self.id, f"{kind}: {id}", _UNUSED)


def words_of(exercise_id: str) -> Words:
    """Return the words of an exercise; raise WordsError if some are missing."""
    lesson = exercise_id.split(".")[0]
    file = file_of(lesson)
    node = _load(file).get(exercise_id)
    if not isinstance(node, dict):
        raise WordsError(file, exercise_id, "", _NO_ENTRY)

    def text(what: str) -> Text:
        return _text(file, exercise_id, what, node.get(what))

    hints = node.get("hints") or ()
    shared = _shared(lesson)
    return Words(
        file,
        exercise_id,
        text("title"),
        tuple(_text(file, exercise_id, f"hints: {n}", hint) for n, hint in enumerate(hints, 1)),
        {
            id: _shared_or_own(file, exercise_id, id, said, shared["mistakes"])
            for id, said in (node.get("mistakes") or {}).items()
        },
        text("insight"),
        shared["lines"] | _texts(file, exercise_id, "lines", node.get("lines")),
        shared["conduct"],
        tuple(node.get("lines") or ()),
    )


def file_of(lesson: str) -> str:
    """Return the name of a lesson's file of words, such as "02_tensor_hooks.yml"."""
    found = sorted((catalog.ROOT / "course").glob(f"{lesson}_*.yml"))
    found = [path for path in found if "." not in path.stem]  # not the guesses, and not the words of the code
    if not found:
        raise WordsError(f"{lesson}_*.yml", "", "", _NO_FILE)
    return found[0].name


@cache
def _shared(lesson: str) -> dict[str, dict[str, Text]]:
    """Return the shared mistakes and lines that exercises of a lesson may use."""
    file, found = file_of(lesson), {}
    for kind in ("mistakes", "lines"):
        everywhere = _texts(SHARED, kind, "", _load(SHARED).get(kind))
        here = (_load(file).get("shared") or {}).get(kind)
        found[kind] = everywhere | _texts(file, "shared", kind, here)
    found["conduct"] = _texts(SHARED, "conduct", "", _load(SHARED).get("conduct"))
    return found


def _shared_or_own(file: str, exercise: str, id: str, said: Any, shared: Mapping[str, Text]) -> Text:
    if not isinstance(said, str):
        return _text(file, exercise, f"mistakes: {id}", said)
    if said not in shared:
        raise WordsError(file, exercise, f"mistakes: {id}", _NO_SHARED.format(name=said, file=SHARED))
    return shared[said]


def _texts(file: str, id: str, what: str, node: Any) -> dict[str, Text]:
    return {
        key: _text(file, id, f"{what}: {key}" if what else key, value) for key, value in (node or {}).items()
    }


def _text(file: str, id: str, what: str, node: Any) -> Text:
    return yaml_files.bilingual(node, lambda says: WordsError(file, id, what, says))


@cache
def _load(file: str) -> dict[str, Any]:
    class Loader(yaml_files.loader()):
        """Refuses an id that stands in a mapping twice; YAML would silently keep the last one."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict:
            seen: set[str] = set()
            for key, _ in node.value:
                if key.value in seen:
                    raise WordsError(file, f"line {key.start_mark.line + 1}", key.value, _TWICE)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    return yaml_files.load(catalog.ROOT / "course" / file, Loader)
