"""record() in daily use: cases 36 to 38 of hookedu/hooks/CASES.md, and large models."""

import itertools
import sys
import threading
import warnings
from contextlib import suppress

import matplotlib.pyplot as plt
import pytest
import torch
from torch import nn

from hookedu import list_hooks, plot_feature_maps, plot_stats, record, timeline
from hookedu.hooks.stats import Stats
from tests.hooks.capture_models import Passes, net


class TestCase36WhatIsKept:
    def test_a_function_decides_for_every_tensor(self):
        model, x = net(), torch.randn(5, 3)
        with record(model, ["0", "2"], inputs=True, gradients=True, keep=lambda t: t[-1]) as rec:
            y = model(x)
            y.sum().backward()
        assert torch.equal(rec["2"].activation, y[-1].detach()) and torch.equal(rec["0"].input[0], x[-1])
        assert rec["2"].gradient.tolist() == [1, 1] and rec.nbytes == 4 * (4 + 2 + 3 + 4 + 4 + 2)

    def test_a_view_is_copied_and_a_graph_never_kept(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))
        nn.init.constant_(model[0].bias, -9)
        with record(model, "0", keep=lambda t: t[0]) as rec:
            model(torch.randn(2, 3))
        kept = rec["0"].activation
        assert kept.untyped_storage().nbytes() == 16 and not kept.requires_grad
        assert (kept < 0).all(), "the later ReLU in place does not show"

    @pytest.mark.parametrize("make", [lambda t: (t[0],), lambda t: {"row": t[0]}, lambda t: t[0].numpy()])
    def test_a_view_is_copied_wherever_it_is(self, make):
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))
        nn.init.constant_(model[0].bias, -9)
        with record(model, "0", keep=make) as rec:
            model(torch.randn(2, 3))
        kept = rec["0"].activation
        (row,) = kept if isinstance(kept, tuple) else kept.values() if isinstance(kept, dict) else [kept]
        assert (row < 0).all(), "the later ReLU in place does not show"

    def test_numbers_may_be_kept_and_structures_stay(self):
        model = nn.LSTM(2, 3)
        with record(model, "", keep=lambda t: t.norm().item(), gradients=True) as rec:
            model(torch.randn(4, 1, 2))[0].sum().backward()
        out, (h, c) = rec[""].activation
        assert all(isinstance(value, float) for value in (out, h, c))
        assert rec[""].gradient[0] == pytest.approx(12**0.5) and rec[""].gradient[1] == (None, None)
        assert repr(rec)

    def test_with_a_device_and_with_bounds(self):
        model, x = net(), torch.randn(5, 3)
        with record(model, "0", keep=lambda t: t[:2], device="cpu", max_bytes=32) as rec:
            y = model[0](x)
        assert torch.equal(rec["0"].activation, y[:2])

    def test_what_the_function_raises_passes_through(self):
        model = net()
        with pytest.raises(ZeroDivisionError), record(model, "0", keep=lambda t: 1 / 0):
            model(torch.ones(1, 3))
        assert not list_hooks(model)

    @pytest.mark.parametrize("options", [{"keep": "mean"}, {"keep": torch.mean, "copy": False}])
    def test_what_makes_no_sense_is_refused(self, options):
        with pytest.raises(ValueError, match="keep"):
            record(net(), "0", **options)

    def test_statistics_alone_merged_over_batches(self):
        torch.manual_seed(0)
        model, batches = net(), [torch.randn(n, 3) * n for n in (1, 2, 30)]
        whole = Stats(model[0](torch.cat(batches)))
        with record(model, "0", keep="stats") as rec:
            for batch in batches:
                model(batch)
        assert rec.nbytes == 0
        merged = rec["0"].stats()
        for name in Stats.NUMBERS:
            assert getattr(merged, name) == pytest.approx(getattr(whole, name), rel=1e-5), name
        with pytest.raises(RuntimeError, match="stats"):
            _ = rec["0"].calls[0].activation

    def test_merged_statistics_of_odd_values(self):
        values = [
            torch.tensor([torch.nan, torch.inf]),
            torch.tensor([]),
            torch.tensor([5.0]),
            torch.tensor([1.0, 0.0]),
        ]
        with record(Passes(), "") as rec:
            for value in values:
                rec._named[""](value)
        merged, whole = rec[""].stats(), Stats(torch.cat(values))
        for name in Stats.NUMBERS:
            assert getattr(merged, name) == pytest.approx(getattr(whole, name)), name


class TestCase37ARecordingIsAMapping:
    def test_items_keys_and_completion(self):
        model = net()
        with record(model, nn.Linear) as rec:
            y = model(torch.ones(1, 3))
        assert list(rec) == list(rec.keys()) == rec._ipython_key_completions_() == ["0", "2"]
        assert [layer.type for layer in rec.values()] == ["Linear", "Linear"]
        assert torch.equal(dict(rec)["2"].activation, y.detach()) and rec.get("1") is None
        assert rec == rec and rec != dict(rec) and len({rec}) == 1
        with pytest.raises(KeyError, match="closest are: '0'"):
            _ = rec["O"]

    @pytest.mark.parametrize("key", [0, None, nn.Linear, ("0",), slice(1), [1]])
    def test_a_key_that_is_no_name_is_told_what_is(self, key):
        with record(net(), nn.Linear) as rec:
            pass
        assert key not in rec and (isinstance(key, list | slice) or rec.get(key) is None)
        with pytest.raises(KeyError, match=rf"by its name, such as '.*got `{type(key).__name__}`.*values"):
            _ = rec[key]

    def test_all_activations_at_once(self):
        shared = nn.Linear(3, 3)
        model = nn.ModuleDict({"twice": shared, "never": nn.Linear(1, 1)})
        with record(model, nn.Linear) as rec:
            first = shared(torch.ones(1, 3))
            second = shared(first)
        found = rec.activations
        assert list(found) == ["twice"]
        assert torch.equal(found["twice"][0], first) and torch.equal(found["twice"][1], second)

    def test_clear_between_batches(self):
        model = net()
        with record(model, "0", gradients=True) as rec:
            old = model(torch.ones(1, 3)).sum()
            rec.clear()
            assert not rec.events and rec.nbytes == 0 and list(rec.missed) == ["0"]
            new = model(torch.full((1, 3), 2.0)).sum()
            old.backward()
            with pytest.raises(RuntimeError, match="backward"):
                _ = rec["0"].gradient
            new.backward()
        assert torch.equal(rec["0"].activation, model[0](torch.full((1, 3), 2.0)))
        assert rec["0"].calls[0].number == 0 and rec["0"].calls[0].n_backward == 1

    def test_clear_gives_max_bytes_back(self):
        model = net()
        with warnings.catch_warnings(), record(model, "0", max_bytes=16) as rec:
            warnings.simplefilter("error")
            for _ in range(3):
                model(torch.ones(1, 3))
                assert rec["0"].activation.numel() == 4
                rec.clear()

    @pytest.mark.parametrize(
        ("pattern", "names"),
        [
            ("blocks.*.attn", ["blocks.0.attn", "blocks.1.attn"]),
            ("blocks.?.attn.*", ["blocks.0.attn.q", "blocks.1.attn.q"]),
            ("blocks.[1-9].mlp", ["blocks.1.mlp"]),
            ("**.q", ["blocks.0.attn.q", "blocks.1.attn.q"]),
            ("blocks.0.**", ["blocks.0", "blocks.0.attn", "blocks.0.attn.q", "blocks.0.mlp"]),
            ("*", ["blocks"]),
        ],
    )
    def test_patterns_of_names(self, pattern, names):
        def block():
            attn = nn.Sequential()
            attn.add_module("q", nn.Linear(2, 2))
            return nn.ModuleDict({"attn": attn, "mlp": nn.Linear(2, 2)})

        model = nn.Module()
        model.blocks = nn.ModuleList([block(), block()])
        rec = record(model, pattern)
        assert list(rec) == names
        rec.close()
        with pytest.raises(KeyError, match=r"blocks\.0\.attn"):
            record(model, "blocks.*.atn")


def test_case_38_calls_are_paired_by_thread():
    class Slow(nn.Module):
        def forward(self, x):
            barrier.wait()  # both threads are inside now
            if x.item() == 1:
                first_done.wait()
            else:
                first_done.set()
            return x * 10

    barrier, first_done, model = threading.Barrier(2), threading.Event(), Slow()
    with record(model, "", inputs=True) as rec:
        threads = [threading.Thread(target=model, args=(torch.tensor(float(n)),)) for n in (1, 2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert [call.activation / call.input[0] for call in rec[""].calls] == [10, 10]


def test_case_38_events_of_several_threads_are_numbered_by_their_position():
    """The first module waits while it is copied, as a large tensor does, until the other thread has logged an event."""

    def keep(tensor):
        if tensor.item() == 1:
            waiting.set()
            second_done.wait(10)
        return tensor.item()

    def second():
        waiting.wait(10)
        model(torch.tensor(2.0))
        second_done.set()

    waiting, second_done, model = threading.Event(), threading.Event(), nn.Identity()
    thread = threading.Thread(target=second)
    thread.start()
    with record(model, "", keep=keep) as rec:
        model(torch.tensor(1.0))
        thread.join()
    assert [event.value for event in rec.events] == [2, 1]
    assert [event.order for event in rec.events] == [0, 1]


def test_case_38_recorders_of_two_threads_at_one_line_do_not_end_one_another():
    model, made = net(), []

    def work():
        both.wait()  # a thread that has ended may pass its identity on to the next
        made.append(record(model, "0"))
        both.wait()

    both = threading.Barrier(2)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    model(torch.ones(1, 3))
    assert [len(rec.events) for rec in made] == [1, 1]
    [rec.close() for rec in made]


def work(function):
    """Return how many Python calls a function takes: a measure of time that no other process disturbs."""
    calls = itertools.count()
    sys.setprofile(lambda *_: next(calls))
    try:
        function()
    finally:
        sys.setprofile(None)
    return next(calls)


def every(of):
    def read(rec):
        for layer in rec.values():
            with suppress(RuntimeError):
                layer.stats(of)

    return read


READ = {
    "missed": lambda rec: rec.missed,
    "summary": lambda rec: rec.summary(),
    "repr": repr,
    "activations": lambda rec: rec.activations,
    "nbytes": lambda rec: rec.nbytes,
    "stats": every("activation"),
    "gradients": every("gradient"),
}


class TestLargeModels:
    @pytest.mark.parametrize("ran", ["nothing", "forward", "forward and backward", "one layer many times"])
    @pytest.mark.parametrize("read", READ)
    def test_reading_takes_linear_time(self, read, ran):
        def work_for(n):
            layer = nn.Linear(1, 1)
            many = ran == "one layer many times"
            model = nn.Sequential(*[layer if many else nn.Linear(1, 1) for _ in range(n)])
            with record(model, nn.Linear, gradients=True) as rec:
                if ran != "nothing":
                    output = model(torch.ones(1))
                if ran == "forward and backward":
                    output.backward()
            return work(lambda: READ[read](rec))

        work_for(100)  # what only the first plot does
        small, middle, large = (work_for(n) for n in (100, 200, 400))
        # Twice the layers, twice the growth (four times if it is quadratic); what does not depend on them cancels out.
        assert large - middle <= 3 * (middle - small) + 2000

    @pytest.mark.parametrize("plot", [plot_stats, plot_feature_maps])
    def test_plots_take_linear_time(self, plot):
        def work_for(n):
            model = nn.Sequential(*[nn.Identity() for _ in range(n)])
            with record(model, nn.Identity) as rec:
                model(torch.ones(1))
            return work(lambda: plt.close(plot(rec).figure))

        assert work_for(1500) <= 6 * work_for(300)

    def test_a_summary_of_thousands_of_layers_stays_small_and_complete(self):
        model = nn.Sequential(*[nn.Identity() for _ in range(3000)])
        with record(model, nn.Identity) as rec:
            model[:1500](torch.ones(1))
        table = rec.summary()
        assert len(table.rows) == 3000 and len(rec.missed) == 1500
        text, page = repr(rec).splitlines(), table._repr_html_()
        assert len(text) == 2 + 200 + 1 + 1 and "2,800 more rows" in text[102]
        assert page.count("<tr>") == 1 + 200 + 1 and "2,800 more rows" in page
        assert text[-2].startswith("2999")

    def test_a_timeline_of_deeply_nested_modules(self):
        model, limit = nn.Linear(1, 1), sys.getrecursionlimit()
        for _ in range(200):  # PyTorch itself comes to about 250
            model = nn.Sequential(model)
        events = timeline(model, torch.ones(1, 1))
        assert len(events) > 200 * 5 and len(repr(events)) < 100_000
        assert sys.getrecursionlimit() == limit

    def test_a_plot_of_many_layers_is_capped_and_says_so(self):
        ax = plot_stats({str(n): torch.ones(1) for n in range(1000)})
        assert ax.figure.get_figheight() < 30 and "first 100 of 1,000 rows" in ax.get_xlabel()
        plt.close(ax.figure)


def test_a_plot_of_what_was_not_recorded_says_what_to_do():
    with record(net(), "0") as rec:
        rec._named[""](torch.ones(1, 3))
    with pytest.raises(RuntimeError, match="gradients=True"):
        plot_stats(rec, of="gradient")


@pytest.mark.parametrize("backward", [True, False])
def test_of_a_model_that_ran_too_early_the_reason_says_so(backward):
    model = net()
    loss = model(torch.ones(1, 3)).sum()
    loss.backward() if backward else None
    with record(model, "0") as rec:
        pass
    assert "had run before the hooks were there" in rec.missed["0"].en


@pytest.mark.parametrize("everything", [nn.Module, "*", lambda name, module: True])
def test_of_all_layers_a_scripted_one_is_missed_with_the_reason(everything):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Sequential(nn.Linear(2, 2), torch.jit.script(nn.Sequential(nn.Linear(2, 2))))
    for choice in ("1", model[1], ["0", "1"], lambda name, module: name == "1"):
        with pytest.raises(TypeError, match="`1`"):
            record(model, choice)
    with record(model, everything, inputs=True, gradients=True) as rec:
        model(torch.ones(1, 2))
    assert rec["0"].activation.shape == (1, 2) and "TorchScript" in str(rec.summary())
    assert [name for name in rec.missed if name in model._modules] == ["1"]
    assert "TorchScript" in rec.missed["1"].en
    model.zero_grad()
    events = timeline(model, torch.ones(1, 2))
    assert {event.path for event in events} == {"", "0"} and events.note.en.endswith(": 1, 1.0")
    assert all(parameter.grad is None for parameter in model.parameters())
