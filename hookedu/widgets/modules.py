"""The browser's side of the widgets: from the files in js/ to the single module that anywidget loads.

anywidget hands a widget's module to the browser as one text, from which a relative import could not be resolved. So the
files that a module imports are put in front of it, each inside a function of its own, whose result has the exported names.
As files they remain ES modules, which editors, Biome and TypeScript understand.
"""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("js")
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


@cache
def esm(name: str) -> str:
    """Return the module js/NAME.js joined with what it imports."""
    return join(_read(f"{name}.js"))


@cache
def css(name: str) -> str:
    """Return the style sheets of the shared files, of what the module imports and of itself, as far as there are any."""
    names = dict.fromkeys(["shared", *_imports(name), name])
    return "".join(_read(f"{each}.css") for each in names if (FOLDER / f"{each}.css").exists())


def _imports(name: str) -> list[str]:
    """Return the names of the files that a module imports, and before each what it imports itself."""
    direct = [file for _, file in _IMPORT.findall(_read(f"{name}.js"))]
    return [each for file in direct for each in (*_imports(file), file)]


def join(text: str) -> str:
    """Return a module with each import replaced by the imported file, as a function that returns its exports."""

    def imported(match: re.Match[str]) -> str:
        names, file = " ".join(match[1].replace(" as ", ": ").split()), join(_read(f"{match[2]}.js"))
        exports = ", ".join(_EXPORT.findall(file))
        return f"const {{ {names} }} = (() => {{\n{_EXPORT.sub('', file)}return {{ {exports} }};\n}})();\n"

    return _IMPORT.sub(imported, text)


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
