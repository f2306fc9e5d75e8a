"""HookTimeline without a browser; tests/browser/test_hook_timeline.py has the rest."""

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from hookedu import HookTimeline, timeline
from hookedu.hooks.tensors import tensors_in
from hookedu.hooks.timeline import FORWARD
from hookedu.language import preference
from hookedu.widgets.timeline_reasons import why
from hookedu.widgets.timeline_words import WORDS
from tests.hooks.capture_models import Failing, Repeated, conv_relu, images


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1)))


def posted(steps: HookTimeline, kind: str) -> tuple[dict, np.ndarray]:
    """Return the last message of a kind that the browser gets: its content, and its tensor of whole numbers."""
    message, buffers = steps._posted[kind]
    content = json.loads(json.dumps(message["content"]))
    numbers = np.frombuffer(buffers[0], np.int32) if buffers else np.array([])
    return content, numbers.reshape(message["tensors"][0]["shape"] if buffers else 0)


def shown(steps: HookTimeline) -> list[dict]:
    """Return what the browser can say of each event, with its box and mark in the drawing."""
    texts, rows = posted(steps, "events")
    model, marks = posted(steps, "model")
    found = []
    for (kind, path, call, leaf, shape, value), mark in zip(rows.tolist(), marks.tolist(), strict=True):
        box, mark_kind, mark_leaf = model["marks"][mark]
        found.append(
            texts["kinds"][kind]
            | {"path": texts["paths"][path][0], "type": texts["paths"][path][1], "call": call}
            | {"forward": texts["forward"][kind], "leaf": texts["leaves"][leaf]}
            | {"shape": texts["shapes"][shape], "value": texts["values"][value]}
            | {"box": model["boxes"][box], "mark": (mark_kind, mark_leaf)}
        )
    return found


def ask(steps: HookTimeline, kind: str, **content) -> None:
    """Do what the browser asks for."""
    steps._receive(steps, {"kind": kind, **content}, [])


def test_every_event_is_sent_once_with_its_mark(untouched):
    model, x = small(), torch.ones(1, 2)
    untouched(model)
    steps = HookTimeline(model, x)
    expected = timeline(model, x)
    assert [(e.kind, e.path, e.call) for e in steps.recording] == [(e.kind, e.path, e.call) for e in expected]
    for said, event in zip(shown(steps), expected, strict=True):
        assert (said["name"], said["path"], said["call"]) == (event.kind, event.path, event.call)
        assert said["box"]["path"] == event.path and said["box"]["type"] == said["type"]
        leaf = event.leaf if isinstance(event.leaf, str) else ""
        assert said["mark"] == (event.kind, leaf) and said["leaf"] == leaf
        assert said["forward"] == event.kind.startswith("forward")
    boxes = posted(steps, "model")[0]["boxes"]
    assert [(box["name"], box["parent"], box["open"], box["chain"]) for box in boxes] == [
        ("(model)", -1, True, True),
        ("0", 0, False, False),
        ("1", 0, False, False),
        ("2", 0, True, True),
        ("0", 3, False, False),
    ]


def test_the_position_stays_among_the_events():
    steps = HookTimeline(small(), torch.ones(1, 2))
    steps.value = 10_000
    assert steps.value == len(steps.recording) - 1
    with pytest.raises(Exception, match="mode"):
        steps.mode = "sleep"


def test_signature_shape_and_values_are_told():
    steps = HookTimeline(nn.Sequential(nn.Linear(2, 1, bias=False)), torch.tensor([[3.0, 4.0]]))
    said = next(each for each in shown(steps) if each["name"] == "param_grad")
    assert said["registration"] == "parameter.register_hook(hook)" and said["signature"] == "hook(grad)"
    assert said["shape"] == ["1×2", "1×2"] and said["value"] == ["[3, 4]", "3, 4"]
    assert said["leaf"] == "weight"
    said = shown(HookTimeline(nn.Sequential(nn.Identity()), torch.arange(9.0)))[0]
    assert said["value"] == ["[0] [0, 1, 2, 3, 4, 5, …]", "0, 1, 2, …"]


def test_what_is_no_tensor_is_none_and_not_too_large():
    class Quiet(nn.Module):
        def forward(self, x):
            return None

    said = shown(HookTimeline(Quiet(), torch.ones(1)))[-1]
    assert (said["name"], said["value"]) == ("forward", ["None", ""])


@pytest.mark.parametrize(
    ("build", "width"),
    [
        (small, 2),
        (lambda: nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.Tanh(), small()), 2),
        (Repeated, 3),
    ],
)
def test_a_wrong_answer_that_comes_later_gets_a_reason_that_holds(build, width):
    steps = HookTimeline(build(3) if build is Repeated else build(), torch.ones(4, width))
    events, told = steps.recording, Counter()
    order = {e.path: e.order for e in events if e.kind == "forward_pre"}  # of the last call
    for number in range(len(events) - 1):
        fired = events[number + 1]
        for answer in steps.answers(number):
            guessed = events[steps._fires(answer, number + 1)]
            if guessed is fired:
                continue
            told[key := why(events, fired, guessed)] += 1
            later, among = guessed.order > fired.order, f".{guessed.path}.".startswith(f".{fired.path}.")
            assert key in ("", *WORDS)
            assert later or key in ("", "why_forward_over")
            assert not (later and key == "") or build is Repeated
            if key == "why_backward_waits":
                assert fired.kind in FORWARD and guessed.kind not in FORWARD
            elif key == "why_forward_over":
                assert not any(event.kind in FORWARD for event in events[fired.order :])
            elif key == "why_reverse":
                assert order[guessed.path] < order[fired.path] and not among
            elif key == "why_order":
                assert order[fired.path] < order[guessed.path] and not among
            elif key == "why_inside":
                assert (guessed.kind, guessed.path) != ("forward", fired.path) and not among
            elif key in ("why_outside", "why_after"):
                assert fired.kind == "forward_pre" and among
    assert {"why_backward_waits", "why_waits"} <= told.keys()
    assert build is Repeated or {"why_reverse", "why_inside", "why_order"} <= told.keys()


def test_all_right_answers_give_full_score_and_a_wrong_one_does_not():
    steps = HookTimeline(small(), torch.ones(1, 2))
    steps.mode = "predict"
    asked = len(steps.recording) - 1
    for number in range(asked):
        question, _ = posted(steps, "question")
        answers = steps.answers(number)
        right = steps._name(steps.recording[number + 1])
        assert answers.count(right) == 1 and len(set(answers)) == len(answers) > 1
        assert question["answers"] == answers and question["number"] == number + 2
        assert "correct" not in question and "chosen" not in question
        choice = next(i for i, a in enumerate(answers) if (a == right) != (number == 3))
        ask(steps, "answer", choice=choice)
        ask(steps, "answer", choice=choice)  # a second click counts for nothing
        question, _ = posted(steps, "question")
        assert question["answers"] == answers, "the verdict stands beside its own question"
        assert (question["chosen"], question["correct"]) == (choice, answers.index(right))
        assert steps._name(steps.recording[question["fires"] - 1]) == answers[choice]
        assert question["fires"] == number + 2 or answers[choice] != right
        assert steps.value == number + 1
        ask(steps, "next")
    assert steps.score == (asked - 1, asked)
    assert posted(steps, "question")[0] == {
        "right": asked - 1,
        "asked": asked,
    }  # there is nothing left to ask
    steps.mode = "watch"
    steps.mode = "predict"
    assert (steps.score, steps.value) == ((0, 0), 0)
    assert posted(steps, "question")[0]["number"] == 2


def test_a_position_set_from_python_changes_the_question():
    steps = HookTimeline(small(), torch.ones(1, 2))
    steps.mode = "predict"
    steps.value = 4
    assert posted(steps, "question")[0]["answers"] == steps.answers(4)


@pytest.mark.parametrize("build", [small, conv_relu, lambda: Repeated(3)])
def test_no_question_has_two_right_answers(build):
    model = build()
    x = {"Repeated": torch.ones(1, 3)}.get(
        type(model).__name__,
        images() if len(list(model.modules())) == 5 and isinstance(model[0], nn.Conv2d) else torch.ones(1, 2),
    )
    steps = HookTimeline(model, x)
    assert steps.error is None
    for number in range(len(steps.recording) - 1):
        right = steps.recording[number + 1]
        if isinstance(right.leaf, str):  # the other parameter of the module may come first
            others = [
                a
                for a in steps.answers(number)
                if "." in a and f"{right.path}." in a and f".{right.leaf} " not in a
            ]
            assert [
                a
                for a in others
                if a.startswith(("param_grad", "post_accumulate"))
                and f"· {right.path}." in a
                and a.count(".") == steps._name(right).count(".")
            ] == []


def test_a_model_that_raises_is_shown_and_can_be_run_again(untouched):
    model = Failing()
    untouched(model)
    steps = HookTimeline(model, torch.ones(1, 3))
    assert isinstance(steps.error, ValueError) and "broken on purpose" in steps.failure["error"]
    assert posted(steps, "events")[0]["total"] == 0
    assert all(box["unused"] for box in posted(steps, "model")[0]["boxes"])
    steps.mode = "predict"
    ask(steps, "answer", choice=0)
    assert steps.value == 0 and steps.score == (0, 0) and steps.figure is None
    model.broken.forward = lambda x: x
    ask(steps, "again")
    assert steps.error is None and steps.failure == {} and len(steps.recording) > 10
    assert posted(steps, "events")[0]["total"] == len(steps.recording)
    assert posted(steps, "question")[0]["answers"] == steps.answers(0)
    del model.broken.forward


def test_a_model_without_gradients_has_a_forward_half():
    steps = HookTimeline(small().requires_grad_(False), torch.ones(1, 2))
    assert steps.error is None and {e.kind for e in steps.recording} == {"forward_pre", "forward"}


def test_in_place_ops_are_told_about():
    steps = HookTimeline(nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)), torch.ones(1, 2))
    assert steps.error is None and "就地操作" in steps.words["note"]["zh"]
    assert HookTimeline(small(), torch.ones(1, 2)).words["note"]["en"] == ""


# -- what is drawn of a large model -------------------------------------------------------------------------------------


def names(steps: HookTimeline) -> list[tuple[str, str]]:
    return [(box["name"], box["type"]) for box in posted(steps, "model")[0]["boxes"]]


def test_hooks_of_ones_own_are_listed_with_how_often_they_are_registered():
    model, x = small(), torch.ones(1, 2)

    def look(module, args, output):
        pass

    steps = HookTimeline(model, x)
    assert steps.words["own"] == {"zh": "", "en": ""}
    model.register_forward_hook(look)
    for _ in range(2):
        model[2][0].register_forward_hook(look)
    model[0].weight.register_hook(lambda grad: None)
    model[1].register_state_dict_pre_hook(lambda *args: None)  # no part of a run
    steps.run_again()
    steps.settle()
    name, said = look.__qualname__, steps.words["own"]
    assert (
        f"`{name}` (forward on `(model)`), " in said["en"] and f"`{name}` ×2 (forward on `2.0`)" in said["en"]
    )
    assert f"`{name}` ×2（forward，位于 `2.0`）" in said["zh"]
    assert "(param_grad on `0.weight`)" in said["en"] and "state" not in said["en"]


def test_it_is_reported_when_hooks_of_ones_own_ran_twice(monkeypatch):
    model, x, runs = small(), torch.ones(1, 2), []
    model.register_forward_hook(lambda *args: runs.append(1))
    steps = HookTimeline(model, x)
    assert len(runs) == 2 and "The model ran twice" in steps.words["own"]["en"]
    monkeypatch.setattr("hookedu.widgets.hook_timeline._VALUES", 1)
    steps.run_again()
    assert steps.recording and len(runs) == 3 and "The model ran twice" not in steps.words["own"]["en"]


def test_repeats_are_one_box_that_shows_the_inside_of_all():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(300)), nn.Flatten())
    steps = HookTimeline(model, torch.ones(1, 2))
    assert names(steps) == [
        ("(model)", "Sequential"),
        ("0 … 299", "Sequential ×300"),
        ("0", "Linear ×300"),
        ("1", "ReLU ×300"),
        ("300", "Flatten"),
    ]
    events = shown(steps)
    assert {e["box"]["path"] for e in events if e["path"] == "150.1"} == {"0.1"}
    assert {e["path"] for e in events if e["box"]["path"] == "0.0"} == {f"{n}.0" for n in range(300)}


def test_of_many_different_layers_the_middle_is_one_box():
    layers = (layer for _ in range(200) for layer in (nn.Linear(2, 2), nn.ReLU()))
    steps = HookTimeline(nn.Sequential(*layers), torch.ones(1, 2))
    assert [name for name, _ in names(steps)] == ["(model)", *"0123", "⋯", "396", "397", "398", "399"]
    assert ("⋯", "×392") in names(steps)
    assert {e["box"]["name"] for e in shown(steps) if e["path"] == "77"} == {"⋯"}


def test_a_level_that_has_no_room_is_closed_and_opens_on_request():
    block = lambda n: nn.Sequential(*(nn.Linear(2, 2) if i % 2 else nn.Tanh() for i in range(n)))  # noqa: E731
    steps = HookTimeline(nn.Sequential(block(8), block(7), block(6)), torch.ones(1, 2))
    closed = posted(steps, "model")[0]["boxes"]
    assert [(box["open"], box["folds"], box["inside"]) for box in closed] == [
        (True, False, 0),
        (False, True, 8),
        (False, True, 7),
        (False, True, 6),
    ]
    assert {e["mark"][0] for e in shown(steps) if e["path"] == "0.3"} == {"inside"}
    assert {e["mark"][0] for e in shown(steps) if e["path"] == "0"} >= {"forward_pre", "forward", "backward"}
    sent = steps._posted["events"]
    ask(steps, "turn", choice="0")
    boxes = posted(steps, "model")[0]["boxes"]
    assert len(boxes) == 12 and boxes[1]["open"] and not boxes[-1]["open"]
    assert {e["box"]["path"] for e in shown(steps) if e["path"] == "0.3"} == {"0.3"}
    assert steps._posted["events"] is sent, "the events have not changed"
    ask(steps, "turn", choice="0")
    assert posted(steps, "model")[0]["boxes"] == closed


def test_modules_stand_in_the_order_of_their_calls():
    class Crossed(nn.Module):
        def __init__(self):
            super().__init__()
            self.never, self.second, self.first = nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU()
            self.list = nn.ModuleList([nn.Tanh()])

        def forward(self, x):
            return self.second(self.first(self.list[0](x)))

    boxes = posted(HookTimeline(Crossed(), torch.ones(1, 2)), "model")[0]["boxes"]
    assert [(box["name"], box["called"], box["unused"]) for box in boxes] == [
        ("(model)", True, False),
        ("list", False, False),
        ("0", True, False),
        ("first", True, False),
        ("second", True, False),
        ("never", False, True),
    ]
    assert not any(box["chain"] for box in boxes)


def test_a_module_with_many_parameters_has_one_row_for_all():
    steps = HookTimeline(nn.LSTM(2, 3, num_layers=2), torch.ones(4, 2))
    marks = posted(steps, "model")[0]["marks"]
    assert ([0, "param_grad", ""] in marks) and all(leaf == "" for _, _, leaf in marks)
    assert {e["leaf"] for e in shown(steps) if e["name"] == "param_grad"} >= {"weight_ih_l0", "bias_hh_l1"}


def test_a_large_run_keeps_no_values(monkeypatch):
    steps = HookTimeline(nn.Sequential(nn.Identity()), torch.zeros(4_100_000))
    assert steps.recording[0].value is None and {e["value"] for e in shown(steps)} == {None}
    monkeypatch.setattr("hookedu.widgets.hook_timeline._EVENTS", 10)
    assert HookTimeline(small(), torch.ones(1, 2)).recording[0].value is None


def test_what_is_sent_grows_with_the_events_and_the_drawing_does_not():
    sizes = []
    for n in (100, 200, 400):
        layers = [layer for _ in range(n) for layer in (nn.Linear(2, 2), nn.ReLU())]
        steps = HookTimeline(nn.Sequential(*layers), torch.ones(1, 2))
        sizes.append([len(str(steps._posted["events"])), len(str(steps._posted["model"][0]))])
    for (events, drawing), (more, same) in pairwise(sizes):
        assert more < 2.2 * events and same < drawing + 100
    state = {k: v for k, v in steps.get_state().items() if k not in ("_esm", "_css", "words")}
    assert len(str(state)) < 2_000  # a notebook may store it


# -- what all widgets do ------------------------------------------------------------------------------------------------


def test_the_overview_is_a_figure_of_our_own():
    steps = HookTimeline(small(), torch.ones(1, 2))
    assert steps.figure.axes[0].get_xlabel() == "order of events"
    assert "image/png" in steps._repr_mimebundle_()[0]


def test_labels_follow_the_language():
    steps = HookTimeline(small(), torch.ones(1, 2))
    preference.language = "en"
    assert steps.language == "en" and steps.words["registration"]["en"] == "Registered by"
    assert repr(steps) == "HookTimeline()"


def test_closing_lets_go_of_everything(closes):
    steps = HookTimeline(small(), torch.ones(1, 2))
    closes(steps)
    assert __import__("ipywidgets").widgets.widget._instances == {}
    assert steps._posted == {} and steps.recording is None


def test_values_that_cannot_be_read_are_question_marks():
    with torch.device("meta"):
        steps = HookTimeline(small(), torch.ones(1, 2))
    assert steps.error is None
    for said, event in zip(shown(steps), steps.recording, strict=True):
        assert ("[?]" in said["value"][0]) == any(True for _ in tensors_in(event.value))
