"""HookTimeline without a browser."""

import asyncio

import pytest
import torch
from torch import nn

from hookedu import HookTimeline, timeline
from hookedu.hooks.tensors import tensors_in
from hookedu.language import preference
from tests.hooks.capture_models import Failing, Repeated, conv_relu, images


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1)))


def test_every_event_lights_its_module(untouched):
    model, x = small(), torch.ones(1, 2)
    untouched(model)
    steps = HookTimeline(model, x)
    expected = timeline(model, x)
    assert [(e.kind, e.path, e.call) for e in steps.recording] == [(e.kind, e.path, e.call) for e in expected]
    for number, event in enumerate(expected):
        assert steps.value == number
        lit = steps._drawing_box.value.partition("hookedu-lit")[2]
        assert lit and steps._drawing_box.value.count("hookedu-lit") == 1
        name = event.path.rpartition(".")[2] or "(model)"
        assert lit.startswith(f'">{"▶" if event.kind.startswith("forward") else "◀"} <code>{name}</code>')
        assert event.kind in lit
        assert f"{number + 1} / {len(expected)} · {event.kind}" in steps._event.value
        steps._next.click()
    assert steps.value == len(expected) - 1 and steps._next.disabled
    steps._back.click()
    assert steps.value == len(expected) - 2


def test_playing_goes_on_to_the_end_pauses_and_begins_anew(monkeypatch):
    monkeypatch.setattr("hookedu.widgets.hook_timeline._PACE", 0.001)

    async def play() -> list[int]:
        steps, seen = HookTimeline(small(), torch.ones(1, 2)), []
        steps.observe(lambda change: seen.append(change["new"]), "value")
        steps._play.value = True
        while steps.value < 3:
            await asyncio.sleep(0)
        steps._play.value = False
        paused = steps.value
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert steps.value == paused
        for _ in range(2):
            steps._play.value = True
            while steps._play.value:
                await asyncio.sleep(0)
        assert steps.error is None and steps.value == len(steps.recording) - 1
        return seen

    seen = asyncio.run(play())
    assert seen == [*range(1, max(seen) + 1), *range(max(seen) + 1)]


def test_signature_shape_and_values_are_told():
    steps = HookTimeline(
        nn.Sequential(nn.Linear(2, 1, bias=False)).requires_grad_(True), torch.tensor([[3.0, 4.0]])
    )
    number = next(e.order for e in steps.recording if e.kind == "param_grad")
    steps.value = number
    said = steps._event.value
    assert "parameter.register_hook(hook)" in said and "hook(grad)" in said
    assert "1×2" in said and "[3, 4]" in said and "<code>weight</code>" in said


def test_all_right_answers_give_full_score_and_a_wrong_one_does_not():
    steps = HookTimeline(small(), torch.ones(1, 2))
    steps._mode.value = "predict"
    assert steps._steps.layout.display == "none"
    asked = len(steps.recording) - 1
    for number in range(asked):
        answers = steps.answers(number)
        right = steps._name(steps.recording[number + 1])
        assert answers.count(right) == 1 and len(set(answers)) == len(answers) > 1
        assert tuple(value for _, value in steps._answers.options) == tuple(answers)
        assert steps._answers.value is None  # no answer is preselected
        wrong = next(a for a in answers if a != right)
        steps._answers.value = wrong if number == 3 else right
        steps._check.click()
        assert ("✗" if number == 3 else "✓") in steps._verdict.value
    assert steps.score == (asked - 1, asked)
    assert steps._guess.layout.display == "none" and "到此为止" in steps._verdict.value
    steps._mode.value = "watch"
    steps._mode.value = "predict"
    assert (steps.score, steps.value) == ((0, 0), 0)


def test_revealing_without_an_answer_asks_for_one():
    steps = HookTimeline(small(), torch.ones(1, 2))
    steps._mode.value = "predict"
    steps._check.click()
    assert "请先选" in steps._verdict.value and steps.score == (0, 0) and steps.value == 0


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
    assert isinstance(steps.error, ValueError) and "broken on purpose" in steps._error_report.value
    steps._next.click()
    steps._mode.value = "predict"
    steps._check.click()
    assert steps.value == 0
    model.broken.forward = lambda x: x
    steps._again.click()
    assert steps.error is None and len(steps.recording) > 10 and "hookedu-lit" in steps._drawing_box.value
    del model.broken.forward


def test_a_model_without_gradients_has_a_forward_half():
    steps = HookTimeline(small().requires_grad_(False), torch.ones(1, 2))
    assert steps.error is None and {e.kind for e in steps.recording} == {"forward_pre", "forward"}


def test_in_place_ops_are_told_about():
    steps = HookTimeline(nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)), torch.ones(1, 2))
    assert steps.error is None and "就地操作" in steps._event.value


def test_a_large_model_is_drawn_around_the_lit_module():
    model = nn.Sequential(*(nn.Sequential(nn.Identity(), nn.Identity()) for _ in range(300)))
    steps = HookTimeline(model, torch.ones(1, 2))
    steps.value = next(e.order for e in steps.recording if e.path == "150.1")
    drawn = steps._drawing_box.value
    assert drawn.count("hookedu-box") < 30 and drawn.count("hookedu-lit") == 1
    assert "⋯ 145" in drawn and "⊞ 2" in drawn and "<code>150</code>" in drawn


def test_a_large_run_keeps_no_values():
    steps = HookTimeline(nn.Sequential(nn.Identity()), torch.zeros(4_100_000))
    assert "没有保留数值" in steps._event.value and steps.recording[0].value is None


def test_the_overview_is_a_figure_of_our_own():
    steps = HookTimeline(small(), torch.ones(1, 2))
    assert steps.figure.axes[0].get_xlabel() == "order of events"


def test_labels_follow_the_language():
    steps = HookTimeline(small(), torch.ones(1, 2))
    preference.language = "en"
    assert (
        steps._mode.label == "Watch"
        and "Registered by" in steps._event.value
        and "注册" not in steps._event.value
    )
    assert repr(steps) == "HookTimeline()"


def test_closing_lets_go_of_everything(closes):
    steps = HookTimeline(small(), torch.ones(1, 2))
    closes(steps)
    assert __import__("ipywidgets").widgets.widget._instances == {}


def test_values_that_cannot_be_read_are_question_marks():
    with torch.device("meta"):
        steps = HookTimeline(small(), torch.ones(1, 2))
    for number, event in enumerate(steps.recording):
        steps.value = number
        assert steps.error is None and ("[?]" in steps._event.value) == any(
            True for _ in tensors_in(event.value)
        )
