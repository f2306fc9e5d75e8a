"""HookInspector without a browser."""

import contextlib
import functools
import io

import pytest
import torch
from torch import nn

from hookedu import HookInspector, list_hooks, record
from tests.hooks.capture_models import hook_tables


def look(module, args, output):
    """Watch a layer."""


def model_with_hooks() -> nn.Sequential:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model[0].register_forward_hook(look)
    model[0].register_forward_hook(look)
    model[1].register_forward_pre_hook(functools.partial(lambda module, args: None))
    model[0].weight.register_hook(lambda grad: grad)
    return model


def sent(inspector: HookInspector, kind: str) -> dict:
    """Return the content of the message that a browser has last got."""
    return inspector._posted[kind][0]["content"]


def press(inspector: HookInspector, kind: str, **content) -> None:
    """Do what a button does in the browser."""
    inspector._receive(inspector, {"kind": kind, **content}, [])


def choose(inspector: HookInspector, number: int) -> None:
    """Choose a hook by its place in the list."""
    press(inspector, "choose", key=sent(inspector, "hooks")["rows"][number][0])


def words(inspector: HookInspector, key: str) -> str:
    """Return words of the widget, in both languages."""
    return " ".join(inspector.words[key].values())


def found(inspector: HookInspector, what: str = "says") -> str:
    """Return what was found, in English."""
    return " | ".join(finding[what]["en"] for finding in sent(inspector, "findings")["found"])


def test_the_list_is_that_of_list_hooks_with_sources(untouched):
    model = model_with_hooks()
    untouched(model)
    inspector = HookInspector(model)
    rows = sent(inspector, "hooks")["rows"]
    assert inspector.hooks == list_hooks(model) and len(rows) == 4
    assert inspector.value.function == "look"
    assert "Watch a layer." in sent(inspector, "hook")["source"]
    assert "test_hook_inspector.py:" in words(inspector, "about")
    for number, row in enumerate(rows):
        choose(inspector, number)
        assert inspector.value == inspector.hooks[number] and sent(inspector, "hooks")["value"] == row[0]
        assert row[1:4] == (inspector.value.function, inspector.value.path, inspector.value.kind)
        assert inspector.value.kind in words(inspector, "about")


def test_findings_have_a_severity_and_a_line_and_lead_to_their_hook():
    model = model_with_hooks()
    model[1].register_forward_hook(lambda module, args, output: output.detach())
    inspector = HookInspector(model, torch.ones(1, 2))
    severities = [finding["severity"] for finding in sent(inspector, "findings")["found"]]
    assert (
        severities == sorted(severities, key=["serious", "warning", "minor"].index)
        and len(set(severities)) == 3
    )
    assert "`look:" in found(inspector, "title") and "is registered 2 times" in found(inspector, "title")
    assert "was a cell run again?" in found(inspector)
    assert f"诊断：发现 {len(severities)} 个问题" in words(inspector, "verdict")
    cut = next(f for f in sent(inspector, "findings")["found"] if "cuts the graph" in f["title"]["en"])
    press(inspector, "choose", key=cut["key"])
    assert (inspector.value.path, inspector.value.kind) == ("1", "forward")


def test_one_finding_is_not_called_findings():
    model = nn.Sequential(nn.Linear(2, 2))
    for _ in range(2):
        model[0].register_forward_hook(look)
    assert inspector_says(model) == "**Diagnosis: 1 finding**"
    model[0].register_forward_hook(lambda *_: None)
    assert inspector_says(model) == "**Diagnosis: 2 findings**"


def inspector_says(model: nn.Module) -> str:
    return HookInspector(model).words["verdict"]["en"]


def test_removing_takes_the_chosen_hook_off_and_no_other():
    model = model_with_hooks()
    inspector = HookInspector(model)
    choose(inspector, 1)
    gone = inspector.value
    before = list_hooks(model)
    press(inspector, "remove")
    assert [h.id for h in list_hooks(model)] == [h.id for h in before if h is not gone and h.id != gone.id]
    assert "已移除" in words(inspector, "status") and "has been removed" in words(inspector, "status")
    assert "registered 2 times" not in found(inspector)
    assert inspector.value.id == before[2].id  # the next one in the list
    while inspector.value is not None:
        inspector.remove()
    assert list_hooks(model) == [] and not sent(inspector, "hook")["removable"]
    assert "没有钩子" in words(inspector, "verdict")
    inspector.remove()
    assert inspector.error is None


def test_what_was_removed_comes_back_in_its_place_several_times():
    model = model_with_hooks()
    model[0].register_forward_hook(lambda module, args, output: None)
    tables, before = hook_tables(model), list_hooks(model)
    orders = [[list(table) for table in hook_tables(model)]]
    inspector = HookInspector(model)
    assert not sent(inspector, "hook")["undoable"]
    for number in (1, 0, 2):
        choose(inspector, number)
        press(inspector, "remove")
        orders.append([list(table) for table in hook_tables(model)])
    orders.pop()
    while orders:
        assert sent(inspector, "hook")["undoable"]
        press(inspector, "undo")
        assert [list(table) for table in hook_tables(model)] == orders.pop()
        assert "放回了" in words(inspector, "status") and "is back on" in words(inspector, "status")
    assert hook_tables(model) == tables and list_hooks(model) == before
    assert inspector.value == before[1]  # the one that came back last is selected
    assert not sent(inspector, "hook")["undoable"]
    inspector.undo()
    assert hook_tables(model) == tables and inspector.error is None


def test_it_stays_off_when_the_module_has_changed_and_what_was_removed_elsewhere_comes_back():
    model = model_with_hooks()
    inspector = HookInspector(model)
    choose(inspector, 2)
    elsewhere = inspector.value
    press(inspector, "remove")
    choose(inspector, 0)
    press(inspector, "remove")
    new = model[0].register_forward_hook(look)
    hooks = [hook.id for hook in list_hooks(model)]
    press(inspector, "undo")
    assert [hook.id for hook in list_hooks(model)] == hooks and new.id in hooks
    assert "was not put back" in words(inspector, "status") and "没有放回" in words(inspector, "status")
    press(inspector, "undo")
    assert inspector.value == elsewhere and len(list_hooks(model)) == len(hooks) + 1
    assert "is back on" in words(inspector, "status")


def test_a_hook_that_somebody_else_has_removed_is_not_removed_again():
    model = nn.Sequential(nn.ReLU())
    handle = model[0].register_forward_hook(look)
    inspector = HookInspector(model)
    handle.remove()
    press(inspector, "remove")
    assert inspector.hooks == [] and not sent(inspector, "hook")["undoable"]


def test_hooks_of_a_recording_are_removed_for_good():
    model = nn.Sequential(nn.ReLU())
    with record(model, layers=nn.ReLU):
        inspector = HookInspector(model)
        assert inspector.value.owner == "hookedu"
        n = len(inspector.hooks)
        press(inspector, "remove")
        assert len(inspector.hooks) == n - 1 and not sent(inspector, "hook")["undoable"]
        assert "are not put back" in words(inspector, "status")


def test_hooks_of_torch_cannot_be_removed():
    layer = torch.nn.utils.spectral_norm(nn.Linear(2, 2))
    inspector = HookInspector(layer)
    owners = [hook.owner for hook in inspector.hooks]
    assert "torch" in owners
    choose(inspector, owners.index("torch"))
    assert not sent(inspector, "hook")["removable"]
    press(inspector, "remove")
    assert [hook.owner for hook in list_hooks(layer)] == owners


def test_refresh_finds_what_has_come_and_keeps_the_choice():
    model = model_with_hooks()
    inspector = HookInspector(model)
    choose(inspector, 1)
    chosen = inspector.value
    model.register_forward_hook(look)
    press(inspector, "again")
    assert len(sent(inspector, "hooks")["rows"]) == 5 and inspector.value.id == chosen.id


def test_with_an_input_the_run_is_watched_too(untouched):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    kept = []
    model[0].register_forward_hook(lambda module, args, output: kept.append(output.detach()))
    untouched(model)
    inspector = HookInspector(model, torch.ones(1, 2))
    assert "overwritten" in [finding.id for finding in inspector.findings]
    assert "clone()" in found(inspector) and kept == []


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
        choose(inspector, 1)
    assert said.getvalue() == "" and len(inspector.hooks) == 2
    assert "have changed since" in words(inspector, "verdict") and "有变化" in words(inspector, "verdict")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        press(inspector, "again")
    assert said.getvalue() == "a run\n" and "have changed since" not in words(inspector, "verdict")
    assert words(inspector, "again") == "重新运行 Run again"
    choose(inspector, 1)
    inspector.remove()
    assert "have changed since" in words(inspector, "verdict")
    inspector.undo()
    assert "have changed since" not in words(inspector, "verdict")
    handle.remove()


def test_arguments_are_given_as_to_the_model():
    inspector = HookInspector(Gain(2, 2), torch.ones(1, 2), gain=2.0)
    assert inspector.error is None and inspector.findings == []
    wrong = HookInspector(Gain(2, 2), torch.ones(1, 2), loss=2.0)
    assert isinstance(wrong.error, TypeError)
    wrong.refresh()
    assert isinstance(wrong.error, TypeError), "it has not run again"
    assert words(wrong, "verdict") == " "


def test_what_could_not_be_put_back_is_reported():
    model, numbers = nn.Sequential(nn.Linear(2, 2)), iter("abc")
    model[0].register_forward_hook(lambda module, args, output: next(numbers) and None)
    inspector = HookInspector(model, torch.ones(1, 2))
    (note,) = sent(inspector, "findings")["notes"]
    assert "str_ascii_iterator" in note["en"] or "str_iterator" in note["en"]


def test_an_error_of_the_model_is_shown_and_hooks_still_listed():
    inspector = HookInspector(model_with_hooks(), torch.ones(1, 7))
    assert isinstance(inspector.error, RuntimeError) and "RuntimeError" in inspector.failure["error"]
    assert len(sent(inspector, "hooks")["rows"]) == 4
    choose(inspector, 2)
    assert "lambda" in sent(inspector, "hook")["source"]


@pytest.mark.parametrize("inputs", [(), (torch.ones(1, 2),)], ids=["inspected", "run"])
def test_looking_again_sends_only_what_is_new(inputs):
    """It looks after every cell that runs."""
    model = model_with_hooks()
    inspector = HookInspector(model, *inputs)
    posted = dict(inspector._posted)
    inspector.refresh()
    assert all(inspector._posted[kind] is message for kind, message in posted.items())
    model[0].register_forward_hook(look)
    inspector.refresh()
    assert inspector._posted["hooks"] is not posted["hooks"]


def test_in_its_place_stand_words_on_what_was_found():
    inspector = HookInspector(model_with_hooks())
    data, _ = inspector._repr_mimebundle_()
    assert "<strong>Diagnosis: " in data["text/html"] and "registered 2 times" in data["text/html"]
    assert data["text/plain"] == repr(inspector) == "HookInspector()"


def test_closing_lets_go_of_everything(closes):
    inspector = HookInspector(model_with_hooks())
    inspector.remove()
    closes(inspector)
    assert __import__("ipywidgets").widgets.widget._instances == {} and inspector._removals == []
