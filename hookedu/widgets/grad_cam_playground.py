"""GradCamPlayground: drag shapes, switch channels off, and see what a model says and where it looks."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
import traitlets
from torch import nn

from hookedu.hooks.modules import choose, modules_by_name, unwrap
from hookedu.hooks.reach import restored
from hookedu.hooks.tensors import described
from hookedu.widgets import layer_numbers, programs
from hookedu.widgets.given import NO_PICTURE, Shape, class_names, picture, shapes_within
from hookedu.widgets.grad_cam import Explanation, explain, overlay, program
from hookedu.widgets.live import LiveWidget
from hookedu.widgets.pictures import new_figure
from hookedu.widgets.playground_words import (
    FAILED_LATER,
    FULL,
    NO_CHANNEL,
    NO_CLASS,
    NO_CLASSES,
    NO_DRAW,
    OTHER_CLASSES,
    REFUSED,
    WORDS,
)
from hookedu.widgets.verdicts import Verdicts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 12  # shapes
_REST = 0.1  # seconds after the last choice, before channels are tried one by one: a shape in motion does not wait for them
_TRYING, _PAUSE = 0.03, 0.01  # seconds at a time for that, and between two times
_PLACES = (1 / 6, 1 / 3, 1 / 2, 2 / 3, 5 / 6)  # of a shape that is added, as shares of width and height

Draw = Callable[[Sequence[Shape], torch.Tensor | None], torch.Tensor]


class GradCamPlayground(LiveWidget, module="grad_cam_playground"):
    """Widget in which you move shapes in a picture, while the logits and the Grad-CAM heat map follow.

    Shapes can be added, dragged or moved with the arrow keys, and removed; a picture of your own can be uploaded behind
    them. A click on a channel of the layer switches it off, and a click on a class explains that class. Each time the model
    runs once with a forward hook, and once more if channels are off, to compare; "Show code" gives the hooks. Then each channel
    is tried by itself, in batches: which class would be the highest if it alone were switched off, or on again.

    The model runs in its current mode. Its modes, buffers, gradients and hooks and the states of the random number
    generators are restored afterwards. An exception that the model raises is shown in the widget and kept in ``error``.

    Parameters
    ----------
    model : torch.nn.Module
        A model that gives logits (1, classes) for a picture (1, 3, H, W).
    layer : str or torch.nn.Module
        The layer whose channels are shown and weighted; its output is a batch of feature maps.
    draw : callable
        A function from shapes, and a picture behind them or None, to a picture (3, H, W) from 0 to 1, such as
        ``hookedu.models.shapes.draw_shapes``. Bytes, (H, W, 3), arrays and images of PIL will do as well.
    classes : sequence of str
        Names of the classes, which are also those of the shapes that ``draw`` can draw.
    shapes : sequence of (str, float, float), optional
        The shapes to begin with: the class of each, and the column and row of its centre. By default one of the first class.

    Attributes
    ----------
    shapes : list of (str, float, float)
        The shapes in the picture. Set it to move them from Python; in a notebook ``settle()`` then waits for the result.
    ground : torch.Tensor or None
        The picture behind them, (3, H, W), if one was uploaded.
    explained : str or None
        The class that is explained; None for the one with the highest logit.
    off : list of int
        The channels that are switched off.
    picture : torch.Tensor or None
        The picture that the model got, (3, H, W).
    logits, heat : torch.Tensor or None
        Its logits (classes,), and Grad-CAM (H, W).
    verdicts : list of str or None
        For each channel the class that would be the highest if this channel alone were switched; None where that cannot be
        known, as for a model that mixes the pictures of a batch.
    code : str
        The program of "Show code".
    error : Exception or None
        The exception that the widget shows.

    Raises
    ------
    KeyError
        If the model has no such layer.
    TypeError
        If ``draw`` is no function, or ``classes`` no sequence of names.
    ValueError
        If ``draw`` does not return a picture, or there are no classes.
    traitlets.TraitError
        If there is no such class or channel, a shape is outside the picture, or there are too many.

    See Also
    --------
    LayerPicker : Look at all layers of a model.

    Examples
    --------
    >>> from hookedu import GradCamPlayground
    >>> from hookedu.models.shapes import CLASSES, draw_shapes, load_model
    >>> shapes = [("cross", 18, 32), ("triangle", 46, 32)]
    >>> playground = GradCamPlayground(load_model(), "block4", draw_shapes, CLASSES, shapes)
    >>> playground.explained = "cross"
    >>> int(playground.heat.argmax()) % 64 < 32  # brightest in the left half
    True
    >>> playground.close()
    """

    WORDS: ClassVar = WORDS

    # Of any type: what is none of the choices is refused below, in words.
    shapes = traitlets.Any([])
    ground = traitlets.Any(None)
    explained = traitlets.Any(None)
    off = traitlets.Any([])

    def __init__(
        self,
        model: nn.Module,
        layer: str | nn.Module,
        draw: Draw,
        classes: Sequence[str],
        shapes: Sequence[Shape] | None = None,
    ) -> None:
        self._model: nn.Module | None = unwrap(model)  # None once closed
        self._layer = next(iter(choose(modules_by_name(self._model), [layer])))
        if not callable(draw):
            raise TypeError(str(NO_DRAW.format(got=described(draw))))
        self._draw: Draw | None = draw
        self._classes = class_names(classes)
        if not self._classes:
            raise ValueError(str(NO_CLASSES))
        self._channels = 0  # of the layer, known after the first pass
        height, width = picture(draw([], None), "`draw([], None)`").shape[1:]
        self._size = height, width
        self._extremes = (
            0.0,
            0.0,
        )  # of all logits so far, so that bars of one picture compare with those of the next
        self._done: Any = None  # the choice that has been answered
        self._behind: torch.Tensor | None = None  # its ground
        self._rests = 0.0  # time from which channels are tried
        self._forget()
        super().__init__()
        start = [(self._classes[0], width // 2, height // 2)] if shapes is None else shapes
        self.shapes = start
        self.observe(self.changed, ["shapes", "ground", "explained", "off"])
        self._answer()

    def _forget(self) -> None:
        self._picture: torch.Tensor | None = None
        self._now: Explanation | None = None
        self._high = 0.0
        self._verdicts: Verdicts | None = None

    # -- choices ---------------------------------------------------------------------------------------------

    @traitlets.validate("shapes")
    def _known_shapes(self, proposal: Any) -> list[Shape]:
        shapes = shapes_within(proposal["value"], self._classes, self._size)
        if len(shapes) > _MOST:
            raise traitlets.TraitError(str(FULL.format(n=_MOST)))
        return shapes

    @traitlets.validate("explained")
    def _known_class(self, proposal: Any) -> str | None:
        value = proposal["value"]
        if value is not None and not (isinstance(value, str) and value in self._classes):
            raise traitlets.TraitError(
                str(NO_CLASS.format(got=described(value), known=", ".join(self._classes)))
            )
        return value

    @traitlets.validate("off")
    def _known_channels(self, proposal: Any) -> list[int]:
        value = proposal["value"]
        channels = list(value) if isinstance(value, list | tuple | set | range) else [value]
        for channel in channels:
            if type(channel) is not int or not 0 <= channel < self._channels:
                raise traitlets.TraitError(
                    str(NO_CHANNEL.format(got=repr(channel)[:100], last=self._channels - 1))
                )
        return sorted(set(channels))

    @traitlets.validate("ground")
    def _fitting_ground(self, proposal: Any) -> torch.Tensor | None:
        if proposal["value"] is None:
            return None
        try:
            ground = picture(proposal["value"], "`ground`")
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None
        if tuple(ground.shape[1:]) != self._size:
            raise traitlets.TraitError(str(NO_PICTURE.format(name="`ground`", got=described(ground))))
        return ground

    def _heard(self, kind: str, message: Mapping[str, Any], buffers: list[Any]) -> None:
        # Setting a trait does no work, and what was set before is forgotten: of many moves the last is computed.
        with self._showing_errors():
            match message:
                case {"kind": "move", "index": int(i), "x": x, "y": y} if 0 <= i < len(self.shapes):
                    name, *_ = self.shapes[i]
                    self.shapes = [*self.shapes[:i], (name, x, y), *self.shapes[i + 1 :]]
                case {"kind": "add", "name": name}:
                    self.shapes = [*self.shapes, (name, *self._free_place())]
                case {"kind": "remove", "index": int(i)} if 0 <= i < len(self.shapes):
                    self.shapes = [*self.shapes[:i], *self.shapes[i + 1 :]]
                case {"kind": "explain", "name": name}:
                    self.explained = name
                case {"kind": "switch", "channel": channel, "on": bool(on)}:
                    self.off = [c for c in self.off if c != channel] if on else [*self.off, channel]
                case {"kind": "all_on"}:
                    self.off = []
                case {"kind": "upload"}:
                    self.ground = self._uploaded(buffers)
                case {"kind": "drop"}:
                    self.ground = None
                case _:
                    raise ValueError(str(REFUSED.format(what=str(dict(message))[:200])))

    def _free_place(self) -> tuple[int, int]:
        """Return the place that is furthest from all shapes; in an empty picture its middle."""
        height, width = self._size
        places = [(round(x * width), round(y * height)) for y in _PLACES for x in _PLACES]
        middle = width / 2, height / 2
        taken = [(float(x), float(y)) for _, x, y in self.shapes]

        def room(place: tuple[int, int]) -> tuple[float, float]:
            x, y = place
            near = [(x - a) ** 2 + (y - b) ** 2 for a, b in taken]
            return min(near, default=0), -((x - middle[0]) ** 2 + (y - middle[1]) ** 2)

        return max(places, key=room)

    def _uploaded(self, buffers: list[Any]) -> torch.Tensor:
        """Return a picture that the browser has read and made as large as the others: bytes of red, green, blue."""
        height, width = self._size
        pixels = bytes(buffers[0]) if buffers else b""
        if len(pixels) != 3 * height * width:
            raise ValueError(str(REFUSED.format(what=f"{len(pixels)} bytes")))
        found = torch.tensor(list(pixels), dtype=torch.uint8).view(height, width, 3)
        return found.permute(2, 0, 1).float() / 255

    # -- running ---------------------------------------------------------------------------------------------

    def _update(self) -> None:
        ground = cast("torch.Tensor | None", self.ground)
        shapes, off, explained = cast("list[Shape]", list(self.shapes)), list(self.off), self.explained
        choice = shapes, off, explained
        if choice == self._done and ground is self._behind:
            if time.monotonic() >= self._rests:
                self._try()
            return
        # Not repeated before something else is chosen, also if it fails.
        self._done, self._behind = choice, ground
        model, draw = self._model, self._draw
        assert model is not None and draw is not None  # a closed widget is not updated
        drawn = picture(draw(shapes, ground), "`draw(shapes, ground)`")
        wanted = None if explained is None else self._classes.index(explained)
        with restored(model, numpy=False):
            now = explain(model, self._layer, drawn, wanted, off)
            before = explain(model, self._layer, drawn, now.explained, []) if off else now
        if len(now.logits) != len(self._classes):
            raise ValueError(str(OTHER_CLASSES.format(n=len(now.logits), of=len(self._classes))))
        self._picture, self._now, self._channels = drawn, now, len(now.maps)
        self._high = before.heat.nan_to_num(0, 0, 0).max().item()
        self._post(before)
        self._verdicts = Verdicts(self._layer, drawn, now, off)
        self._rests = time.monotonic() + _REST
        self.again(_REST)
        self.say(failed=FAILED_LATER)
        self._no_error()

    def _try(self) -> None:
        """Try some channels by themselves, and come back for the others, after what is chosen meanwhile."""
        verdicts, model = self._verdicts, self._model
        if verdicts is None or model is None or not verdicts.left:
            return
        with restored(model, numpy=False):
            verdicts.more(model, _TRYING)
        tried = len(verdicts.found) - len(verdicts.left)
        self.post("verdicts", {"tried": tried, "mixed": verdicts.mixed}, verdicts=verdicts.found)
        if verdicts.left:
            self.again(_PAUSE)

    def _post(self, before: Explanation) -> None:
        now, drawn = self._now, self._picture
        assert now is not None and drawn is not None
        finite = torch.cat([now.logits, before.logits])
        finite = finite[finite.isfinite()].tolist()
        self._extremes = min([self._extremes[0], *finite]), max([self._extremes[1], *finite])
        self.post(
            "shown",
            {
                "shapes": self.shapes,
                "full": len(self.shapes) == _MOST,
                "classes": self._classes,
                "explained": now.explained,
                "follows": self.explained is None,
                "top": int(now.logits.argmax()),
                "extremes": self._extremes,
                "highest": now.heat.nan_to_num(0, 0, 0).max().item(),
                "peak": now.peak,
                "layer": self._layer or "(model)",
                "off": self.off,
                "scale": layer_numbers.colours(now.maps, False),
                "uploaded": self.ground is not None,
                "code": programs.sides(self._program()),
            },
            picture=(255 * drawn.movedim(0, -1)).clamp(0, 255).round().to(torch.uint8),
            heated=overlay(drawn, now.heat, self._high),
            maps=now.maps,
            brings=now.brings,
            logits=now.logits,
            before=before.logits,
        )

    def _program(self) -> str:
        return "" if self._now is None else program(self._layer, self._now.explained, self.off)

    def _still(self) -> "Figure | None":
        self.settle()
        if self._now is None or self._picture is None:
            return None
        figure, now = new_figure(), self._now
        figure.set_size_inches(figure.get_figwidth(), 2.3)
        ax = figure.add_axes((0.02, 0.04, 0.34, 0.84))
        ax.imshow(overlay(self._picture, now.heat, self._high).numpy())
        ax.set_axis_off()
        ax.set_title(f"Grad-CAM: {self._classes[now.explained]}", fontsize=9)
        ax = figure.add_axes((0.56, 0.14, 0.41, 0.74))
        colours = ["#b35806" if i == now.explained else "#888888" for i in range(len(now.logits))]
        ax.barh(self._classes, now.logits.tolist(), color=colours)
        ax.axvline(0, color="black", lw=0.8)
        ax.invert_yaxis()
        ax.set_title("logits", fontsize=9)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right", "left"]].set_visible(False)
        return figure

    # -- public attributes -----------------------------------------------------------------------------------

    @property
    def picture(self) -> torch.Tensor | None:
        """The picture that the model got."""
        self.settle()
        return self._picture

    @property
    def logits(self) -> torch.Tensor | None:
        """The logits of the picture."""
        self.settle()
        return self._now and self._now.logits

    @property
    def heat(self) -> torch.Tensor | None:
        """Grad-CAM of the picture."""
        self.settle()
        return self._now and self._now.heat

    @property
    def verdicts(self) -> list[str | None]:
        """What each channel, switched alone, would make the highest class."""
        self.settle()
        while self._verdicts is not None and self._verdicts.left:
            self._try()
        found = [] if self._verdicts is None else self._verdicts.found.tolist()
        return [None if verdict < 0 else self._classes[verdict] for verdict in found]

    @property
    def code(self) -> str:
        """The program of "Show code"."""
        self.settle()
        return self._program()

    def _release(self) -> None:
        self._model = self._draw = self._behind = None
        self._forget()
