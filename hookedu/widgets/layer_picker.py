"""LayerPicker: show feature maps, gradients, statistics and weights of a layer, and the code behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets
import torch
import traitlets
from torch import nn
from torch.nn.parameter import is_lazy

from hookedu.hooks.modules import choose, is_compiled, modules_by_name, unwrap
from hookedu.hooks.recording import Recording
from hookedu.hooks.tensors import Stats, named_tensors
from hookedu.language import Text
from hookedu.widgets import pictures, programs
from hookedu.widgets.panel import Panel, aligned, limit
from hookedu.widgets.pictures import TILES, Form, Picture, Selection
from hookedu.widgets.runs import Row, Runs, Target, call_as_code, dense, has_no_values, score_text, with_first

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class _Choice:
    """The state of the controls."""

    layer: str
    view: str
    input: str
    part: int  # index into the tensors of a nested output
    call: int
    per_map: bool
    selection: Selection

    @property
    def subject(self) -> tuple[str, str, str, int]:
        """The choices that determine which calls, samples and channels exist."""
        return self.layer, self.view, self.input, self.part


class LayerPicker(Panel):
    """Widget that shows the feature maps, gradients, statistics and weights of any layer of a model.

    Layers can be searched by name and type; every plot comes with its numbers and, on "Show code", with a
    plain PyTorch program that computes them.

    The model runs when a layer is selected for the first time, in its current mode (training or evaluation).
    Its modes, buffers, gradients and hooks and the states of the random number generators are restored
    afterwards. An exception that the model raises is shown in the widget and kept in ``error``; it does not
    propagate.

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
        Further values to choose from for the first argument. A tensor ``(C, H, W)`` becomes a batch of one if
        the first argument is a batch.
    **kwargs : object
        Keyword arguments of the model.

    Attributes
    ----------
    value : str
        Name of the selected layer, "" for the model itself. It can be set and observed; setting an unknown
        name raises a ``KeyError`` that lists the closest names.
    shown : torch.Tensor or None
        The tensor that is plotted.
    figure : matplotlib.figure.Figure or None
        The plot.
    recording : Recording or None
        The recording that the plot was made from.
    code : str
        The program of "Show code"; "" if nothing is shown.
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

    value = traitlets.Unicode()

    def __init__(
        self,
        model: nn.Module,
        *inputs: Any,
        target: Target = None,
        images: Mapping[str, Any] | Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        unwrap(model)  # first: it raises for anything that is not a model
        super().__init__()
        first = next(iter((*inputs, *kwargs.values())), None)
        named = dict(images if isinstance(images, Mapping) else enumerate([] if images is None else images))
        self._sources = {"x": ""}  # the first argument as code, by name of the input
        given = {"x": (inputs, kwargs)}
        for key, image in named.items():
            name = f"images[{key!r}]"
            alone = _dimensions(image) == 3 and _dimensions(first) == 4  # a single image, while x is a batch
            self._sources[name] = f"{name}[None]" if alone else name
            given[name] = with_first(given["x"], image[None] if alone else image)
        self._model: nn.Module | None = model  # None once closed
        self._runs = Runs(model, given, target)
        self._drawn: _Choice | None = None  # what is drawn at the moment
        self._recording: Recording | None = None
        self._form: Form | None = None
        self._made_dense = ""  # as code: what made the tensor one that can be indexed
        self._shown: torch.Tensor | None = None
        self._code = ""
        self._listed: tuple[str, list[Row]] | None = None
        self._unbatched = _dimensions(first) == 3 and any(isinstance(m, nn.Conv2d) for m in model.modules())
        self._make_controls(list(given))
        names = [row.name for row in self._runs.rows("x")]
        modules = modules_by_name(self._runs.model)
        convolutions = [n for n in names if isinstance(modules[n], nn.Conv1d | nn.Conv2d | nn.Conv3d)]
        self.value = [*convolutions, *(n for n in names if not len(modules[n]._modules)), *names][0]
        self.observe(self.changed, "value")
        self._answer()

    # -- controls --------------------------------------------------------------------------------------------

    def _make_controls(self, inputs: list[str]) -> None:
        w, label = ipywidgets, self.label
        wide = {"description_width": "initial"}
        self._search = label(
            w.Text(style=wide, layout={"width": "auto"}), description=SEARCH, placeholder=EXAMPLE
        )
        self._list = w.Select(rows=16, layout={"width": "auto"}, style=wide).add_class("hookedu-list")
        self._view = w.ToggleButtons(style={"button_width": "auto"})
        self.options(self._view, list(zip(VIEWS.values(), VIEWS, strict=True)), "maps")
        self._view.tooltips = [f"{tip.zh} · {tip.en}" for tip in VIEW_TIPS]
        self._input = label(w.Dropdown(style=wide, layout={"width": "auto"}), description=INPUT)
        self.options(self._input, [(name, name) for name in inputs], "x")
        self._part = label(w.Dropdown(style=wide, layout={"width": "auto"}), description=PART)
        self._call, self._sample, self._page = (
            label(w.BoundedIntText(min=0, max=0, style=wide, layout={"width": "auto"}), description=text)
            for text in (CALL, SAMPLE, PAGE)
        )
        self._per_map = label(w.Checkbox(indent=False, layout={"width": "auto"}), description=PER_MAP)
        self._again = label(
            w.Button(icon="refresh", layout={"width": "auto"}), description=AGAIN, tooltip=AGAIN_TIP
        )
        self._channels = label(w.ToggleButtons(style={"button_width": "auto"}), description=CHANNEL)
        self._channels.add_class("hookedu-channels")
        self._picture, self._caption = Picture(), w.HTML()
        self._show_code = label(w.ToggleButton(icon="code", layout={"width": "auto"}), description=SHOW_CODE)
        self._program = w.HTML(layout={"display": "none"}).add_class("hookedu-code")
        self._list.observe(self._take_layer, "value")
        self._numbers = (self._call, self._sample, self._page)
        choices = (self._search, self._view, self._input, self._part, self._per_map, self._channels)
        for control in (*choices, *self._numbers, self._show_code):
            control.observe(self.changed, "value")
        self._again.on_click(self._forget)
        row = w.HBox([self._input, self._part, self._call, self._sample, self._page, self._per_map])
        head = w.HBox([self._view, self._again, self._show_code]).add_class("hookedu-row")
        left = w.VBox(
            [self._search, self._list, self.stepper(self._list)],
            layout={"flex": "1 1 340px", "min_width": "300px"},
        )
        right = w.VBox(
            [head, row.add_class("hookedu-row"), self._program, self._picture, self._caption, self._channels],
            layout={"flex": "3 1 480px", "min_width": "320px"},
        )
        self._show(w.HBox([left, right], layout={"flex_flow": "row wrap"}))

    def _take_layer(self, change: Any) -> None:
        if change["new"] is not None:  # nothing is selected while the search hides the current layer
            with self._showing_errors():  # the layer may have been removed from the model since it was listed
                self.value = change["new"]

    def _forget(self, _: Any) -> None:
        self._runs.forget()
        self._drawn = None
        self.changed()

    @traitlets.validate("value")
    def _known_layer(self, proposal: Any) -> str:
        choose(modules_by_name(self._runs.model), [proposal["value"]])  # raises if there is no such layer
        return proposal["value"]

    def _choice(self) -> _Choice:
        channel = self._channels.value
        selection = Selection(
            self._sample.value, self._page.value, None if channel in (None, -1) else channel
        )
        return _Choice(
            layer=self.value,
            view=self._view.value,
            input=self._input.value or "x",
            part=self._part.value or 0,
            call=self._call.value,
            per_map=self._per_map.value,
            selection=selection,
        )

    def _update(self) -> None:
        choice = self._choice()
        try:
            if choice != self._drawn:
                self._look(choice)
                self._no_error()
        except Exception:
            self._drawn = self._choice()  # not repeated before something else is selected
            self._blank(None)
            raise
        finally:
            self._fill_list()
            self._fill_code()

    def _look(self, choice: _Choice) -> None:
        if self._drawn is None or choice.subject != self._drawn.subject:
            self._call.value = self._page.value = 0
            # Reset rather than rebuild: the browser takes long to create 64 buttons.
            if self._channels.options:
                self._channels.value = -1
        tensor = self._tensor(choice)
        if tensor is None:
            self._drawn = self._choice()
            return
        tensor, self._made_dense = dense(tensor)
        self._form = form = Form(tuple(tensor.shape), self._unbatched and choice.view != "weights")
        maps = choice.view != "statistics"
        limit(self._sample, form.samples if maps else 1)
        self.label(self._sample, description=IN_CHANNEL if choice.view == "weights" else SAMPLE)
        limit(self._page, -(-form.channels // TILES) if maps else 1)
        self._set_channels(self._page.value, form.channels if maps and choice.view != "weights" else 0)
        self._per_map.layout.display = None if maps and form.is_maps else "none"
        self._drawn = choice = self._choice()  # again, as the limits may have changed it
        self._draw(choice, tensor, form)

    def _tensor(self, choice: _Choice) -> torch.Tensor | None:
        """Return the whole tensor behind the plot, or None after a caption that says why there is none."""
        if choice.view == "weights":
            weight = getattr(modules_by_name(self._runs.model)[choice.layer], "weight", None)
            if not isinstance(weight, torch.Tensor):
                return self._blank(NO_WEIGHT.format(layer=choice.layer or "(model)"))
            if is_lazy(weight):
                return self._blank(LAZY_WEIGHT.format(layer=choice.layer or "(model)"))
            limit(self._call, 1)
            self._set_parts([""])
            if has_no_values(weight):
                return self._blank(NO_VALUES)
            weight = weight.detach()
            return weight.transpose(0, 1) if weight.dim() > 2 else weight
        self._recording = self._runs.recording(choice.layer, choice.input, choice.view == "gradients")
        if choice.layer in self._recording.missed:
            return self._blank(self._recording.missed[choice.layer])
        calls = self._recording[choice.layer].calls
        limit(self._call, len(calls))
        call = calls[self._call.value]
        parts = list(named_tensors(call.activation))
        if not parts:
            return self._blank(NO_TENSOR)
        self._set_parts([path for path, _ in parts])
        path, tensor = parts[self._part.value or 0]
        if choice.view == "gradients":
            tensor = dict(named_tensors(call.gradient)).get(path)
        if tensor is None:
            return self._blank(NO_GRADIENT)
        return self._blank(NO_VALUES) if has_no_values(tensor) else tensor

    def _blank(self, why: Text | None) -> None:
        """Show a caption instead of a plot."""
        self._picture.clear()
        self._shown = self._form = None
        self._set_channels(0, 0)
        for control in self._numbers:
            limit(control, 1)
        self.say(self._caption, why)

    def _draw(self, choice: _Choice, tensor: torch.Tensor, form: Form) -> None:
        signed, title = choice.view == "gradients", self._title(choice, form)
        whole = choice.view == "statistics"
        self._shown = shown = tensor if whole else tensor[form.index(choice.selection)]

        def draw(figure: "Figure") -> None:
            if whole:
                pictures.draw_statistics(figure, tensor, title)
            elif choice.selection.channel is not None:
                beside = pictures.picture_in(self._runs.inputs[choice.input], choice.selection.sample)
                pictures.draw_channel(figure, shown, beside, signed, title)
            else:
                pictures.draw_maps(figure, tensor, form, choice.selection, choice.per_map, signed, title)

        with self._picture.hold_sync():  # one message, as the browser decodes the image for each
            self._picture.draw(draw)
            self.label(self._picture, tooltip=PICTURE.format(view=VIEWS[choice.view], title=title))
        stats = Stats(shown)
        odd = ODD.format(nan=stats.nan, inf=stats.inf) if stats.nan or stats.inf else Text(zh="", en="")
        self.say(self._caption, NUMBERS.format(odd=odd, **pictures.numbers(stats)))

    def _title(self, choice: _Choice, form: Form) -> str:
        """Return the title, in English like all text inside a figure."""
        what = {"gradients": "gradient of ", "weights": "weight of "}.get(choice.view, "")
        parts = [what + (choice.layer or "(model)")]
        if self._call.max:
            parts.append(f"call {choice.call} of {self._call.max + 1}")
        if form.samples > 1 and choice.view != "statistics":
            which = "input channel" if choice.view == "weights" else "sample"
            parts.append(f"{which} {choice.selection.sample} of {form.samples}")
        if choice.selection.channel is not None:
            parts.append(f"ch {choice.selection.channel}")
        return " · ".join(parts)

    def _set_channels(self, page: int, channels: int) -> None:
        numbers = range(page * TILES, min((page + 1) * TILES, channels))
        options = [(ALL, -1), *((str(n), n) for n in numbers)] if channels > 1 else []
        if [n for _, n in options] != [n for _, n in self._channels.options]:
            self.options(self._channels, options, -1)
        self._channels.layout.display = None if options else "none"

    def _set_parts(self, paths: list[str]) -> None:
        if [n for n, _ in self._part.options] != (options := [f"output{path}" for path in paths]):
            self.options(
                self._part, list(zip(options, range(len(paths)), strict=True)), self._part.value or 0
            )
        if self._part.value is None:
            self._part.value = 0
        self._part.layout.display = None if len(paths) > 1 else "none"
        self._input.layout.display = None if len(self._runs.inputs) > 1 else "none"

    # -- the list and the code -------------------------------------------------------------------------------

    def _fill_list(self) -> None:
        rows = self._runs.rows(self._input.value or "x")
        words = self._search.value.lower().split()
        if self._listed != (self._search.value, rows):
            self._listed = self._search.value, rows
            found = [r for r in rows if all(w in f"{r.name} {r.type}".lower() for w in words)]
            cells = [
                (r.name or "(model)", r.type, r.shape, "" if r.calls is None else f"×{r.calls}")
                for r in found
            ]
            self.options(
                self._list, list(zip(aligned(cells), (r.name for r in found), strict=True)), self.value
            )
            self.label(self._list, description=LAYERS.format(n=len(found), total=len(rows)))
        elif self._list.value != self.value and self.value in dict(self._list.options).values():
            self._list.value = self.value

    def _fill_code(self) -> None:
        self._code = self._program_of(self._drawn) if self._drawn and self._shown is not None else ""
        shown = self._show_code.value and bool(self._code)
        self._program.value = f"<pre tabindex=0>{escape(self._code)}</pre>" if shown else ""
        self._program.layout.display = None if shown else "none"

    def _program_of(self, choice: _Choice) -> str:
        form = self._form
        assert form is not None  # it is set wherever `_shown` is
        index = "" if choice.view == "statistics" else pictures.brackets(form.index(choice.selection))
        if choice.view == "weights" and len(form.shape) > 2:
            index = ".transpose(0, 1)" + index
        index = self._made_dense + index
        model, source = self._runs.model, self._sources[choice.input]
        call, given, setup = call_as_code(self._runs.inputs[choice.input], source)
        given += ["images"] if source else []
        target = self._runs.target
        if choice.view == "gradients" and target is not None and not isinstance(target, int):
            given.append("target")
        parts = [label.removeprefix("output") for label, _ in self._part.options]
        module = modules_by_name(model)[choice.layer]
        return programs.program(
            choice.view,
            given,
            setup,
            wrapped=model is not self._model,
            compiled=is_compiled(model),
            # The wrapper of torch.compile has a place in this name, but not in those that the widget shows.
            layer=next(name for name, other in model.named_modules() if other is module),
            number=choice.call,
            index=index,
            real=".abs()" if self._shown is not None and self._shown.is_complex() else "",
            leaf=parts[choice.part],
            call=call,
            score=score_text(*self._runs.head, target),
        )

    # -- public attributes -----------------------------------------------------------------------------------

    @property
    def shown(self) -> torch.Tensor | None:
        """The tensor that is plotted."""
        self.settle()
        return self._shown

    @property
    def figure(self) -> "Figure | None":
        """The plot."""
        self.settle()
        return self._picture.figure

    @property
    def recording(self) -> Recording | None:
        """The recording that the plot was made from."""
        self.settle()
        return self._recording

    @property
    def code(self) -> str:
        """The program of "Show code"; "" if nothing is shown."""
        self.settle()
        return self._code

    def _release(self) -> None:
        self._runs.release()
        self._model = self._recording = self._shown = None
        self._picture.clear()


def _dimensions(x: Any) -> int | None:
    return x.dim() if isinstance(x, torch.Tensor) else None


SEARCH = Text(zh="搜索层", en="Search layers")
EXAMPLE = Text(zh="名字或类型，如 conv", en="name or type, such as conv")
LAYERS = Text(
    zh="层：{n} / {total}（名字、类型、输出形状、×调用次数）",
    en="Layers: {n} of {total} (name, type, output shape, ×calls)",
)
VIEWS = {
    "maps": Text(zh="特征图", en="Feature maps"),
    "gradients": Text(zh="梯度", en="Gradients"),
    "statistics": Text(zh="统计", en="Statistics"),
    "weights": Text(zh="权重", en="Weights"),
}
VIEW_TIPS = (
    Text(zh="这一层的输出", en="What the layer gives out"),
    Text(zh="得分对这一层输出的梯度", en="The gradient of the score for the layer's output"),
    Text(zh="均值、标准差、零的比例、直方图", en="Mean, std, share of zeros, histogram"),
    Text(zh="这一层自己的权重", en="The layer's own weights"),
)
INPUT = Text(zh="输入", en="Input")
PART = Text(zh="输出的部分", en="Part of the output")
CALL = Text(zh="调用序号", en="Call")
SAMPLE = Text(zh="样本", en="Sample")
IN_CHANNEL = Text(zh="输入通道", en="Input channel")
PAGE = Text(zh="通道页", en="Page of channels")
PER_MAP = Text(zh="每图独立色标", en="A scale for each map")
CHANNEL = Text(zh="放大通道", en="Enlarge channel")
ALL = Text(zh="全部", en="All")
AGAIN = Text(zh="重新运行", en="Run again")
AGAIN_TIP = Text(zh="模型或输入变了：重新运行一遍", en="The model or its input has changed: run it again")
SHOW_CODE = Text(zh="显示代码", en="Show code")
PICTURE = Text(zh="{view}：{title}", en="{view}: {title}")  # the accessible name of the plot
NUMBERS = Text(
    zh="所示数值：均值 {mean} · 标准差 {std} · 最小 {min} · 最大 {max} · 零的比例 {zeros}{odd}",
    en="Values shown: mean {mean} · std {std} · min {min} · max {max} · zeros {zeros}{odd}",
)
ODD = Text(zh=" · **NaN {nan} 个，Inf {inf} 个**", en=" · **{nan} NaN, {inf} Inf**")
NO_WEIGHT = Text(zh="`{layer}` 自己没有权重", en="`{layer}` has no weight of its own")
LAZY_WEIGHT = Text(
    zh="`{layer}` 的权重还没有初始化：模型第一次正式运行时才会有",
    en="`{layer}` has no weight yet: it is made when the model runs for the first time",
)
NO_VALUES = Text(
    zh="这个张量只有形状，没有可以画的数值：它在 meta 设备上，或者在 vmap、grad、jvp 里面",
    en="This tensor has a shape and no values to draw: it is on the meta device, or inside of vmap, grad or jvp",
)
NO_TENSOR = Text(zh="这次调用的输出里没有张量", en="This call's output holds no tensor")
NO_GRADIENT = Text(
    zh="反向传播没有经过输出的这一部分", en="No backward pass went through this part of the output"
)
