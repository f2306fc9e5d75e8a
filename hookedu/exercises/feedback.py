"""Render a verdict for people: HTML in a notebook, plain text elsewhere.

The order is fixed: the outcome; the input used; expected and actual result; the traceback, if any; the recognised
mistake; one next step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from hookedu.exercises.exercise import Outcome, Verdict
from hookedu.language import Text, shown

# Each outcome has a symbol and a word in addition to the colour of the bar: colour is never the only signal, and
# coloured text would lack contrast. The colours are CSS variables of JupyterLab, which suit light and dark themes; the
# second value is the fallback for other front ends.
LOOKS = {
    Outcome.CORRECT: ("✓", "--jp-success-color1, #2e7d32", Text(zh="正确", en="Correct")),
    Outcome.PARTLY: ("◐", "--jp-warn-color1, #b26a00", Text(zh="部分正确", en="Partly correct")),
    Outcome.INCORRECT: ("✗", "--jp-error-color1, #c62828", Text(zh="还不对", en="Not yet")),
    Outcome.RAISED: ("⚠", "--jp-error-color1, #c62828", Text(zh="运行时出错", en="It raised an error")),
    Outcome.NOT_ATTEMPTED: ("○", "--jp-info-color1, #0277bd", Text(zh="还没有作答", en="Not attempted yet")),
}
POINTS = Text(zh="{points}/{of} 分", en="{points} of {of} points")
_LABELS = {
    "given": Text(zh="输入", en="Input"),
    "expected": Text(zh="应当是", en="Expected"),
    "got": Text(zh="得到的是", en="Got"),
}
_STUB_NEXT = Text(
    zh='把 `raise NotImplementedError(...)` 那一行换成你的代码，运行那个单元格，再来检查。没有头绪时：`hint("{id}")`',
    en="Replace the line `raise NotImplementedError(...)` with your code, run that cell, then check again. "
    'No idea where to begin? `hint("{id}")`',
)
_HINT_NEXT = Text(zh='下一步：`hint("{id}")`', en='Next step: `hint("{id}")`')
_ERROR_NEXT = Text(
    zh='错误出在上面最后一行。改好后重新运行那个单元格；需要提示：`hint("{id}")`',
    en='The last line above is where it failed. Fix it and rerun that cell; for a hint: `hint("{id}")`',
)
_NOT_CALLABLE = Text(
    zh="交来的不是函数，类型是 `{got}`。要交的是 `{name}` 本身：只写名字，后面不加括号，也不加引号。",
    en="What you handed over is not a function; its type is `{got}`. Hand over `{name}` itself: its name, without parentheses and "
    "without quotes.",
)
# By kind, of `probing.KINDS`.
_NO_PLAIN_FUNCTION = {
    "coroutine function": Text(
        zh="`{name}` 是协程函数（用 `async def` 写的）：调用它，里面一行也不会运行，只得到一个协程。改用 `def`，里面也不写 `await`。",
        en="`{name}` is a coroutine function, written with `async def`: a call runs none of its lines and gives a coroutine. Write "
        "`def`, and no `await` inside.",
    ),
    "generator function": Text(
        zh="`{name}` 是生成器函数（里面有 `yield`）：调用它，里面一行也不会运行，只得到一个生成器。把结果用 `return` 交出来。",
        en="`{name}` is a generator function, as there is a `yield` in it: a call runs none of its lines and gives a generator. Hand "
        "the result back with `return`.",
    ),
    "asynchronous generator function": Text(
        zh="`{name}` 是异步生成器函数（用 `async def` 写的，里面有 `yield`）：调用它，里面一行也不会运行，只得到一个异步生成器。改用 `def`，"
        "里面也不写 `await`。",
        en="`{name}` is an asynchronous generator function, written with `async def` and `yield`: a call runs none of its lines and "
        "gives an asynchronous generator. Write `def`, and no `await` inside.",
    ),
}


@dataclass(frozen=True)
class Feedback:
    """Explanation of one verdict, without its outcome and points; the basis of every rendering.

    Attributes
    ----------
    table : tuple of (Text, str or Text)
        Label and value of the input used, the expected result and the actual result.
    traceback : str
        The learner's own frames and the error, as plain text.
    says : tuple of Text
        Sentences in reading order; the next step comes last.
    """

    table: tuple[tuple[Text, str | Text], ...] = ()
    traceback: str = ""
    says: tuple[Text, ...] = ()

    @classmethod
    def of(cls, verdict: Verdict) -> "Feedback":
        """Return the explanation of a verdict, the same for `check` and for a grade."""
        exercise, failed, error = verdict.exercise, verdict.failed, verdict.error
        table = [(label, getattr(failed, key, "")) for key, label in _LABELS.items()]
        table += [(_LABELS["given"], verdict.given)]
        said = []
        if verdict.wrong_type:
            words = _NO_PLAIN_FUNCTION.get(verdict.wrong_type, _NOT_CALLABLE)
            said.append(words.format(name=exercise.answer, got=verdict.wrong_type))
        if verdict.mistake:
            said.append(verdict.mistake.says)
        if verdict.outcome is Outcome.CORRECT:
            said.append(exercise.insight)
        else:
            next_step = {
                Outcome.NOT_ATTEMPTED: _STUB_NEXT,
                Outcome.RAISED: _ERROR_NEXT if error and error["frames"] else _HINT_NEXT,
            }.get(verdict.outcome, _HINT_NEXT)
            said.append(next_step.format(id=exercise.id))
        return cls(tuple(row for row in table if row[1]), _traceback(error) if error else "", tuple(said))

    def map(self, change: Callable[[str], str]) -> "Feedback":
        """Return a copy with `change` applied to every line of every string except the table's labels."""

        def lines(value: str | Text) -> Any:
            if isinstance(value, Text):
                return Text(zh=lines(value.zh), en=lines(value.en))
            return "\n".join(map(change, value.split("\n")))

        table = tuple((label, lines(value)) for label, value in self.table)
        return Feedback(table, lines(self.traceback), tuple(map(lines, self.says)))

    def text(self, languages: tuple[str, ...] | None = None) -> str:
        """Return plain text in these languages; None for those of the preference."""
        rows = [
            f"  {label.inline(languages)}: {_value_text(value, languages)}" for label, value in self.table
        ]
        said = (text.plain(languages) for text in self.says)
        return "\n".join([*rows, *filter(None, [self.traceback]), *said])

    def html(self) -> str:
        """Return HTML blocks for a panel, with every value escaped."""
        rows = "".join(
            f'<tr><th style="text-align:left;font-weight:600;padding:0 1em 0 0;white-space:nowrap">{label.inline_html()}</th>'
            f'<td style="text-align:left">{_value_html(value)}</td></tr>'
            for label, value in self.table
        )
        body = []
        if rows:
            style = "margin:.4em 0;background:none;font-size:inherit"
            body.append(f'<table style="{style}"><tbody>{rows}</tbody></table>')
        if self.traceback:
            body.append(f'<pre style="margin:.4em 0;white-space:pre-wrap">{escape(self.traceback)}</pre>')
        body += [f'<div style="margin-top:.3em">{text.html()}</div>' for text in self.says]
        return "".join(body)


def _traceback(error: dict[str, Any]) -> str:
    lines = []
    for frame in error["frames"]:
        where = f"line {frame['line']}" + (f", in {frame['name']}" if frame["name"] else "")
        lines += [f"  {where}", f"    {frame['code']}"]
    return "\n".join([*lines, f"{error['type']}: {error['message']}"])


def panel(colour: str, body: str, **data: str) -> str:
    """Return an HTML box with a coloured bar on its left side.

    `colour` is the content of a CSS ``var()``: a variable and a fallback. `data` becomes data-* attributes, for tests
    and style sheets. `body` is HTML and is not escaped.
    """
    attributes = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items())
    return (
        f'<div class="hookedu-panel"{attributes} style="border-left:4px solid var({colour});'
        f'padding:.4em .9em;margin:.2em 0;max-width:60em;line-height:1.5">{body}</div>'
    )


def _value_html(value: str | Text) -> str:
    return value.inline_html() if isinstance(value, Text) else f"<code>{escape(value)}</code>"


def _value_text(value: str | Text, languages: tuple[str, ...] | None) -> str:
    return value.inline(languages) if isinstance(value, Text) else value


class ShownVerdict(Verdict):
    """A verdict with a notebook and a terminal display, as `check` returns it."""

    @classmethod
    def of(cls, verdict: Verdict) -> "ShownVerdict":
        """Return the same verdict with a notebook display."""
        return cls(**vars(verdict))

    def _repr_html_(self) -> str:
        """Return one HTML panel in the colours of the notebook's theme."""
        sign, colour, outcome = LOOKS[self.outcome]
        points = POINTS.format(points=self.points, of=self.exercise.points)
        head = (
            f'<div style="font-weight:600">{sign} {escape(self.exercise.id)} {outcome.inline_html()} — '
            f"{points.inline_html()}</div>"
        )
        body = head + Feedback.of(self).html() + self._next_html()
        return shown(panel(colour, body, outcome=self.outcome.value, message=self.message_id))

    def _next_html(self) -> str:
        """Return the HTML of what comes after this exercise, for subclasses that know it."""
        return ""

    def __repr__(self) -> str:
        """Return the panel's content as plain text."""
        sign, _, outcome = LOOKS[self.outcome]
        points = POINTS.format(points=self.points, of=self.exercise.points)
        head = f"{sign} {self.exercise.id} {outcome.inline()} — {points.inline()}"
        return f"{head}\n{Feedback.of(self).text()}"
