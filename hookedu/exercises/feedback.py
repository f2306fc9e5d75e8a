"""A verdict as a person reads it: HTML in a notebook, plain text elsewhere, both languages in each.

The order is fixed: the outcome; the input used; expected against got; the recognised mistake; one next step.
"""

from html import escape
from typing import Any

from hookedu.exercises.judging import Verdict
from hookedu.exercises.model import Outcome
from hookedu.language import Text

# A sign and a word besides the colour of the bar: colour is never the only signal, and on text it would lack
# contrast. The colours are JupyterLab's own variables, so that they suit light and dark themes; the second value
# serves other front ends.
LOOKS = {
    Outcome.CORRECT: ("✓", "--jp-success-color1, #2e7d32", Text(zh="正确", en="Correct")),
    Outcome.PARTLY: ("◐", "--jp-warn-color1, #b26a00", Text(zh="部分正确", en="Partly correct")),
    Outcome.INCORRECT: ("✗", "--jp-error-color1, #c62828", Text(zh="还不对", en="Not yet")),
    Outcome.RAISED: ("⚠", "--jp-error-color1, #c62828", Text(zh="运行时出错", en="It raised an error")),
    Outcome.NOT_ATTEMPTED: ("○", "--jp-info-color1, #0277bd", Text(zh="还没有作答", en="Not attempted yet")),
}
_POINTS = Text(zh="{points}/{of} 分", en="{points} of {of} points")
_LABELS = {
    "given": Text(zh="输入", en="Input"),
    "expected": Text(zh="应当是", en="Expected"),
    "got": Text(zh="得到的是", en="Got"),
}
_STUB_NEXT = Text(
    zh='把 `raise NotImplementedError(...)` 那一行换成你的代码，运行那个单元，再来检查。没有头绪时：`hint("{id}")`',
    en="Replace the line `raise NotImplementedError(...)` with your code, run that cell, then check again. "
    'No idea where to begin? `hint("{id}")`',
)
_HINT_NEXT = Text(zh='下一步：`hint("{id}")`', en='Next step: `hint("{id}")`')
_ERROR_NEXT = Text(
    zh='错误出在上面最后一行。改好后重新运行那个单元；需要提示：`hint("{id}")`',
    en='The last line above is where it failed. Fix it and rerun that cell; for a hint: `hint("{id}")`',
)
_NOT_CALLABLE = Text(
    zh="要检查的是函数 `{name}` 本身：应当可以调用，得到的却是 `{got}`。写 `{name}`，不要写 `{name}(...)`。",
    en="What is checked is the function `{name}` itself: not callable, got `{got}`. "
    "Pass `{name}`, not `{name}(...)`.",
)


def _parts(verdict: Verdict) -> tuple[list[tuple[Text, str | Text]], list[Text]]:
    """A verdict's table (label, value) and its sentences, in reading order."""
    table: list[tuple[Text, str | Text]] = []
    said: list[Text] = []
    failed = verdict.failed
    if failed:
        table = [(label, getattr(failed, key)) for key, label in _LABELS.items() if getattr(failed, key)]
    if verdict.wrong_type:
        said.append(_NOT_CALLABLE.format(name=verdict.exercise.answer, got=verdict.wrong_type))
    if verdict.mistake:
        said.append(verdict.mistake.says)
    next_step = {
        Outcome.CORRECT: verdict.exercise.insight,
        Outcome.NOT_ATTEMPTED: _STUB_NEXT,
        Outcome.RAISED: _ERROR_NEXT if verdict.error and verdict.error["frames"] else _HINT_NEXT,
    }.get(verdict.outcome, _HINT_NEXT)
    said.append(next_step if verdict.outcome is Outcome.CORRECT else next_step.format(id=verdict.exercise.id))
    return table, said


def _traceback(error: dict[str, Any]) -> str:
    lines = []
    for frame in error["frames"]:
        where = f"line {frame['line']}" + (f", in {frame['name']}" if frame["name"] else "")
        lines += [f"  {where}", f"    {frame['code']}"]
    return "\n".join([*lines, f"{error['type']}: {error['message']}"])


def verdict_html(verdict: Verdict) -> str:
    """One panel in the colours of the notebook's theme."""
    sign, colour, outcome = LOOKS[verdict.outcome]
    points = _POINTS.format(points=verdict.points, of=verdict.exercise.points)
    table, said = _parts(verdict)
    rows = "".join(
        f'<tr><th style="text-align:left;font-weight:600;padding:0 1em 0 0;white-space:nowrap">{label.inline_html()}</th>'
        f'<td style="text-align:left">{_value_html(value)}</td></tr>'
        for label, value in table
    )
    body = [
        f'<div style="font-weight:600">{sign} {escape(verdict.exercise.id)} {outcome.inline_html()} — '
        f"{points.inline_html()}</div>"
    ]
    if rows:
        body.append(
            f'<table style="margin:.4em 0;background:none;font-size:inherit"><tbody>{rows}</tbody></table>'
        )
    if verdict.error:
        body.append(
            f'<pre style="margin:.4em 0;white-space:pre-wrap">{escape(_traceback(verdict.error))}</pre>'
        )
    body += [f'<div style="margin-top:.3em">{text.html()}</div>' for text in said]
    return panel(colour, "".join(body), outcome=verdict.outcome.value, message=verdict.message_id)


def panel(colour: str, body: str, **data: str) -> str:
    """A box with a coloured bar at its left; `data` becomes data-* attributes, for tests and style sheets."""
    attributes = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
    return (
        f'<div class="hookedu-panel"{attributes} style="border-left:4px solid var({colour});'
        f'padding:.4em .9em;margin:.2em 0;max-width:60em;line-height:1.5">{body}</div>'
    )


def _value_html(value: str | Text) -> str:
    return value.inline_html() if isinstance(value, Text) else f"<code>{escape(value)}</code>"


def verdict_text(verdict: Verdict) -> str:
    """The same in plain text, Chinese line first."""
    sign, _, outcome = LOOKS[verdict.outcome]
    points = _POINTS.format(points=verdict.points, of=verdict.exercise.points)
    table, said = _parts(verdict)
    lines = [
        f"{sign} {verdict.exercise.id} {outcome.zh} · {outcome.en} — {points.zh} · {points.en}",
        *(f"  {label.zh} · {label.en}: {_value_text(value)}" for label, value in table),
    ]
    if verdict.error:
        lines.append(_traceback(verdict.error))
    return "\n".join([*lines, *(str(text) for text in said)])


def _value_text(value: str | Text) -> str:
    return f"{value.zh} · {value.en}" if isinstance(value, Text) else value
