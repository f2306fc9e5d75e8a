"""Who may import whom. Read from the source: imports inside functions and under TYPE_CHECKING count as well."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hookedu
from hookedu import catalog

PACKAGE = catalog.ROOT / "hookedu"
GROUND = {"language", "tables", "catalog", "storage", "yaml_files", "manifest", "guesses", "cells"}
SEES_ALL = {"cli", "doctor", "__main__"}
# room -> the rooms that it may import; its own modules besides
MAY_IMPORT = {
    "ground": set(),
    "hooks": {"ground"},
    "plots": {"ground", "hooks"},
    "widgets": {"ground", "hooks", "plots"},
    "models": {"ground", "hooks"},
    "exercises": {"ground", "hooks", "models"},
    "learner": {"ground", "hooks", "models", "exercises"},
    "authoring": {"ground", "hooks", "models", "exercises"},
    "grading": {"ground", "hooks", "models", "exercises"},
}
# Within grading: from the parts that know nothing of the others to those that put them together.
GRADING = {
    "limits": set(),
    "cleaning": set(),
    "rows": set(),
    "found": {"cleaning", "rows"},
    "files": {"cleaning", "rows", "found"},
    "reading": {"cleaning", "rows"},
    "matching": {"cleaning", "rows", "reading"},
    "naming": {"found", "matching"},
    "layout": {"cleaning", "rows", "found", "naming"},
    "collect": {"rows", "found", "files", "naming", "layout"},
    "run": {"limits", "cleaning", "rows", "matching"},
    "book": {"cleaning", "rows"},
    "lexing": set(),
    "similar": {"cleaning", "rows", "reading", "book", "lexing"},
    "out": {"rows", "matching", "reading", "book", "similar"},
    "batch": {"limits", "cleaning", "rows", "collect", "reading", "matching", "run", "book", "out"},
    "explain": {"limits", "cleaning", "rows", "collect", "reading", "matching", "run", "book", "out"},
    "watching": {"files", "collect", "batch", "book", "out"},
    "command": {"limits", "cleaning", "batch", "explain", "book", "out", "similar", "watching"},
}
# Within exercises: what runs beside the learner's code (probing and the probes) knows nothing of what decides.
EXERCISES = {
    "observation": set(),
    "tools": set(),
    "words": set(),
    "snapshots": set(),
    "conduct": {"snapshots"},
    "probing": {"observation", "tools", "conduct"},
    "structures": {"observation", "tools"},
    "probes": {"probing", "observation", "tools", "structures", "conduct"},
    "criteria": {"observation", "tools"},
    "exercise": {"probing", "criteria", "words"},
    "checks": {"probes", "probing", "observation", "tools", "structures", "conduct", "criteria", "exercise"},
    "breaches": {"conduct", "criteria"},
    "judging": {"observation", "conduct", "probing", "criteria", "exercise", "breaches"},
    "feedback": {"exercise"},
}
PARTS = {"grading": GRADING, "exercises": EXERCISES}


def modules(package: Path) -> dict[str, Path]:
    """Return every module of a package by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """Yield (line, module) for each of the known modules that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which room is meant"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            while name not in known and "." in name:  # a name inside a module: the module
                name = name.rpartition(".")[0]
            if name in known:
                yield node.lineno, name


def room(module: str) -> str:
    """Return the room of "hookedu.plots.mosaic": "plots"."""
    part = module.split(".")[1] if "." in module else "__init__"
    return "ground" if part in GROUND else part


def forbidden(package: Path) -> list[str]:
    """Return one line per import that breaks a rule."""
    known, wrong = modules(package), []
    for module, path in known.items():
        if room(module) in SEES_ALL | {"__init__"}:
            continue
        for line, imported in imports(path, known):
            here, there = room(module), room(imported)
            where = f"{path.relative_to(package.parent)}:{line}: {here} imports {imported}"
            if imported == "hookedu":
                continue  # __version__; the public names are shut out below
            if there != here and there not in MAY_IMPORT[here]:
                wrong.append(where)
            elif here == there and here in PARTS and module.count(".") > 1 and imported.count(".") > 1:
                part, of = module.split(".")[2], imported.split(".")[2]
                if part != of and of not in PARTS[here][part]:
                    wrong.append(
                        f"{where}, but within {here} `{part}` may import {sorted(PARTS[here][part])} only"
                    )
    return wrong


def circle(package: Path) -> list[str]:
    """Return the modules of one circle of imports, the first one again at the end; [] where there is none."""
    known = modules(package)
    graph = {module: {name for _, name in imports(path, known)} for module, path in known.items()}
    done: set[str] = set()

    def visit(module: str, way: list[str]) -> list[str]:
        if module in way:
            return [*way[way.index(module) :], module]
        if module not in done:
            for imported in sorted(graph[module]):
                if found := visit(imported, [*way, module]):
                    return found
            done.add(module)
        return []

    return next((found for module in graph if (found := visit(module, []))), [])


def test_each_room_imports_only_what_lies_below_it():
    assert forbidden(PACKAGE) == []


def test_no_module_imports_itself_by_any_way_round():
    assert circle(PACKAGE) == []


def test_no_file_has_more_than_400_lines():
    lines = {
        str(path.relative_to(catalog.ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for folder in (PACKAGE, catalog.ROOT / "tests" / "answers")
        for path in folder.rglob("*")
        if path.suffix in (".py", ".js", ".css")
    }
    assert {path: n for path, n in lines.items() if n > 400} == {}


def test_every_room_has_its_rule():
    rooms = {room(module) for module in modules(PACKAGE)} - SEES_ALL - {"__init__"}
    assert rooms == MAY_IMPORT.keys()


def test_inside_the_package_nothing_goes_through_the_public_face():
    """`from hookedu import record` in a module would hide from the rules above which room it needs."""
    public = set(hookedu.__all__)
    through = [
        f"{path}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (
            isinstance(node, ast.ImportFrom)
            and node.module == "hookedu"
            and public & {a.name for a in node.names}
        )
        or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == "hookedu" and node.attr in public)
    ]
    assert through == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("hooks/tensors.py", "from hookedu.plots import mosaic"),
        ("plots/mosaic.py", "def late():\n    from hookedu.widgets.live import sides"),
        ("exercises/probing.py", "if TYPE_CHECKING:\n    from hookedu.learner.progress import Progress"),
        ("storage.py", "import hookedu.hooks.state"),
        ("grading/run/runner.py", "from hookedu.grading.book import gradebook"),
        ("exercises/probes/onlooker.py", "from hookedu.exercises.checks import common"),
        (
            "exercises/probes/lesson_02/watch.py",
            "def late():\n    from hookedu.exercises.words import words_of",
        ),
        ("authoring/lint.py", "from hookedu.learner.checking import check"),
    ],
)
def test_a_broken_rule_is_seen(clone, file, line):
    path = clone.root / "hookedu" / file
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    (wrong,) = forbidden(clone.root / "hookedu")
    assert file in wrong


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("hooks/tensors.py", "def late():\n    from hookedu.hooks.capture import record"),
        ("exercises/feedback.py", "if TYPE_CHECKING:\n    from hookedu.exercises.feedback import Feedback"),
        ("grading/rows.py", "from hookedu.grading import batch"),
    ],
)
def test_a_circle_is_seen(clone, file, line):
    path = clone.root / "hookedu" / file
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    found = circle(clone.root / "hookedu")
    assert found[0] == found[-1] and len(found) > 1


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "CONTRIBUTING.zh.md"])
def test_contributing_lists_the_base_modules(name):
    lines = (catalog.ROOT / name).read_text(encoding="utf-8").splitlines()
    listed = next(line for line in lines if line.startswith("hookedu/ "))
    assert set(re.findall(r"(\w+)\.py", listed)) == GROUND
