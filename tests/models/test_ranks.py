"""run_ranks(): output of the processes, the error if one fails, and that no process is left behind."""

import os
import re
import time

import pytest

from hookedu.models.ranks import RanksFailed, run_ranks

# Each process writes its ID into a folder of the test, so that the test can check whether it is alive.
SIGN = "import os, pathlib, sys, time\nrank = int(sys.argv[1])\npathlib.Path({!r}, sys.argv[1]).write_text(str(os.getpid()))\n"
# A barrier without torch: wait until all processes have written their file.
ALL_HERE = "while len(os.listdir({!r})) < int(sys.argv[2]): time.sleep(0.01)\n"

TRAINING = """
import datetime, os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank, n = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method=sys.argv[3], rank=rank, world_size=n, timeout=datetime.timedelta(seconds=30))
model = DistributedDataParallel(torch.nn.Linear(2, 1))
loss = model(torch.ones(1, 2)).sum()
if rank == 1:
    print("rank 1 goes", file=sys.stderr, flush=True)
    os._exit(7)
loss.backward()
"""


def living(folder):
    """Return the ranks of the processes that have written their ID and are still alive."""
    alive = []
    for sign in folder.iterdir():
        try:
            os.kill(int(sign.read_text()), 0)
        except ProcessLookupError:
            continue
        alive.append(sign.name)
    return alive


def program(folder, text):
    return (SIGN + ALL_HERE).format(str(folder), str(folder)) + text


def test_each_rank_has_its_number_and_its_output_is_returned(tmp_path):
    script = program(tmp_path, "print('rank', rank, 'of', sys.argv[2], 'à 进程')\nprint(sys.argv[3][:8])")
    assert run_ranks(script, 3) == [f"rank {i} of 3 à 进程\nfile:///\n" for i in range(3)]
    assert not living(tmp_path)


def test_one_that_fails_is_named_and_takes_the_others_along(tmp_path):
    script = program(tmp_path, "if rank == 1: raise ValueError('no such thing')\ntime.sleep(600)")
    start = time.monotonic()
    with pytest.raises(
        RanksFailed, match=r"Rank 1 failed \(exit code 1\)[^$]*ValueError: no such thing"
    ) as failed:
        run_ranks(script, 2, timeout=300)
    assert time.monotonic() - start < 100
    assert re.search("进程 1 出错了", failed.value.says.zh)
    assert not living(tmp_path)


def test_time_is_up_for_all(tmp_path):
    script = program(tmp_path, "if rank == 1: time.sleep(600)")
    with pytest.raises(RanksFailed, match=r"After 1\.5 seconds rank 1 had not ended"):
        run_ranks(script, 2, timeout=1.5)
    assert len(list(tmp_path.iterdir())) == 2 and not living(tmp_path)


def test_a_training_whose_peer_dies_ends_within_its_time(tmp_path):
    with pytest.raises(RanksFailed, match=r"rank 1 goes|[Cc]onnection closed by peer"):  # not the timeout
        run_ranks(program(tmp_path, TRAINING), 2, timeout=300)
    assert len(list(tmp_path.iterdir())) == 2 and not living(tmp_path)
