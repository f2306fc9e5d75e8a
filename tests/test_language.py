"""Tests of bilingual texts and of the data saved between sessions."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from hookedu import LanguageToggle, Text, storage
from hookedu.language import Preference, one_side, preference, shown


@pytest.fixture(scope="module")
def folder_of_wider_fixtures():
    return storage.folder()


def test_fixtures_of_a_module_read_nothing_of_the_user(folder_of_wider_fixtures):
    assert "hookedu-tests-" in str(folder_of_wider_fixtures) and "hookedu-tests-" not in str(storage.folder())


def test_both_languages_chinese_first():
    text = Text(zh="共 {n} 个张量", en="{n} tensors").format(n=3)
    assert str(text) == "共 3 个张量\n3 tensors"
    assert text.html() == '<div lang="zh">共 3 个张量</div><div lang="en">3 tensors</div>'
    assert text.inline_html() == (
        '<span lang="zh">共 3 个张量</span><span class="hookedu-dot"> · </span><span lang="en">3 tensors</span>'
    )


def test_a_text_within_a_text_keeps_its_language():
    outer = Text(zh="{kind}不对", en="wrong {kind}").format(kind=Text(zh="形状", en="shape"))
    assert (outer.zh, outer.en) == ("形状不对", "wrong shape")


def test_inline_markdown_is_drawn_and_html_is_not_trusted():
    html = Text(zh="看 `x`", en="see `a<b` and **this** <img src=x onerror=alert(1)>").html()
    assert "<code>x</code>" in html and "<code>a&lt;b</code>" in html and "<strong>this</strong>" in html
    assert "<img" not in html


@pytest.mark.parametrize(
    ("language", "plain", "line", "hidden"),
    [
        ("both", "形状\nshape", "形状 · shape", []),
        ("zh", "形状", "形状", ["en"]),
        ("en", "shape", "shape", ["zh"]),
    ],
)
def test_a_text_follows_the_preference(language, plain, line, hidden):
    text = Text(zh="形状", en="shape")
    preference.language = language
    assert (str(text), text.inline(), f"{text}") == (plain, line, plain)
    assert re.findall(r'lang="(..)" hidden', text._repr_html_()) == hidden
    html = shown(text.inline_html())
    assert re.findall(r'lang="(..)" hidden', html) == hidden
    assert ('hookedu-dot" hidden' in html) == bool(hidden)
    assert text.plain(("zh", "en")) == "形状\nshape" and text.inline(("en",)) == "shape"


def test_what_looks_like_a_tag_in_a_value_is_not_hidden():
    preference.language = "zh"
    html = Text(zh='看 `<div lang="en">`', en='see `<div lang="en">`')._repr_html_()
    assert html.count("hidden") == 1


def test_setting_the_language_is_for_this_process_and_choosing_it_for_later_ones_as_well(home):
    preference.language = "en"
    assert (Preference().language, storage.load_settings()) == ("both", {})
    preference.choose("zh")
    assert (preference.language, Preference().language) == ("zh", "zh")
    with pytest.raises(ValueError, match="'de'"):
        preference.language = "de"
    storage.save_setting("language", 3)
    assert Preference().language == "both"


def test_observers_hear_of_changes_only():
    heard = []

    def observer():
        heard.append(preference.language)

    preference.observe(observer)
    for language in ("en", "en", "zh"):
        preference.language = language
    preference.unobserve(observer)
    preference.language = "both"
    assert heard == ["en", "zh"]


@pytest.mark.parametrize("text", ["中文 · English", "English · 中文", "a · b", "中文 · 英文", "中文"])
def test_only_chinese_then_english_has_two_sides(text):
    sides = one_side(text, "zh"), one_side(text, "en")
    assert sides == (("中文", "English") if text == "中文 · English" else (text, text))


class TestTheToggle:
    def test_a_press_changes_every_toggle_and_is_saved(self):
        one, other = LanguageToggle(), LanguageToggle()
        press(one, "en")
        assert one.language == other.language == preference.language == "en"
        assert storage.load_settings() == {"language": "en"}

    def test_pressing_the_language_that_is_shown_is_a_choice_too(self):
        press(LanguageToggle("zh"), "zh")
        assert storage.load_settings() == {"language": "zh"}

    def test_a_notebook_speaks_its_own_language_which_is_no_choice(self):
        storage.save_setting("language", "zh")
        toggle = LanguageToggle("en")
        assert toggle.language == preference.language == "en"
        assert storage.load_settings() == {"language": "zh"}

    def test_a_notebook_that_names_no_language_keeps_the_one_that_is_spoken(self):
        preference.language = "zh"
        assert LanguageToggle().language == "zh"

    def test_an_unknown_language_is_refused(self):
        with pytest.raises(ValueError, match="'de'"):
            LanguageToggle("de")

    def test_what_it_prints_does_not_depend_on_the_choice(self):
        assert repr(LanguageToggle("zh")) == repr(LanguageToggle("both"))

    def test_another_notebook_that_has_chosen_is_followed_but_saves_the_choice_itself(self):
        toggle = LanguageToggle("en")
        toggle._handle_custom_msg({"kind": "follow", "language": "zh"}, [])
        assert (toggle.language, preference.language, storage.load_settings()) == ("zh", "zh", {})

    def test_a_closed_one_follows_no_longer(self):
        toggle = LanguageToggle("en")
        toggle.close()
        preference.language = "zh"
        assert toggle.language == "en"
        toggle.close()


def press(toggle: LanguageToggle, language: str) -> None:
    """Do what language_toggle.js does for a press of a button."""
    toggle.set_state({"language": language})
    toggle._handle_custom_msg({"kind": "choose", "language": language}, [])


def test_settings_and_records_survive(home):
    storage.save_setting("language", "zh")
    storage.save_setting("other", [1, 2])
    assert storage.load_settings() == {"language": "zh", "other": [1, 2]}
    storage.append_record("checks", {"exercise": "02.1"})
    storage.append_record("checks", {"exercise": "02.2"})
    assert [r["exercise"] for r in storage.read_records("checks")] == ["02.1", "02.2"]


def test_notebooks_that_write_at_once_lose_nothing(home):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: storage.append_record("checks", {"n": n}), range(200)))
    assert sorted(r["n"] for r in storage.read_records("checks")) == list(range(200))


@pytest.mark.parametrize("content", ["", "{", "[1]", "\x00\xff", '"text"'])
def test_spoilt_files_are_forgotten_not_fatal(home, content):
    storage.save_setting("language", "zh")
    (storage.folder() / "settings.json").write_text(content, encoding="utf-8")
    (storage.folder() / "checks.jsonl").write_text(content + '\n{"n": 1}\n', encoding="utf-8")
    assert storage.load_settings() == {}
    assert storage.read_records("checks") == [{"n": 1}]
    storage.save_setting("language", "en")
    assert json.loads((storage.folder() / "settings.json").read_text()) == {"language": "en"}


def test_a_home_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file" / "data"))
    storage.save_setting("language", "zh")
    storage.append_record("checks", {"n": 1})
    assert (storage.writable(), storage.load_settings(), storage.read_records("checks")) == (False, {}, [])


def test_a_full_disk_is_not_writable(home):
    """A limit of 0 bytes per file is like it: a file can be made, and nothing written to it."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from hookedu import storage; print(storage.writable(), storage.load_settings())"
    )
    assert storage.writable()
    assert not list(storage.folder().iterdir()), "nothing is left of the attempt"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60)
    assert ran.stdout == "False {}\n", ran.stderr
