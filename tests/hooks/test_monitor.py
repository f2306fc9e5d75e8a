"""Monitor on runs whose numbers are known."""

import math

import pytest
import torch
from torch import nn

from hookedu.hooks.inspection import list_hooks
from hookedu.hooks.monitor import Monitor
from hookedu.models.ward import FAULTS, HEALTHY, admit, train


class Branches(nn.Module):
    """Two branches, of which one is cut off, and a layer that never runs."""

    def __init__(self) -> None:
        super().__init__()
        self.spare, self.head, self.cut = nn.Linear(1, 1), nn.Linear(3, 2), nn.Linear(4, 3)
        self.body = nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.head(self.body(x) + self.cut(x).detach())


def step(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().sum().backward()
    optimizer.step()


def test_the_numbers_are_those_of_the_tensors():
    torch.manual_seed(0)
    model, x = Branches(), torch.randn(5, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    before = [p.detach().clone() for p in model.head.parameters()]
    first = model.body[0](x)
    hidden = first.relu()
    out = model.head(hidden + model.cut(x).detach())
    at_first, at_hidden, at_out = torch.autograd.grad(out.square().sum(), [first, hidden, out])
    with Monitor(model, optimizer) as monitor:
        step(model, optimizer, x)
    rows = {row.layer: row for row in monitor.rows}
    assert list(rows) == ["body.0", "body.1", "cut", "head"] and monitor.source is None
    # That of body.0 is noted before the ReLU behind it writes over it in place.
    for name, tensor, grad in (
        ("body.0", first, at_first),
        ("body.1", hidden, at_hidden),
        ("head", out, at_out),
    ):
        row = rows[name]
        assert row.mean == pytest.approx(tensor.mean().item(), abs=1e-6)
        assert row.std == pytest.approx(tensor.std().item(), abs=1e-6)
        assert row.gradient == pytest.approx(grad.norm().item(), rel=1e-5)
    assert rows["body.1"].dead == pytest.approx((hidden == 0).all(0).float().mean().item())
    assert (rows["head"].dead, rows["cut"].gradient, rows["cut"].ratio) == (None, None, 0)
    moved = torch.cat(
        [(p.detach() - old).flatten() for p, old in zip(model.head.parameters(), before, strict=True)]
    )
    size = torch.cat([old.flatten() for old in before]).norm()
    assert rows["head"].ratio == pytest.approx((moved.norm() / size).item(), rel=1e-5)
    assert rows["body.1"].ratio is None


def test_channels_are_units_of_images():
    layer = nn.ReLU()
    model, x = nn.Sequential(nn.Conv2d(1, 4, 1), layer), torch.rand(2, 1, 3, 3)
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([-1.0, 1.0, -1.0, -1.0]).view(4, 1, 1, 1))
        model[0].bias.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with Monitor(model, optimizer) as monitor:
        step(model, optimizer, x)
    assert monitor.rows[1].dead == 0.75


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_source_of_the_first_nan_is_kept(value):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with Monitor(model, optimizer) as monitor:
        for n in range(4):
            x = torch.ones(3, 2)
            if n >= 2:
                x[1, 0] = value
            step(model, optimizer, x)
    source = monitor.source
    assert source is not None and (source.step, source.layer, source.sample) == (2, "0", 1)
    assert math.isnan(next(row for row in monitor.rows if row.step == 2).mean)


def test_validation_and_a_step_that_is_not_finished():
    model = nn.Sequential(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with Monitor(model, optimizer) as monitor:
        step(model, optimizer, torch.ones(1, 2))
        with torch.no_grad():
            model(torch.ones(1, 2))
        assert len(monitor.rows) == 1
        model(torch.ones(1, 2))
        assert [row.step for row in monitor.rows] == [0, 1] and monitor.rows[1].gradient is None
    with monitor:
        assert monitor.rows == []
        with pytest.raises(RuntimeError, match="in use"):
            monitor.__enter__()


@pytest.mark.parametrize("fault", [HEALTHY, *FAULTS])
def test_it_changes_nothing_and_leaves_nothing(fault):
    patient = admit(2, fault)
    model, optimizer = patient.build()
    losses = train(model, optimizer, patient.data)
    watched, its = patient.build()
    hooks, state = len(list_hooks(watched)), torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), Monitor(watched, its) as monitor:
        seen = train(watched, its, patient.data)
        raise ZeroDivisionError
    assert torch.equal(torch.tensor(losses).nan_to_num(), torch.tensor(seen).nan_to_num())
    for one, two in zip(model.state_dict().values(), watched.state_dict().values(), strict=True):
        assert torch.equal(one.nan_to_num(), two.nan_to_num())
    assert len(list_hooks(watched)) == hooks and torch.equal(torch.get_rng_state(), state)
    assert not its._optimizer_step_pre_hooks and not its._optimizer_step_post_hooks
    assert {row.step for row in monitor.rows} == set(range(len(patient.data)))


def test_only_models_with_their_optimizer():
    model = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"must be an `nn\.Module`"):
        Monitor(1, torch.optim.SGD(model.parameters(), lr=1.0))
    with pytest.raises(TypeError, match=r"must be a `torch\.optim\.Optimizer`"):
        Monitor(model, 0.1)


def test_norms_of_half_precision_do_not_overflow():
    model = nn.Sequential(nn.Linear(100, 100)).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with Monitor(model, optimizer) as monitor:
        (model(torch.ones(1, 100).half()) * 20000).sum().backward()
        optimizer.step()
    reading = monitor.rows[0]
    assert reading.gradient == pytest.approx(200_000)
    assert math.isfinite(reading.ratio)
