"""Tests of what `make release` makes and of what it checks; two copies of a clone make the same bytes."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from hookedu import __version__, catalog
from hookedu.cells import source_of
from tests.release import artefacts, changelog, checks
from tests.release.links import broken_in_page, broken_in_site
from tests.release.traces import traces

NOON = 1_795_867_200  # 2026-11-28 12:00 in UTC
NAME = "hookedu-lessons/02_tensor_hooks.ipynb"


@pytest.fixture(scope="module")
def zips(tmp_path_factory) -> dict[str, Path]:
    """Make the zips of lessons."""
    return artefacts.lessons(catalog.ROOT, tmp_path_factory.mktemp("zips"), NOON)


def test_the_zips_hold_each_language_and_are_the_same_each_time(zips, tmp_path):
    again = artefacts.lessons(catalog.ROOT, tmp_path, NOON)
    assert [path.name for path in zips.values()] == ["lessons-zh.zip", "lessons-en.zip"]
    for (language, path), title in zip(zips.items(), ("# 02 张量钩子", "# 02 Tensor hooks"), strict=True):
        assert path.read_bytes() == again[language].read_bytes()
        assert checks.notebooks(path, language) == [] and traces(path) == []
        with zipfile.ZipFile(path) as zipped:
            assert source_of(json.loads(zipped.read(NAME))["cells"][0]).startswith(f"{title}\n")
            assert {entry.date_time for entry in zipped.infolist()} == {(2026, 11, 28, 12, 0, 0)}


def test_a_zip_in_the_other_language_or_with_other_files_is_seen(zips, tmp_path):
    found = checks.notebooks(zips["zh"], "en")
    assert len(found) == 2 * len(catalog.lessons())
    empty = artefacts.pack(tmp_path / "empty.zip", [], NOON)
    assert len(checks.notebooks(empty, "en")) == 1


def _kernel(notebook):
    notebook["metadata"]["kernelspec"]["name"] = "mine"


def _output(notebook):
    stream = {"output_type": "stream", "name": "stdout", "text": "1"}
    next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")["outputs"] = [stream]


def _other_language(notebook):
    notebook["cells"][2]["source"] = "一个词"


def _invalid(notebook):
    del notebook["cells"][0]["cell_type"]


@pytest.mark.parametrize("spoil", [_kernel, _output, _other_language, _invalid])
def test_a_notebook_that_learners_should_not_get_is_seen(zips, tmp_path, spoil):
    with zipfile.ZipFile(zips["en"]) as zipped:
        content = {name: zipped.read(name) for name in zipped.namelist()}
    notebook = json.loads(content[NAME])
    spoil(notebook)
    content[NAME] = json.dumps(notebook).encode()
    (problem,) = checks.notebooks(artefacts.pack(tmp_path / "a.zip", content.items(), NOON), "en")
    assert problem.startswith(NAME)


@pytest.mark.parametrize(
    "text",
    [
        f"{catalog.ROOT}/hookedu/cli.py",
        f"{Path.home()}/notes",
        # `|` parts them, because this file is published as well
        "/home|/ann/course",
        "/Users|/ann/course",
        r"C:\Users|\ann",
        "/opt/env/lib/python3.11|/site-packages/torch/nn",
        "/var|/ipykernel|_12/3.py",
        "https://files.python|hosted.example/simple",
    ],
    ids=["clone", "home", "linux", "mac", "windows", "environment", "kernel", "registry"],
)
def test_a_path_of_a_machine_and_a_registry_are_seen(tmp_path, text):
    path = artefacts.pack(
        tmp_path / "a.zip",
        [("one", b"fine: ./site-packages, /root, ~/x"), ("two", text.replace("|", "").encode())],
        NOON,
    )
    found = traces(path)
    assert found and all(place.startswith("two: ") for place in found)


def test_a_link_that_leads_nowhere_is_seen(tmp_path):
    page, html = tmp_path / "page.md", tmp_path / "index.html"
    page.write_text(
        '[a](page.md) [b](gone.md) [c](https://a.b/c) [d](#e) <img src="gone.png">', encoding="utf-8"
    )
    assert broken_in_page(page) == ["page.md: gone.md", "page.md: gone.png"]
    html.write_text('<a href="#x"><a href="index.html#y"><p id="y"><img src="gone.png">', encoding="utf-8")
    assert sorted(broken_in_site(tmp_path)) == ["index.html: #x", "index.html: gone.png"]


def test_the_changelog_gets_its_date_once():
    text = "# Changelog\n\n## 0.2.0 · 未发布 · unreleased\n\n- New\n\n## 0.1.0 · 2026-01-02\n"
    dated = changelog.dated(text, "0.2.0", "2026-11-28")
    assert dated == text.replace("未发布 · unreleased", "2026-11-28")
    assert changelog.dated(dated, "0.2.0", "2026-12-01") == dated
    with pytest.raises(ValueError, match=r"0\.3\.0"):
        changelog.dated(text, "0.3.0", "2026-11-28")


def test_the_changelog_and_the_readme_name_this_version():
    text = (catalog.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {__version__} · " in changelog.dated(text, __version__, "2026-11-28")
    for name in ("README.md", "README.zh.md"):
        assert f"hookedu-{__version__}-py3" in (catalog.ROOT / name).read_text(encoding="utf-8")


@pytest.mark.wheel
def test_two_copies_make_the_same_bytes(tmp_path):
    made = []
    seconds = artefacts.last_commit(catalog.ROOT).time
    for place, mode in (("one", 0o644), ("another/place", 0o600)):
        tree = artefacts.snapshot(catalog.ROOT, tmp_path / place / "tree")
        for path in tree.rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.chmod(mode)  # whatever modes and dates files get in a clone
                os.utime(path, (mode, mode))
        out = tmp_path / place / "out"
        sdist, wheel = artefacts.distributions(tree, out, seconds)
        made.append([sdist, wheel, *artefacts.lessons(tree, out, seconds).values()])
    for one, another in zip(*made, strict=True):
        assert checks.same(one, another) == []
    sdist, wheel, *_ = made[0]
    assert checks.same(wheel, artefacts.wheel(tree, tmp_path / "again", seconds)) == []
    assert checks.holds_every_tracked_file(sdist, catalog.ROOT) == []
    assert checks.holds_the_package_alone(wheel) == []
    assert checks.links(sdist) == []
    assert [traces(path) for path in made[0]] == [[]] * 4
