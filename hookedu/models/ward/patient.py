"""A patient: a training run that can be repeated."""

import torch
from torch import Tensor, nn

from hookedu.models.ward import faults
from hookedu.models.ward.charts import FAULTS, HEALTHY, Chart, Dice, draw
from hookedu.models.ward.networks import SIDE, initialise, network


class Patient:
    """A model with its optimizer, made anew on demand, and the data that it is trained on.

    Attributes
    ----------
    chart : Chart
        What it is like, the fault included.
    data : list of (torch.Tensor, torch.Tensor)
        A batch of inputs and labels for each step.
    """

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.data = _data(chart)

    @property
    def fault(self) -> str:
        """What the patient suffers from: one of `FAULTS`, or `HEALTHY`."""
        return self.chart.fault

    def build(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        """Return a new model and its optimizer, with the same initial values each time."""
        state = torch.get_rng_state()
        model = network(self.chart, faults.path_of(self.chart))
        torch.set_rng_state(state)  # layers draw values when they are made, but other values are used
        initialise(model, self.chart, Dice(self.chart.seed, 2).generator)
        faults.infect(model, self.chart)
        return model, faults.optimizer_of(model, self.chart)


def admit(seed: int, fault: str | None = None) -> Patient:
    """Return the patient of a seed.

    Parameters
    ----------
    seed : int
        The same seed and fault give the same patient, bit for bit. The global random number generators are
        left as they are.
    fault : str, optional
        `HEALTHY` or one of `FAULTS`; without it the seed decides.

    Returns
    -------
    Patient
        With `fault`, `build()` and `data`.

    Raises
    ------
    ValueError
        If there is no such fault, or the seed is negative.
    """
    known = (HEALTHY, *FAULTS)
    if seed < 0 or (fault is not None and fault not in known):
        raise ValueError(f"seed must not be negative, and fault one of {known}; got {seed} and {fault!r}")
    return Patient(draw(seed, fault or fault_of(seed)))


def fault_of(seed: int) -> str:
    """Return what the patient of a seed suffers from if nobody chooses: all kinds are equally frequent."""
    return Dice(seed, 4).one(HEALTHY, *FAULTS)


def _data(chart: Chart) -> list[tuple[Tensor, Tensor]]:
    """Return the batches: each class has a prototype, and a sample is that of its class plus noise."""
    generator = Dice(chart.seed, 3).generator
    shape = (chart.features, SIDE, SIDE) if chart.images else (chart.features,)
    prototypes = torch.randn(chart.classes, *shape, generator=generator)
    batches = []
    for _ in range(chart.steps):
        labels = torch.randint(chart.classes, (chart.batch,), generator=generator)
        noise = torch.randn(chart.batch, *shape, generator=generator)
        batches.append((0.7 * prototypes[labels] + 0.7 * noise, labels))
    return faults.spoil(batches, chart)
