"""Each patient of the ward has what it is said to have, by another definition than those of the lesson; healthy ones learn."""

import math
import random
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from torch import nn

from hookedu.models.ward import FAULTS, HEALTHY, Patient, admit, train
from hookedu.models.ward.patient import fault_of

KINDS = (HEALTHY, *FAULTS)
SEEDS = range(500, 508)


def loss_of(model, batch):
    """Return the loss on a batch, as the loop computes it."""
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def losses_of(patient):
    """Train a patient and return the losses."""
    return train(*patient.build(), patient.data)


def mean_of_last(losses):
    """Return the mean of the last losses."""
    return sum(losses[-8:]) / 8


def chance(patient):
    """Return the loss of one who guesses."""
    return math.log(patient.chart.classes)


def layers(model):
    """Return the layers with weights, without normalisations."""
    return [m for m in model.modules() if isinstance(m, nn.Linear | nn.Conv2d)]


def stretch(patient):
    """Return how much longer the loss's gradient is at the input than at the last hidden activations."""
    model, _ = patient.build()
    inputs, labels = patient.data[0]
    x = inputs.clone().requires_grad_()
    hidden = model[:-1](x)
    grads = torch.autograd.grad(nn.functional.cross_entropy(model[-1](hidden), labels), [x, hidden])
    return (grads[0].norm() / grads[1].norm()).item()


def dead(patient):
    """Return the largest share of units of a ReLU that are zero for all later inputs, after the training."""
    model, optimizer = patient.build()
    train(model, optimizer, patient.data)
    x = torch.cat([inputs for inputs, _ in patient.data[len(patient.data) // 2 :]])
    shares = [0.0]
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.register_forward_hook(
                lambda m, args, out: shares.append(
                    (out.transpose(0, 1).flatten(1) <= 0).all(1).float().mean().item()
                )
            )
    model(x)
    return max(shares)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_always_gives_the_same_patient(kind):
    for seed in SEEDS[:3]:
        one, two = admit(seed, kind), admit(seed, kind)
        assert one.fault == two.fault == kind and one.chart == two.chart
        for batch, same in zip(one.data, two.data, strict=True):
            assert all(
                torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)) for a, b in zip(batch, same, strict=True)
            )
        first, again = losses_of(one), losses_of(one)
        assert torch.tensor(first).equal(torch.tensor(again)) or math.isnan(sum(first))
        assert str(first) == str(again) == str(losses_of(two))


def test_the_seed_decides_unless_one_chooses():
    kinds = [fault_of(seed) for seed in range(2200)]
    assert all(150 < kinds.count(kind) < 250 for kind in KINDS)
    assert [admit(seed).fault for seed in range(30)] == kinds[:30]
    for seed, fault in ((0, "flu"), (-1, None), (0, "")):
        with pytest.raises(ValueError, match="seed must not be negative"):
            admit(seed, fault)


def test_the_global_generators_are_left_alone():
    torch.manual_seed(3), random.seed(3)
    before = torch.get_rng_state(), random.getstate()
    for kind in KINDS:
        losses_of(admit(11, kind))
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()
    torch.manual_seed(4)
    other = losses_of(admit(11, HEALTHY))
    torch.manual_seed(5)
    assert other == losses_of(admit(11, HEALTHY))


def test_patients_vary_and_names_betray_nothing():
    charts = [admit(seed, kind).chart for kind in KINDS for seed in range(40)]
    healthy = [chart for chart in charts if chart.fault == HEALTHY]
    for what in (
        "images",
        "activation",
        "norm",
        "residual",
        "fork",
        "optimizer",
        "names",
        "watched",
    ):
        assert {getattr(chart, what) for chart in charts} == {getattr(chart, what) for chart in healthy}, what
    words = {word for kind in KINDS for word in (kind, *kind.split("_"))} - {"layer", "norm", "in", "too"}
    for kind in KINDS:
        for seed in range(8):
            model, _ = admit(seed, kind).build()
            said = f"{model} {[name for name, _ in model.named_modules()]}".lower()
            assert not [word for word in words if word in said]


def test_healthy_runs_learn():
    for seed in range(500, 540):
        patient = admit(seed, HEALTHY)
        losses = losses_of(patient)
        assert mean_of_last(losses) < 0.85 * chance(patient), patient.chart
        assert dead(patient) < 0.5 and 0.01 < stretch(patient) < 20, patient.chart


@pytest.mark.parametrize("seed", SEEDS)
class TestEachFaultIsThere:
    def test_dying_relus(self, seed):
        assert dead(admit(seed, "dying_relus")) > 0.7

    def test_vanishing(self, seed):
        assert stretch(admit(seed, "vanishing")) < 1e-2

    def test_exploding(self, seed):
        assert stretch(admit(seed, "exploding")) > 20

    def test_bad_sample(self, seed):
        patient = admit(seed, "bad_sample")
        losses = losses_of(patient)
        first = next(n for n, loss in enumerate(losses) if not math.isfinite(loss))
        # The loss is a mean over samples; an infinity that a tanh bounds is in the gradients one step before it is in the loss.
        culprits = []
        for at in (first, first - 1):
            for n, sample in enumerate(patient.data[at][0]):
                if not sample.isfinite().all() or sample.std() == 0:
                    culprits.append((at, n))
        ((at, n),) = culprits
        keep = torch.arange(patient.chart.batch) != n
        cured = [(x[keep], y[keep]) if step == at else (x, y) for step, (x, y) in enumerate(patient.data)]
        assert all(map(math.isfinite, train(*patient.build(), cured)))

    def test_frozen_layer(self, seed):
        moves = []
        for kind in ("frozen_layer", HEALTHY):
            patient = admit(seed, kind)
            model, optimizer = patient.build()
            before = [layer.weight.detach().clone() for layer in layers(model)]
            train(model, optimizer, patient.data)
            moves.append(
                [(m.weight - w).norm() / w.norm() for m, w in zip(layers(model), before, strict=True)]
            )
        still = [n for n, move in enumerate(moves[0]) if move == 0]
        assert len(still) == 1 and moves[1][still[0]] > 0.01 and min(moves[1]) > 0

    def test_detached_branch(self, seed):
        patient = admit(seed, "detached_branch")
        model, optimizer = patient.build()
        trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
        loss = loss_of(model, patient.data[0])
        loss.backward()
        cut = [m for m in layers(model) if m.weight.grad is None]
        assert cut and all(m.weight.requires_grad and id(m.weight) in trained for m in cut)
        with torch.no_grad():
            cut[0].weight.normal_(std=3.0, generator=torch.Generator().manual_seed(0))
            assert loss_of(model, patient.data[0]) != loss

    def test_norm_in_eval(self, seed):
        patient = admit(seed, "norm_in_eval")
        (sick, _), (well, _) = patient.build(), patient.build()
        asleep = [
            m for m in sick.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) and not m.training
        ]
        x, _ = patient.data[0]
        asis, awake = sick(x), well.train()(x)
        assert asleep and (asis - awake).norm() > 0.1 * awake.norm()

    def test_forgotten_hook(self, seed):
        for kind in ("forgotten_hook", HEALTHY):
            patient = admit(seed, kind)
            model, optimizer = patient.build()
            for module in model.modules():
                for table in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks):
                    table.clear()
            assert (train(model, optimizer, patient.data) == losses_of(patient)) is (kind == HEALTHY)

    def test_rate_too_high(self, seed):
        sick = admit(seed, "rate_too_high")
        usual = {"sgd": 0.05, "momentum": 0.01, "adam": 0.004}[sick.chart.optimizer]
        assert sick.chart.rate > 30 * usual
        well = Patient(replace(sick.chart, fault=HEALTHY, rate=usual))
        assert not sum(losses_of(sick)) < 1.2 * sum(losses_of(well))  # or not a number

    def test_shuffled_labels(self, seed):
        sick, twin = admit(seed, "shuffled_labels"), admit(seed, HEALTHY)
        pairs = list(zip(sick.data, twin.data, strict=True))
        assert all(torch.equal(a, b) for (a, _), (b, _) in pairs)
        (mine, true) = (torch.cat([data[which][1] for data in pairs]) for which in (0, 1))
        assert torch.equal(mine.bincount(), true.bincount()) and not torch.equal(mine, true)
        assert mean_of_last(losses_of(sick)) > 0.9 * chance(sick)


def test_the_loop_calls_after_each_step():
    patient, seen = admit(1, HEALTHY), []
    model, optimizer = patient.build()
    losses = train(
        model, optimizer, patient.data, lambda step: seen.append((step, model[-1].weight.grad.norm()))
    )
    assert [step for step, _ in seen] == list(range(len(losses))) and all(norm > 0 for _, norm in seen)


def test_a_run_is_short():
    patients = [admit(seed, HEALTHY) for seed in SEEDS]
    start = time.perf_counter()
    for patient in patients:
        losses_of(patient)
    print(f"{1000 * (time.perf_counter() - start) / len(patients):.0f} ms a run")
    assert all(30 <= patient.chart.steps <= 80 for patient in patients)


def test_the_ward_loads_on_its_own():
    program = (
        "import sys, hookedu; assert 'hookedu.models.ward' not in sys.modules\n"
        "import hookedu.models.ward; assert not {'matplotlib', 'torchvision', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
