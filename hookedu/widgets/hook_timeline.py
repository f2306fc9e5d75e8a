"""HookTimeline: step through the hooks of one forward and backward pass, and predict which fires next."""

import asyncio
import random
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import ipywidgets
import torch
import traitlets
from torch import nn

from hookedu.hooks.events import Event
from hookedu.hooks.modules import modules_by_name, unwrap
from hookedu.hooks.tensors import named_tensors, real, shape_text
from hookedu.hooks.timeline import FORWARD, Timeline, timeline
from hookedu.language import Text
from hookedu.widgets.model_drawing import Box
from hookedu.widgets.panel import Panel
from hookedu.widgets.runs import has_no_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VALUES = 64_000_000  # bytes: of a larger run only the shapes are kept, not the values
_ANSWERS = 4  # per question
_PACE = 0.7  # seconds per event while playing


class HookTimeline(Panel):
    """Widget that steps through every hook of one forward and backward pass.

    For each event it shows the module in a drawing of the model, how the hook is registered, its signature,
    and the shapes and first values that it receives. In "Predict" mode it asks which hook fires next and
    keeps the score.

    The model runs when the widget is created: for the shapes, and again for the values unless the run is too
    large. Its modes, buffers, gradients and hooks and the states of the random number generators are restored
    afterwards. An exception that the model raises is shown in the widget and kept in ``error``; it does not
    propagate.

    Parameters
    ----------
    model : torch.nn.Module
        The model to run.
    *inputs : object
        Positional arguments of the model, tensors or nested structures of them. The model gets copies.
    loss : callable, optional
        Function from the output of the model to the scalar on which backward is called, as for
        :func:`timeline`.
    **kwargs : object
        Keyword arguments of the model.

    Attributes
    ----------
    value : int
        Zero-based index of the event that is shown. It can be set and observed.
    recording : Timeline or None
        The events of the run, as :func:`timeline` returns them.
    figure : matplotlib.figure.Figure or None
        A new plot of all events with a line at the current one; None if there are no events.
    score : tuple of int
        Number of correct answers and of questions asked, in "Predict" mode.
    error : Exception or None
        The exception that the widget shows.

    Raises
    ------
    TypeError
        If ``model`` is not an ``nn.Module``, or is a TorchScript module.
    ValueError
        If ``model`` is a ``DataParallel`` on several GPUs.

    See Also
    --------
    timeline : Return the events without a widget.
    plot_timeline : Plot the events.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hookedu import HookTimeline
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> steps = HookTimeline(model, torch.ones(1, 2))  # the last line of a cell shows it
    >>> steps.value = 2
    >>> event = steps.recording[steps.value]
    >>> event.kind, event.path
    ('forward', '0')
    >>> steps.close()
    """

    value = traitlets.Int(0, min=0)

    def __init__(
        self,
        model: nn.Module,
        *inputs: Any,
        loss: Callable[[Any], torch.Tensor] | None = None,
        **kwargs: Any,
    ) -> None:
        inner = unwrap(model)  # first: it raises for anything that is not a model
        super().__init__()
        self._model: nn.Module | None = inner  # None once closed
        self._inputs, self._kwargs, self._loss = inputs, kwargs, loss
        self._types = {name: type(module).__name__ for name, module in modules_by_name(inner).items()}
        self._drawing: Box | None = Box.of(inner)  # None once closed
        self._events: Timeline | None = None  # None if the model must run, and once closed
        self._has_values = False
        self._right = self._asked = 0
        self._said: Text | None = None  # verdict on the last answer
        self._checking = False  # whether the next update must check the answer
        self._timer: asyncio.TimerHandle | None = None
        self._drawn: tuple[Any, ...] | None = None  # state that is drawn at the moment
        self._make_controls()
        self._answer()

    def _make_controls(self) -> None:
        w, label, wide = ipywidgets, self.label, {"description_width": "initial"}
        auto = {"width": "auto"}
        self._mode = w.ToggleButtons(style={"button_width": "auto"})
        self.options(self._mode, [(WATCH, "watch"), (PREDICT, "predict")], "watch")
        # Not ipywidgets' Play, because its buttons have no accessible names for screen readers.
        self._play = label(w.ToggleButton(icon="play", layout=auto), description=PLAY, tooltip=PLAY_TIP)
        self._back = label(w.Button(icon="step-backward", layout=auto), description=BACK, tooltip=BACK)
        self._next = label(w.Button(icon="step-forward", layout=auto), description=NEXT, tooltip=NEXT)
        self._slider = label(
            w.IntSlider(max=0, style=wide, readout=False, layout={"width": "auto", "flex": "1 1 240px"}),
            description=EVENT,
        )
        self._question = w.HTML()
        # Not radio buttons: JupyterLab intercepts the arrow keys, and Tab reaches only one button of a group.
        self._answers = label(w.ToggleButtons(style={"button_width": "auto"}), description=ANSWER)
        self._answers.add_class("hookedu-answers")
        self._check = label(
            w.Button(icon="check", button_style="primary", layout={"width": "max-content"}),
            description=CHECK,
            tooltip=CHECK,
        )
        self._verdict, self._event, self._drawing_box = w.HTML(), w.HTML(), w.HTML()
        self._again = label(w.Button(icon="refresh", layout=auto), description=AGAIN, tooltip=AGAIN)
        self._back.on_click(lambda _: self._step(-1))
        self._next.on_click(lambda _: self._step(1))
        self._play.observe(self._start_or_pause, "value")
        self._check.on_click(self._want_check)
        self._again.on_click(self._run_again)
        traitlets.link((self._slider, "value"), (self, "value"))
        self.observe(self.changed, "value")
        self._mode.observe(self._change_mode, "value")
        self._steps = w.HBox([self._play, self._back, self._next, self._slider]).add_class("hookedu-row")
        self._guess = w.VBox([self._question, self._answers, self._check])
        head = w.HBox([self._mode, self._again]).add_class("hookedu-row")
        self._drawing_box.layout.flex, self._event.layout.flex = "3 1 380px", "2 1 300px"
        scene = w.HBox([self._drawing_box, self._event], layout={"flex_flow": "row wrap"})
        self._show(head, self._steps, self._guess, self._verdict, scene)

    # -- event handlers --------------------------------------------------------------------------------------

    def _step(self, by: int) -> None:
        self.value = min(max(self.value + by, 0), self._slider.max)

    def _start_or_pause(self, change: Any) -> None:
        if change["new"] and self.value == self._slider.max:
            self.value = 0
        if self._loop is not None:  # without an event loop nothing can play
            self._loop.call_soon_threadsafe(self._keep_pace)

    def _keep_pace(self) -> None:
        assert self._loop is not None  # this runs in it
        if self._timer is not None:
            self._timer.cancel()  # the timer of an earlier click
        playing = self._play.value and not self.closed
        self._timer = self._loop.call_later(_PACE, self._play_next) if playing else None

    def _play_next(self) -> None:
        self._step(1)
        if self.value == self._slider.max:
            self._play.value = False
        self._keep_pace()

    def _want_check(self, _: Any) -> None:
        self._checking = True
        self.changed()

    def _change_mode(self, change: Any) -> None:
        self._play.value = False
        if change["new"] == "predict":
            self._right, self._asked, self._said = 0, 0, None
            self.value = 0
        self.changed()

    def _run_again(self, _: Any) -> None:
        self._events = self._drawn = None
        self.changed()

    def _update(self) -> None:
        if self._events is None:
            self._events = Timeline()  # if the run fails, it is not repeated before "Run again"
            self._run()
            self._no_error()
        if self._checking:
            self._checking = False
            self._check_answer(self._events)
        state = (self.value, self._mode.value, self._said, self._asked)
        if state != self._drawn:
            self._drawn = state
            self._draw(self._events)
            self._no_error()

    def _run(self) -> None:
        assert self._model is not None  # a closed widget is not updated
        events = timeline(self._model, *self._inputs, loss=self._loss, **self._kwargs)
        size = sum(4 * _elements(event.shape) for event in events)
        self._has_values = size <= _VALUES
        if self._has_values:
            events = timeline(self._model, *self._inputs, loss=self._loss, values=True, **self._kwargs)
        self._events = events
        self._slider.max = max(len(events) - 1, 0)

    def _check_answer(self, events: Timeline) -> None:
        if self._mode.value != "predict" or self.value + 1 >= len(events):
            return
        if self._answers.value is None:
            self._said = CHOOSE_FIRST
            return
        right = self._name(events[self.value + 1])
        self._asked += 1
        self._right += self._answers.value == right
        said = RIGHT if self._answers.value == right else WRONG
        self._said = said.format(answer=right, guess=self._answers.value)
        self.value += 1

    # -- display ---------------------------------------------------------------------------------------------

    def _draw(self, events: Timeline) -> None:
        assert self._drawing is not None  # a closed widget is not updated
        predict = self._mode.value == "predict"
        self._steps.layout.display = "none" if predict else None
        if not events:
            self._guess.layout.display = "none"
            self.say(self._event, None)
            self._drawing_box.value = ""
            return
        event = events[self.value]
        last = self.value + 1 == len(events)
        self._guess.layout.display = None if predict and not last else "none"
        self._back.disabled, self._next.disabled = self.value == 0, last
        self._drawing_box.value = self._drawing.html(event.path, event.kind, event.kind not in FORWARD)
        self.say(self._event, self._about(event, events))
        if predict and not last:
            self.say(self._question, QUESTION.format(n=self.value + 2, total=len(events)))
            answers = self.answers(self.value)
            self.options(self._answers, [(answer, answer) for answer in answers], None)
        self.say(self._verdict, self._said_with_score(last) if predict else None)

    def _said_with_score(self, last: bool) -> Text | None:
        score = SCORE.format(right=self._right, asked=self._asked)
        parts = [p for p in (self._said, score if self._asked else None, THE_END if last else None) if p]
        return Text(zh=" ".join(p.zh for p in parts), en=" ".join(p.en for p in parts)) if parts else None

    def answers(self, number: int) -> list[str]:
        """Return the choices for what fires after event `number`, the correct one among them.

        The order is random but the same for every call.
        """
        events = self._events
        assert events is not None
        right = events[number + 1]
        others = [e for e in events[number + 2 :] + events[:number] if not _alike(e, right)]
        # The closest events come first, as they are the hardest to tell from the correct one.
        near = list(dict.fromkeys(self._name(e) for e in others if self._name(e) != self._name(right)))
        chance = random.Random(number)
        wrong = chance.sample(near[:8], min(_ANSWERS - 1, len(near[:8])))
        answers = [self._name(right), *wrong]
        chance.shuffle(answers)
        return answers

    def _name(self, event: Event) -> str:
        leaf = f".{event.leaf}" if isinstance(event.leaf, str) else ""
        return f"{event.kind} · {event.path or '(model)'}{leaf} ({self._types.get(event.path, '')})"

    def _about(self, event: Event, events: Timeline) -> Text:
        registration, signature, says = KINDS[event.kind]
        values = _values_text(event.value) if self._has_values else None
        leaf = f" · `{event.leaf}`" if isinstance(event.leaf, str) else ""
        text = ABOUT.format(
            n=event.order + 1,
            total=len(events),
            kind=event.kind,
            says=says,
            registration=registration,
            signature=signature,
            call=event.call,
            leaf=leaf,
            path=event.path or "(model)",
            type=self._types.get(event.path, ""),
            shape=shape_text(event.shape),
            values=values or TOO_LARGE,
        )
        note = events.note
        return Text(zh=f"{text.zh}  \n{note.zh}", en=f"{text.en}  \n{note.en}") if note else text

    # -- public attributes -----------------------------------------------------------------------------------

    @property
    def score(self) -> tuple[int, int]:
        """Number of correct answers and of questions asked."""
        self.settle()
        return self._right, self._asked

    @property
    def recording(self) -> Timeline | None:
        """The events of the run; None once closed."""
        self.settle()
        return self._events

    @property
    def figure(self) -> "Figure | None":
        """A new plot of all events with a line at the current one; None if there are no events."""
        from matplotlib.figure import Figure

        from hookedu.plots.summaries import plot_timeline

        self.settle()
        if not self._events:
            return None
        figure = Figure(figsize=(9, 5), layout="constrained")
        ax = figure.add_subplot()
        plot_timeline(self._events, ax=ax)
        ax.axvline(self.value, color="black", lw=1)
        return figure

    def _still(self) -> "Figure | None":
        return self.figure

    def _release(self) -> None:
        self._model = self._loss = self._events = self._drawing = None
        self._inputs, self._kwargs = (), {}


def _elements(shape: Any) -> int:
    """Return the total number of elements of a structure of shapes."""
    if isinstance(shape, dict):
        shape = list(shape.values())
    if isinstance(shape, tuple) and all(type(size) is int for size in shape):
        return prod(shape)
    return sum(map(_elements, shape)) if isinstance(shape, tuple | list) else 0


def _alike(event: Event, right: Event) -> bool:
    """Check whether the order of two events is arbitrary: both belong to parameters of one module."""
    parameters = isinstance(event.leaf, str) and isinstance(right.leaf, str)
    return parameters and event.path == right.path and event.leaf != right.leaf


def _values_text(value: Any) -> str:
    """Format the first few numbers of the first few tensors."""
    said = []
    for path, tensor in list(named_tensors(value))[:3]:
        if has_no_values(tensor):
            said.append(f"{path} [?]".strip())
            continue
        numbers = real(tensor).flatten()
        first = ", ".join(f"{number:.3g}" for number in numbers[:6].tolist())
        said.append(f"{path} [{first}{', …' if len(numbers) > 6 else ''}]".strip())
    return f"`{'; '.join(said) or None}`"


# kind of event -> how the hook is registered, its signature, when it fires and what it may return
KINDS = {
    "forward_pre": (
        "module.register_forward_pre_hook(hook)",
        "hook(module, args)",
        Text(
            zh="模块的 forward 即将运行；钩子看到输入，返回值会替换输入",
            en="The module's forward is about to run; the hook sees its input and may return another",
        ),
    ),
    "forward": (
        "module.register_forward_hook(hook)",
        "hook(module, args, output)",
        Text(
            zh="模块的 forward 刚运行完；钩子看到输入和输出，返回值会替换输出",
            en="The module's forward has run; the hook sees input and output and may return another output",
        ),
    ),
    "output_grad": (
        "output.register_hook(hook)",
        "hook(grad)",
        Text(
            zh="输出张量的梯度算出来了；返回值会替换这个梯度",
            en="The gradient of the output tensor is there; the hook may return another",
        ),
    ),
    "backward_pre": (
        "module.register_full_backward_pre_hook(hook)",
        "hook(module, grad_output)",
        Text(
            zh="反向传播即将进入模块；钩子看到 grad_output，返回值会替换它",
            en="Backward is about to enter the module; the hook sees grad_output and may return another",
        ),
    ),
    "param_grad": (
        "parameter.register_hook(hook)",
        "hook(grad)",
        Text(
            zh="参数的梯度算出来了，还没有累加到 .grad；返回值会替换这个梯度",
            en="The parameter's gradient is there, not yet added to .grad; the hook may return another",
        ),
    ),
    "post_accumulate": (
        "parameter.register_post_accumulate_grad_hook(hook)",
        "hook(parameter)",
        Text(
            zh="梯度已累加到参数的 .grad；钩子收到的是参数本身",
            en="The gradient has been added to the parameter's .grad; the hook gets the parameter itself",
        ),
    ),
    "backward": (
        "module.register_full_backward_hook(hook)",
        "hook(module, grad_input, grad_output)",
        Text(
            zh="反向传播刚离开模块；钩子看到两侧的梯度，返回值会替换 grad_input",
            en="Backward has left the module; the hook sees the gradients on both sides and may return another "
            "grad_input",
        ),
    ),
    "input_grad": (
        "input.register_hook(hook)",
        "hook(grad)",
        Text(
            zh="输入张量的梯度算出来了；返回值会替换这个梯度",
            en="The gradient of the input tensor is there; the hook may return another",
        ),
    ),
}
WATCH = Text(zh="观看", en="Watch")
PREDICT = Text(zh="预测", en="Predict")
PLAY = Text(zh="播放", en="Play")
PLAY_TIP = Text(zh="一个接一个地看；再按一次暂停", en="One event after another; press again to pause")
BACK = Text(zh="上一个", en="Back")
NEXT = Text(zh="下一个", en="Next")
EVENT = Text(zh="事件", en="Event")
AGAIN = Text(zh="重新运行", en="Run again")
ANSWER = Text(zh="你的预测", en="Your prediction")
CHECK = Text(zh="揭晓", en="Reveal")
QUESTION = Text(
    zh="**下一个触发的是哪个钩子？**（第 {n} 个，共 {total} 个）",
    en="**Which hook fires next?** (event {n} of {total})",
)
CHOOSE_FIRST = Text(zh="请先选一个答案。", en="Choose an answer first.")
RIGHT = Text(zh="✓ 正确：`{answer}`。", en="✓ Right: `{answer}`.")
WRONG = Text(
    zh="✗ 不对：你选的是 `{guess}`，实际触发的是 `{answer}`。",
    en="✗ Not this time: you chose `{guess}`, and `{answer}` fired.",
)
SCORE = Text(zh="得分：**{right} / {asked}**。", en="Score: **{right} / {asked}**.")
THE_END = Text(zh="到此为止，没有更多事件。", en="That was the last event.")
TOO_LARGE = Text(zh="这次运行太大，没有保留数值", en="this run is too large to keep values")
ABOUT = Text(
    zh="**{n} / {total} · {kind}**  \n{says}。  \n模块：`{path}`（{type}），调用序号 {call}{leaf}  \n"
    "注册：`{registration}`  \n签名：`{signature}`  \n形状：{shape}  \n数值：{values}",
    en="**{n} / {total} · {kind}**  \n{says}.  \nModule: `{path}` ({type}), call {call}{leaf}  \n"
    "Registered by: `{registration}`  \nSignature: `{signature}`  \nShape: {shape}  \nValues: {values}",
)
