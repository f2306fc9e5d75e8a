"""record() on models by other authors: see zoo_models.py for which, and zoo.py for what has to hold."""

import pytest
import torch

from hookedu import record
from hookedu.catalog import ROOT
from hookedu.models.ranks import run_ranks
from tests.hooks.zoo import examine, quiet
from tests.hooks.zoo_models import SPECIMENS

pytestmark = pytest.mark.zoo
NAMED = {str(specimen): specimen for specimen in SPECIMENS}


def check(name, **options):
    specimen = NAMED[name]
    if specimen.library in ("transformers", "timm"):
        pytest.importorskip(specimen.library)
    with quiet():
        layers, calls = examine(specimen, **options)
    assert layers and calls


@pytest.mark.parametrize("name", NAMED)
def test_every_call_equals_the_clones_of_hand_written_hooks(name):
    check(name)


@pytest.mark.filterwarnings("ignore:.*compiled")
@pytest.mark.parametrize("name", ["torch/nn.TransformerEncoder", "transformers/bert", "timm/convnext_atto"])
@pytest.mark.parametrize("recorded_before", [True, False])
def test_a_compiled_model(name, recorded_before):
    """Compiled, run, then recorded; or recorded, then compiled and run. The backend computes what the model does."""

    def wrap(model):
        given = NAMED[name].build()[1]
        positional = [given.pop("")] if "" in given else []
        if recorded_before:
            with record(model, torch.nn.Module, inputs=True, gradients=True):
                model(*positional, **given)
        compiled = torch.compile(model, backend="eager")
        compiled(*positional, **given)
        return compiled

    try:
        check(name, wrap=wrap)
    finally:
        torch.compiler.reset()


IN_EACH_PROCESS = """
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from tests.hooks.zoo import examine, quiet
from tests.hooks.zoo_models import SPECIMENS


def sharded(model):
    for layer in [module for module in model.modules() if type(module).__name__.endswith("Layer")]:
        fully_shard(layer)
    return fully_shard(model)


rank, n, meeting_point = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=meeting_point, rank=rank, world_size=n)
wrap = {"fully_shard": sharded, "DDP": DistributedDataParallel}["WAY"]
with quiet():
    print(examine(next(specimen for specimen in SPECIMENS if str(specimen) == "NAME"), wrap=wrap))
dist.barrier()
"""


@pytest.mark.parametrize("way", ["fully_shard", "DDP"])
@pytest.mark.parametrize("name", ["torch/nn.TransformerEncoder", "transformers/llama"])
def test_in_two_processes(way, name, monkeypatch):
    if name.startswith("transformers"):
        pytest.importorskip("transformers")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    first, second = run_ranks(IN_EACH_PROCESS.replace("WAY", way).replace("NAME", name), timeout=300)
    assert first == second and eval(first)[1] > 0
