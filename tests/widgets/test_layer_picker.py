"""LayerPicker without a browser: real models, real runs, and the numbers behind the plots."""

import asyncio
import io
import re
import threading
import time
from types import SimpleNamespace

import pytest
import torch
import traitlets
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from torch import nn

from hookedu import LayerPicker, list_hooks, record
from hookedu.hooks.modules import LayerNotFound
from hookedu.language import preference
from hookedu.widgets import layer_numbers
from hookedu.widgets import runs as runs_module
from hookedu.widgets.answering import png
from tests.hooks.capture_models import Answer, Failing, Repeated, Residual, Returns, conv_relu, images
from tests.widgets.conftest import english_comments


def still(picker: LayerPicker) -> bytes:
    """Return the still picture."""
    return png(picker.figure)


def colours(picker: LayerPicker) -> int:
    """Return the number of colours of the still picture."""
    return len(Image.open(io.BytesIO(still(picker))).convert("RGB").getcolors(1 << 24))


def sent(picker: LayerPicker, kind: str = "picture") -> tuple[dict, dict[str, torch.Tensor]]:
    """Return the content and the tensors of the message that a browser has last got."""
    message, buffers = picker._posted[kind]
    types = {"float32": torch.float32, "int32": torch.int32, "uint8": torch.uint8}
    tensors = {
        one["name"]: torch.frombuffer(bytearray(data), dtype=types[one["kind"]]).reshape(one["shape"])
        for one, data in zip(message["tensors"], buffers, strict=True)
        if data
    }
    return message["content"], tensors


def rows(picker: LayerPicker) -> list:
    """Return the rows of the list."""
    return sent(picker, "layers")[0]["rows"]


def click(picker: LayerPicker, name: str) -> None:
    """Choose a layer as the browser does."""
    picker._receive(picker, {"kind": "layer", "name": name}, [])


def reason(picker: LayerPicker) -> str:
    """Return why there is no picture, in both languages."""
    assert sent(picker)[0]["form"] == "none"
    return " ".join(picker.words["why"].values())


def run(code: str, **names) -> torch.Tensor:
    """Run a program of "Show code" as a user would who copies it."""
    assert english_comments(code) == []
    exec(code, names)
    return names["shown"]


class Attention(nn.Module):
    """A Transformer encoder on tokens that takes and returns a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens, scale=1.0):
        hidden = self.encoder(self.embed(tokens) * scale)
        return {"hidden": hidden, "logits": self.head(hidden[:, 0])}


torch.manual_seed(3)
VOLUME = nn.Sequential(nn.Conv3d(1, 3, 3), nn.ReLU(inplace=True))
TOKENS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])


class Plain(nn.Module):
    """A layer around a function of its input."""

    def __init__(self, function) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(3, 3), function

    def forward(self, x):
        return self.function(self.layer(x))


class Sum(nn.Module):
    """Adds up all its arguments, of whatever form."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, pair, *, more):
        return self.layer(pair[0] + pair[1]) + more["shift"]


# model, positional arguments, keyword arguments, layer
CASES = {
    "in place": (conv_relu().eval(), (images(),), {}, "0"),
    "residual": (Residual(), (images(),), {}, "conv"),
    "reused": (Repeated(3), (torch.randn(4, 3),), {}, "layer"),
    "keywords": (Attention(), (), {"tokens": TOKENS}, "encoder.layers.1.linear1"),
    "two inputs": (Attention(), (TOKENS, 2.0), {}, "encoder.layers.1.linear1"),
    "both, eval": (Attention().eval(), (TOKENS,), {"scale": 2.0}, "encoder.layers.0.linear2"),
    "a tuple and a dict": (Sum(), ((torch.ones(2, 3),) * 2,), {"more": {"shift": torch.ones(3)}}, "layer"),
    "nested output": (Returns(lambda y: (y, [y * 2, {"last": y + 1}])), (torch.randn(2, 3),), {}, ""),
    "dataclass": (Returns(lambda y: Answer(y * 2)), (torch.randn(2, 3),), {}, ""),
    "volume": (VOLUME, (torch.randn(2, 1, 5, 6, 7),), {}, "0"),
    "one picture": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(0)), (torch.randn(3, 6, 6),), {}, "0"),
    "training": (nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Dropout(0.5)), (images(),), {}, "2"),
    "complex": (Plain(torch.fft.fft), (torch.randn(2, 3),), {}, ""),
    "sparse": (Plain(torch.Tensor.to_sparse), (torch.randn(2, 3),), {}, ""),
    "ragged": (Plain(lambda y: torch.nested.as_nested_tensor([y, y[:1]])), (torch.randn(2, 3),), {}, ""),
}


@pytest.mark.parametrize("view", ["maps", "gradients", "statistics", "weights"])
@pytest.mark.parametrize("case", CASES)
def test_the_program_yields_the_numbers_on_screen(case, view, untouched, capsys):
    model, inputs, kwargs, layer = CASES[case]
    untouched(model)
    picker = LayerPicker(model, *inputs, **kwargs)
    picker.value = layer
    picker.view = view
    if view == "weights" and picker.shown is None:
        assert "没有权重" in reason(picker) and "no weight" in reason(picker)
        assert (picker.code, picker.figure, picker.error) == ("", None, None)
        return
    assert picker.error is None
    picker.call = picker.sample = 99  # the last ones
    if len(sent(picker)[0]["parts"]) > 1 and view != "gradients":  # backward starts from the first part
        picker.part = 1
    assert picker.error is None and colours(picker) > 10
    rng, before = torch.get_rng_state(), {k: v.clone() for k, v in model.state_dict().items()}
    given = {"x": inputs[0]} if len(inputs) == 1 and not kwargs else {"inputs": inputs, "kwargs": kwargs}
    assert torch.equal(run(picker.code, model=model, **given), picker.shown)
    printed = capsys.readouterr().out
    model.zero_grad()
    torch.set_rng_state(rng)
    model.load_state_dict(before)
    assert "mean tensor(" in printed
    assert list_hooks(model) == []


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (1, {"key": "score_class", "target": 1}),
        ([0, 1], {"key": "score_classes"}),
        (torch.tensor([1, 0]), {"key": "score_classes"}),
        (lambda output: output[:, 1].square().sum(), {"key": "score_target"}),
    ],
)
def test_gradients_start_where_the_target_says(target, words, untouched):
    model = conv_relu()
    untouched(model)
    picker = LayerPicker(model, images(), target=target)
    assert sent(picker)[0]["score"] == {}
    picker.view = "gradients"
    assert sent(picker)[0]["score"] == words
    assert torch.equal(run(picker.code, model=model, x=images(), target=target), picker.shown)
    model.zero_grad()
    other = LayerPicker(model, images(), target=0)
    other.view = picker.view
    other.sample = picker.sample = 1 if isinstance(target, list) else 0
    assert not torch.equal(other.shown, picker.shown)


def test_pictures_to_choose_from(untouched):
    model, x = conv_relu(), images()
    untouched(model)
    more = {"one": torch.ones(1, 4, 4), "two": x * 2}
    picker = LayerPicker(model, x, images=more)
    first = still(picker)
    for name, kept in (("one", more["one"][None]), ("two", more["two"])):
        picker.input = f"images[{name!r}]"
        assert torch.equal(picker.shown, model[0](kept).detach()[0])
        assert torch.equal(run(picker.code, model=model, x=x, images=more), picker.shown)
        assert still(picker) != first
    assert sent(LayerPicker(model, x, images=[x[0]]))[0]["inputs"] == ["x", "images[0]"]


@pytest.mark.parametrize("keywords", [False, True])
def test_a_picture_takes_the_place_of_the_first_argument(keywords):
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = conv_relu()

        def forward(self, picture, shift):
            return self.layer(picture + shift)

    model, more = Shifted(), [torch.ones(1, 4, 4)]
    given = {"picture": images(), "shift": 2.0}
    inputs, kwargs = ((), given) if keywords else (tuple(given.values()), {})
    picker = LayerPicker(model, *inputs, images=more, **kwargs)
    picker.input = "images[0]"
    assert torch.equal(picker.shown, model.layer[0](more[0][None] + 2.0).detach()[0])
    names = {"inputs": inputs, "kwargs": kwargs, "images": more}
    assert torch.equal(run(picker.code, model=model, **names), picker.shown)
    assert picker.code.startswith(f"# model, {'kwargs' if keywords else 'inputs'}, images: ")


def test_pages_scales_and_one_channel():
    model = nn.Conv2d(1, 100, 3)
    picker = LayerPicker(nn.Sequential(model), images())
    seen = {still(picker)}
    assert (sent(picker)[0]["pages"], tuple(picker.shown.shape)) == (2, (64, 2, 2))
    for change in (
        lambda: setattr(picker, "page", 1),
        lambda: setattr(picker, "per_map", True),
        lambda: setattr(picker, "channel", 70),
        lambda: setattr(picker, "sample", 1),
    ):
        change()
        assert still(picker) not in seen
        seen.add(still(picker))
    assert torch.equal(picker.shown, model(images()).detach()[1, 70])
    assert torch.equal(run(picker.code, model=nn.Sequential(model), x=images()), picker.shown)
    picker.page = 0
    assert tuple(picker.shown.shape) == (64, 2, 2)


def test_another_layer_starts_at_its_first_call_and_page_with_all_channels():
    picker = LayerPicker(nn.Sequential(nn.Conv2d(1, 100, 3), nn.Conv2d(100, 100, 1)), images())
    picker.page, picker.channel, picker.sample = 1, 70, 1
    picker.value = "1"
    assert (picker.page, picker.channel, picker.sample) == (0, None, 1)
    assert tuple(picker.shown.shape) == (64, 2, 2)


def test_on_another_picture_the_same_channel_is_shown():
    picker = LayerPicker(conv_relu(), images(), images={"other": torch.zeros_like(images())})
    picker.value, picker.channel = "1", 1
    picker.input = "images['other']"
    assert (picker.channel, tuple(picker.shown.shape)) == (
        1,
        tuple(picker.recording["1"].activation.shape[2:]),
    )


def test_value_can_be_set_and_observed_and_a_wrong_name_says_which_are_close():
    picker, seen = LayerPicker(conv_relu(), images()), []
    picker.observe(lambda change: seen.append(change["new"]), "value")
    click(picker, "3")
    picker.value = "1"
    assert seen == ["3", "1"]
    assert "get_submodule('1')" in picker.code
    with pytest.raises(LayerNotFound, match="closest"):
        picker.value = "conv9"
    assert picker.value == "1"


def test_the_model_runs_once_for_all_layers_if_they_are_small_enough(monkeypatch, untouched):
    runs = []
    model = conv_relu()
    model.register_forward_hook(lambda *_: runs.append(1))
    for limit, times in ((runs_module._KEPT_BYTES, 1), (10, 7)):
        monkeypatch.setattr(runs_module, "_KEPT_BYTES", limit)
        runs.clear()
        picker = LayerPicker(model, images())
        for name in ("", "0", "1", "2", "3", "0"):
            picker.value = name
            with record(model, [name]) as alone:
                model(images())
            runs.pop()
            (shown,) = picker.recording[name].calls
            assert torch.equal(shown.activation, alone[name].activation)
        assert len(runs) == times


def test_the_list_tells_type_shape_and_calls():
    picker = LayerPicker(Repeated(3), torch.randn(4, 3))
    assert rows(picker) == [("", "Repeated", "4×3", 1), ("layer", "Linear", "4×3", 3)]
    assert sent(picker)[0]["calls"] == 3


def test_a_thousand_layers_are_one_list():
    model = nn.Sequential(*(nn.Identity() for _ in range(1000)))
    started = time.process_time()
    picker = LayerPicker(model, torch.ones(1, 2))
    assert time.process_time() - started < 3
    assert len(rows(picker)) == 1001
    assert len(__import__("ipywidgets").widgets.widget._instances) < 100


def test_a_layer_that_never_runs_says_why():
    picker = LayerPicker(nn.Sequential(nn.MultiheadAttention(4, 1)), torch.ones(1, 4))
    assert picker.error is not None  # attention needs three arguments
    model = nn.Module()
    model.used, model.idle = nn.Linear(3, 3), nn.Linear(3, 3)
    model.forward = lambda x: model.used(x)
    picker = LayerPicker(model, torch.ones(1, 3))
    picker.value = "idle"
    assert picker.error is None and picker.figure is None
    assert "从未被调用" in reason(picker) and "never called" in reason(picker)


def errors() -> dict:
    def out_of_memory(x):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    hungry = conv_relu()
    hungry.forward = out_of_memory
    frozen = conv_relu().requires_grad_(False)
    return {
        "raises": (Failing(), torch.ones(1, 3), "ValueError: broken on purpose", "异常"),
        "out of memory": (hungry, images(), "Tried to allocate", "内存不足"),
        "wrong input": (conv_relu(), torch.ones(2, 5, 4, 4), "RuntimeError", "异常"),
        "frozen": (frozen, images(), "frozen", "冻结"),
    }


@pytest.mark.parametrize("case", errors())
def test_an_error_is_shown_in_both_languages_and_the_widget_goes_on(case, untouched):
    model, x, said, chinese = errors()[case]
    untouched(model)
    picker = LayerPicker(model, x, images={"good": images()})
    picker.view = "gradients"
    shown = picker.failure["error"] + picker.words[picker.failure["says"]]["zh"]
    assert said in shown and chinese in shown
    assert type(picker.error).__name__ in picker.failure["error"]
    assert picker.figure is None and reason(picker).strip() == ""
    frames = picker.error.__traceback__
    while frames:  # the traceback keeps no tensor alive
        assert not any(isinstance(v, torch.Tensor) for v in frames.tb_frame.f_locals.values())
        frames = frames.tb_next
    picker.view = "weights"
    assert picker.error is None and picker.failure == {}
    assert [name for name, *_ in rows(picker)] == [name for name, _ in model.named_modules()]
    if case == "wrong input":
        picker.view = "maps"
        picker.input = "images['good']"
        assert picker.error is None and colours(picker) > 5


def test_a_layer_that_is_gone_is_reported_and_others_can_still_be_chosen():
    model = conv_relu()
    picker = LayerPicker(model, images())
    del model[3]
    click(picker, "3")
    assert "3" in str(picker.error) and "LayerNotFound" in picker.failure["error"]
    click(picker, "1")
    assert picker.error is None and picker.value == "1" and colours(picker) > 5


def test_a_model_that_is_mended_runs_again():
    model = conv_relu()
    weight = model[3].weight.data
    model[3].weight.data = torch.ones(2, 5)
    picker = LayerPicker(model, images())
    assert isinstance(picker.error, RuntimeError)
    model[3].weight.data = weight
    picker.run_again()
    assert picker.error is None and colours(picker) > 5


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_inf_are_drawn_and_counted(bad):
    x = images()
    x[0, 0, 0, 0] = bad
    picker = LayerPicker(conv_relu(), x)
    for view in ("maps", "statistics", "gradients"):
        picker.view = view
        assert picker.error is None and colours(picker) > 1
    strip = LayerPicker(nn.Sequential(nn.Linear(3, 3)), torch.full((2, 3), bad))
    assert strip.error is None and colours(strip) > 1


@pytest.mark.parametrize(
    "x",
    [torch.zeros(2, 3, dtype=torch.bfloat16), torch.zeros(0, 3), torch.zeros(2, 3, dtype=torch.complex64)],
)
def test_values_of_all_sorts(x):
    picker = LayerPicker(nn.Sequential(nn.Identity()), x)
    for view in ("maps", "statistics"):
        picker.view = view
        assert picker.error is None and colours(picker) > 1


def test_of_two_fast_clicks_the_last_wins_and_one_picture_is_sent():
    async def clicks() -> list[str]:
        picker = LayerPicker(conv_relu(), images())
        drawn = []
        picker.post = lambda kind, content=None, **tensors: (
            kind == "picture" and drawn.append(content["layer"])
        )
        click(picker, "1")
        click(picker, "3")
        assert drawn == []
        while picker._waiting:
            await asyncio.sleep(0)
        click(picker, "2")
        assert "get_submodule('2')" in picker.code  # reading an attribute runs the pending update
        click(picker, "3")
        while picker._waiting:
            await asyncio.sleep(0)
        return drawn

    assert asyncio.run(clicks()) == ["3", "2", "3"]


def test_clicks_from_another_thread_wait_for_the_main_loop():
    """JupyterLab delivers clicks in a separate thread, in which the model must not run."""
    threads = []
    model = conv_relu()
    model[3].register_forward_hook(lambda *_: threads.append(__import__("threading").current_thread()))

    async def from_another() -> None:
        picker = LayerPicker(model, images())
        picker.view = "gradients"  # which are recorded layer by layer
        picker.settle()
        threads.clear()
        await asyncio.to_thread(click, picker, "1")
        while not picker._waiting and picker.recording is None:
            await asyncio.sleep(0)
        while picker._waiting:
            await asyncio.sleep(0)
        assert list(picker.recording) == ["1"]
        picker.close()
        await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(from_another())
    assert threads == [__import__("threading").main_thread()]


@pytest.mark.parametrize("fails", [False, True])
def test_a_click_that_arrives_while_the_model_runs_is_answered_next(fails):
    """What is sent says of which layer it is, not which layer has been clicked meanwhile."""

    class Meanwhile(nn.Module):
        def forward(self, x):
            if between:
                thread = threading.Thread(target=click, args=(picker, "conv"))
                thread.start()
                thread.join()
                if fails:
                    raise ValueError("not this time")
            return x

    between: list[bool] = []
    model = nn.Sequential()
    model.add_module("conv", nn.Conv2d(1, 8, 3))
    model.add_module("slow", Meanwhile())
    model.add_module("pool", nn.Flatten())

    async def clicks() -> tuple[list[tuple[str, str]], str]:
        nonlocal picker
        picker = LayerPicker(model, images())
        picker.view = "gradients"  # which are recorded layer by layer
        picker.settle()
        messages: list[tuple[str, str]] = []
        post = picker.post

        def posted(kind, content=None, **tensors):
            if kind == "picture":
                messages.append((content["layer"], content["form"]))
            post(kind, content, **tensors)

        picker.post = posted
        between.append(True)
        click(picker, "pool")
        while picker._waiting or picker._updating or not messages:
            await asyncio.sleep(0)
        return messages, picker.value

    picker: LayerPicker = None
    messages, value = asyncio.run(clicks())
    assert value == "conv"
    assert messages == [("pool", "none" if fails else "matrix"), ("conv", "maps")]


def test_the_language_changes_and_nothing_is_sent_or_run():
    calls = []
    model = conv_relu()
    model.register_forward_hook(lambda *_: calls.append(1))
    picker = LayerPicker(model, images())
    picker.value, picker.view = "1", "statistics"
    posted, runs = dict(picker._posted), len(calls)
    for language in ("zh", "en", "both"):
        preference.language = language
        assert picker.language == language
    assert (picker._posted, len(calls), picker.view) == (posted, runs, "statistics")
    for words in picker.words.values():
        assert sorted(re.findall(r"{\w+}", words["zh"])) == sorted(re.findall(r"{\w+}", words["en"]))


def test_the_numbers_of_a_layer_are_sent_once():
    model = nn.Sequential(nn.Conv2d(1, 100, 3), nn.ReLU())
    picker, posted = LayerPicker(model, images()), []
    content, tensors = sent(picker)
    assert tensors["values"].shape == (100, 2, 2) and content["scale"]["map"] == "RdBu_r"
    assert torch.equal(tensors["values"][:64], picker.shown)
    picker.post = lambda kind, *_, **__: posted.append(kind)
    for name, value in (("page", 1), ("channel", 70), ("per_map", True), ("channel", None), ("page", 0)):
        setattr(picker, name, value)
    assert set(posted) == {"code"}
    posted.clear()
    picker.sample = 1
    assert posted == ["code", "input", "picture"]


def test_of_a_large_layer_a_page_is_sent_at_a_time_and_of_large_maps_some_rows(monkeypatch):
    monkeypatch.setattr(layer_numbers, "MOST", 1000)
    picker = LayerPicker(nn.Sequential(nn.Conv2d(1, 100, 1)), torch.randn(1, 1, 8, 8))
    for page, (first, last) in enumerate([(0, 64), (64, 100)]):
        picker.page = page
        content, tensors = sent(picker)
        step = content["step"]
        assert (content["first"], content["size"]) == (first, [8, 8]) and step > 1
        assert tensors["values"].numel() <= 1000
        assert torch.equal(tensors["values"], picker.recording["0"].activation[0, first:last, ::step, ::step])
    picker = LayerPicker(nn.Sequential(nn.Embedding(3, 40)), torch.arange(3).repeat(50)[None])
    content, tensors = sent(picker)
    down, across = content["steps"]
    assert across == 1 and down > 1 and torch.equal(tensors["values"], picker.shown[::down])


@pytest.mark.parametrize(
    ("layer", "axes", "size", "bars"),
    [
        ("embed", ["axis_token", "axis_feature"], [4, 8], False),
        ("head", ["axis_sample", "axis_class"], [2, 3], True),
        ("encoder.layers.0.linear1", ["axis_token", "axis_feature"], [4, 16], False),
    ],
)
def test_tokens_are_positions_by_features_and_vectors_are_bars(layer, axes, size, bars):
    picker = LayerPicker(Attention(), TOKENS, classes=["a", "b", "c"])
    picker.value, picker.part = layer, 1
    content, tensors = sent(picker)
    assert (content["form"], content["axes"], content["size"], content["bars"]) == (
        "matrix",
        axes,
        size,
        bars,
    )
    assert content["classes"] == (["a", "b", "c"] if layer == "head" else None)
    assert torch.equal(tensors["values"], picker.shown)


def test_the_histogram_counts_every_finite_value():
    x = torch.tensor([[1.0, -2.0, 0.0, 0.0, float("nan"), float("inf"), 3.0]])
    picker = LayerPicker(nn.Sequential(nn.Identity()), x)
    picker.view = "statistics"
    content, tensors = sent(picker)
    assert (content["zeros"], content["rest"], tensors["counts"].sum()) == (2, 3, 3)
    assert (content["stats"]["nan"], content["stats"]["inf"], content["low"], content["high"]) == (
        1,
        1,
        -2,
        3,
    )


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_the_input_is_sent_as_pixels(channels):
    x = torch.linspace(-1, 1, channels * 600 * 4).reshape(1, channels, 600, 4)
    picker = LayerPicker(nn.Sequential(nn.Conv2d(channels, 2, 1)), x)
    content, tensors = sent(picker, "input")
    assert content == {"shape": f"{channels}×600×4", "size": [600, 4], "channels": channels}
    assert tensors["pixels"].shape == (200, 2, 3)
    assert (tensors["pixels"].min(), tensors["pixels"].max()) <= (2, 255)


def test_wrong_choices_are_refused_or_moved_to_the_nearest():
    picker = LayerPicker(conv_relu(), images())
    with pytest.raises(traitlets.TraitError):
        picker.view = "photographs"
    with pytest.raises(traitlets.TraitError, match="only: x"):
        picker.input = "images['cat']"
    picker.sample, picker.call, picker.channel = 17, -3, 9
    assert (picker.sample, picker.call, picker.channel) == (1, 0, 1) and picker.error is None


def test_what_a_notebook_may_store_is_small():
    model = nn.Sequential(*(nn.Conv2d(1, 1, 1) for _ in range(500)))
    state = LayerPicker(model, images()).get_state()
    assert len(str({k: v for k, v in state.items() if k not in ("_esm", "_css")})) < 10_000


def test_closing_lets_go_of_everything(closes):
    picker = LayerPicker(conv_relu(), images())
    closes(picker)
    assert picker.closed and picker.recording is None and picker.shown is None and picker.figure is None
    picker.close()
    assert __import__("ipywidgets").widgets.widget._instances == {}


def test_what_is_stored_in_a_notebook_does_not_depend_on_what_was_chosen():
    picker = LayerPicker(conv_relu(), images())
    before = repr(picker)
    picker.value, preference.language = "3", "zh"
    assert repr(picker) == before == "LayerPicker()"


def test_what_is_no_model_is_refused_at_once():
    with pytest.raises(TypeError, match=r"nn\.Module"):
        LayerPicker(SimpleNamespace(), images())


def test_compiled_and_parallel_models_show_the_model_inside():
    model = nn.DataParallel(conv_relu())
    picker = LayerPicker(model, images())
    assert picker.error is None and picker.value == "0"
    assert torch.equal(run(picker.code, model=model, x=images()), picker.shown)


def whole() -> nn.Module:
    return torch.compile(conv_relu(inplace=False), backend="eager")


def by_method() -> nn.Module:
    model = conv_relu(inplace=False)
    model.compile(backend="eager")
    return model


def child() -> nn.Module:
    return nn.Sequential(torch.compile(conv_relu(inplace=False), backend="eager"), nn.ReLU())


@pytest.mark.filterwarnings("ignore:模型经过编译")
@pytest.mark.parametrize("build", [whole, by_method, child])
def test_a_compiled_model_shows_its_layers_and_the_program_runs(build):
    torch.compiler.reset()
    model, x = build(), images()
    model(x)  # from here on there is compiled code, which has no hooks
    picker = LayerPicker(model, x)
    names = [name for name, *_ in rows(picker)]
    assert not any("_orig_mod" in name for name in names)
    picker.value = names[2]
    for view in ("maps", "gradients", "weights"):
        picker.view = view
        assert picker.error is None
        if view != "weights" or picker.shown is not None:
            assert torch.equal(run(picker.code, model=model, x=x), picker.shown)
    assert torch._dynamo.eval_frame._stance.stance == "default"
    torch.compiler.reset()


def test_lazy_layers_are_shown_and_stay_lazy():
    model = nn.Sequential(nn.LazyConv2d(2, 3), nn.Flatten(), nn.LazyLinear(2))
    picker = LayerPicker(model, images())
    assert picker.error is None and tuple(picker.shown.shape) == (2, 2, 2)
    picker.view = "weights"
    assert picker.error is None and picker.shown is None
    assert "has no weight yet" in reason(picker) and "还没有初始化" in reason(picker)
    assert type(model[0]) is nn.LazyConv2d and model[0].has_uninitialized_params()


def test_what_has_no_values_says_so():
    with torch.device("meta"):
        meta, of_meta = nn.Sequential(nn.Conv2d(1, 2, 3)), torch.ones(2, 1, 4, 4)
    mapped = nn.Sequential(nn.Linear(3, 3))
    mapped.forward = lambda x: torch.vmap(mapped[0])(x)
    for model, x in ((meta, of_meta), (mapped, torch.ones(2, 3))):
        picker = LayerPicker(model, x)
        for view in ("maps", "statistics"):
            picker.view = view
            assert (picker.value, picker.error, picker.shown, picker.code) == ("0", None, None, "")
            assert "no values to draw" in reason(picker) and "没有可以画的数值" in reason(picker)


@pytest.mark.parametrize("scale", [1e-6, 0.01, 0.1, 1, 1e5])
@pytest.mark.parametrize("view", ["maps", "gradients"])
def test_no_number_beside_a_colour_bar_is_cut(scale, view):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.Flatten(), nn.Linear(6 * 36, 3))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    picker = LayerPicker(model, torch.randn(1, 1, 8, 8))
    for picker.value, picker.view in (("0", view), ("2", view)):
        figure = picker.figure
        FigureCanvasAgg(figure).draw()
        bar = next((bar for ax in figure.axes for bar in ax.child_axes), figure.axes[-1])
        low, high = bar.get_ylim()
        ticks = [text for text in bar.get_yticklabels() if low <= text.get_position()[1] <= high]
        assert len(ticks) > 2
        for text in (*ticks, bar.yaxis.get_offset_text()):
            box = text.get_window_extent()
            assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, (picker.value, text.get_text())


def test_an_empty_batch_is_reported_to_be_empty():
    picker = LayerPicker(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), torch.zeros(0, 3, 8, 8))
    for view in ("maps", "gradients", "statistics"):
        picker.view = view
        assert picker.figure is not None
        assert picker.error is None
        assert "0×4×6×6" in picker.words["why"]["en"]
        assert picker.sample == 0
    picker.close()


@pytest.mark.parametrize("value", [torch.finfo(torch.float32).min, 1e17])
def test_statistics_of_a_single_large_value(value):
    picker = LayerPicker(nn.Sequential(nn.Threshold(2.0, value)), torch.ones(1, 1, 4, 4))
    picker.view = "statistics"
    assert picker.figure is not None
    assert picker.error is None
    content = picker._posted["picture"][0]["content"]
    assert content["low"] < value < content["high"]
    picker.close()
