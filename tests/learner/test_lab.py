"""Tests of `hookedu lab`: the language in which it starts, JupyterLab's menus, and how it stops."""

import builtins
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from hookedu import catalog, storage
from hookedu.language import Preference
from hookedu.learner import lab, preload
from tests.browser.lab import newcomer, running


@pytest.fixture(autouse=True)
def start(monkeypatch):
    """Let each test be a new process: nothing chosen, no locale, no terminal."""
    monkeypatch.setattr(lab, "preference", Preference())
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, None),
        ({"LANG": "C.UTF-8"}, None),
        ({"LANG": "POSIX"}, None),
        ({"LANG": ""}, None),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "en_GB.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "C"}, None),
    ],
)
def test_the_locale_names_the_language(variables, language, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert lab.language_of_machine() == language


def test_a_language_that_was_asked_for_comes_before_the_saved_one_and_that_before_the_locale(monkeypatch):
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert lab.language_at_start() == "zh"
    assert storage.load_settings() == {}, "the locale is no choice"
    storage.save_setting("language", "both")
    assert lab.language_at_start() == "both"
    assert lab.language_at_start("en") == "en"
    assert storage.load_settings() == {"language": "both"}, "for this hand-out only"


@pytest.mark.parametrize(
    ("answers", "language", "saved"),
    [(["zh"], "zh", "zh"), (["français", " EN "], "en", "en"), ([], "both", "both")],
    ids=["chinese", "after-a-wrong-answer", "end-of-input"],
)
def test_where_nothing_names_a_language_a_terminal_is_asked_once(
    answers, language, saved, monkeypatch, capsys
):
    def answer(_):
        if not answers:
            raise EOFError
        return answers.pop(0)

    monkeypatch.setattr(builtins, "input", answer)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert lab.language_at_start() == language
    said = capsys.readouterr().out
    assert "用哪种语言学" in said and "Which language" in said
    assert storage.load_settings() == {"language": saved}
    monkeypatch.setattr(lab, "preference", Preference())
    assert lab.language_at_start() == language and capsys.readouterr().out == ""


def test_without_a_terminal_nothing_is_asked():
    assert lab.language_at_start() == "both"
    assert storage.load_settings() == {}


@pytest.mark.parametrize(
    ("chosen", "locale"),
    [("zh", "zh_CN"), ("en", "en"), ("both", "default")],
)
def test_menus_are_in_the_language_of_the_start(chosen, locale, tmp_path, monkeypatch):
    assert menus(chosen, tmp_path, monkeypatch) == (locale, {})


def test_a_language_chosen_in_jupyterlab_itself_wins(tmp_path, monkeypatch):
    own = tmp_path / "@jupyterlab" / "translation-extension" / "plugin.jupyterlab-settings"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({"locale": "fr_FR"}))
    assert menus("zh", tmp_path, monkeypatch) == ("zh_CN", {"locale": "fr_FR"})


def menus(language, settings, monkeypatch):
    """Return the default language and the learner's language setting, as JupyterLab's server reads them."""
    from jupyterlab.commands import (
        get_app_dir,
    )  # imported late, or every process that collects tests would import JupyterLab
    from jupyterlab_server.settings_utils import get_settings

    monkeypatch.setenv("JUPYTER_CONFIG_PATH", os.pathsep.join(map(str, lab.config_folders(language))))
    lab_folder = get_app_dir()
    found, _ = get_settings(
        app_settings_dir=f"{lab_folder}/settings",
        schemas_dir=f"{lab_folder}/schemas",
        settings_dir=str(settings),
        schema_name="@jupyterlab/translation-extension:plugin",
    )
    return found["schema"]["properties"]["locale"]["default"], found["settings"]


def test_the_kernel_is_this_interpreter_and_has_imported_torch_and_nothing_else_that_a_cell_sees(
    tmp_path, monkeypatch
):
    from jupyter_client.manager import run_kernel

    monkeypatch.setenv("JUPYTER_PATH", "")
    lab.add_kernel(tmp_path)
    asked = f"""
import json, sys, threading
for thread in threading.enumerate():
    if thread.name == {preload.__name__!r}:
        thread.join()
print(json.dumps([sys.executable, "torch" in sys.modules, "torch" in dir()]))"""
    said = []
    with run_kernel(kernel_name="python3") as client:
        client.execute_interactive(
            asked, timeout=60, output_hook=lambda message: said.append(message["content"].get("text"))
        )
    assert json.loads("".join(filter(None, said))) == [sys.executable, True, False]


# Files are written by a thread, as JupyterLab's own manager of files does, which here waits until it may go on.
SLOW = """
import time
from anyio.to_thread import run_sync
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

class Slow(AsyncLargeFileManager):
    async def _save_file(self, path, content, format):
        await run_sync(self._write, path, content)

    def _write(self, path, content):
        with open(path, "w") as file:
            file.write(content[:1])
            file.flush()
            while not self.root.joinpath("go").exists():
                time.sleep(0.01)
            file.write(content[1:])

    @property
    def root(self):
        from pathlib import Path
        return Path(self.root_dir)
"""


def test_a_server_that_is_stopped_during_a_save_ends_after_the_save(tmp_path):
    (tmp_path / "slow_files.py").write_text(SLOW)
    folder = tmp_path / "lessons"
    paths = os.pathsep.join(map(str, [tmp_path, catalog.ROOT]))
    slow = ["--ServerApp.contents_manager_class=slow_files.Slow", "--ServerApp.disable_check_xsrf=True"]
    command = [sys.executable, "-m", "hookedu", "lab", "--folder", folder, *slow]

    def go_on():
        until(lambda: "received signal" in (tmp_path / "log").read_text())
        (folder / "go").touch()

    with (
        ThreadPoolExecutor() as threads,
        running(command, folder, newcomer(tmp_path) | {"PYTHONPATH": paths}) as server,
    ):
        threads.submit(save, f"http://127.0.0.1:{server.port}/api/contents/notes.txt", "mine")
        until(lambda: (folder / "notes.txt").exists())
        threads.submit(go_on)
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_folder_that_is_open_already_is_not_served_twice(tmp_path):
    folder = tmp_path / "lessons"
    command = [sys.executable, "-m", "hookedu", "lab", "--folder", str(folder), "--no-browser"]
    env = newcomer(tmp_path) | {"PYTHONPATH": str(catalog.ROOT)}
    with running(command, folder, env) as server:
        mine = folder / "00_start_here.ipynb"
        mine.unlink()
        again = subprocess.run(command, env=env, capture_output=True, encoding="utf-8", timeout=60)
        assert again.returncode == 0, again.stderr
        assert f":{server.port}/lab?token=" in again.stdout and "open already" in again.stdout
        assert not mine.exists(), "the notebooks are in use: they are not updated"


def save(url, text):
    """Save a file as JupyterLab does; the answer may be missing."""
    body = json.dumps({"type": "file", "format": "text", "content": text}).encode()
    with contextlib.suppress(OSError):
        urllib.request.urlopen(urllib.request.Request(url, body, method="PUT")).close()


def until(holds):
    while not holds():
        time.sleep(0.01)
