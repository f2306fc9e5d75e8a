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
    ("07", "E12"): [
        r"ReLU +\(\(6, 3\),\) \(\(6, 3\),\)",
        r"Linear +\(\(6, 5\),\) \(\(6, 3\),\)",
        r"by keyword, layer\(input=x\):\nLinear +\(\) \(\(6, 3\),\)",
        r"a forward pre-hook's tensor is wrapped into a tuple: \(6, 3\)",
        r"RuntimeError: Backward hook returned an invalid number of grad_input, got 6, but expected 1",
    ],
    ("07", "E17"): [
        r"in grad_input: None",
        r"in grad_input: \(\(2, 1, 3, 3\), 'size', tensor\(\[0\.5000\]\)\)",
        r"in grad_input: \(\(2,\), 'size', tensor\(\[0\.5000\]\)\)",
        *(
            rf"{kind}\n +grad_input: +{grad_input}\n +grad_output: "
            r"\[\[\[\[0\.5, 0\.0\], \[0\.0, 0\.0\]\], \[\[0\.5, 0\.0\], \[0\.0, 0\.0\]\]\]\]"
            for kind, grad_input in (
                ("register_backward_hook", r"\(None, \(2, 1, 3, 3\), \(2,\)\)"),
                ("register_full_backward_hook", r"\(None,\)"),
                ("register_full_backward_pre_hook", "not given"),
            )
        ),
        r"the pool took, counted row by row: (\[[\d, ]+\])\ngrad_output is not 0 at: +\1",
    ],
    ("07", "F16"): [
        r"in grad_input: \(\(2, 1, 3, 3\)",
        r"FutureWarning: Using a non-full backward hook .* will be missing some grad_input",
        r"RuntimeError: Cannot use both regular backward hooks and full backward hooks on a single Module",
    ],
    ("07", "F17"): [
        r"inplace=False: fine",
        r"inplace=True: RuntimeError: .* is a view and is being modified inplace",
        r"not in place: +(tensor\(.*\))\n",
        r"in place, tensor hook: +tensor\(.*\) True",
        r"in place, retain_grad: +tensor\(.*\) False",
    ],
    ("07", "F18"): [
        r"grad_input: +\(None,\)",
        r"weight\.grad: None",
        r"afterwards, weight\.grad: \(3, 5\)",
        r"UserWarning: Full backward hook is firing .* since no inputs require gradients",
    ],
    ("07", "F19"): [
        r"no hook: +x\.grad \[3\.0, .*\], weight\.grad \[12\.0, ",
        r"zero grad_input: +x\.grad \[0\.0, 0\.0, 0\.0, 0\.0, 0\.0\], weight\.grad \[12\.0, ",
        r"zero grad_output: +x\.grad \[0\.0, .*\], weight\.grad \[0\.0, ",
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
