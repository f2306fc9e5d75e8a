"""Whatever a page sends: no widget raises, and what asks for nothing that there is changes nothing."""

import copy

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from hookedu import (
    GradCamPlayground,
    GradientFlow,
    HookInspector,
    HookTimeline,
    LanguageToggle,
    LayerPicker,
    TrainingPanel,
    guess,
    list_hooks,
)
from hookedu.language import preference
from tests.widgets.conftest import marks, same

X = torch.rand(2, 3, 8, 8)
LEAF = torch.ones(2, requires_grad=True)
LOSS = LEAF.sum()


def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def inspector(model):
    model[0].register_forward_hook(lambda *_: None)
    model[1].register_forward_hook(lambda *_: None)
    return HookInspector(model)


WIDGETS = {
    "picker": lambda model: LayerPicker(model, X, images=[X[0]]),
    "timeline": lambda model: HookTimeline(model, X),
    "predicting": lambda model: predicting(model),
    "inspector": inspector,
    "flow": lambda _: GradientFlow(LOSS, {"x": LEAF}),
    "play": lambda model: GradCamPlayground(model, "1", lambda shapes, ground: X[0], ["a", "b"]),
    "panel": lambda model: TrainingPanel(model, torch.optim.SGD(model.parameters(), lr=0.1)),
    "toggle": lambda _: LanguageToggle(),
    "guess": lambda _: guess("02.a"),
}


def predicting(model):
    widget = HookTimeline(model, X)
    widget.mode = "predict"
    return widget


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
KINDS = [
    "again",
    "turn",
    "answer",
    "next",
    "choose",
    "follow",
    "remove",
    "undo",
    "layer",
    "ready",
    "explain",
    "add",
]
messages = anything | st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS) | anything},
    optional={
        name: anything for name in ("choice", "key", "name", "language", "index", "channel", "on", "x", "y")
    },
)
# What the modules in js/ set, and values that some widget takes.
TRAITS = [
    "value",
    "mode",
    "view",
    "input",
    "part",
    "call",
    "sample",
    "page",
    "channel",
    "per_map",
    "hooks",
    "said",
]
values = anything | st.sampled_from(
    [
        "predict",
        "watch",
        "maps",
        "gradients",
        "statistics",
        "weights",
        "x",
        "images[0]",
        {"x": "double"},
        3,
        "zh",
    ]
)
received = st.lists(
    messages.map(lambda content: ("custom", content))
    | st.dictionaries(st.sampled_from([*TRAITS, "language"]), values, max_size=3).map(
        lambda state: ("update", state)
    ),
    max_size=5,
)
# Python's own float, int and bool, so that a number is as likely as a list.
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=25)


def receive(widget, method, content) -> None:
    """Let a widget receive a message as it comes from a page; unlike ipywidgets, without hiding what it raises."""
    if method == "custom":
        widget._receive(widget, content, [])
    else:
        widget.set_state(copy.deepcopy(content))
    widget.settle()


@pytest.mark.parametrize("name", WIDGETS)
@settings(QUIET)
@given(received)
def test_no_message_raises_and_the_model_stays_as_it_was(name, received):
    preference.language = "both"
    model = net()
    widget = WIDGETS[name](model)
    before, hooks = marks(model), len(list_hooks(model))
    for method, content in received:
        receive(widget, method, content)
    assert name == "play" or widget.error is None
    assert preference.language in ("zh", "en", "both")
    if name == "inspector" and len(list_hooks(model)) < hooks:  # as a page may well ask for
        return widget.close()
    assert same(before, marks(model))
    widget._repr_mimebundle_()
    widget.close()
    return None


ODD = [None, True, -1, 99, 10**400, 1.5, float("nan"), float("inf"), "nowhere", [], [0], {}, {"0": 0}]


@pytest.mark.parametrize("name", ["picker", "timeline", "predicting", "inspector", "flow", "toggle"])
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_asks_for_nothing_changes_nothing(name, odd):
    widget = WIDGETS[name](net())
    before = state_of(widget)
    for kind in ("turn", "answer", "choose", "follow", "", odd):
        receive(widget, "custom", {"kind": kind, "choice": odd, "key": odd, "name": odd, "language": odd})
        receive(widget, "custom", {"kind": kind})
    receive(widget, "custom", odd)
    for trait in {"mode", "view", "input", "hooks"} & set(widget.keys):
        if trait != "hooks" or odd != {}:  # which is a choice: no hook on any tensor
            receive(widget, "update", {trait: odd})
    assert state_of(widget) == before


def state_of(widget) -> list:
    own = {name: value for name, value in widget.get_state().items() if name not in ("_esm", "_css")}
    return [own, widget.error, copy.deepcopy(widget._posted), getattr(widget, "score", None)]


def test_a_page_that_sent_no_value_gets_the_old_one_back(monkeypatch):
    picker, sent = WIDGETS["picker"](net()), []
    monkeypatch.setattr(picker, "send_state", lambda key=None: sent.append(set(key)))
    picker.set_state({"view": "nowhere", "page": 0, "nothing": 3})
    assert picker.view == "maps" and sent == [{"view", "page"}]
