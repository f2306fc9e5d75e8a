"""LiveWidget and guess() without a browser; tests/browser/test_live_widgets.py has the rest."""

import base64
import gc
import io
import weakref

import ipywidgets
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.image import imread

from hookedu import guess, guesses
from hookedu.language import Text
from hookedu.widgets.language_toggle import preference
from hookedu.widgets.live import LiveWidget

VIEW = "application/vnd.jupyter.widget-view+json"


class Drawn(LiveWidget, module="guess"):
    """A widget with a still picture."""

    still = None

    def _still(self):
        if isinstance(self.still, Exception):
            raise self.still
        return self.still


def test_beside_the_widget_stands_a_still_picture():
    drawn = Drawn()
    drawn.still = Figure(figsize=(3, 2), dpi=100)
    data, metadata = drawn._repr_mimebundle_()
    picture = imread(io.BytesIO(base64.b64decode(data["image/png"])), format="png")
    assert picture.shape[:2] == (400, 600) and metadata == {"image/png": {"width": 300}}
    assert VIEW in data and data["text/plain"] == "Drawn()"
    assert drawn._repr_mimebundle_()[0]["image/png"] == data["image/png"]


def test_or_words():
    drawn = Drawn()
    drawn.still = Text(zh="猜 `x`", en="guess `x`")
    data, _ = drawn._repr_mimebundle_()
    assert data["text/html"] == drawn.still.html() and "image/png" not in data


def test_a_picture_that_fails_is_shown_as_an_error_and_the_widget_stays(closes):
    drawn = Drawn()
    drawn.still = ValueError("no ink")
    data, _ = drawn._repr_mimebundle_()
    assert set(data) == {VIEW, "text/plain"}
    assert drawn.error is drawn.still and drawn.failure["error"] == "ValueError: no ink"
    assert drawn.failure["says"] in drawn.words and "_still" in drawn.failure["trace"]
    closes(drawn)


def test_running_out_of_memory_has_its_own_words():
    drawn = Drawn()
    drawn.still = torch.OutOfMemoryError("CUDA out of memory")
    drawn._repr_mimebundle_()
    assert "smaller input" in drawn.words[drawn.failure["says"]]["en"]


@pytest.mark.parametrize(
    ("tensor", "kind", "bytes"),
    [
        (torch.tensor([1.5], dtype=torch.bfloat16), "float32", torch.tensor([1.5])),
        (torch.tensor([[1.5, 2.5]], dtype=torch.float64).T, "float32", torch.tensor([1.5, 2.5])),
        (torch.tensor([3 + 4j]), "float32", torch.tensor([5.0])),
        (torch.tensor([7], dtype=torch.int64), "int32", torch.tensor([7], dtype=torch.int32)),
        (torch.tensor([True]), "uint8", torch.tensor([1], dtype=torch.uint8)),
        (torch.ones(2, requires_grad=True), "float32", torch.ones(2)),
        (torch.empty(0, 3), "float32", torch.empty(0)),
        (torch.tensor(2.0), "float32", torch.tensor(2.0)),
    ],
)
def test_tensors_are_sent_as_three_types_with_their_shape(tensor, kind, bytes):
    drawn = Drawn()
    drawn.post("it", {"n": 1}, x=tensor)
    message, buffers = drawn._posted["it"]
    assert message["tensors"] == [{"name": "x", "shape": list(tensor.shape), "kind": kind}]
    assert message["content"] == {"n": 1} and buffers == [bytes.numpy().tobytes()]


def test_nothing_that_was_sent_outlives_the_widget(closes):
    drawn = Drawn()
    drawn.post("it", x=torch.ones(10))
    closes(drawn)
    assert drawn._posted == {}
    gone = weakref.ref(drawn)
    del drawn
    gc.collect()
    assert gone() is None


def test_the_language_and_changed_words_go_to_the_browser():
    drawn = Drawn()
    drawn.say(caption=Text(zh="{n} 层", en="{n} layers").format(n=3))
    preference.language = "en"
    assert drawn.language == "en" and drawn.words["caption"] == {"zh": "3 层", "en": "3 layers"}


def test_a_guess_holds_little_and_says_one_line():
    asked = guess("02.a")
    state = {k: v for k, v in asked.get_state().items() if k not in ("_esm", "_css")}
    assert len(str(state)) < 10_000
    assert repr(asked) == "guess 02.a" and asked._repr_mimebundle_()[0]["text/plain"] == "guess 02.a"
    assert asked.choices == list(guesses.find("02.a").choices)


def test_a_language_chosen_while_a_widget_is_made_is_spoken():
    """In JupyterLab a click on the buttons arrives in another thread than the one that runs the cell."""
    preference.language = "zh"
    ipywidgets.Widget.on_widget_constructed(lambda _: setattr(preference, "language", "en"))
    try:
        assert Drawn().language == "en"
    finally:
        ipywidgets.Widget.on_widget_constructed(None)
