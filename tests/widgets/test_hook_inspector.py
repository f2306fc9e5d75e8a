"""HookInspector without a browser."""

import contextlib
import functools
import io

import torch
from torch import nn

from hookedu import HookInspector, list_hooks
from hookedu.language import preference


def look(module, args, output):
    """Watch a layer."""


def model_with_hooks() -> nn.Sequential:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model[0].register_forward_hook(look)
    model[0].register_forward_hook(look)
    model[1].register_forward_pre_hook(functools.partial(lambda module, args: None))
    model[0].weight.register_hook(lambda grad: grad)
    return model


def test_the_list_is_that_of_list_hooks_with_sources(untouched):
    model = model_with_hooks()
    untouched(model)
    inspector = HookInspector(model)
    assert inspector.hooks == list_hooks(model) and len(inspector._list.options) == 4
    assert inspector.value.function == "look"
    assert "Watch a layer." in inspector._details.value
    assert "test_hook_inspector.py:" in inspector._about.value
    for number in range(4):
        inspector._list.value = number
        assert inspector.value == inspector.hooks[number]
        assert inspector.value.kind in inspector._about.value
    assert "2 次" in inspector._report.value and "registered 2 times" in inspector._report.value


def test_removing_takes_the_chosen_hook_off_and_no_other():
    model = model_with_hooks()
    inspector = HookInspector(model)
    inspector._list.value = 1
    gone = inspector.value
    before = list_hooks(model)
    inspector._remove.click()
    assert [h.id for h in list_hooks(model)] == [h.id for h in before if h is not gone and h.id != gone.id]
    assert "已移除" in inspector._report.value and "has been removed" in inspector._report.value
    assert "registered 2 times" not in inspector._report.value
    while inspector.value is not None:
        inspector._remove.click()
    assert list_hooks(model) == [] and inspector._remove.disabled
    assert "没有钩子" in inspector._report.value
    inspector._remove.click()
    assert inspector.error is None


def test_hooks_of_torch_cannot_be_removed():
    layer = torch.nn.utils.spectral_norm(nn.Linear(2, 2))
    inspector = HookInspector(layer)
    owners = [hook.owner for hook in inspector.hooks]
    assert "torch" in owners
    inspector._list.value = owners.index("torch")
    assert inspector._remove.disabled
    inspector._remove.click()
    assert [hook.owner for hook in list_hooks(layer)] == owners


def test_refresh_finds_what_has_come_and_keeps_the_choice():
    model = model_with_hooks()
    inspector = HookInspector(model)
    inspector._list.value = 1
    chosen = inspector.value
    model.register_forward_hook(look)
    inspector._refresh.click()
    assert len(inspector._list.options) == 5 and inspector.value.id == chosen.id


def test_with_an_input_the_run_is_watched_too(untouched):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    kept = []
    model[0].register_forward_hook(lambda module, args, output: kept.append(output.detach()))
    untouched(model)
    inspector = HookInspector(model, torch.ones(1, 2))
    assert "overwritten" in [finding.id for finding in inspector.findings]
    assert "clone()" in inspector._report.value and kept == []


class Gain(nn.Linear):
    """A layer with an option."""

    def forward(self, x, *, gain=1.0):
        return super().forward(x) * gain


def test_the_model_runs_when_it_is_asked_to_and_not_again(untouched):
    model = nn.Sequential(Gain(2, 2))
    runs = []
    model[0].register_forward_hook(lambda module, args, output: runs.append(1) or print("a run"))
    untouched(model)
    inspector = HookInspector(model, torch.ones(1, 2))
    assert runs == []
    with contextlib.redirect_stdout(io.StringIO()) as said:
        inspector.refresh()
        handle = model[0].register_forward_hook(look)
        inspector.refresh()
        inspector._list.value = 1
    assert said.getvalue() == "" and len(inspector.hooks) == 2
    assert "have changed since" in inspector._report.value and "有变化" in inspector._report.value
    with contextlib.redirect_stdout(io.StringIO()) as said:
        inspector._refresh.click()
    assert said.getvalue() == "a run\n" and "have changed since" not in inspector._report.value
    assert inspector._refresh.description == "重新运行 · Run again"
    inspector._list.value = 1
    handle.remove()
    inspector._remove.click()
    assert "have changed since" in inspector._report.value


def test_arguments_are_given_as_to_the_model():
    inspector = HookInspector(Gain(2, 2), torch.ones(1, 2), gain=2.0)
    assert inspector.error is None and inspector.findings == []
    wrong = HookInspector(Gain(2, 2), torch.ones(1, 2), loss=2.0)
    assert isinstance(wrong.error, TypeError)
    wrong.refresh()
    assert isinstance(wrong.error, TypeError), "it has not run again"
    assert "nothing is wrong" not in wrong._report.value


def test_what_could_not_be_put_back_is_said():
    model, numbers = nn.Sequential(nn.Linear(2, 2)), iter("abc")
    model[0].register_forward_hook(lambda module, args, output: next(numbers) and None)
    inspector = HookInspector(model, torch.ones(1, 2))
    assert "str_ascii_iterator" in inspector._report.value or "str_iterator" in inspector._report.value


def test_an_error_of_the_model_is_shown_and_hooks_still_listed():
    inspector = HookInspector(model_with_hooks(), torch.ones(1, 7))
    assert isinstance(inspector.error, RuntimeError) and "RuntimeError" in inspector._error_report.value
    assert len(inspector._list.options) == 4
    inspector._list.value = 2
    assert "lambda" in inspector._details.value


def test_labels_follow_the_language():
    inspector = HookInspector(model_with_hooks())
    preference.language = "en"
    assert inspector._remove.description == "Remove this hook" and "归属" not in inspector._about.value
    assert repr(inspector) == "HookInspector()"


def test_closing_lets_go_of_everything(closes):
    closes(HookInspector(model_with_hooks()))
    assert __import__("ipywidgets").widgets.widget._instances == {}
