"""Tests of what `Conduct` sees of an answer beside what it returns, on answers that do one thing or several."""

import dataclasses
import random
import subprocess
import sys
import warnings

import hypothesis.strategies as st
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hypothesis import given
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from IPython.utils.capture import capture_output
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from hookedu import list_hooks
from hookedu.exercises import Outcome, conduct, find
from hookedu.exercises.conduct import Conduct
from hookedu.exercises.judging import judge
from hookedu.exercises.probing import Draw, Probe, observe, undisturbed


class Given:
    """What the answers of these tests are handed."""

    def __init__(self) -> None:
        self.model = nn.Sequential(
            nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Sequential(nn.ReLU(), nn.Linear(2, 1))
        )
        self.model[1].eval()  # a frozen part
        self.model[0].bias.requires_grad_(False)
        self.x = torch.ones(3, 2, requires_grad=True)
        self.y = 2 * self.x
        self.items = [torch.zeros(2), "a"]
        self.named = {"one": torch.ones(1)}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)
        self.model[2].register_forward_hook(self.look)
        self.y.register_hook(lambda grad: None)

    def look(self, *_):
        pass

    def arguments(self):
        return self.model, self.x, self.y, self.items, self.named, self.optimizer


def _add_grad(model, x, *_):
    model[0].weight.grad = torch.ones(2, 2)


def _rename(model, *_):
    model[0].name = "first"


def _write_buffer(model, *_):
    model[1].running_mean.add_(1)


DOES = {
    "argument": [
        lambda model, x, *_: x.data.mul_(2),
        lambda model, x, *_: x.detach().numpy().fill(3),
        lambda model, x, y, items, *_: items.append(1),
        lambda model, x, y, items, *_: items.extend(items[:1]),
        lambda model, x, y, items, *_: items[0].add_(1),
        lambda model, x, y, items, named, *_: named.update(one=0),
        lambda model, x, y, items, named, *_: named["one"].mul_(float("nan")),
        lambda *given: given[-1].param_groups[0].update(lr=1.0),
    ],
    "hooks": [
        lambda model, *_: model[2][0].register_forward_hook(lambda *_: None),
        lambda model, *_: model[0].register_full_backward_pre_hook(lambda *_: None),
        lambda model, *_: model.register_state_dict_pre_hook(lambda *_: None),
        lambda model, x, *_: x.register_hook(lambda grad: None),
        lambda model, *_: model[0].weight.register_post_accumulate_grad_hook(lambda p: None),
        lambda *given: given[-1].register_step_pre_hook(lambda *_: None),
        lambda *_: nn.modules.module.register_module_forward_hook(lambda *_: None),
        lambda *_: register_optimizer_step_pre_hook(lambda *_: None),
    ],
    "others": [
        lambda model, *_: model[2]._forward_hooks.clear(),
        lambda model, x, y, *_: y._backward_hooks.clear(),
    ],
    "mode": [
        lambda model, *_: model.train(),
        lambda model, *_: model[2].eval(),
    ],
    "requires_grad": [
        lambda model, x, *_: x.requires_grad_(False),
        lambda model, *_: model.requires_grad_(True),
        lambda model, x, y, items, *_: items[0].requires_grad_(),
    ],
    "grad": [_add_grad],
    "buffers": [_write_buffer],
    "values": [lambda model, *_: model[2][1].weight.data.zero_()],
    "attributes": [
        _rename,
        lambda model, *_: setattr(model[2][0], "inplace", True),
        lambda model, *_: setattr(model, "forward", lambda x: x),
        lambda model, *_: model.append(nn.ReLU()),
        lambda model, x, y, *_: y.retain_grad(),
        lambda model, x, y, *_: setattr(y, "seen", []),
        lambda model, *_: setattr(model[0].weight, "name_", "w"),
    ],
    "rng": [lambda *_: torch.rand(1), lambda *_: random.random(), lambda *_: torch.manual_seed(0)],
    "process": [
        lambda *_: torch.set_grad_enabled(False),
        lambda *_: torch.set_default_dtype(torch.float64),
        lambda *_: torch.autograd.set_detect_anomaly(True),
        lambda *_: torch.set_num_threads(3),
    ],
}
ONE = [(kind, does) for kind, all_of in DOES.items() for does in all_of]


def breaches(*does, **allowed):
    given = Given()
    watching = Conduct(lambda *arguments: [do(*arguments) for do in does], **allowed)
    with undisturbed():
        watching.answer(*given.arguments())
        return watching.breaches()


@pytest.mark.parametrize(("kind", "does"), ONE)
def test_each_thing_left_behind_is_reported_with_its_place(kind, does):
    found = breaches(does)
    assert {kind for kind, _ in found} == {kind}
    assert all(where for _, where in found)
    if kind not in ("argument", "process"):
        assert not breaches(does, leaves=(kind,)), "the exercise allows it"


@given(st.sets(st.integers(0, len(ONE) - 1), max_size=4))
def test_several_things_are_told_apart(which):
    chosen = [ONE[n] for n in sorted(which)]
    # Two of them may undo each other: an update on a table that was cleared, a mode set twice.
    kinds = [kind for kind, _ in chosen]
    if len(set(kinds)) == len(kinds):
        told = {kind for kind, _ in breaches(*(does for _, does in chosen))}
        assert told == set(kinds)


def test_an_answer_that_only_reads_and_runs_is_clean():
    def answer(model, x, y, items, named, optimizer):
        handle = model[0].register_forward_hook(lambda *_: None)
        with torch.no_grad():
            model(x)
        handle.remove()
        return list(items), dict(named), [p.grad for p in model.parameters()], x.clone().mul_(2)

    watching = Conduct(answer)
    with undisturbed():
        given = Given()
        given.model.eval()
        watching.answer(*given.arguments())
        assert watching.breaches() == [] and watching.calls > 3


def test_arguments_that_may_change_are_named_by_place():
    assert not breaches(lambda *given: given[3].append(1), changes=(3,))
    assert breaches(lambda *given: given[3].append(1), changes=(4,)) == [["argument", "args[3]"]]


def test_hooks_handed_over_may_stay_until_their_handles_are_removed():
    handles = []

    def answer(model):
        handles.append(model.register_forward_hook(lambda *_: None))

    watching, model = Conduct(answer, leaves=(conduct.HANDLES,)), nn.Identity()
    watching.answer(model)
    assert watching.breaches() == [["hooks", "model"]]
    handles[0].remove()
    assert watching.breaches() == []


def test_runs_of_a_model_are_counted_in_each_call():
    def twice(model, x):
        return model(model(x))

    for runs, told in ((1, [["runs", "2"]]), (2, [])):
        watching = Conduct(twice, runs=runs)
        watching.answer(nn.Identity(), torch.ones(1)), watching.answer(nn.Identity(), torch.ones(1))
        assert watching.breaches() == told


def _probe(**declared):
    def observe(answer, model):
        return {"out": answer(model, torch.ones(1, 2))}

    return Probe(
        "02.1", "watch", lambda rng: nn.Sequential(nn.Identity(), nn.Identity()), observe, **declared
    )


def _told(answer, **declared):
    record = observe(_probe(**declared), answer, range(3))
    assert record["status"] == "observed", record
    return [dict(one["dict"])["conduct"] for one in record["observations"]]


def test_what_is_kept_between_calls_ends_the_observation():
    def counts(model, x, seen=[]):  # noqa: B006
        seen.append(1)
        return len(seen)

    assert _told(counts) == [[["state", ""]]]
    assert _told(lambda model, x: 1) == [[], [], []]


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, BaseException])
def test_an_exception_in_the_model_must_come_through(kind):
    def swallows(model, x):
        try:
            return model(x)
        except kind:
            return None

    told = {where for kind, where in _told(swallows)[0] if kind == "swallows"}
    every = {"Exception", "KeyboardInterrupt"}
    assert told == {RuntimeError: {"Exception"}, KeyboardInterrupt: {"KeyboardInterrupt"}}.get(kind, every)


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, TypeError, LookupError, ArithmeticError])
def test_an_exception_of_the_model_may_be_swallowed_by_no_clause(kind):
    def lens(model, x):
        try:
            x = model(x)
        except kind:
            return None
        return model[0](x)  # what an answer runs by itself afterwards is not interrupted

    assert _told(lens)[0] == [["swallows", "Exception"]]


def test_what_an_interrupted_answer_leaves_behind_counts_where_the_exercise_says_so():
    def unsafe(model, x, errors=()):
        handle = model[0].register_forward_hook(lambda *_: None)
        try:
            return model(x)
        except errors:
            raise
        finally:
            handle.remove() if errors or sys.exc_info()[0] is None else None

    assert ["unrestored", "model.0"] in _told(unsafe, restores=True)[0]
    assert _told(unsafe)[0] == []
    assert _told(lambda model, x: unsafe(model, x, Exception), restores=True)[0] == []


def test_a_setting_of_the_process_counts_as_well():
    def unsafe(model, x):
        torch.set_grad_enabled(False)
        model(x)
        torch.set_grad_enabled(True)

    assert ["unrestored", "torch.is_grad_enabled()"] in _told(unsafe, restores=True)[0]


def test_an_answer_that_lists_hooks_finds_none_of_the_engines():
    def answer(model, x):
        model(x)
        return len(list_hooks(model))

    assert _told(answer) == [[], [], []]
    record = observe(_probe(), answer, [0])
    assert dict(record["observations"][0]["dict"])["out"] == 0


def test_a_real_interruption_by_the_learner_is_not_taken_for_ours():
    def interrupted(model, x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        observe(_probe(), interrupted, [0])


def test_what_is_printed_is_shown_once(capsys):
    def answer(model, x):
        print("seen")
        print("wrong?", file=sys.stderr)

    observe(_probe(), answer, range(4))
    assert capsys.readouterr() == ("seen\n", "wrong?\n")


def test_what_is_printed_is_shown_once_also_where_the_answer_is_called_often_for_one_case(capsys):
    def watch(y, seen):
        print("registered")
        return y.register_hook(seen.append)

    exercise = find("02.1")
    seeds = exercise.seeds(0)
    assert judge(exercise, observe(exercise.probe, watch, seeds), seeds).outcome is Outcome.CORRECT
    assert capsys.readouterr().out == "registered\n"


@pytest.fixture
def shell():
    """Make an IPython shell, and keep what it displays, as a kernel does."""
    InteractiveShell.instance()
    with capture_output(stdout=False, stderr=False) as shown:
        yield shown
    InteractiveShell.clear_instance()


def test_what_is_displayed_is_shown_once(shell):
    observe(_probe(), lambda model, x: display("seen"), range(4))
    assert [output.data["text/plain"] for output in shell.outputs] == ["'seen'"]


def test_a_warning_is_shown_once(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: print(message, file=sys.stderr)
        observe(_probe(), lambda model, x: warnings.warn("careful", stacklevel=1), range(4))
    assert capsys.readouterr().err == "careful\n"


@pytest.mark.parametrize("new", [True, False])
def test_a_plot_is_drawn_once_and_those_before_it_stay(new):
    """A notebook shows at the end of a cell each figure that is open then."""
    mine = plt.figure()

    def answer(model, x):
        if new:
            plt.figure()
        plt.plot([1, 2])

    try:
        plt.plot([0, 1])
        observe(_probe(), answer, range(4))
        assert [len(plt.figure(n).gca().lines) for n in plt.get_fignums()] == ([1, 1] if new else [2])
        assert plt.figure(mine.number) is mine
    finally:
        plt.close("all")


@pytest.mark.parametrize(
    "disturb",
    [
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_grad_enabled(False),
        lambda: torch.set_default_device("meta"),
        lambda: torch.set_default_device("cuda"),  # also where there is none
        lambda: torch.set_autocast_enabled("cpu", True),
    ],
)
def test_settings_of_the_notebook_do_not_reach_a_check(disturb):
    before = torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    try:
        disturb()
        with undisturbed():
            assert torch.ones(2).dtype == torch.float32 and torch.ones(1).device.type == "cpu"
            x = torch.ones(2, 2, requires_grad=True)
            assert (x @ x).dtype == torch.float32 and (x @ x).requires_grad
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(before[0]), torch.set_grad_enabled(before[1])
        torch.set_autocast_enabled("cpu", before[2])


def test_calls_are_counted_without_a_change_of_the_class_where_no_model_is_given():
    plain = nn.Module._call_impl
    seen = []

    def answer(*_):
        seen.append(nn.Module._call_impl is plain)

    watched = Conduct(answer).answer
    watched(torch.ones(2)), watched(nn.Identity())
    assert seen == [True, False] and nn.Module._call_impl is plain


@pytest.mark.parametrize("name", ["__call__", "_call_impl"])
@pytest.mark.parametrize("given", [nn.Identity(), 1])
def test_a_call_of_all_modules_that_an_answer_replaces_is_put_back(name, given):
    plain = getattr(nn.Module, name)
    Conduct(lambda _: setattr(nn.Module, name, lambda *_: None)).answer(given)
    assert getattr(nn.Module, name) is plain


def test_what_may_change_is_not_copied_and_the_rest_still_compared():
    x, model = torch.ones(2), nn.Linear(2, 2)

    def answer(x, model):
        with torch.no_grad():
            x.add_(1), model.weight.add_(1)
        x.noted, model.noted = 1, 1

    watched = Conduct(answer, changes=(0,), leaves=(conduct.VALUES,))
    watched.answer(x, model)
    assert watched.breaches() == [["attributes", "x.noted"], ["attributes", "model.noted"]]


def test_random_numbers_of_numpy_are_alike_in_every_observation_and_put_back():
    np.random.seed(5)
    before, drawn = np.random.get_state()[1].tolist(), []

    def answer(model, x):
        drawn.append(float(np.random.rand()))
        return drawn[-1]

    assert _told(answer) == [[], [], []]
    assert len(set(drawn)) == 1 and np.random.get_state()[1].tolist() == before


def test_a_breach_costs_full_marks_and_is_named():
    exercise = find("02.1")
    probe = dataclasses.replace(exercise.probe, leaves=(), changes=())
    strict = dataclasses.replace(exercise, probe=probe)
    seeds = strict.seeds(0)
    verdict = judge(strict, observe(probe, lambda y, seen: y.register_hook(seen.append), seeds), seeds)
    assert (verdict.outcome, verdict.points) == (Outcome.PARTLY, exercise.points - 1)
    assert verdict.message_id == "hooks" and "more hooks" in verdict.failed.got.en


def test_a_case_knows_its_turn():
    assert [Draw.of(5, turn).turn for turn in range(3)] == [0, 1, 2]
    assert Draw.of(5, 0).random() == Draw.of(5, 2).random()


def test_an_answer_that_loads_the_compiler_does_not_change_how_it_compiles():
    """It would keep our counting call as that of PyTorch, and compile anew for each hook: 13.2 was refused after 12.3."""
    # In an own process: the other answers of these tests have loaded the compiler before.
    subprocess.run([sys.executable, "-c", _RECOMPUTES_THEN_LOOKS], check=True)


_RECOMPUTES_THEN_LOOKS = """
import sys
import torch
from torch.utils.checkpoint import checkpoint
from hookedu.exercises import Outcome, find
from hookedu.exercises.judging import judge
from hookedu.exercises.observation import dumps, loads
from hookedu.exercises.probing import observe

def recomputes(model, x):
    checkpoint(model, x, use_reentrant=False).sum().backward()

def layer_output(compiled, name, x):
    kept = []
    with compiled.get_submodule(name).register_forward_hook(lambda m, args, output: kept.append(output.detach().clone())):
        with torch.compiler.set_stance("force_eager"):
            compiled(x)
    return kept[0]

assert "torch._dynamo" not in sys.modules
observe(find("12.3").probe, recomputes, find("12.3").seeds(0))
assert "torch._dynamo" in sys.modules
looks = find("13.2")
verdict = judge(looks, loads(dumps(observe(looks.probe, layer_output, looks.seeds(0)))), looks.seeds(0))
assert verdict.outcome is Outcome.CORRECT, verdict
"""
