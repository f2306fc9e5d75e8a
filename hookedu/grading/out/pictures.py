"""Figures of the class report: matplotlib figures as SVG that is embedded in the page.

Their text consists of exercise ids, message ids and English words; the page adds a caption in both languages. Text and
axes take the page's text colour, so that one figure suits light and dark themes; the bars contrast with both.
"""

import io
import re
from collections.abc import Sequence

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hookedu.exercises.exercise import Outcome
from hookedu.grading.rows import LOST
from hookedu.language import Text, in_both

WIDTH = 4.6  # inches; the text is still 8 points high on a phone
_INK = "#010203"  # placeholder, replaced by the page's text colour
# Based on Okabe and Ito's palette, which is safe for colour blindness; the numbers in the bars say the same.
_COLOURS = {
    Outcome.CORRECT.value: ("correct", "#009e73"),
    Outcome.PARTLY.value: ("partly", "#f0c040"),
    Outcome.INCORRECT.value: ("not yet", "#e07b39"),
    Outcome.RAISED.value: ("error", "#cc79a7"),
    Outcome.NOT_ATTEMPTED.value: ("not tried", "#a6acb5"),
    LOST: ("no result", "#56b4e9"),
}


def outcomes(exercises: Sequence[str], counts: Sequence[dict[str, int]]) -> Markup:
    """Draw one bar per exercise, divided by outcome; `counts` holds the students by outcome for each exercise."""
    figure, axes = _figure(0.9 + 0.34 * len(exercises))
    left = [0] * len(exercises)
    for outcome, (label, colour) in _COLOURS.items():
        widths = [count.get(outcome, 0) for count in counts]
        if any(widths):
            bars = axes.barh(exercises, widths, left=left, color=colour, label=label, height=0.7)
            labels = [str(n) if n else "" for n in widths]
            axes.bar_label(bars, labels, label_type="center", color="#000", fontsize=8)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    _whole(axes.xaxis)
    axes.set_xlabel("students")
    if axes.patches:
        figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8, labelcolor=_INK)
    return _svg(figure, "outcomes", Text(zh="每个练习的结果", en="Outcomes of every exercise"))


def mistakes(names: Sequence[str], counts: Sequence[int]) -> Markup:
    """Draw one bar per mistake, in the given order from top to bottom; names look like "02.2 late_binding"."""
    figure, axes = _figure(0.7 + 0.3 * len(names))
    bars = axes.barh(names, counts, color=_COLOURS[Outcome.INCORRECT.value][1], height=0.7)
    axes.bar_label(bars, padding=3, color=_INK, fontsize=9)
    axes.invert_yaxis()
    _whole(axes.xaxis)
    axes.margins(x=0.1)
    axes.set_xlabel("students")
    return _svg(figure, "mistakes", Text(zh="各种错误的人数", en="Mistakes by frequency"))


def seconds(values: Sequence[float]) -> Markup:
    """Draw a histogram of how long submissions ran, in seconds."""
    figure, axes = _figure(2.2)
    axes.hist(values, bins=min(20, max(5, len(values) // 3)), color=_COLOURS[LOST][1])
    _whole(axes.yaxis)
    axes.set_xlabel("seconds per submission")
    axes.set_ylabel("submissions")
    return _svg(figure, "seconds", Text(zh="每份提交的秒数", en="Seconds per submission"))


def _figure(height: float):
    # A Figure without pyplot: the caller's matplotlib state is not touched.
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_facecolor("none")
    axes.tick_params(colors=_INK, labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_INK)
    axes.xaxis.label.set_color(_INK)
    axes.yaxis.label.set_color(_INK)
    return figure, axes


def _whole(axis) -> None:
    axis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def _svg(figure: Figure, name: str, label: Text) -> Markup:
    out = io.StringIO()
    # Text stays text instead of becoming paths, and two runs give the same bytes.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(
            out, format="svg", transparent=True, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
        )
    svg = out.getvalue()[out.getvalue().index("<svg") :].replace(_INK, "currentColor")
    for side in ("width", "height"):  # the page's style sheet sets the size
        svg = re.sub(rf'(<svg[^>]*?) {side}="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)  # unique ids within the page
    return Markup(svg.replace("<svg", f'<svg role="img" aria-label="{in_both(label)}"', 1))
