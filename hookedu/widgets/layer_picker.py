"""LayerPicker: show feature maps, gradients, statistics and weights of a layer, and the code behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import traitlets
from torch import nn

from hookedu.hooks.modules import choose, modules_by_name, unwrap
from hookedu.hooks.recording import Recording
from hookedu.language import Text
from hookedu.widgets import layer_numbers, programs
from hookedu.widgets.given import class_names, images_like, score_target
from hookedu.widgets.layer_look import Choice, Look
from hookedu.widgets.layer_words import VIEWS, WORDS
from hookedu.widgets.live import LiveWidget
from hookedu.widgets.runs import ModuleRow, Runs, Target, with_first

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class LayerPicker(LiveWidget, module="layer_picker"):
    """Widget that shows the feature maps, gradients, statistics and weights of any layer of a model.

    Layers can be searched by name and type. Pointing at a map gives its values and marks on the input what that
    position was computed from; a click enlarges a map, and a picture can be pinned beside the next. Every picture comes
    with its numbers and, on "Show code", with a plain PyTorch program that computes them.

    The model runs in its current mode (training or evaluation): once for each input, if the outputs of all layers take
    up to 256 MB, and otherwise when a layer is selected for the first time, as it does for gradients. Its modes,
    buffers, gradients and hooks and the states of the random number generators are restored afterwards. An exception
    that the model raises is shown in the widget and kept in ``error``; it does not propagate.

    Parameters
    ----------
    model : torch.nn.Module
        The model to look into. For compiled and data-parallel models this is the model inside.
    *inputs : object
        Positional arguments of the model, tensors or nested structures of them. The model gets copies.
    target : int, sequence of int, torch.Tensor or callable, optional
        The score whose gradients are shown: the logit of a class (one index for all samples, or one per
        sample), or a function from the output of the model to a scalar. By default the highest logit of each
        sample, summed; for outputs that are not of shape ``(N, classes)`` the sum of the first floating-point
        tensor.
    images : mapping of str to object, or sequence of object, optional
        Further values to choose from for the first argument. Beside a tensor they are read as one: arrays and images of
        PIL as well, bytes as 0 to 1, ``(H, W, C)`` as ``(C, H, W)``, and an image becomes a batch of one if the first
        argument is a batch.
    classes : sequence of str, optional
        Names of the classes, shown beside the outputs of layers that have as many.
    **kwargs : object
        Keyword arguments of the model.

    Attributes
    ----------
    value : str
        Name of the selected layer, "" for the model itself. It can be set and observed; setting an unknown
        name raises a ``KeyError`` that lists the closest names.
    view : {"maps", "gradients", "statistics", "weights"}
        What is shown of the layer.
    input : str
        The chosen input: "x", or "images['name']".
    part, call, sample, page : int
        Which tensor of a nested output, call of the layer, sample of the batch and page of 64 channels is shown; from 0.
    channel : int or None
        The channel that is enlarged, None for all of the page. When another layer is shown, it starts at None.
    per_map : bool
        Whether each map has its own colour scale.
    shown : torch.Tensor or None
        The tensor that is plotted.
    figure : matplotlib.figure.Figure or None
        The plot, as it stands in the notebook where widgets are not shown.
    recording : Recording or None
        The recording that the picture was made from.
    code : str
        The program of "Show code"; "" if nothing is shown.
    error : Exception or None
        The exception that the widget shows.

    Raises
    ------
    TypeError
        If ``model`` is not an ``nn.Module``, or is a TorchScript module, or if ``target``, ``images`` or ``classes`` is none
        of what is said above.
    ValueError
        If ``model`` is a ``DataParallel`` on several GPUs.

    See Also
    --------
    record : Record activations and gradients without a widget.
    plot_feature_maps : Plot the feature maps of one layer.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hookedu import LayerPicker
    >>> model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 2))
    >>> picker = LayerPicker(model, torch.rand(1, 3, 8, 8))  # the last line of a cell shows it
    >>> picker.value
    '0'
    >>> picker.value = "1"
    >>> picker.shown.shape
    torch.Size([8, 6, 6])
    >>> print(picker.code)
    # model, x: what the widget was given
    ...
    handle = model.get_submodule('1').register_forward_hook(keep)
    ...
    >>> picker.close()
    """

    WORDS: ClassVar = WORDS

    value = traitlets.Unicode()
    view = traitlets.Enum(list(VIEWS), "maps").tag(sync=True)
    input = traitlets.Unicode("x").tag(sync=True)
    part = traitlets.Int(0).tag(sync=True)
    call = traitlets.Int(0).tag(sync=True)
    sample = traitlets.Int(0).tag(sync=True)
    # The browser draws these three by itself, and tells Python before another cell can ask.
    page = traitlets.Int(0).tag(sync=True)
    channel = traitlets.Int(None, allow_none=True).tag(sync=True)
    per_map = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        model: nn.Module,
        *inputs: Any,
        target: Target = None,
        images: Mapping[str, Any] | Sequence[Any] | None = None,
        classes: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        unwrap(model)  # first: it raises for anything that is not a model
        first = next(iter((*inputs, *kwargs.values())), None)
        self._sources = {"x": ""}  # the first argument as code, by name of the input
        given = {"x": (inputs, kwargs)}
        for name, (image, code) in images_like(first, images).items():
            self._sources[name] = code
            given[name] = with_first(given["x"], image)
        self._model: nn.Module | None = model  # None once closed
        self._runs = Runs(model, given, score_target(target))
        self._classes = None if classes is None else class_names(classes)
        self._anew = False  # whether the model is to run again
        self._drawn: Choice | None = None  # what is shown at the moment, also if it failed
        self._look: Look | None = None  # what it looks like; None if it failed
        self._recording: Recording | None = None
        self._figure: Figure | None = None
        self._code = ""
        self._sent: Any = None  # what the numbers in the browser belong to
        self._pictured: tuple[str, int] | None = (
            None  # the input picture in the browser: its name, the sample
        )
        self._listed: tuple[str, list[ModuleRow]] | None = None
        alone = isinstance(first, torch.Tensor) and first.dim() == 3
        self._unbatched = alone and any(isinstance(m, nn.Conv2d) for m in model.modules())
        super().__init__()
        names = [row.name for row in self._runs.rows("x")]
        modules = modules_by_name(self._runs.model)
        convolutions = [n for n in names if isinstance(modules[n], nn.Conv1d | nn.Conv2d | nn.Conv3d)]
        self.value = [*convolutions, *(n for n in names if not len(modules[n]._modules)), *names][0]
        self.observe(self.changed, ["value", *(name for name in _CHOICES)])
        self._answer()

    # -- choices ---------------------------------------------------------------------------------------------

    @traitlets.validate("value")
    def _known_layer(self, proposal: Any) -> str:
        self._refuse_if_closed()
        choose(modules_by_name(self._runs.model), [proposal["value"]])  # raises if there is no such layer
        return proposal["value"]

    @traitlets.validate("input")
    def _known_input(self, proposal: Any) -> str:
        if proposal["value"] not in self._sources:
            raise traitlets.TraitError(
                str(NO_INPUT.format(name=proposal["value"], known=", ".join(self._sources)))
            )
        return proposal["value"]

    def run_again(self) -> None:
        """Run the model again, after it or its input has changed."""
        self._anew = True
        self.changed()

    def _heard(self, kind: str, message: Mapping[str, Any], buffers: list[Any]) -> None:
        match message:
            case {"kind": "again"}:
                self.run_again()
            case {"kind": "layer", "name": str(name)}:
                # The layer may have been removed from the model since it was listed.
                with self._showing_errors():
                    self.value = name

    def _choice(self) -> Choice:
        return Choice(self.value, **{name: getattr(self, name) for name in _CHOICES})

    def _update(self) -> None:
        if self._anew:
            self._runs.forget()
            self._anew, self._drawn, self._sent, self._pictured = False, None, None, None
        choice = self._choice()
        try:
            if choice != self._drawn:
                self._take(choice, choice.after(self._drawn))
                self._no_error()
        except Exception:
            self._drawn = choice  # not repeated before something else is selected
            self._look = self._figure = self._sent = None
            self._code = ""
            self.say(why=WORDS["why"])
            self.post("code", programs.sides(""))
            self._post({"form": "none"}, {})
            raise
        finally:
            self._list()

    def _take(self, asked: Choice, choice: Choice) -> None:
        """Show a choice in place of the one that was asked for, and send the browser what it lacks."""
        self._figure = None
        self._look = look = Look(self._runs, choice, self._unbatched)
        self._recording = look.recording or self._recording
        self._drawn = choice = look.choice
        for name in _CHOICES:
            # A click that arrives while the model runs has changed the trait meanwhile; it is answered next.
            if getattr(self, name) == getattr(asked, name) != getattr(choice, name):
                setattr(self, name, getattr(choice, name))
        self._code = look.program(self._sources, wrapped=self._runs.model is not self._model)
        self.post("code", programs.sides(self._code))
        if (name := (choice.input, choice.sample if choice.view != "weights" else 0)) != self._pictured:
            content, pixels = layer_numbers.input_picture(self._runs.inputs[choice.input], name[1])
            self.post("input", content, **pixels)
            self._pictured = name
        if look.key != self._sent:
            self.say(why=look.reason())
            self._post(*look.numbers(self._classes))
            self._sent = look.key

    def _post(self, content: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        look = self._look
        limits = {name: getattr(look, name, 1) for name in ("calls", "samples", "pages")}
        limits |= {"parts": look.parts if look else [""], "inputs": list(self._sources)}
        limits |= {"score": look.score if look else {}}
        self.post("picture", {**asdict(self._drawn or self._choice()), **limits, **content}, **tensors)

    def _list(self) -> None:
        rows = self._runs.rows(self.input)
        if self._listed != (self.value, rows):
            self._listed = self.value, rows
            cells = [(row.name, row.type, row.shape, -1 if row.calls is None else row.calls) for row in rows]
            self.post("layers", {"rows": cells, "value": self.value})

    def _still(self) -> "Figure | None":
        return self.figure

    # -- public attributes -----------------------------------------------------------------------------------

    @property
    def shown(self) -> torch.Tensor | None:
        """The tensor that is plotted."""
        self.settle()
        return self._look and self._look.shown

    @property
    def figure(self) -> "Figure | None":
        """The plot."""
        self.settle()
        if self._figure is None:
            with self._showing_errors():
                self._figure = self._look and self._look.figure()
        return self._figure

    @property
    def recording(self) -> Recording | None:
        """The recording that the picture was made from."""
        self.settle()
        return self._recording

    @property
    def code(self) -> str:
        """The program of "Show code"; "" if nothing is shown."""
        self.settle()
        return self._code

    def _release(self) -> None:
        self._runs.release()
        self._model = self._recording = self._look = self._figure = None


_CHOICES = ("view", "input", "part", "call", "sample", "page", "channel", "per_map")


NO_INPUT = Text(zh="没有名为 {name!r} 的输入；有：{known}", en="there is no input {name!r}, only: {known}")
