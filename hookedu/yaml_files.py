"""Reading the course's own YAML files, with libyaml where PyYAML has it: it takes a tenth of the time of the parser in Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookedu.language import LANGUAGES, CourseError, Text

# PyYAML itself is imported on use: `import hookedu` needs no file of the course.

_NOT_UTF8 = Text(zh="文件的编码不是 UTF-8。另存为 UTF-8。", en="the file is not in UTF-8. Save it in UTF-8.")
_NO_YAML = Text(zh="这不是正确的 YAML：`{problem}`。", en="this is not valid YAML: `{problem}`.")
_HOLDS = Text(
    zh="文件的最外层要写成 `{like}`，这里却不是。",
    en="the file has to be written as `{like}` at its outermost level.",
)
_NO_TEXT = Text(
    zh="缺少 `{lang}`：两种语言都要写，不能空着。",
    en="`{lang}` is missing: write both languages, and leave neither empty.",
)
_LIKE = {dict: "name: ...", list: "- ..."}


class YamlError(CourseError):
    """Raised for a file of the course that cannot be used; names the file, the line and what is wrong."""

    def __init__(self, path: Path, line: int, says: Text) -> None:
        where = Text(zh="{file} 第 {line} 行：", en="{file}, line {line}: ").format(
            file=f"{path.parent.name}/{path.name}", line=line
        )
        super().__init__(Text(zh=where.zh + says.zh, en=where.en + says.en))


def loader() -> Any:
    """Return the class of the safe loader to use."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(path: Path, kind: Any = None, holds: type = dict) -> Any:
    """Return what a file holds; an empty one if it is empty or there is no such file.

    Parameters
    ----------
    path : Path
        The file.
    kind : type, optional
        Class of the loader; `loader()` if left out.
    holds : type, default dict
        What it holds at its outermost level: dict or list.

    Raises
    ------
    YamlError
        If it cannot be read, or holds something else.
    """
    import yaml

    found = _read(path, lambda text: yaml.load(text, kind or loader())) if path.exists() else None
    if found is None:
        return holds()
    if not isinstance(found, holds):
        raise YamlError(path, 1, _HOLDS.format(like=_LIKE[holds]))
    return found


def bilingual(node: Any, refusal: Callable[[Text], Exception]) -> Text:
    """Return an entry `{zh: ..., en: ...}` as a text; raise `refusal(reason)` if a language is missing or empty."""
    for lang in LANGUAGES:
        if not isinstance(node, dict) or not isinstance(node.get(lang), str) or not node[lang].strip():
            raise refusal(_NO_TEXT.format(lang=lang))
    return Text(zh=node["zh"], en=node["en"])


def compose(path: Path) -> Any:
    """Return the tree of nodes of a file, each with its line; None if the file is empty. YamlError as `load`."""
    import yaml

    return _read(path, lambda text: yaml.compose(text, loader()))


def line_of(path: Path, *keys: str | int) -> int:
    """Return the line at which an entry of a file begins; that of the last key which is there, if it is not."""
    import yaml

    node = compose(path)
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            node = next((value for name, value in node.value if name.value == key), node)
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
    return node.start_mark.line + 1 if node else 1


def _read(path: Path, parse: Callable[[str], Any]) -> Any:
    import yaml

    data = path.read_bytes()

    def line_at(byte: int) -> int:
        return data.count(b"\n", 0, byte) + 1

    try:
        return parse(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise YamlError(path, line_at(error.start), _NOT_UTF8) from error
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, error.problem or error.context
        if error.context and error.context_mark and error.problem:
            problem = f"{error.problem}, {error.context} of line {error.context_mark.line + 1}"
        raise YamlError(path, mark.line + 1 if mark else 1, _NO_YAML.format(problem=problem)) from error
    except (yaml.YAMLError, ValueError) as error:  # a character that may not stand there; a day that is none
        problem = getattr(error, "reason", None) or error
        line = line_at(getattr(error, "position", 0))
        raise YamlError(path, line, _NO_YAML.format(problem=problem)) from error
