"""Tests of the course map: it agrees with the stated prerequisites, and lesson 00 links to every lesson."""

import re
import shutil
import xml.etree.ElementTree as ElementTree

import pytest

from hookedu import catalog, course_map, exercises, storage
from hookedu.authoring import lesson_tables, source

LESSONS = catalog.lessons()


def by_number(of):
    return pytest.mark.parametrize("lesson", of, ids=lambda lesson: lesson.id)


def leading_to(lesson: catalog.Lesson) -> set[str]:
    """Return all direct and indirect prerequisites of a lesson."""
    before = set(lesson.after)
    for number in lesson.after:
        before |= leading_to(catalog.find(number))
    return before


@by_number(LESSONS[1:])
def test_lesson_00_links_every_lesson_in_both_languages(lesson):
    prose = [cell for cell in source.read(catalog.find("00")) if not cell.is_code]
    for language in ("zh", "en"):
        link = f"[{lesson.id} {getattr(lesson.title, language)}]({lesson.notebook.name})"
        assert any(link in cell.prose(language) for cell in prose), link


@by_number(LESSONS)
def test_the_arrows_agree_with_what_a_lesson_says_it_needs(lesson):
    assert all(number < lesson.id for number in lesson.after)
    for text in (lesson.needs.zh, lesson.needs.en):
        assert set(re.findall(r"\b\d\d\b", text)) <= leading_to(lesson)


@by_number(LESSONS)
def test_no_arrow_says_what_others_say_already(lesson):
    for number in lesson.after:
        others = set(lesson.after) - {number}
        assert not any(number in leading_to(catalog.find(other)) for other in others)


def test_a_table_stands_where_it_is_asked_for_in_the_language_around_it():
    last = LESSONS[-1]
    before = '<div lang="{0}">\n\n<!-- lessons {1} -->\n\n</div>'
    zh = lesson_tables.fill_in(before.format("zh", f"{last.id}-"))
    assert f"| [{last.id} {last.title.zh}]({last.notebook.name}) | {last.about.zh} |" in zh
    assert zh.count("ipynb") == 1 and "<!--" not in zh and last.about.en not in zh
    en = lesson_tables.fill_in(before.format("en", "01-02"))
    assert re.findall(r"\((.*?)\)", en) == ["01_graph_and_leaves.ipynb", "02_tensor_hooks.ipynb"]
    assert "What it is about" in en and "讲什么" not in en


def test_the_picture_has_a_box_for_each_lesson_and_an_arrow_for_each_need():
    picture = ElementTree.fromstring(course_map()._repr_html_())
    boxes = {}
    for group in picture.findall("g[rect]"):
        frame = {
            k: float(v) for k, v in group.find("rect").attrib.items() if k in ("x", "y", "width", "height")
        }
        boxes[group.find(".//b").text] = frame
        lesson = catalog.find(group.find(".//b").text)
        assert [group.find(f".//*[@lang='{lang}']").text for lang in ("zh", "en")] == [
            lesson.title.zh,
            lesson.title.en,
        ]
    assert list(boxes) == [lesson.id for lesson in LESSONS]
    spots = [(box["x"], box["y"]) for box in boxes.values()]
    for (x, y), (other_x, other_y) in ((a, b) for a in spots for b in spots if a is not b):
        assert abs(x - other_x) >= boxes["00"]["width"] or abs(y - other_y) >= boxes["00"]["height"]

    def at(x: float, y: float) -> str:
        """Return the lesson whose box the end of an arrow touches."""
        (found,) = (
            name
            for name, box in boxes.items()
            if box["x"] < x < box["x"] + box["width"] and -8 <= y - box["y"] <= box["height"]
        )
        return found

    ends = [
        re.findall(r"[\d.]+", path.get("d")) for path in picture.findall("g/path") if "C" in path.get("d")
    ]
    arrows = {(at(*map(float, end[:2])), at(*map(float, end[-2:]))) for end in ends}
    assert arrows == {(before, lesson.id) for lesson in LESSONS for before in lesson.after}
    assert "09 特征图 · Feature maps ← 03, 05" in repr(course_map())


def test_boxes_link_to_the_lessons_beside_and_show_what_is_solved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", "lesson.ipynb")  # as in a kernel of JupyterLab
    shutil.copy(catalog.find("02").notebook, tmp_path)
    storage.append_record("checks", {"exercise": "02.1", "outcome": "correct"})
    picture = ElementTree.fromstring(course_map()._repr_html_())
    (link,) = picture.findall(".//a")
    assert link.get("href") == "02_tensor_hooks.ipynb" and "Tensor hooks" in "".join(link.itertext())
    (box,) = (group for group in picture.findall("g[rect]") if group.find(".//a") is not None)
    filled, frame = (float(rect.get("width")) for rect in box.findall("rect"))
    of = len(exercises.of_lesson("02"))
    assert filled == pytest.approx(frame / of) and f"1 of {of} solved" in "".join(box.itertext())
    assert picture.findall(".//rect[@stroke='none']") == [box.find("rect")]
