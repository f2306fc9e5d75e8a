"""What the executed solutions print, held against the figures that the syllabus asks for: a missing id fails."""

import re

import nbformat
import pytest

from hookedu import course

# (lesson, id) -> what its tagged cells must print, in this order, as regular expressions
FIGURES = {
    ("02", "E1"): [
        r"x\.grad: tensor\(\[1\., 1\., 1\., 1\.\]\)",
        r"y\.grad: None",
        r"z\.grad: None",
        r"the hook saw: tensor\(\[0\.2500, 0\.2500, 0\.2500, 0\.2500\]\)",
        r"y\.grad: None",
    ],
    ("02", "E13"): [
        r"w\.grad: tensor\(5\.\)",
        r"x\.grad: tensor\(2\.\)",
        r"a\.grad: None  b\.grad: None  y\.grad: None",
        r"the hook on a saw: tensor\(2\.\)",
    ],
    ("02", "E22"): [
        r"no hook yet: +tensor\(24\.\)",
        r"with the hook: +tensor\(48\.\)",
        r"after remove\(\): +tensor\(24\.\)",
    ],
    ("02", "F3"): [
        r"after autograd\.grad: \{'tensor hook': 1, 'post-accumulate hook': 0\}",
        r"after backward: +\{'tensor hook': 2, 'post-accumulate hook': 1\}",
        r"received w itself: True with \.grad tensor\(6\.\)",
    ],
    ("02", "F5"): [
        r"a hook after backward saw: \[\]",
        r"retain_grad after backward: None",
        r"RuntimeError: cannot register a hook on a tensor that doesn't require gradient",
    ],
    ("02", "F6"): [r"inside the with: +tensor\(48\.\)", r"after the with: +tensor\(24\.\)"],
    ("02", "F9"): [
        r"\['triple', 'triple'\]",
        *(rf"{way}: \['double', 'triple'\]" for way in ("default", "factory", "partial")),
    ],
    ("06", "E8"): [
        r"pre-hook: +in \(6, 5\)\n",
        r"forward hook: +in \(6, 5\) out \(6, 3\)\n",
        r"backward hook: gradient of the output \(6, 3\)",
    ],
    ("06", "E12"): [
        r"Sequential positional arguments: 1",
        r"Linear +positional arguments: 1",
        r"ReLU +positional arguments: 1",
        r"output: tensor\(\[\[0\., 5\.\]\]\)",
        r"Linear +positional arguments: 0",
        r"TypeError: register_module_forward_pre_hook\(\) got an unexpected keyword argument 'with_kwargs'",
    ],
    ("06", "E16"): [
        r"tuple of 1",
        r"\(tensor\(\[\[\[\[1\., 1\., 1\., 1\.\],(\s+\[1\., 1\., 1\., 1\.\],?){3}\]\]\]?\]?\),\)",
    ],
    ("06", "F10"): [
        r"args: \(tensor\(\[\[nan, 1\.\]\]\),\)",
        r"by position: stopped",
        r"args: \(\)\n",
        r"by keyword: +passed, tensor\(\[\[nan\]\]\)",
        r"args: \(\)  kwargs: \{'input': tensor\(\[\[1\., 2\.\]\]\)\}",
        r"\(args, kwargs\) +\(1, 1\)",
        r"\(args\[0\], kwargs\) +\(1,\)",
        r"args +RuntimeError: forward pre-hook must return None or a tuple of \(new_args, new_kwargs\)",
    ],
    ("06", "F30"): [
        r"nothing +3\.0",
        r"a tuple +30\.0",
        r"a tensor +30\.0",
        r"a list +TypeError: linear\(\): argument 'input' \(position 1\) must be Tensor, not list",
        r"two inputs TypeError: Bilinear\.forward\(\) missing 1 required positional argument: 'input2'",
    ],
}


def printed(lesson: str, tag: str) -> str:
    """Everything that the cells tagged `tag` of a solution print."""
    notebook = nbformat.read(course.find(lesson).solution, as_version=4)
    cells = [c for c in notebook.cells if tag in c.metadata.get("tags", ())]
    return "\n".join(o.text for c in cells for o in c.outputs if o.output_type == "stream")


@pytest.mark.parametrize(("lesson", "tag"), FIGURES, ids=lambda v: v)
def test_the_figure_is_the_one_of_the_syllabus(lesson, tag):
    text, at = printed(lesson, tag), 0
    for pattern in FIGURES[lesson, tag]:
        found = re.compile(pattern).search(text, at)
        assert found, f"{tag}: {pattern!r} is not printed after {text[:at]!r}; printed: {text[at:]!r}"
        at = found.end()


@pytest.mark.parametrize("lesson", course.lessons(), ids=lambda lesson: lesson.id)
def test_no_tag_without_a_figure(lesson):
    notebook = nbformat.read(lesson.solution, as_version=4)
    tags = {t for c in notebook.cells for t in c.metadata.get("tags", ()) if re.fullmatch(r"[EF]\d+", t)}
    assert tags == {tag for number, tag in FIGURES if number == lesson.id}
