"""What LayerPicker shows for a choice: the tensor, its form, the figure and the program."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from hookedu.hooks.modules import choose, is_compiled, modules_by_name
from hookedu.hooks.recording import Recording
from hookedu.hooks.tensors import named_tensors, shape_text
from hookedu.language import Text
from hookedu.widgets import layer_numbers, pictures, programs
from hookedu.widgets.layer_words import (
    EMPTY,
    LAZY_WEIGHT,
    NO_GRADIENT,
    NO_TENSOR,
    NO_VALUES,
    NO_WEIGHT,
    WORDS,
)
from hookedu.widgets.pictures import TILES, Form, Selection
from hookedu.widgets.runs import Runs, call_as_code, dense, has_no_values, score_kind, score_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Choice:
    """What is chosen; the names are those of LayerPicker's traits."""

    layer: str
    view: str = "maps"
    input: str = "x"
    part: int = 0  # index into the tensors of a nested output
    call: int = 0
    sample: int = 0
    page: int = 0
    channel: int | None = None
    per_map: bool = False

    @property
    def subject(self) -> tuple[str, str, str, int]:
        """The choices that determine which calls, samples and channels exist."""
        return self.layer, self.view, self.input, self.part

    @property
    def selection(self) -> Selection:
        return Selection(self.sample, self.page, self.channel)

    def after(self, before: "Choice | None") -> "Choice":
        """Return what is chosen where `before` was.

        Another layer, view or part starts at its first call and page, with all channels; on another input all stay, so that
        one channel can be compared on several pictures.
        """
        if before is None or self.subject != replace(before, input=self.input).subject:
            return replace(self, call=0, page=0, channel=None)
        on_page = self.channel != before.channel or self.page == before.page
        return self if on_page else replace(self, channel=None)


class Look:
    """What a choice shows; `choice` has what does not exist replaced by what does.

    Attributes
    ----------
    choice : Choice
    parts : list of str
        The code that reaches each tensor of a nested output.
    calls, samples, pages : int
        How many there are to choose from.
    why : Text or None
        Why there is nothing to show; `tensor` and `form` are None then.
    tensor : torch.Tensor or None
        The whole tensor, and `shown` the part of it that is chosen.
    """

    def __init__(self, runs: Runs, choice: Choice, unbatched: bool) -> None:
        self.runs, self.choice, self.parts = runs, choice, [""]
        self.calls = self.samples = self.pages = 1
        self.recording: Recording | None = None
        self.form: Form | None = None
        self.shown: torch.Tensor | None = None
        self._dense = ""  # as code: what made the tensor one that can be indexed
        named = modules_by_name(runs.model)
        if choice.layer not in named:  # it has been removed from the model since it was listed
            choose(named, [choice.layer])
        self.module: nn.Module = named[choice.layer]
        found = self._weight() if choice.view == "weights" else self._recorded()
        self.why, self.tensor = (found, None) if isinstance(found, Text) else (None, found)
        if self.tensor is None:
            self.choice = replace(self.choice, sample=0, page=0, channel=None)
            return
        self.tensor, self._dense = dense(self.tensor)
        self.form = form = Form(tuple(self.tensor.shape), unbatched and choice.view != "weights")
        channel = choice.channel
        if choice.view == "statistics":
            channel = None
        else:
            self.samples, self.pages = form.samples, max(-(-form.channels // TILES), 1)
            channel = None if channel is None or not form.is_maps else within(channel, form.channels)
        page = within(choice.page if channel is None else channel // TILES, self.pages)
        self.choice = replace(
            self.choice, sample=within(choice.sample, self.samples), page=page, channel=channel
        )
        self.shown = (
            self.tensor
            if self._whole or not self.tensor.numel()
            else self.tensor[form.index(self.choice.selection)]
        )

    @property
    def _whole(self) -> bool:
        return self.choice.view == "statistics"

    @property
    def score(self) -> dict[str, str | int]:
        """What a gradient is of: the key of its words and, of one class, its index; empty for other views."""
        if not self._signed:
            return {}
        target = self.runs.target
        named = {"target": target} if isinstance(target, int) else {}
        return {"key": score_kind(self.runs.head[1], target), **named}

    @property
    def _signed(self) -> bool:
        return self.choice.view == "gradients"

    def _weight(self) -> torch.Tensor | Text:
        self.choice = replace(self.choice, call=0, part=0)
        weight, name = getattr(self.module, "weight", None), self.choice.layer or "(model)"
        if not isinstance(weight, torch.Tensor):
            return NO_WEIGHT.format(layer=name)
        if is_lazy(weight):
            return LAZY_WEIGHT.format(layer=name)
        if has_no_values(weight):
            return NO_VALUES
        weight = weight.detach()
        return weight.transpose(0, 1) if weight.dim() > 2 else weight

    def _recorded(self) -> torch.Tensor | Text:
        layer = self.choice.layer
        self.recording = self.runs.recording(layer, self.choice.input, self._signed)
        if layer in self.recording.missed:
            return self.recording.missed[layer]
        calls = self.recording[layer].calls
        self.calls = len(calls)
        call = calls[within(self.choice.call, self.calls)]
        parts = list(named_tensors(call.activation))
        if not parts:
            return NO_TENSOR
        self.parts = [path for path, _ in parts]
        part = within(self.choice.part, len(parts))
        self.choice = replace(self.choice, call=within(self.choice.call, self.calls), part=part)
        path, tensor = parts[part]
        if self._signed:
            tensor = dict(named_tensors(call.gradient)).get(path)
        if tensor is None:
            return NO_GRADIENT
        return NO_VALUES if has_no_values(tensor) else tensor

    # -- for the browser -------------------------------------------------------------------------------------

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for two looks if the browser can show one when it has the numbers of the other."""
        choice, form = self.choice, self.form
        whole = form is None or form.numbers <= layer_numbers.MOST
        return choice.subject, choice.call, choice.sample, None if whole else choice.page, self.why

    def numbers(self, classes: list[str] | None) -> layer_numbers.Sent:
        """Return what is sent to the browser."""
        choice, tensor, form = self.choice, self.tensor, self.form
        if tensor is None or form is None or tensor.numel() == 0:
            return {"form": "none"}, {}
        if self._whole:
            return layer_numbers.histogram(tensor)
        if form.is_maps:
            field = self.runs.field(choice.input, choice.layer, choice.call, self.parts[choice.part])
            known = None if choice.view == "weights" else field
            return layer_numbers.maps(tensor, form, choice.selection, self._signed, known)
        values = tensor[form.index(choice.selection)]
        module = None if choice.view == "weights" else self.module
        axes = layer_numbers.axes_of(tensor.dim(), values.dim(), module, self.parts[choice.part])
        return layer_numbers.matrix(values, self._signed, axes, classes)

    def reason(self) -> Text:
        """Return why there is no picture; empty words if there is one."""
        if self.tensor is not None and not self.tensor.numel():
            return EMPTY.format(shape=shape_text(tuple(self.tensor.shape)))
        return self.why or WORDS["why"]

    # -- for the notebook ------------------------------------------------------------------------------------

    def figure(self) -> "Figure | None":
        """Return the picture as a figure."""
        choice, tensor, form = self.choice, self.tensor, self.form
        if tensor is None or form is None or self.shown is None:
            return None
        figure, title = pictures.new_figure(), self._title(form)
        if self._whole:
            pictures.draw_statistics(figure, tensor, title)
        elif not tensor.numel():
            pictures.draw_strip(figure, tensor, self._signed, title)
        elif choice.channel is not None:
            beside = pictures.picture_in(self.runs.inputs[choice.input], choice.sample)
            pictures.draw_channel(figure, self.shown, beside, self._signed, title)
        else:
            pictures.draw_maps(figure, tensor, form, choice.selection, choice.per_map, self._signed, title)
        return figure

    def _title(self, form: Form) -> str:
        """Return the title, in English like all text inside a figure."""
        choice = self.choice
        what = {"gradients": "gradient of ", "weights": "weight of "}.get(choice.view, "")
        parts = [what + (choice.layer or "(model)")]
        if self.calls > 1:
            parts.append(f"call {choice.call} of {self.calls}")
        if form.samples > 1 and not self._whole:
            which = "input channel" if choice.view == "weights" else "sample"
            parts.append(f"{which} {choice.sample} of {form.samples}")
        if choice.channel is not None:
            parts.append(f"ch {choice.channel}")
        return " · ".join(parts)

    def program(self, sources: Mapping[str, str], wrapped: bool) -> str:
        """Return the program that yields `shown`; "" if nothing is shown.

        `sources` has the first argument as code, by name of the input; `wrapped` says that the user's model is around
        the one that runs.
        """
        form, choice = self.form, self.choice
        if form is None or self.shown is None:
            return ""
        index = (
            "" if self._whole or not self.shown.numel() else pictures.brackets(form.index(choice.selection))
        )
        if choice.view == "weights" and len(form.shape) > 2:
            index = ".transpose(0, 1)" + index
        index = self._dense + index
        model, source, target = self.runs.model, sources[choice.input], self.runs.target
        call, given, setup = call_as_code(self.runs.inputs[choice.input], source)
        given += ["images"] if source else []
        if self._signed and target is not None and not isinstance(target, int):
            given.append("target")
        return programs.program(
            choice.view,
            given,
            setup,
            wrapped=wrapped,
            compiled=is_compiled(model),
            # The wrapper of torch.compile has a place in this name, but not in those that the widget shows.
            layer=next(name for name, other in model.named_modules() if other is self.module),
            number=choice.call,
            index=index,
            real=".abs()" if self.shown.is_complex() else "",
            leaf=self.parts[choice.part],
            call=call,
            score=score_text(*self.runs.head, target),
        )


def within(index: int, n: int) -> int:
    """Return the nearest index into n items."""
    return max(min(index, n - 1), 0)
