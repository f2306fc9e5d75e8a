"""HookTimeline: step through the hooks of one forward and backward pass, and predict which fires next."""

import random
from collections.abc import Callable, Mapping
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import traitlets
from torch import nn

from hookedu.hooks.events import Event
from hookedu.hooks.inspection import list_hooks
from hookedu.hooks.modules import modules_by_name, unwrap
from hookedu.hooks.tensors import named_tensors, real, shape_text
from hookedu.hooks.timeline import FORWARD, Timeline, check_loss, timeline
from hookedu.widgets.live import LiveWidget
from hookedu.widgets.model_drawing import Boxes
from hookedu.widgets.runs import has_no_values
from hookedu.widgets.timeline_reasons import why
from hookedu.widgets.timeline_words import KINDS, WORDS, own_hooks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VALUES, _EVENTS = 64_000_000, 20_000  # bytes and events: of a larger run only the shapes are kept
_ANSWERS = 4  # per question
_TENSORS, _NUMBERS, _TRAVELLING = 3, 6, 3  # of a value: tensors, numbers of each, numbers that travel
_WIDE = 32  # characters of a shape that travels


class HookTimeline(LiveWidget, module="hook_timeline"):
    """Widget that steps through every hook of one forward and backward pass.

    It draws the model once, with a mark for each hook. What a hook sees travels along the edges, forward from the left and
    backward from the right, and the mark of the hook lights up; beside it stand how the hook is registered, its signature,
    and the shapes and first values that it receives. Hooks of your own are not drawn: they are listed below. Repeated layers are folded, and a click opens or closes a box. In
    "Predict" mode it asks which hook fires next and keeps the score.

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
        Zero-based index of the event that is shown. It can be set and observed. What is played or chosen in the browser
        arrives here when the focus leaves the widget.
    mode : str
        "watch" or "predict". It can be set and observed.
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
        If ``model`` is not an ``nn.Module``, or is a TorchScript module, or ``loss`` no function.
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

    WORDS: ClassVar = WORDS

    value = traitlets.Int(0, min=0).tag(sync=True)
    mode = traitlets.Enum(["watch", "predict"], "watch").tag(sync=True)

    def __init__(
        self,
        model: nn.Module,
        *inputs: Any,
        loss: Callable[[Any], torch.Tensor] | None = None,
        **kwargs: Any,
    ) -> None:
        inner = unwrap(model)  # first: it raises for anything that is not a model
        check_loss(loss)
        self._model: nn.Module | None = inner  # None once closed
        self._inputs, self._kwargs, self._loss = inputs, kwargs, loss
        self._types: dict[str, str] = {}
        self._events: Timeline | None = None  # None if the model must run, and once closed
        self._has_values = False
        self._boxes: Boxes | None = None
        self._turned: set[str] = set()  # boxes that the reader has opened or closed
        self._right = self._asked = 0
        self._mode = "watch"  # that is shown at the moment
        self._question: tuple[int, list[str]] | None = None  # after which event, and what can be chosen
        self._chosen: int | None = None  # which of them; None until the question is answered
        self._unread: list[tuple[str, Any]] = []  # what the browser sent
        super().__init__()
        self.observe(self.changed, ["value", "mode"])
        self._answer()

    # -- choices ---------------------------------------------------------------------------------------------

    @traitlets.validate("value")
    def _within(self, proposal: Any) -> int:
        return max(min(proposal["value"], len(self._events or ()) - 1), 0)

    def run_again(self) -> None:
        """Run the model again, after it or its input has changed."""
        self._events = None
        self.changed()

    def _heard(self, kind: str, message: Mapping[str, Any], buffers: list[Any]) -> None:
        match message:
            case {"kind": "again"}:
                self.run_again()
            case {"kind": "next"} | {"kind": "turn" | "answer", "choice": str() | int()}:
                self._unread.append((kind, message.get("choice")))
                self.changed()

    def _update(self) -> None:
        if self._events is None:
            self._events = Timeline()  # if the run fails, it is not repeated before "Run again"
            self._question = self._chosen = None
            try:
                self._run()
            finally:
                self._post_events()
            self._no_error()
        if self.mode != self._mode:
            self._mode = self.mode
            self._question = self._chosen = None
            if self.mode == "predict":
                self._right = self._asked = self.value = 0
        while self._unread:
            kind, choice = self._unread.pop(0)
            if kind == "turn" and choice in self._types:
                self._turned ^= {choice}
                self._post_model()
            elif kind == "answer":
                self._check(choice)
            elif kind == "next":
                self._question = self._chosen = None
        self._ask()

    def _run(self) -> None:
        assert self._model is not None  # a closed widget is not updated
        self._types = {name: type(module).__name__ for name, module in modules_by_name(self._model).items()}
        events = timeline(self._model, *self._inputs, loss=self._loss, **self._kwargs)
        size = sum(4 * _elements(event.shape) for event in events)
        self._has_values = size <= _VALUES and len(events) <= _EVENTS
        if self._has_values:
            events = timeline(self._model, *self._inputs, loss=self._loss, values=True, **self._kwargs)
        self._events = events

    # -- to the browser --------------------------------------------------------------------------------------

    def _post_events(self) -> None:
        """Send everything about the events, so that going through them needs no message; repeated texts are sent once."""
        events = self._events
        assert events is not None and self._model is not None
        self.value = self.value  # within the events of this run
        own = own_hooks(list_hooks(self._model), twice=self._has_values)
        self.say(note=events.note or WORDS["note"], own=own)
        self._boxes = Boxes(modules_by_name(self._model), events)
        kinds, paths, leaves = _Numbered(), _Numbered(), _Numbered()
        shapes, values = _Numbered(), _Numbered()
        rows = [
            [
                kinds[event.kind],
                paths[event.path],
                event.call,
                leaves[event.leaf if isinstance(event.leaf, str) else ""],
                shapes[shape_text(event.shape)],
                values[_values_text(event.value) if self._has_values else None],
            ]
            for event in events
        ]
        content = {
            "total": len(events),
            "kinds": [
                {"name": kind, "registration": KINDS[kind][0], "signature": KINDS[kind][1]} for kind in kinds
            ],
            "forward": [kind in FORWARD for kind in kinds],
            "paths": [[path, self._types.get(path, "")] for path in paths],
            "leaves": list(leaves),
            "shapes": [[shape, shape if len(shape) <= _WIDE else f"{shape[:_WIDE]}…"] for shape in shapes],
            "values": list(values),
        }
        self.post("events", content, rows=_whole_numbers(rows).reshape(-1, 6))
        self._post_model()

    def _post_model(self) -> None:
        assert self._boxes is not None and self._events is not None
        drawn, marks = self._boxes.drawn(self._turned, self._events)
        self.post("model", drawn, marks=_whole_numbers(marks))

    # -- prediction ------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask what fires after the event that is shown, unless a question waits for its answer or has just got it."""
        assert self._events is not None
        if self.mode != "predict" or self._chosen is not None:
            return
        if self.value + 1 >= len(self._events):
            self._question = None
        elif self._question is None or self._question[0] != self.value:
            self._question = self.value, self.answers(self.value)
        else:
            return
        self._post_question()

    def _check(self, choice: Any) -> None:
        if self._question is None or self._chosen is not None:  # a second click
            return
        assert self._events is not None
        number, answers = self._question
        if type(choice) is not int or not 0 <= choice < len(answers):
            return
        self._chosen = choice
        self._asked += 1
        self._right += answers[choice] == self._name(self._events[number + 1])
        self.value = number + 1
        self._post_question()

    def _post_question(self) -> None:
        assert self._events is not None
        content: dict[str, Any] = {"right": self._right, "asked": self._asked}
        if self._question is not None:
            number, answers = self._question
            content |= {"number": number + 2, "total": len(self._events), "answers": answers}
            if self._chosen is not None:
                content |= {
                    "chosen": self._chosen,
                    "correct": answers.index(self._name(self._events[number + 1])),
                    "fires": (fires := self._fires(answers[self._chosen], number + 1)) + 1,
                    "why": why(self._events, self._events[number + 1], self._events[fires]),
                }
        self.post("question", content)

    def _fires(self, name: str, number: int) -> int:
        """Return the index of the event in which an answer fires: from `number` on, otherwise the last before it."""
        assert self._events is not None
        places = [index for index, event in enumerate(self._events) if self._name(event) == name]
        return next((index for index in places if index >= number), places[-1])

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
        self._model = self._loss = self._events = self._boxes = None
        self._inputs, self._kwargs = (), {}


class _Numbered(dict[Any, int]):
    """Numbers things in the order in which they are met, from 0."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


def _whole_numbers(values: list[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device="cpu")  # whatever device the user has as default


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


def _values_text(value: Any) -> tuple[str, str]:
    """Return the first few numbers of the first few tensors, and those that travel."""
    said, travelling = [], ""
    for path, tensor in islice(named_tensors(value), _TENSORS):
        if has_no_values(tensor):
            said.append(f"{path} [?]".strip())
            continue
        numbers = [f"{number:.3g}" for number in real(tensor).flatten()[: _NUMBERS + 1].tolist()]
        said.append(f"{path} [{_first(numbers, _NUMBERS)}]".strip())
        travelling = travelling or _first(numbers, _TRAVELLING)
    return "; ".join(said) or "None", travelling


def _first(numbers: list[str], n: int) -> str:
    return ", ".join(numbers[:n]) + (", …" if len(numbers) > n else "")
