"""The names that `from hookedu import ...` gives: known to editors and type checkers, documented, with examples that run."""

import ast
import doctest
import inspect
import json
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import hookedu
from hookedu import catalog

STUB = catalog.ROOT / "hookedu" / "__init__.pyi"
# What numpydoc holds a docstring to: a summary on one line that says what it does, with a full stop; every parameter with
# its type and a description, in order; what comes back; an example.
RULES = {
    *("GL01", "GL02", "GL03", "GL08", "SS01", "SS02", "SS03", "SS04", "SS05", "SS06"),
    *("PR01", "PR02", "PR03", "PR04", "PR06", "PR07", "PR10", "RT01", "RT03", "EX01"),
}
# These raise nothing of their own: a learner's mistake is answered, not raised.
NEVER_RAISE = {"Text", "LanguageToggle", "check", "course_map", "guess", "hint", "progress", "solution"}


@pytest.fixture(autouse=True)
def no_windows():
    with matplotlib.rc_context({"backend": "Agg"}):
        yield
    plt.close("all")


def test_the_stub_names_what_the_package_gives():
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    imported = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(imported) == hookedu.__all__
    for name, where in imported.items():
        module = where.rpartition(".")[0]
        assert getattr(hookedu, name) is getattr(sys.modules[module], name), name
    listed = next(ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign))
    assert listed == hookedu.__all__


@pytest.mark.parametrize("name", hookedu.__all__)
class TestEveryPublicName:
    def test_its_docstring_has_the_sections(self, name):
        found = validate(f"hookedu.{name}")
        wrong = [f"{code}: {text}" for code, text in found["errors"] if code in RULES]
        assert wrong == []
        assert name in NEVER_RAISE or get_doc_object(getattr(hookedu, name))["Raises"]

    def test_its_examples_run(self, name):
        value = getattr(hookedu, name)
        examples = doctest.DocTestFinder(recurse=False).find(value, name, globs={})
        assert any(test.examples for test in examples)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        for test in examples:
            assert not any(doctest.SKIP in example.options for example in test.examples)
            assert runner.run(test, clear_globs=False).failed == 0


def pyright(*arguments: object) -> dict:
    """Return the report of the type checker, with the rules of pyproject.toml."""
    command = [sys.executable, "-m", "basedpyright", "--outputjson", *map(str, arguments)]
    run = subprocess.run(command, cwd=catalog.ROOT, capture_output=True, text=True)
    return json.loads(run.stdout)


def says(report: dict, severity: str) -> list[str]:
    return [
        f"{Path(d['file']).name}:{d['range']['start']['line'] + 1}: {d['message']}"
        for d in report["generalDiagnostics"]
        if d["severity"] == severity
    ]


def test_the_package_has_no_type_errors():
    report = pyright()
    assert says(report, "error") == []
    assert report["summary"]["filesAnalyzed"] >= len(list(STUB.parent.rglob("*.py")))


def test_a_type_checker_knows_the_public_names(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from torch import nn\n"
        "from hookedu import record, recrod, timeline\n"
        "reveal_type(record(nn.ReLU(), layers=nn.ReLU))\n"
        "reveal_type(timeline(nn.ReLU()))\n"
        "record(nn.ReLU(), layer=nn.ReLU)\n",
        encoding="utf-8",
    )
    report = pyright("--pythonpath", sys.executable, script)
    assert says(report, "information") == [
        'script.py:3: Type of "record(nn.ReLU(), layers=nn.ReLU)" is "Recorder"',
        'script.py:4: Type of "timeline(nn.ReLU())" is "Timeline"',
    ]
    errors = says(report, "error")
    assert len(errors) == 2 and "recrod" in errors[0] and '"layer"' in errors[1]


def test_what_is_public_says_so_where_it_is_defined():
    for name in hookedu.__all__:
        value = getattr(hookedu, name)
        assert inspect.getmodule(value).__name__.startswith("hookedu."), name
