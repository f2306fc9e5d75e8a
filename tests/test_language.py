"""Tests of bilingual texts and of the data saved between sessions."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from hookedu import LanguageToggle, Text, storage
from hookedu.widgets.language_toggle import preference, style_sheet


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


def test_the_style_sheet_hides_the_other_language_of_this_notebook_only():
    assert style_sheet("both") == ""
    for chosen, hidden in (("zh", "en"), ("en", "zh")):
        sheet = style_sheet(chosen)
        assert f'[lang="{hidden}"]' in sheet and f'[lang="{chosen}"]' not in sheet
        assert sheet.count(".jp-NotebookPanel:has(.hookedu-language-") == 2


def test_toggles_of_one_notebook_stay_in_step_and_the_choice_is_saved():
    one, other = LanguageToggle(), LanguageToggle()
    try:
        one.children[0].value = "en"
        assert other.children[0].value == preference.language == "en"
        assert 'lang="zh"' in other.children[1].value
        assert storage.load_settings() == {"language": "en"}
    finally:
        preference.language = "both"


def test_what_the_toggle_prints_does_not_depend_on_the_choice():
    toggle = LanguageToggle()
    before = repr(toggle)
    try:
        toggle.children[0].value = "zh"
        assert repr(toggle) == before
    finally:
        preference.language = "both"


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
